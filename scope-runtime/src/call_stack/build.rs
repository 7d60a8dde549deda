//! One pass over the calls in order of start, with a stack per lane.
//!
//! ```text
//! lane -2   a [0 ................. 20]
//!             b [2 .. 8] c [8 .. 15]        c closes b: an end on the tick of a start is before it
//!               z [4,4]                     z is inside b, and closed from tick 5 on
//! ```
//!
//! Cost is one step per call whatever the depth, and whatever the number of lanes: with very many
//! of them the stacks of the next calls, and the calls around, are prefetched.

use std::ops::Range;
use std::sync::Arc;

use super::arrays::{CallArrays, RegionTable};
use super::error::NestingError;
use super::faults::{Faults, Outer, first_faulty};
use super::ids;
use super::input::{RegionCalls, count_calls};
use super::open_calls::{FewStacks, MANY_LANES, ManyStacks, OneStack, OpenCalls, Tick};
use super::order::{Item, Order, Take, ordered};
use super::reference;
use super::sort::{Calls, Sorted, range};
use crate::cache::prefetch_line;

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

/// `bad` is `None` when the first fault is the result.
fn reconstruct(
    regions: &[RegionCalls<'_>],
    calls: usize,
    bad: Option<BadLanes>,
) -> Result<LaneReport, NestingError> {
    let order = Order::of(regions);
    match order.lanes().count() {
        1 => nest(regions, &order, calls, bad, OneStack::empty()),
        lanes if lanes <= MANY_LANES => nest(regions, &order, calls, bad, FewStacks::empty(lanes)),
        lanes => {
            let times = regions.iter().flat_map(|region| region.starts.iter().chain(region.ends));
            let times = range(times.map(|time| ordered(*time))).unwrap_or(0..=0);
            let before = times.start().saturating_sub(1);
            match times.end() - before {
                ..=u32::MOST => nest(regions, &order, calls, bad, ManyStacks::<u32>::empty(lanes, before)),
                _ => nest(regions, &order, calls, bad, ManyStacks::<u64>::empty(lanes, before)),
            }
        }
    }
}

fn nest(
    regions: &[RegionCalls<'_>],
    order: &Order<'_>,
    calls: usize,
    bad: Option<BadLanes>,
    stacks: impl OpenCalls,
) -> Result<LaneReport, NestingError> {
    let lanes = order.lanes();
    let table = Arc::new(RegionTable::of(regions));
    let mut builder = Builder {
        arrays: CallArrays::zeros(table, lanes.numbers.as_deref(), calls),
        taken: 0,
        stacks,
        faults: Faults::none(regions, lanes, bad),
        regions: Vec::new(),
        lanes: Vec::new(),
    };
    // The longer of two calls that start together encloses the other, so it goes first.
    order.in_order(|item| !ordered(item.end), &mut builder)?;
    Ok(builder.faults.report(builder.arrays))
}

/// Lanes are prefetched so many calls before their turn.
const AHEAD: usize = 32;

struct Builder<'a, S> {
    arrays: CallArrays,
    /// So many calls are there.
    taken: usize,
    stacks: S,
    faults: Faults<'a>,
    /// Regions of the calls that were taken last, on their way into a narrow column.
    regions: Vec<u32>,
    /// Lanes of these calls.
    lanes: Vec<u32>,
}

impl<S: OpenCalls> Take for Builder<'_, S> {
    type Error = NestingError;

    fn take<C: Calls<Call = Item>>(&mut self, calls: Sorted<'_, C>) -> Result<(), NestingError> {
        let first = self.taken;
        self.append(calls);
        let mut from = first;
        while let Some(id) = self.nest(from..self.taken) {
            self.repair(id, calls.get(id - first))?;
            from = id;
        }
        self.subtract_from_parents(first..self.taken);
        Ok(())
    }
}

impl<S: OpenCalls> Builder<'_, S> {
    /// Fills the columns that say nothing of nesting.
    fn append<C: Calls<Call = Item>>(&mut self, calls: Sorted<'_, C>) {
        let Builder { arrays, taken, regions, lanes, .. } = self;
        let (first, count) = (*taken, calls.len());
        regions.resize(count, 0);
        lanes.resize(count, 0);
        let starts = &mut arrays.start_ns[first..][..count];
        let ends = &mut arrays.end_ns[first..][..count];
        let indices = &mut arrays.call_index[first..][..count];
        let (regions, lanes) = (&mut regions[..count], &mut lanes[..count]);
        calls.for_each(|at, item| {
            (starts[at], ends[at], indices[at]) = (item.start, item.end, item.call);
            (regions[at], lanes[at]) = (item.region, item.lane);
        });
        arrays.region_index.extend(regions.iter().copied());
        if let Some(lane) = &mut arrays.lane {
            lane.index.extend(lanes.iter().copied());
        }
        *taken += count;
    }

    /// Finds depth, parent and duration of these calls, the last ones that were taken, up to one that does
    /// not fit where it is.
    fn nest(&mut self, new: Range<usize>) -> Option<usize> {
        let first = new.start;
        let starts = &self.arrays.start_ns[new.clone()];
        let ends = &self.arrays.end_ns[new.clone()][..starts.len()];
        let depths = &mut self.arrays.depth[new.clone()][..starts.len()];
        let parents = &mut self.arrays.parent[new.clone()][..starts.len()];
        let (before, durations) = self.arrays.exclusive_ns.split_at_mut(first);
        let durations = &mut durations[..starts.len()];
        let lanes = &self.lanes[self.lanes.len() - starts.len()..];
        // Here, and not behind a reference, the top of a stack is in a register.
        let mut stacks = std::mem::take(&mut self.stacks);
        let mut misfit = None;
        lanes.iter().take(AHEAD).for_each(|lane| stacks.prefetch(*lane));
        for (at, (&start, &lane)) in starts.iter().zip(lanes).enumerate() {
            let (id, end) = (first + at, ends[at]);
            let Some((parent, depth)) = stacks.enter(lane, id as u32, start, end) else {
                misfit = Some(id);
                break;
            };
            if S::ARE_FAR {
                lanes.get(at + AHEAD).into_iter().for_each(|lane| stacks.prefetch(*lane));
                before.get(parent as usize).into_iter().for_each(prefetch_line);
            }
            (depths[at], parents[at], durations[at]) = (depth, parent, end.wrapping_sub(start));
        }
        self.stacks = stacks;
        misfit
    }

    /// Moves the end of a call such that it fits, or gives the error.
    #[cold]
    fn repair(&mut self, id: usize, item: Item) -> Result<(), NestingError> {
        let CallArrays { region_index, end_ns, call_index, .. } = &mut self.arrays;
        let outer = self.stacks.innermost(item.lane, item.start) as usize;
        let outer = call_index.get(outer).map(|&call| Outer {
            region: region_index.get(outer) as u32,
            call,
            end: end_ns[outer],
        });
        end_ns[id] = self.faults.meet(&item, outer)?;
        Ok(())
    }

    /// Makes exclusive times of durations. By itself, so that the processor has many of these on their
    /// way: parents lie anywhere.
    fn subtract_from_parents(&mut self, new: Range<usize>) {
        let CallArrays { start_ns, end_ns, parent, exclusive_ns, .. } = &mut self.arrays;
        let times = start_ns[new.clone()].iter().zip(&end_ns[new.clone()]);
        for (&parent, (&start, &end)) in parent[new].iter().zip(times) {
            if let Some(exclusive_ns) = exclusive_ns.get_mut(parent as usize) {
                *exclusive_ns = exclusive_ns.wrapping_sub(end.wrapping_sub(start));
            }
        }
    }
}
