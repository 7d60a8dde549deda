//! Ticks of one rank as ns of rank 0.

use super::ClockOffset;
use crate::clock::{ClockPair, TickScale};

/// Comparisons that lie closer together say nothing about how the clocks drift apart, ns.
const LEAST_BETWEEN_NS: i64 = 1_000_000_000;

/// The scale through two moments of a rank's own clock, in ns of rank 0: as the first and the last
/// comparison say, if there are any. In between that is what lies between them.
///
/// Where no comparison is sure that there is a difference there is none: ranks of one machine read one
/// clock.
pub(super) fn scale(first: ClockPair, second: ClockPair, offsets: &[ClockOffset]) -> TickScale {
    let differ = offsets.iter().any(|offset| offset.offset_ns.saturating_abs() > offset.uncertainty_ns);
    let (Some(begin), Some(end), true) = (offsets.first(), offsets.last(), differ) else {
        return TickScale::between(first, second);
    };
    let between_ns = end.at_ns.saturating_sub(begin.at_ns);
    let shifted = |pair: ClockPair| {
        let offset_ns = if between_ns < LEAST_BETWEEN_NS {
            // The surer one.
            let best = if begin.uncertainty_ns <= end.uncertainty_ns { begin } else { end };
            best.offset_ns
        } else {
            let drift_ns = i128::from(end.offset_ns) - i128::from(begin.offset_ns);
            let since_ns = i128::from(pair.ns) - i128::from(begin.at_ns);
            let drifted_ns = drift_ns.saturating_mul(since_ns) / i128::from(between_ns);
            begin.offset_ns.saturating_add(i64::try_from(drifted_ns).unwrap_or(0))
        };
        ClockPair { ns: pair.ns.saturating_add(offset_ns), ..pair }
    };
    TickScale::between(shifted(first), shifted(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn pair(ns: i64) -> ClockPair {
        ClockPair { ticks: (3 * ns).cast_unsigned(), ns }
    }

    fn offset(at_ns: i64, offset_ns: i64, uncertainty_ns: i64) -> ClockOffset {
        ClockOffset { at_ns, offset_ns, uncertainty_ns }
    }

    #[test]
    fn between_comparisons_the_drift_is_spread_out() {
        let offsets = [offset(SECOND, 5_000, 10), offset(11 * SECOND, 6_000, 10)];
        let scale = scale(pair(0), pair(12 * SECOND), &offsets);
        for (own_ns, shift_ns) in [(0, 4_900), (SECOND, 5_000), (6 * SECOND, 5_500), (11 * SECOND, 6_000)] {
            let ns = scale.ns(pair(own_ns).ticks);
            assert!((ns - own_ns - shift_ns).abs() <= 1, "{own_ns}: {ns}");
        }
    }

    #[test]
    fn a_single_comparison_and_two_close_ones_only_shift() {
        for offsets in [&[offset(5, 700, 3)][..], &[offset(5, 700, 3), offset(1_000, 900, 5)]] {
            let scale = scale(pair(0), pair(4 * SECOND), offsets);
            assert_eq!((scale.ns(0), scale.ns(pair(2 * SECOND).ticks)), (700, 2 * SECOND + 700));
        }
    }

    #[test]
    fn a_difference_that_may_be_none_is_none() {
        let offsets = [offset(0, 90, 100), offset(9 * SECOND, -40, 100)];
        let (first, second) = (pair(0), pair(10 * SECOND));
        assert_eq!(scale(first, second, &offsets), TickScale::between(first, second));
        assert_eq!(scale(first, second, &[]), TickScale::between(first, second));
    }

    #[test]
    fn damaged_offsets_do_no_harm() {
        let numbers = [i64::MIN, -1, 0, 1, i64::MAX];
        for at_ns in numbers {
            for offset_ns in numbers {
                let offsets = [offset(at_ns, offset_ns, -1), offset(i64::MAX, i64::MIN, 0)];
                scale(pair(0), pair(SECOND), &offsets).ns(7);
            }
        }
    }
}
