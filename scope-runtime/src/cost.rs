//! What one region costs on this machine, measured when recording begins.
//!
//! The calls are real ones, into memory of their own: nothing of them is recorded or counted.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::lane::{OFF, STATE};
use crate::region::Site;
use crate::{clock, lane, os};

/// Calls in a row. Their time in ns is that of one in ps.
const CALLS: usize = 1_000;
/// Rows, of which the median counts: about a millisecond in all.
const ROWS: usize = 21;

static SITE: Site = Site::of_nothing();

/// Time that entering and leaving a region takes, in ps; 0 where recording was off meanwhile. Measured
/// once per process, by whoever asks first.
pub(crate) fn region_ps() -> u32 {
    static KNOWN: AtomicU32 = AtomicU32::new(0);
    let is_off = || STATE.load(Relaxed) == OFF;
    if KNOWN.load(Relaxed) == 0 && !is_off() {
        let cost_ps = measure();
        if !is_off() {
            KNOWN.store(cost_ps, Relaxed);
        }
    }
    KNOWN.load(Relaxed)
}

fn measure() -> u32 {
    // An entry and an end for each call, and the item that always stays free.
    let items: Box<[AtomicU32]> = (0..=2 * CALLS).map(|_| AtomicU32::new(0)).collect();
    let mut rows: [u64; ROWS] = std::array::from_fn(|_| {
        let start_ns = os::monotonic_ns();
        if clock::is_counter() {
            lane::with_items_in(&items, || (0..CALLS).for_each(|_| drop(SITE.enter())));
        } else {
            // Such regions are slower, for the two readings of the clock that they are made of.
            (0..2 * CALLS).for_each(|_| _ = std::hint::black_box(clock::ticks()));
        }
        os::monotonic_ns() - start_ns
    });
    rows.sort_unstable();
    u32::try_from(rows[ROWS / 2]).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_costs_something_and_leaves_nothing_behind() {
        clock::detect();
        assert!(region_ps() > 0);
        assert_eq!(region_ps(), region_ps());
    }
}
