//! One pass over the calls in order of start, with a stack per lane.
//!
//! ```text
//! lane -2   a [0 ................. 20]
//!             b [2 .. 8] c [8 .. 15]        c closes b: an end on the tick of a start is before it
//!               z [4,4]                     z is inside b, and closed from tick 5 on
//! ```
//!
//! Cost is one step per call whatever the depth; ranks with thousands of lanes go lane by lane, see
//! `by_lane`.

use std::sync::Arc;

use super::arrays::{CallArrays, NO_PARENT, RegionTable};
use super::error::{CallAt, NestingError};
use super::input::{RegionCalls, count_calls};
use super::lanes::Lanes;
use super::open_calls::{NewCalls, Stack};
use super::order::{Item, Run, in_order, ordered};
use super::reference;
use super::{by_lane, ids};

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
/// Durations must be below 2^63 ns.
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
///
/// # Examples
/// ```
/// use scope_runtime::call_stack::{BadLanes, RegionCalls, build_good_lanes};
///
/// // On lane 1 `a` and `b` overlap; lane 0 is good.
/// let lanes = [0, 1];
/// let a = RegionCalls { thread_ids: Some(&lanes), ..RegionCalls::new("a", &[0, 0], &[10, 10]) };
/// let b = RegionCalls { thread_ids: Some(&lanes), ..RegionCalls::new("b", &[2, 5], &[4, 15]) };
/// let report = build_good_lanes(&[a, b], BadLanes::Drop)?;
/// assert_eq!((report.calls.len(), report.errors.len()), (2, 1));
/// assert_eq!(report.calls.exclusive_ns, [8, 2]);
/// # Ok::<(), scope_runtime::call_stack::NestingError>(())
/// ```
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
    // The longer of two calls that start together encloses the other, so it goes first.
    let longest_first = |item: &Item, _: &[Run]| !ordered(item.end);
    if lanes.count() > MANY_LANES
        && let Some(calls) = by_lane::build(regions, &lanes, longest_first)
    {
        return Ok(LaneReport { calls, errors: Vec::new(), repaired: 0 });
    }
    let table = Arc::new(RegionTable::of(regions));
    let mut builder = Builder {
        regions,
        arrays: CallArrays::with_capacity(table, lanes.numbers.as_deref(), calls),
        stacks: vec![Stack::EMPTY; lanes.count()],
        faulty_lanes: vec![false; lanes.count()],
        lanes: &lanes,
        faults,
        errors: Vec::new(),
        repaired: 0,
    };
    in_order(regions, &lanes, longest_first, |runs, items| builder.take(runs, items))?;
    Ok(builder.finish())
}

/// With more lanes than this, their open calls do not stay in the cache.
const MANY_LANES: usize = 2000;

struct Builder<'a> {
    regions: &'a [RegionCalls<'a>],
    arrays: CallArrays,
    stacks: Vec<Stack>,
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
        arrays.exclusive_ns.extend(items.iter().map(|item| item.end.wrapping_sub(item.start)));
        arrays.parent.extend(items.iter().map(|_| NO_PARENT));
        arrays.depth.extend(items.iter().map(|_| 0));
        let mut done = 0;
        while let Some(item) = items.get(done) {
            let lane = runs[item.run as usize].lane;
            let arrays = &mut self.arrays;
            let new = base + done..base + items.len();
            let to = NewCalls {
                ends: &arrays.end_ns[new.clone()],
                depths: &mut arrays.depth[new.clone()],
                parents: &mut arrays.parent[new.clone()],
                exclusive_ns: &mut arrays.exclusive_ns,
            };
            let of_lane = |item: &Item| runs[item.run as usize].lane == lane;
            let nested = self.stacks[lane as usize].nest(new.start, &items[done..], of_lane, to);
            if nested == 0 {
                // The first call is of the lane, so it does not fit.
                self.fault(new.start, item, &runs[item.run as usize])?;
            }
            done += nested;
        }
        Ok(())
    }

    /// Deals with call `id`, which does not fit where it is: an error, or another end.
    #[cold]
    fn fault(&mut self, id: usize, item: &Item, run: &Run) -> Result<(), NestingError> {
        let (outer, outer_end) = self.stacks[run.lane as usize].top();
        let error = self.error(item, run, outer);
        if self.faults == Faults::Fail {
            return Err(first_faulty(self.regions).unwrap_or(error));
        }
        let end = item.end.max(item.start).min(outer_end);
        self.arrays.end_ns[id] = end;
        self.arrays.exclusive_ns[id] = end.wrapping_sub(item.start);
        if !std::mem::replace(&mut self.faulty_lanes[run.lane as usize], true) {
            self.errors.push(error);
        }
        self.repaired += 1;
        Ok(())
    }

    fn error(&self, item: &Item, run: &Run, outer: u32) -> NestingError {
        let lane = self.lanes.number(run.lane);
        let at = |region: usize, call: u32| Box::new(CallAt::find(self.regions, region, call as usize, lane));
        let inner = at(run.region as usize, item.call);
        if item.end < item.start {
            return NestingError::EndsBeforeStart(inner);
        }
        let outer = outer as usize;
        let outer = at(self.arrays.region_index.get(outer), self.arrays.call_index[outer]);
        NestingError::Overlap { outer, inner }
    }

    fn finish(self) -> LaneReport {
        let Builder { mut arrays, mut stacks, errors, mut repaired, .. } = self;
        stacks.iter_mut().for_each(|stack| stack.close_all(&mut arrays.exclusive_ns));
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
