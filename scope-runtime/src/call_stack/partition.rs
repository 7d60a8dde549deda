//! Takes the calls of all regions apart by windows of time, each of which is then put in order by itself.
//!
//! For calls in too many runs to read from each run in turn: those of hundreds of threads and tasks.

use std::ops::Range;

use super::input::RegionCalls;
use super::lanes::Lanes;
use super::order::{Item, WINDOW, ordered, quantiles};
use super::sort::{Calls, bits};
use crate::room::zeros;

/// More windows than this are not written to at once: the place where each continues is to stay in a
/// second-level cache.
const MOST_WINDOWS: usize = 4096;
/// So many slots of time per window, give or take.
const SLOTS_PER_WINDOW: usize = 8;

/// A call in a form that memory can be zeroed to: start, end, region and position, lane.
type Packed = [u64; 4];

fn packed(item: Item) -> Packed {
    let Item { start, end, call, region, lane } = item;
    let call = u64::from(region) << 32 | u64::from(call);
    [start.cast_unsigned(), end.cast_unsigned(), call, u64::from(lane)]
}

/// The calls of a window.
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

/// All calls, those of a window next to each other and in list order.
pub(super) struct Partition {
    calls: Vec<Packed>,
    /// Where the calls of each window end.
    ends: Vec<u32>,
}

impl Partition {
    pub(super) fn of(regions: &[RegionCalls<'_>], lanes: &Lanes) -> Partition {
        let calls: usize = regions.iter().map(RegionCalls::len).sum();
        let cuts = Cuts::of(regions, WINDOW.max(calls / MOST_WINDOWS));
        let mut places = vec![0_u32; cuts.windows()];
        for region in regions {
            region.starts.iter().for_each(|start| places[cuts.window_of(*start)] += 1);
        }
        let mut before = 0;
        places.iter_mut().for_each(|place| before += std::mem::replace(place, before));
        let mut items = zeros::<Packed>(calls);
        for (number, region) in (0..).zip(regions) {
            for (call, (&start, &end)) in region.starts.iter().zip(region.ends).enumerate() {
                let lane = lanes.position(region.lane_number(call));
                let place = &mut places[cuts.window_of(start)];
                items[*place as usize] = packed(Item { start, end, call: call as u32, region: number, lane });
                *place += 1;
            }
        }
        Partition { calls: items, ends: places }
    }

    /// The calls of each window, in order of time.
    pub(super) fn windows(&self) -> impl Iterator<Item = Part<'_>> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| Part(&self.calls[begin as usize..*end as usize]))
    }
}

/// Where windows begin, and a table to find the window of a time.
struct Cuts {
    /// The first time of each window but the first.
    firsts: Vec<u64>,
    /// By slot, how many windows begin up to its first time; one more at the end.
    begun: Vec<u16>,
    first_start: u64,
    slot_shift: u32,
}

impl Cuts {
    fn of(regions: &[RegionCalls<'_>], per_window: usize) -> Cuts {
        let starts = || regions.iter().flat_map(|region| region.starts).map(|start| ordered(*start));
        let (first_start, last_start) =
            starts().fold((u64::MAX, 0), |(first, last), start| (first.min(start), last.max(start)));
        let span = last_start.saturating_sub(first_start);
        let cuts = quantiles(regions.iter().map(|region| region.starts), per_window);
        let slot_bits = bits((cuts.len() * SLOTS_PER_WINDOW) as u64).min(bits(span));
        let slot_shift = bits(span) - slot_bits;
        let mut firsts: Vec<u64> = Vec::with_capacity(cuts.len());
        for first in cuts.into_iter().map(ordered) {
            // At the edge of a slot, where that is not the window before: there is nothing to search for then.
            let edge = first_start + ((first - first_start) >> slot_shift << slot_shift);
            let before = firsts.last().copied().unwrap_or(first_start);
            if first > before {
                firsts.push(if edge > before { edge } else { first });
            }
        }
        let slots = (span >> slot_shift) + 1;
        let mut begun: Vec<u16> = (0..slots)
            .map(|slot| {
                let time = first_start + (slot << slot_shift);
                firsts.partition_point(|first| *first <= time) as u16
            })
            .collect();
        begun.push(firsts.len() as u16);
        Cuts { firsts, begun, first_start, slot_shift }
    }

    fn windows(&self) -> usize {
        self.firsts.len() + 1
    }

    #[inline(always)]
    fn window_of(&self, start: i64) -> usize {
        let start = ordered(start);
        let slot = ((start - self.first_start) >> self.slot_shift) as usize;
        let Range { start: begun, end } = usize::from(self.begun[slot])..usize::from(self.begun[slot + 1]);
        if begun == end {
            return begun;
        }
        begun + self.firsts[begun..end].partition_point(|first| *first <= start)
    }
}
