//! Event codes by call site, found without a lock: metadata live as long as the program.

use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use tracing_core::Metadata;

use crate::format::code;
use crate::region;

/// A call site that was seen before.
struct Known {
    metadata: AtomicPtr<Metadata<'static>>,
    /// 0 while it is being written.
    code: AtomicU32,
}

/// How many call sites are kept; those of a program with more are looked up by name.
const SLOTS: usize = 1024;
/// Slots in which a call site may be.
const PROBES: usize = 8;

static KNOWN: [Known; SLOTS] = [const { Known::new() }; SLOTS];

impl Known {
    const fn new() -> Known {
        Known { metadata: AtomicPtr::new(ptr::null_mut()), code: AtomicU32::new(0) }
    }
}

/// The event code that begins a span of this call site.
#[inline]
pub(super) fn code_of(metadata: &'static Metadata<'static>) -> u32 {
    let place = ptr::from_ref(metadata).cast_mut();
    for known in slots(place) {
        if known.metadata.load(Relaxed) == place {
            match known.code.load(Acquire) {
                0 => break,
                code => return code,
            }
        }
    }
    learn(metadata, place)
}

fn slots(place: *mut Metadata<'static>) -> impl Iterator<Item = &'static Known> {
    let spread = (place.addr() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    (0..PROBES).map(move |n| &KNOWN[(spread as usize + n) % SLOTS])
}

#[cold]
fn learn(metadata: &'static Metadata<'static>, place: *mut Metadata<'static>) -> u32 {
    let code = code_of_name(metadata.name(), metadata);
    for known in slots(place) {
        let before = known.metadata.compare_exchange(ptr::null_mut(), place, Relaxed, Relaxed);
        if before.is_ok() || before == Err(place) {
            known.code.store(code, Release);
            break;
        }
    }
    code
}

/// The event code that begins a span of this name. The first place that has the name is the region's.
pub(super) fn code_of_name(name: &str, metadata: &'static Metadata<'static>) -> u32 {
    let file = || metadata.file().unwrap_or_default();
    let place = || (metadata.target(), file(), metadata.line().unwrap_or_default());
    let region = region::code_of_named(name, place) - code::FIRST_REGION;
    (code::FIRST_SPAN + region) as u32
}
