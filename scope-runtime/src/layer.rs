//! A layer for `tracing-subscriber` that records spans as regions.
//!
//! It takes metadata, id, enter, exit and close of each span from the subscriber, and asks it nothing.
//! What a span's events become is in `lane/spans.rs`.

mod callsites;
mod table;

use std::fmt::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tracing_core::Subscriber;
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer};

use crate::lane::{OFF, STATE, SpanKey};
use table::SpanTable;

/// A layer that records the spans of `tracing` as regions, in the same stacks as
/// [`scope`](macro@crate::scope) and [`region!`](crate::region).
///
/// A span is one call of the region that has its name: from when it is entered first to when it is
/// exited last. Where it is entered more than once, as by `future.instrument(span)`, it is busy in
/// between as the future of an async region is while it is polled. A span that is never entered is no
/// call.
///
/// The rules in detail:
/// * Time counts where a span ran: its parent is what is open on the thread when it is entered first,
///   be it a span or a region. Explicit parents change nothing.
/// * Where nothing is open on the thread, as in a spawned task, a span has a [link](crate::link()) to where it
///   was made, or to the last span open there that it was said to follow (`follows_from`).
/// * Entered again on a thread that has it open, it just stays open until it was exited as often. Entered
///   on a second thread meanwhile, it is a call of its own there.
/// * The exit of a span ends whatever was entered inside it and is still open, as the end of a region
///   does. A span that ended so is a new call when it is entered again.
/// * A span that is made while nothing is recorded, or that a filter keeps from this layer, is not
///   recorded; what is inside it hangs where it would without it.
/// * Fields are not recorded, but see [`ScopeLayer::with_field`]. Equal names are one region.
///
/// # Examples
///
/// Two lines in `main`:
/// ```no_run
/// use tracing_subscriber::prelude::*;
///
/// let _session = scope_runtime::init();
/// tracing_subscriber::registry().with(scope_runtime::layer()).init();
/// ```
///
/// Beside other layers, with a filter of its own:
/// ```
/// use tracing_subscriber::filter::LevelFilter;
/// use tracing_subscriber::prelude::*;
///
/// let layer = scope_runtime::layer().with_field("shard").with_filter(LevelFilter::INFO);
/// let subscriber = tracing_subscriber::registry().with(layer);
/// tracing::subscriber::with_default(subscriber, || {
///     let answer = tracing::info_span!("load", shard = 3).in_scope(|| 6 * 7);
///     assert_eq!(answer, 42); // measured as `load{shard=3}`
/// });
/// ```
pub fn layer() -> ScopeLayer {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    ScopeLayer { number: NEXT.fetch_add(1, Relaxed), fields: Vec::new(), spans: OnceLock::new() }
}

/// Records spans as regions; made by [`layer`].
#[derive(Debug)]
pub struct ScopeLayer {
    number: u64,
    /// Fields that become part of the name.
    fields: Vec<String>,
    /// The spans that are not closed; made with the first that is recorded.
    spans: OnceLock<SpanTable>,
}

impl ScopeLayer {
    /// Makes a field part of the region's name: a span `request` with the field `shard` of 3 is the
    /// region `request{shard=3}`, one without that field is `request`.
    ///
    /// Only values that are there when the span is made count. Each value makes a region, so this is
    /// for fields with few of them.
    pub fn with_field(mut self, name: impl Into<String>) -> ScopeLayer {
        self.fields.push(name.into());
        self
    }

    fn code_of(&self, attributes: &Attributes<'_>) -> u32 {
        let metadata = attributes.metadata();
        if !self.fields.is_empty() {
            let mut suffix = Suffix { wanted: &self.fields, text: String::new() };
            attributes.record(&mut suffix);
            if !suffix.text.is_empty() {
                let name = format!("{}{{{}}}", metadata.name(), suffix.text);
                return callsites::code_of_name(&name, metadata);
            }
        }
        callsites::code_of(metadata)
    }

    fn key(&self, id: u64) -> SpanKey {
        SpanKey { layer: self.number, id }
    }
}

impl<S: Subscriber> Layer<S> for ScopeLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        if STATE.load(Relaxed) == OFF {
            return;
        }
        self.spans.get_or_init(SpanTable::default).insert(id.into_u64(), self.code_of(attributes));
    }

    fn on_follows_from(&self, id: &Id, followed: &Id, _: Context<'_, S>) {
        if let Some(spans) = self.spans.get() {
            spans.with(id.into_u64(), |span| {
                spans.with(followed.into_u64(), |followed| span.follow(followed));
            });
        }
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        let Some(spans) = self.spans.get() else { return };
        let id = id.into_u64();
        let is_off = STATE.load(Relaxed) == OFF;
        spans.with(id, |span| match is_off {
            false => span.enter(self.key(id)),
            // One that was open before stays open until the last exit.
            true => drop(span.enter_again(self.key(id))),
        });
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        if let Some(spans) = self.spans.get() {
            let id = id.into_u64();
            spans.with(id, |span| span.exit(self.key(id)));
        }
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        if let Some(spans) = self.spans.get() {
            spans.remove(id.into_u64());
        }
    }
}

/// Writes `a=1 b=x` of the fields that are wanted, in the order in which the span has them.
struct Suffix<'a> {
    wanted: &'a [String],
    text: String,
}

impl Suffix<'_> {
    fn add(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        if self.wanted.iter().any(|wanted| wanted == field.name()) {
            let space = if self.text.is_empty() { "" } else { " " };
            // Writing to a string does not fail; a value whose `Debug` does is cut there.
            let _ = write!(self.text, "{space}{}={value}", field.name());
        }
    }
}

impl Visit for Suffix<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format_args!("{value:?}"));
    }
}
