//! Takes the calls of all regions apart by windows of time, each of which is then put in order by itself.
//!
//! ```text
//! region a   |0 3 9 1 7|            |0 3 1 2|, |5 4|, |9 7 8|
//! region b   |5 2 8 4|        to     window    window  window
//! ```
//!
//! A call is copied once, whole, from where it is read in turn to one of a few thousand places that
//! advance in turn, so that nothing is looked up where it is in no cache.

use super::input::RegionCalls;
use super::lanes::Lanes;
use super::order::{Item, WINDOW, ordered, quantiles};
use super::sort::{Calls, bits, counts_before, range};
use crate::cache::prefetch_line;
use crate::room::zeros;

/// With many more windows than this, the lines that are written to do not stay in a second-level cache.
const MANY_WINDOWS: usize = 4096;
/// So many slots of time per window, give or take.
const SLOTS_PER_WINDOW: usize = 8;

/// Places in a window are prefetched so many calls before their turn.
const AHEAD: usize = 4;

/// A call as numbers that are zero at first: start, end, region and position, lane.
type Packed = [u64; 4];

fn pack(item: Item) -> Packed {
    let call = u64::from(item.region) << 32 | u64::from(item.call);
    [item.start.cast_unsigned(), item.end.cast_unsigned(), call, u64::from(item.lane)]
}

/// The calls of a window, in list order.
#[derive(Clone, Copy)]
pub(super) struct Part<'a>(&'a [Packed]);

impl<'a> Part<'a> {
    pub(super) fn starts(self) -> impl ExactSizeIterator<Item = i64> + Clone + use<'a> {
        self.0.iter().map(|call| call[0].cast_signed())
    }
}

impl Calls for Part<'_> {
    type Call = Item;

    #[inline(always)]
    fn at(self, position: u64, _: Option<i64>) -> Item {
        let [start, end, call, lane] = self.0[position as usize];
        Item {
            start: start.cast_signed(),
            end: end.cast_signed(),
            call: call as u32,
            region: (call >> 32) as u32,
            lane: lane as u32,
        }
    }
}

/// All calls, those of a window next to each other.
pub(super) struct Partition {
    calls: Vec<Packed>,
    /// Where the calls of each window end.
    ends: Vec<u32>,
}

impl Partition {
    pub(super) fn of(regions: &[RegionCalls<'_>], lanes: &Lanes) -> Partition {
        let count: usize = regions.iter().map(RegionCalls::len).sum();
        let cuts = Cuts::of(regions, WINDOW.max(count / MANY_WINDOWS));
        // Number of calls per window, then where its next call goes, in the end where it ends.
        let mut places = vec![0_u32; cuts.windows()];
        for region in regions {
            region.starts.iter().for_each(|start| places[cuts.window_of(*start)] += 1);
        }
        counts_before(&mut places);
        let mut calls = zeros(count);
        for (number, region) in (0..).zip(regions) {
            for (call, (&start, &end)) in region.starts.iter().zip(region.ends).enumerate() {
                let lane = lanes.position(region.lane_number(call));
                let place = &mut places[cuts.window_of(start)];
                calls[*place as usize] = pack(Item { start, end, call: call as u32, region: number, lane });
                *place += 1;
                // The processor sees no pattern in so many places.
                calls.get(*place as usize + AHEAD).into_iter().for_each(prefetch_line);
            }
        }
        Partition { calls, ends: places }
    }

    /// The calls of each window, the windows in order of time.
    pub(super) fn windows(&self) -> impl Iterator<Item = Part<'_>> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| Part(&self.calls[begin as usize..end as usize]))
    }
}

/// Where windows begin, and a table to find the window of a time.
struct Cuts {
    /// The first time of each window but the first, as [`ordered`] has it.
    firsts: Vec<u64>,
    /// Of each slot twice the number of the window at its first time, and 1 more where it has others, too.
    /// There are never more than a few times [`MANY_WINDOWS`].
    slots: Vec<u16>,
    /// As [`ordered`] has it.
    first_start: u64,
    slot_shift: u32,
}

impl Cuts {
    fn of(regions: &[RegionCalls<'_>], calls_per_window: usize) -> Cuts {
        let starts = range(regions.iter().flat_map(|region| region.starts).copied()).unwrap_or(0..=0);
        let first_start = ordered(*starts.start());
        let span = ordered(*starts.end()) - first_start;
        let cuts = quantiles(regions.iter().map(|region| region.starts), calls_per_window);
        let slot_bits = bits((cuts.len() * SLOTS_PER_WINDOW) as u64).max(1);
        let slot_shift = bits(span).saturating_sub(slot_bits);
        let mut firsts = Vec::with_capacity(cuts.len());
        let mut before = first_start;
        for cut in cuts.into_iter().map(ordered) {
            // A slot with one window takes no search, so windows begin where slots do, if they can.
            let slot = first_start + ((cut - first_start) >> slot_shift << slot_shift);
            let first = if slot > before { slot } else { cut };
            if first > before {
                firsts.push(first);
                before = first;
            }
        }
        let slot = |slot: u64| {
            let window = firsts.partition_point(|first| *first <= first_start + (slot << slot_shift));
            let is_divided =
                firsts.get(window).is_some_and(|first| (first - first_start) >> slot_shift == slot);
            window as u16 * 2 + u16::from(is_divided)
        };
        let slots = (0..=span >> slot_shift).map(slot).collect();
        Cuts { firsts, slots, first_start, slot_shift }
    }

    fn windows(&self) -> usize {
        self.firsts.len() + 1
    }

    #[inline(always)]
    fn window_of(&self, start: i64) -> usize {
        let slot = self.slots[((ordered(start) - self.first_start) >> self.slot_shift) as usize];
        let window = usize::from(slot / 2);
        if slot.is_multiple_of(2) { window } else { self.search(window, start) }
    }

    /// The window of a time in one of several windows from `window` on.
    #[cold]
    fn search(&self, window: usize, start: i64) -> usize {
        window + self.firsts[window..].partition_point(|first| *first <= ordered(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The windows of calls with these starts have all of them, in order of time.
    fn windows(starts: &[i64]) -> Vec<usize> {
        let region = RegionCalls::new("a", starts, starts);
        let partition = Partition::of(&[region], &Lanes::one());
        let mut last = i64::MIN;
        let mut calls = Vec::new();
        for window in partition.windows() {
            let Some(range) = range(window.starts()) else { continue };
            assert!(last <= *range.start(), "{last} {range:?}");
            last = *range.end();
            calls.extend((0..window.starts().len()).map(|at| window.at(at as u64, None).call));
        }
        calls.sort_unstable();
        assert!(calls.into_iter().eq(0..starts.len() as u32));
        partition.windows().map(|window| window.starts().len()).collect()
    }

    #[test]
    fn every_call_is_in_the_window_of_its_time() {
        windows(&[]);
        windows(&[7]);
        // No time is in the sample.
        windows(&[i64::MIN, 0, i64::MAX]);
        windows(&[[i64::MIN, i64::MAX].as_slice(), &[3; 5000]].concat());
        // All windows but one in a slot.
        let burst: Vec<i64> = (0..100_000).map(|at| at * 7919 % 10_007).collect();
        windows(&[burst.as_slice(), &[1 << 40, i64::MIN]].concat());
    }

    #[test]
    fn windows_are_of_one_size_where_input_has_a_period() {
        for period in [16, 31, 32, 64, 128, 512] {
            let starts: Vec<i64> = (0..200_000).map(|at| at % period * 1000 + at / period % 900).collect();
            let largest = windows(&starts).into_iter().max().unwrap();
            assert!(largest < 3 * WINDOW, "{largest} calls, period {period}");
        }
    }
}
