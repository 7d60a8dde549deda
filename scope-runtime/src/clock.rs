//! The recording clock: ticks read on the hot path, turned into ns after the fact.
//!
//! Ticks come from the processor's time stamp counter where it is invariant (or the virtual
//! counter of aarch64), else from the monotonic clock of the operating system. A pair of ticks
//! and monotonic ns taken at both ends of a recording calibrates the one by the other.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::os;

/// Which counter a recording's ticks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ClockKind {
    /// `CLOCK_MONOTONIC`; one tick is one ns.
    Monotonic = 1,
    /// The processor's counter.
    Counter = 2,
}

impl ClockKind {
    /// The name under which the clock is shown.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ClockKind::Monotonic => "monotonic",
            ClockKind::Counter if cfg!(target_arch = "x86_64") => "tsc",
            ClockKind::Counter => "cntvct",
        }
    }
}

/// 0 until [`detect`] ran, then a `ClockKind`.
static KIND: AtomicU8 = AtomicU8::new(0);

/// Whether ticks come from the processor's counter, so that [`counter`] may stand for [`ticks`].
pub(crate) fn is_counter() -> bool {
    KIND.load(Relaxed) == ClockKind::Counter as u8
}

/// The clock now. Before [`detect`] it is the monotonic clock.
pub(crate) fn ticks() -> u64 {
    if is_counter() { counter() } else { os::monotonic_ns() }
}

/// The time on all clocks, where a test says what it is; 0 where it does not.
#[cfg(test)]
pub(crate) static SIMULATED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// The processor's counter now.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn counter() -> u64 {
    #[cfg(test)]
    if SIMULATED.load(Relaxed) != 0 {
        return SIMULATED.load(Relaxed);
    }
    // SAFETY: every x86-64 processor has the instruction, and Linux leaves it enabled.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: reads a register that user space may read; no memory is touched.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn counter() -> u64 {
    os::monotonic_ns()
}

/// Decides once which clock this process reads.
pub(crate) fn detect() -> ClockKind {
    let kind = if counter_is_steady() { ClockKind::Counter } else { ClockKind::Monotonic };
    KIND.store(kind as u8, Relaxed);
    kind
}

/// Whether the counter runs at one rate on all cores and through idle states: the processor
/// must say so, and the kernel must not have found otherwise.
#[cfg(target_arch = "x86_64")]
fn counter_is_steady() -> bool {
    use core::arch::x86_64::__cpuid;
    const INVARIANT_TSC: u32 = 1 << 8;
    let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & INVARIANT_TSC != 0;
    // A kernel that has marked the counter unstable does not offer it any more.
    let offered =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    invariant && offered.map_or(true, |list| list.split_whitespace().any(|name| name == "tsc"))
}

#[cfg(target_arch = "aarch64")]
fn counter_is_steady() -> bool {
    true
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter_is_steady() -> bool {
    false
}

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockPair {
    /// Ticks of the recording clock.
    pub(crate) ticks: u64,
    /// Monotonic clock of the operating system, ns.
    pub(crate) ns: i64,
}

impl ClockPair {
    /// Reads both clocks as close together as can be had: of a few tries the one in which the
    /// least time passed between the two ticks around the reading of the ns.
    pub(crate) fn now() -> ClockPair {
        let tries = (0..5).map(|_| {
            let before = ticks();
            let ns = os::monotonic_ns();
            let after = ticks();
            let width = after.saturating_sub(before);
            (width, ClockPair { ticks: before + width / 2, ns: ns.cast_signed() })
        });
        tries.min_by_key(|&(width, _)| width).expect("there is a try").1
    }
}

/// Turns ticks into ns: the straight line through two moments.
///
/// One line serves all lanes of a recording, so order and containment are those of the ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TickScale {
    origin: ClockPair,
    /// ns per tick, times 2^48: over an hour of ticks the rounding stays far below 1 ns, and a
    /// conversion needs one multiplication instead of a division.
    rate: u64,
}

const RATE_BITS: u32 = 48;

impl TickScale {
    /// The line through `first` and `last`. Where they lie too close together to give a rate
    /// (or a damaged file has them reversed) a tick counts as one ns.
    pub(crate) fn between(first: ClockPair, last: ClockPair) -> TickScale {
        let ticks = last.ticks.saturating_sub(first.ticks);
        let ns = u64::try_from(last.ns.saturating_sub(first.ns)).unwrap_or(0);
        let rate = match u128::from(ns) << RATE_BITS {
            scaled if scaled > 0 && ticks > 0 => u64::try_from(scaled / u128::from(ticks)).ok(),
            _ => None,
        };
        TickScale { origin: first, rate: rate.unwrap_or(1 << RATE_BITS) }
    }

    /// The length of `ticks` in ns, rounded down: parts never add up to more than the whole.
    pub(crate) fn span_ns(&self, ticks: u64) -> i64 {
        let ns = (u128::from(ticks) * u128::from(self.rate)) >> RATE_BITS;
        i64::try_from(ns).unwrap_or(i64::MAX)
    }

    /// [`TickScale::span_ns`] of a length that may be negative.
    pub(crate) fn signed_span_ns(&self, ticks: i64) -> i64 {
        let ns = self.span_ns(ticks.unsigned_abs());
        if ticks < 0 { -ns } else { ns }
    }

    /// The sum of the ns of `count` moments whose ticks add up to `sum`, modulo 2^64; both may be
    /// what is left after subtracting some.
    pub(crate) fn sum_ns(&self, count: i64, sum: u64) -> i64 {
        let since = sum.wrapping_sub(count.cast_unsigned().wrapping_mul(self.origin.ticks)).cast_signed();
        count.wrapping_mul(self.origin.ns).wrapping_add(self.signed_span_ns(since))
    }

    /// `ticks` in ns on the monotonic clock, to the nearest.
    #[inline]
    pub(crate) fn ns(&self, ticks: u64) -> i64 {
        const HALF: u128 = 1 << (RATE_BITS - 1);
        let scaled = |delta: u64| {
            let ns = (u128::from(delta) * u128::from(self.rate) + HALF) >> RATE_BITS;
            i64::try_from(ns).unwrap_or(i64::MAX)
        };
        if ticks >= self.origin.ticks {
            self.origin.ns.saturating_add(scaled(ticks - self.origin.ticks))
        } else {
            self.origin.ns.saturating_sub(scaled(self.origin.ticks - ticks))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_maps_both_ends_exactly_and_keeps_order() {
        let first = ClockPair { ticks: 1_000, ns: 50 };
        let last = ClockPair { ticks: 4_000, ns: 1_050 };
        let scale = TickScale::between(first, last);
        assert_eq!(scale.ns(1_000), 50);
        assert_eq!(scale.ns(4_000), 1_050);
        assert_eq!(scale.ns(2_500), 550);
        assert_eq!(scale.ns(997), 49);
        assert!((900..5_000).map(|t| scale.ns(t)).is_sorted());
    }

    #[test]
    fn a_scale_survives_ends_that_are_equal_or_reversed() {
        let pair = ClockPair { ticks: 10, ns: 10 };
        assert_eq!(TickScale::between(pair, pair).ns(15), 15);
        let earlier = ClockPair { ticks: 5, ns: 5 };
        assert_eq!(TickScale::between(pair, earlier).ns(u64::MAX), i64::MAX);
    }
}
