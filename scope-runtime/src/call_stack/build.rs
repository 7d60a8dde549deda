//! One pass over the calls in order of start, with a stack per lane.
//!
//! ```text
//! lane -2   a [0 ................. 20]
//!             b [2 .. 8] c [8 .. 15]        c closes b: an end on the tick of a start is before it
//!               z [4,4]                     z is inside b, and closed from tick 5 on
//! ```
//!
//! Cost is one step per call whatever the depth, and whatever the number of lanes: with thousands of
//! them the stacks of the next calls are asked for before they are needed.

use std::sync::Arc;

use super::arrays::{CallArrays, RegionTable};
use super::error::NestingError;
use super::faults::{Faults, Outer, first_faulty};
use super::ids;
use super::input::{RegionCalls, count_calls};
use super::open_calls::Stacks;
use super::order::{Item, Order, ordered};
use super::reference;
use super::sort::Sorted;

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
    Ok(reconstruct(regions, calls, None)?.calls)
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
    reconstruct(regions, calls, Some(bad))
}

/// With more lanes than this, their open calls do not stay in a second-level cache.
const MANY_LANES: usize = 2000;

/// `bad` is `None` when the first fault is the result.
fn reconstruct(
    regions: &[RegionCalls<'_>],
    calls: usize,
    bad: Option<BadLanes>,
) -> Result<LaneReport, NestingError> {
    let order = Order::of(regions);
    // With many lanes, what is looked at together should lie in one line of the cache.
    if order.lanes().count() > MANY_LANES {
        nest::<3>(regions, order, calls, bad)
    } else {
        nest::<7>(regions, order, calls, bad)
    }
}

fn nest<const LOOKED_AT: usize>(
    regions: &[RegionCalls<'_>],
    order: Order<'_>,
    calls: usize,
    bad: Option<BadLanes>,
) -> Result<LaneReport, NestingError> {
    let lanes = order.lanes().clone();
    let table = Arc::new(RegionTable::of(regions));
    let mut builder = Builder {
        arrays: CallArrays::with_capacity(table, lanes.numbers.as_deref(), calls),
        stacks: Stacks::<LOOKED_AT>::empty(lanes.count()),
        faults: Faults::none(regions, &lanes, bad),
        regions: Vec::new(),
        lanes: Vec::new(),
    };
    // The longer of two calls that start together encloses the other, so it goes first.
    order.in_order(|item| !ordered(item.end), |calls| builder.take(calls))?;
    Ok(builder.faults.report(builder.arrays))
}

struct Builder<'a, const LOOKED_AT: usize> {
    arrays: CallArrays,
    stacks: Stacks<LOOKED_AT>,
    faults: Faults<'a>,
    /// Region and lane of the calls that are being taken, before they go into narrow columns.
    regions: Vec<u32>,
    lanes: Vec<u32>,
}

impl<const LOOKED_AT: usize> Builder<'_, LOOKED_AT> {
    /// Appends the next calls. Each is looked at once: while one waits for the stack that the call
    /// before has changed, the columns of others are written.
    fn take(&mut self, calls: Sorted<'_>) -> Result<(), NestingError> {
        if self.stacks.lanes() > MANY_LANES {
            calls.iter().for_each(|item| self.stacks.prefetch(item.lane));
        }
        let Builder { arrays, stacks, faults, regions, lanes } = self;
        let first = arrays.len();
        let count = calls.len();
        arrays.append_zeros(count);
        regions.resize(count, 0);
        lanes.resize(count, 0);
        let CallArrays { region_index, start_ns, end_ns, call_index, depth, parent, exclusive_ns, .. } =
            arrays;
        let (starts, ends) = (&mut start_ns[first..][..count], &mut end_ns[first..][..count]);
        let (depths, parents) = (&mut depth[first..][..count], &mut parent[first..][..count]);
        let (regions, lanes) = (&mut regions[..count], &mut lanes[..count]);
        for (at, item) in calls.iter().enumerate() {
            let id = first + at;
            let &Item { start, mut end, call, region, lane } = item;
            let (outer, depth) = stacks.close_before(lane, start);
            if end > outer.end() || end < start {
                let outer = call_index.get(outer.id as usize).map(|&call| {
                    let id = outer.id as usize;
                    let new = id.checked_sub(first).map(|at| regions[at]);
                    let region = new.unwrap_or_else(|| region_index.get(id) as u32);
                    Outer { region, call, end: outer.end() }
                });
                end = faults.meet(item, outer)?;
            }
            (starts[at], ends[at], call_index[id]) = (start, end, call);
            (regions[at], lanes[at]) = (region, lane);
            (depths[at], parents[at]) = (depth, outer.id);
            stacks.open(lane, id as u32, start, end);
            exclusive_ns[id] = end.wrapping_sub(start);
        }
        // By itself, so that the processor has many of these on their way: parents lie anywhere.
        for (&mut parent, (&mut start, &mut end)) in parents.iter_mut().zip(starts.iter_mut().zip(ends)) {
            if let Some(exclusive_ns) = exclusive_ns.get_mut(parent as usize) {
                *exclusive_ns = exclusive_ns.wrapping_sub(end.wrapping_sub(start));
            }
        }
        arrays.region_index.extend(regions.iter().copied());
        if let Some(lane) = &mut arrays.lane {
            lane.index.extend(lanes.iter().copied());
        }
        Ok(())
    }
}
