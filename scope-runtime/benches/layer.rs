//! What the layer adds to a span of `tracing`, as a share of what the span costs through the registry
//! with an empty layer; beside it what other layers add that write down spans.
//!
//! `cargo bench -p scope-runtime --features tracing --bench layer` runs itself once per subscriber and
//! round, since a program has one global subscriber. A row is the median of the rounds' ratios; a round
//! is the median of several measurements in CPU time of the thread that runs the spans.

use std::hint::black_box;
use std::process::Command;

use tracing::info_span;
use tracing::subscriber::set_global_default;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry;

/// Spans in one measurement, measurements in a round, and rounds.
const SPANS: u64 = 200_000;
const MEASUREMENTS: usize = 9;
const ROUNDS: usize = 9;

/// Layers by their name in the table.
const LAYERS: [&str; 5] = ["empty", "scope, recorded", "scope, off", "tracing-flame", "tracing-chrome"];

struct Empty;

impl<S: tracing::Subscriber> Layer<S> for Empty {}

fn main() {
    match std::env::var("LAYER_BENCH") {
        Ok(layer) => measure(&layer),
        Err(_) => run_all(),
    }
}

fn run_all() {
    let rounds: Vec<[f64; LAYERS.len()]> = (0..ROUNDS).map(|_| LAYERS.map(run)).collect();
    println!("{:<20} {:>14} {:>12}", "", "adds, ratio", "ns per span");
    for (index, layer) in LAYERS.into_iter().enumerate() {
        let ratio = median(rounds.iter().map(|round| round[index] / round[0] - 1.0).collect());
        let ns = median(rounds.iter().map(|round| round[index]).collect());
        println!("{layer:<20} {ratio:>14.3} {ns:>12.1}");
    }
}

/// Runs this program with one layer and gives what it says: ns per span.
fn run(layer: &str) -> f64 {
    let folder = std::env::temp_dir().join(format!("layer-bench-{}", std::process::id()));
    let mut command = Command::new(std::env::current_exe().expect("a running program has a path"));
    command.env("LAYER_BENCH", layer).env("SCOPE_EVENT_LIMIT", "64GiB").env_remove("SCOPE_OUTPUT");
    if layer == "scope, recorded" {
        command.env("SCOPE_OUTPUT", &folder);
    }
    let output = command.output().expect("the benchmark starts again");
    let _ = std::fs::remove_dir_all(&folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

fn measure(layer: &str) {
    let set = match layer {
        "tracing-flame" => {
            set_global_default(registry().with(tracing_flame::FlameLayer::new(std::io::sink())))
        }
        "tracing-chrome" => {
            let (layer, guard) = tracing_chrome::ChromeLayerBuilder::new().writer(std::io::sink()).build();
            // It lives as long as the subscriber.
            std::mem::forget(guard);
            set_global_default(registry().with(layer))
        }
        "empty" => set_global_default(registry().with(Empty)),
        _ => set_global_default(registry().with(scope_runtime::layer())),
    };
    set.expect("it is the first");
    time_spans();
    println!("{}", median((0..MEASUREMENTS).map(|_| time_spans()).collect()));
}

/// CPU time in ns per span, with one in each other one.
fn time_spans() -> f64 {
    let start = thread_cpu_ns();
    for n in 0..SPANS / 2 {
        info_span!("outer").in_scope(|| info_span!("inner").in_scope(|| black_box(n)));
    }
    (thread_cpu_ns() - start) as f64 / SPANS as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
