//! One pass over the calls in order of start, with a stack per lane.
//!
//! ```text
//! lane -2   a [0 ................. 20]
//!             b [2 .. 8] c [8 .. 15]        c closes b: an end on the tick of a start is before it
//!               z [4,4]                     z is inside b, and closed from tick 5 on
//! ```
//!
//! The stacks take no memory of their own: a lane knows its innermost open call, the rest hangs
//! on the parent column. Cost is one step per call whatever the depth and the number of lanes.

use std::sync::Arc;

use super::arrays::{CallArrays, NO_PARENT, RegionTable};
use super::error::{CallAt, NestingError};
use super::ids;
use super::input::{RegionCalls, count_calls};
use super::lanes::Lanes;
use super::order::{Item, Run, in_order, ordered};
use super::reference;

/// Whose answer is wanted where the reference differs from what is right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Right at any time below 2^63 ns; recorded call ids decide parents where every region has them.
    #[default]
    Default,
    /// As scope-profiler 0.7.5: ids are ignored, times on both sides of 2^62 ns are an error.
    Reference,
}

/// What to do with a lane whose calls do not nest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadLanes {
    /// Leave out all calls of the lane.
    #[default]
    Drop,
    /// Keep it: an inner call ends with its outer call, a call that ends before its start takes 0 ns.
    Repair,
}

/// The lanes that nest, and what was wrong with the others.
#[derive(Clone, Debug)]
pub struct LaneReport {
    /// Calls of the good lanes; with [`BadLanes::Repair`] of all.
    pub calls: CallArrays,
    /// The first error of each lane that has one, in order of time.
    pub errors: Vec<NestingError>,
    /// Number of calls whose end was moved.
    pub repaired: usize,
}

/// Reconstructs the nesting of one rank's calls from their intervals.
///
/// Regions are taken in list order, which decides ties: of two calls with the same interval the
/// one listed first encloses the other. Of calls that start together the longer one encloses. A
/// call of 0 ns is inside a call that starts on its tick, but not inside one that ends there.
/// When every region has `call_ids` and `parent_ids` and they are consistent, these decide.
///
/// # Errors
///
/// The first [`NestingError`] in order of time, with both calls.
pub fn build_call_arrays(regions: &[RegionCalls<'_>], mode: Mode) -> Result<CallArrays, NestingError> {
    let calls = count_calls(regions)?;
    if mode == Mode::Default
        && let Some(arrays) = ids::build(regions, calls)
    {
        return Ok(arrays);
    }
    if mode == Mode::Reference {
        first_faulty(regions).map_or(Ok(()), Err)?;
        if reference::overflows(regions) {
            return Err(NestingError::ReferenceOverflow);
        }
    }
    Ok(reconstruct(regions, calls, Faults::Fail)?.calls)
}

/// As [`build_call_arrays`], but a lane that does not nest is left out or repaired.
///
/// # Errors
///
/// Only for columns of unequal length or too many calls.
pub fn build_good_lanes(regions: &[RegionCalls<'_>], bad: BadLanes) -> Result<LaneReport, NestingError> {
    let calls = count_calls(regions)?;
    if let Some(calls) = ids::build(regions, calls) {
        return Ok(LaneReport { calls, errors: Vec::new(), repaired: 0 });
    }
    let faults = match bad {
        BadLanes::Drop => Faults::Drop,
        BadLanes::Repair => Faults::Repair,
    };
    reconstruct(regions, calls, faults)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Faults {
    Fail,
    Drop,
    Repair,
}

fn reconstruct(
    regions: &[RegionCalls<'_>],
    calls: usize,
    faults: Faults,
) -> Result<LaneReport, NestingError> {
    let lanes = Lanes::find(regions);
    let table = Arc::new(RegionTable::of(regions));
    let mut builder = Builder {
        regions,
        arrays: CallArrays::with_capacity(table, lanes.numbers.as_deref(), calls),
        tops: vec![Top::NONE; lanes.count()],
        faulty_lanes: vec![false; lanes.count()],
        lanes: &lanes,
        faults,
        errors: Vec::new(),
        repaired: 0,
    };
    // The longer of two calls that start together encloses the other, so it goes first.
    let longest_first = |item: &Item, _: &[Run]| !ordered(item.end);
    in_order(regions, &lanes, longest_first, |runs, items| builder.take(runs, items))?;
    Ok(builder.finish())
}

/// The innermost open call of a lane, with what is needed of it at each start.
#[derive(Clone, Copy)]
struct Top {
    id: u32,
    depth: u32,
    end: i64,
    /// Last tick at which a call that starts is inside: the end only for a call of 0 ns.
    last: i64,
}

impl Top {
    /// Below the outermost call: nothing ends it, anything fits.
    const NONE: Top = Top { id: NO_PARENT, depth: u32::MAX, end: i64::MAX, last: i64::MAX };

    #[inline]
    fn new(id: u32, depth: u32, start: i64, end: i64) -> Top {
        Top { id, depth, end, last: end - i64::from(end != start) }
    }
}

/// The columns that nesting reads and writes.
struct Columns<'a> {
    start_ns: &'a [i64],
    end_ns: &'a mut [i64],
    depth: &'a mut [u32],
    parent: &'a mut [u32],
    exclusive_ns: &'a mut [i64],
}

impl Columns<'_> {
    /// Columns of one length, which the compiler can then rely on.
    fn of(arrays: &mut CallArrays, len: usize) -> Columns<'_> {
        Columns {
            start_ns: &arrays.start_ns[..len],
            end_ns: &mut arrays.end_ns[..len],
            depth: &mut arrays.depth[..len],
            parent: &mut arrays.parent[..len],
            exclusive_ns: &mut arrays.exclusive_ns[..len],
        }
    }

    /// The call that encloses call `id`.
    #[inline]
    fn below(&self, id: u32) -> Top {
        let parent = self.parent[id as usize];
        if parent == NO_PARENT {
            return Top::NONE;
        }
        let at = parent as usize;
        Top::new(parent, self.depth[at], self.start_ns[at], self.end_ns[at])
    }
}

struct Builder<'a> {
    regions: &'a [RegionCalls<'a>],
    arrays: CallArrays,
    tops: Vec<Top>,
    lanes: &'a Lanes,
    faults: Faults,
    faulty_lanes: Vec<bool>,
    errors: Vec<NestingError>,
    repaired: usize,
}

impl Builder<'_> {
    fn take(&mut self, runs: &[Run], items: &[Item]) -> Result<(), NestingError> {
        let arrays = &mut self.arrays;
        let base = arrays.len();
        arrays.start_ns.extend(items.iter().map(|item| item.start));
        arrays.end_ns.extend(items.iter().map(|item| item.end));
        arrays.call_index.extend(items.iter().map(|item| item.call));
        arrays.region_index.extend(items.iter().map(|item| runs[item.run as usize].region));
        if let Some(lane) = &mut arrays.lane {
            lane.index.extend(items.iter().map(|item| runs[item.run as usize].lane));
        }
        arrays.exclusive_ns.extend(items.iter().map(|item| item.end.saturating_sub(item.start)));
        arrays.parent.extend(items.iter().map(|_| NO_PARENT));
        arrays.depth.extend(items.iter().map(|_| 0));
        let mut done = 0;
        loop {
            done += self.nest(base + done, runs, &items[done..]);
            let Some(item) = items.get(done) else { return Ok(()) };
            self.fault(base + done, item, &runs[item.run as usize])?;
        }
    }

    /// Nests calls from `first` on until one does not fit; gives the number of calls that did.
    fn nest(&mut self, first: usize, runs: &[Run], items: &[Item]) -> usize {
        let columns = Columns::of(&mut self.arrays, first + items.len());
        for (at, item) in items.iter().enumerate() {
            let id = first + at;
            let slot = &mut self.tops[runs[item.run as usize].lane as usize];
            let mut top = *slot;
            while item.start > top.last {
                top = columns.below(top.id);
            }
            // A call that an earlier fault has shortened is read from the column again.
            let end = columns.end_ns[id];
            if end > top.end || end < item.start {
                return at;
            }
            let depth = top.depth.wrapping_add(1);
            columns.depth[id] = depth;
            columns.parent[id] = top.id;
            if top.id != NO_PARENT {
                let exclusive = &mut columns.exclusive_ns[top.id as usize];
                *exclusive = exclusive.saturating_sub(end.saturating_sub(item.start));
            }
            *slot = Top::new(id as u32, depth, item.start, end);
        }
        items.len()
    }

    /// Deals with call `id`, which does not fit where it is: an error, or another end.
    #[cold]
    fn fault(&mut self, id: usize, item: &Item, run: &Run) -> Result<(), NestingError> {
        let mut top = self.tops[run.lane as usize];
        let columns = Columns::of(&mut self.arrays, id + 1);
        while item.start > top.last {
            top = columns.below(top.id);
        }
        let end = item.end.max(item.start).min(top.end);
        columns.end_ns[id] = end;
        columns.exclusive_ns[id] = end.saturating_sub(item.start);
        let error = self.error(item, run, &top);
        if self.faults == Faults::Fail {
            return Err(first_faulty(self.regions).unwrap_or(error));
        }
        if !std::mem::replace(&mut self.faulty_lanes[run.lane as usize], true) {
            self.errors.push(error);
        }
        self.repaired += 1;
        Ok(())
    }

    fn error(&self, item: &Item, run: &Run, top: &Top) -> NestingError {
        let lane = self.lanes.number(run.lane);
        let at = |region: usize, call: u32| Box::new(CallAt::find(self.regions, region, call as usize, lane));
        let inner = at(run.region as usize, item.call);
        if item.end < item.start {
            return NestingError::EndsBeforeStart(inner);
        }
        let outer = top.id as usize;
        let outer = at(self.arrays.region_index.get(outer), self.arrays.call_index[outer]);
        NestingError::Overlap { outer, inner }
    }

    fn finish(self) -> LaneReport {
        let Builder { mut arrays, errors, mut repaired, .. } = self;
        if self.faults == Faults::Drop && !errors.is_empty() {
            repaired = 0;
            let kept =
                |id: usize| arrays.lane.as_ref().is_some_and(|lane| !self.faulty_lanes[lane.index.get(id)]);
            let picked: Vec<u32> = (0..arrays.len()).filter(|id| kept(*id)).map(|id| id as u32).collect();
            arrays = arrays.pick(&picked);
        }
        LaneReport { calls: arrays, errors, repaired }
    }
}

/// The error for the first call in list order that ends before it starts.
fn first_faulty(regions: &[RegionCalls<'_>]) -> Option<NestingError> {
    let threads = regions.iter().any(|region| region.thread_ids.is_some());
    regions.iter().enumerate().find_map(|(number, region)| {
        let at = region.starts.iter().zip(region.ends).position(|(start, end)| end < start)?;
        let lane = threads.then(|| region.lane_number(at));
        Some(NestingError::EndsBeforeStart(Box::new(CallAt::find(regions, number, at, lane))))
    })
}
