//! Each profiler with its own way to record a function, as its documentation shows it.

use std::any::Any;
use std::hint::black_box;
use std::path::Path;

use tracing_subscriber::Registry;
use tracing_subscriber::prelude::*;

use crate::Peer;

pub(crate) const PEERS: [Peer; 8] = [
    Peer {
        name: "scope-runtime",
        survives_a_kill: true,
        start: |folder| {
            // SAFETY: no other thread runs yet.
            unsafe { std::env::set_var("SCOPE_OUTPUT", folder) };
            Box::new(scope_runtime::init())
        },
        region: ours,
        trace: |run| run(),
    },
    Peer {
        name: "scope-runtime, totals only",
        survives_a_kill: true,
        start: |folder| {
            // SAFETY: no other thread runs yet.
            unsafe {
                std::env::set_var("SCOPE_OUTPUT", folder);
                std::env::set_var("SCOPE_TOTALS_ONLY", "1");
            }
            Box::new(scope_runtime::init())
        },
        region: ours,
        trace: |run| run(),
    },
    Peer {
        name: "hotpath",
        survives_a_kill: false,
        start: |_| Box::new(hotpath::HotpathGuardBuilder::new("peers").format(hotpath::Format::None).build()),
        region: by_hotpath,
        trace: |run| run(),
    },
    Peer {
        name: "fastrace, trace of 1,000 spans",
        survives_a_kill: false,
        start: |_| {
            struct Nowhere;
            impl fastrace::collector::Reporter for Nowhere {
                fn report(&mut self, spans: Vec<fastrace::collector::SpanRecord>) {
                    drop(black_box(spans));
                }
            }
            fastrace::set_reporter(Nowhere, fastrace::collector::Config::default());
            Box::new(())
        },
        region: by_fastrace,
        trace: |run| {
            let root = fastrace::Span::root("trace", fastrace::collector::SpanContext::random());
            let _guard = root.set_local_parent();
            run();
        },
    },
    Peer {
        name: "puffin, frame of 1,000 scopes",
        survives_a_kill: false,
        start: |_| {
            puffin::set_scopes_on(true);
            Box::new(())
        },
        region: by_puffin,
        trace: |run| {
            run();
            puffin::GlobalProfiler::lock().new_frame();
        },
    },
    Peer {
        name: "tracing, an empty layer",
        survives_a_kill: false,
        start: |_| {
            struct Empty;
            impl tracing_subscriber::Layer<Registry> for Empty {}
            Registry::default().with(Empty).init();
            Box::new(())
        },
        region: by_tracing,
        trace: |run| run(),
    },
    Peer {
        name: "tracing-flame",
        survives_a_kill: false,
        start: |folder: &Path| {
            let (layer, guard) =
                tracing_flame::FlameLayer::with_file(folder.join("flame.folded")).expect("a file");
            Registry::default().with(layer).init();
            Box::new(guard)
        },
        region: by_tracing,
        trace: |run| run(),
    },
    Peer {
        name: "tracing-chrome",
        survives_a_kill: false,
        start: |folder: &Path| -> Box<dyn Any> {
            let (layer, guard) =
                tracing_chrome::ChromeLayerBuilder::new().file(folder.join("trace.json")).build();
            Registry::default().with(layer).init();
            Box::new(guard)
        },
        region: by_tracing,
        trace: |run| run(),
    },
];

#[scope_runtime::scope]
#[inline(never)]
fn ours(x: u64) -> u64 {
    black_box(x + 1)
}

#[hotpath::measure]
#[inline(never)]
fn by_hotpath(x: u64) -> u64 {
    black_box(x + 1)
}

#[fastrace::trace]
#[inline(never)]
fn by_fastrace(x: u64) -> u64 {
    black_box(x + 1)
}

#[inline(never)]
fn by_puffin(x: u64) -> u64 {
    puffin::profile_function!();
    black_box(x + 1)
}

#[tracing::instrument(skip_all)]
#[inline(never)]
fn by_tracing(x: u64) -> u64 {
    black_box(x + 1)
}
