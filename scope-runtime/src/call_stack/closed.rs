//! Call stacks from calls in the order in which they closed, as a recorder knows them.
//!
//! ```text
//! closed 0   inner [10 .... 15]
//! closed 1   outer [10 ........... 20]    took inner: starts no earlier, ends no later, closed first
//! closed 2   q     [22,22]
//! closed 3   p     [22,22]                took q, although the intervals are equal
//! ```
//!
//! The order decides every tie that the clock leaves open. A call that ends before it starts, from
//! a clock that was set back, takes 0 ns at the earlier of the two times and is counted.

use std::cmp::Reverse;
use std::sync::Arc;

use super::arrays::{CallArrays, LaneColumn, NO_PARENT, RegionTable};
use super::error::NestingError;
use super::small_column::SmallColumn;

/// Calls of one rank, one entry per call in the order of closing.
#[derive(Clone, Debug)]
pub struct ClosedCalls<'a> {
    /// Names and sources.
    pub regions: Arc<RegionTable>,
    /// Position of each call's region in `regions`.
    pub region_index: &'a [u32],
    /// Entry times in ns.
    pub starts: &'a [i64],
    /// Exit times in ns.
    pub ends: &'a [i64],
    /// Lane number per call; `None` when the rank is one lane.
    pub lanes: Option<&'a [i64]>,
}

/// Calls with their nesting, and how many were faulty.
#[derive(Clone, Debug)]
pub struct ClosedReport {
    /// The calls; `call_index` is the position in the order of closing among the calls of the region.
    pub calls: CallArrays,
    /// Calls that ended before they started, kept with 0 ns.
    pub faulty: usize,
}

/// Finds the parent of each call from the order of closing.
///
/// On one lane B is inside A when A starts no later, ends no earlier and closed after B; the parent
/// is the A that closed first. Exclusive time leaves out the union of the direct children, so it
/// is never negative, even when a clock that was set back makes children overlap.
///
/// # Errors
///
/// Columns of unequal length (a region index out of range counts as one), or too many calls.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use scope_runtime::call_stack::{ClosedCalls, RegionTable, build_closed_calls};
///
/// let mut regions = RegionTable::default();
/// regions.push("outer", None, None);
/// regions.push("inner", None, None);
/// let closed = ClosedCalls {
///     regions: Arc::new(regions),
///     region_index: &[1, 0],
///     starts: &[10, 10],
///     ends: &[15, 20],
///     lanes: None,
/// };
/// let calls = build_closed_calls(&closed)?.calls;
/// assert_eq!(calls.exclusive_ns, [5, 5]);
/// # Ok::<(), scope_runtime::call_stack::NestingError>(())
/// ```
pub fn build_closed_calls(closed: &ClosedCalls<'_>) -> Result<ClosedReport, NestingError> {
    check(closed)?;
    let calls = closed.starts.len();
    let mut numbers = closed.lanes.map(<[i64]>::to_vec);
    if let Some(numbers) = &mut numbers {
        numbers.sort_unstable();
        numbers.dedup();
    }
    let lane_of = |at: usize| match (&numbers, closed.lanes) {
        (Some(numbers), Some(lanes)) => numbers.partition_point(|number| *number < lanes[at]),
        _ => 0,
    };
    let mut pending: Vec<Vec<Pending>> = vec![Vec::new(); numbers.as_ref().map_or(1, Vec::len)];
    let mut nested = Nested { parent: vec![NO_PARENT; calls], exclusive_ns: vec![0; calls] };
    let mut faulty = 0;
    for at in 0..calls {
        let (mut start, end) = (closed.starts[at], closed.ends[at]);
        if end < start {
            start = end;
            faulty += 1;
        }
        nested.close(&mut pending[lane_of(at)], Pending { call: at as u32, start, end });
    }
    Ok(ClosedReport { calls: in_call_order(closed, numbers.as_deref(), &lane_of, nested), faulty })
}

fn check(closed: &ClosedCalls<'_>) -> Result<(), NestingError> {
    let expected = closed.starts.len();
    let in_range = closed.region_index.iter().filter(|at| (**at as usize) < closed.regions.len());
    let columns = [
        ("ends", closed.ends.len()),
        ("lanes", closed.lanes.map_or(expected, <[i64]>::len)),
        ("region indexes", closed.region_index.len()),
        ("region indexes in range", in_range.count()),
    ];
    if let Some((column, found)) = columns.into_iter().find(|(_, found)| *found != expected) {
        return Err(NestingError::Columns { region: "(all)".to_owned(), column, expected, found });
    }
    if expected >= u32::MAX as usize {
        return Err(NestingError::TooManyCalls(expected));
    }
    Ok(())
}

/// A closed call whose parent has not closed yet.
#[derive(Clone, Copy)]
struct Pending {
    call: u32,
    start: i64,
    end: i64,
}

/// What is found per call, in the order of closing.
struct Nested {
    parent: Vec<u32>,
    exclusive_ns: Vec<i64>,
}

impl Nested {
    /// Takes the calls inside `outer` from the end of `pending`, which is ordered by start.
    fn close(&mut self, pending: &mut Vec<Pending>, outer: Pending) {
        let first = pending.iter().rposition(|inner| inner.start < outer.start).map_or(0, |at| at + 1);
        let (mut covered_ns, mut covered_to) = (0_i64, outer.start);
        let mut kept = first;
        for at in first..pending.len() {
            let inner = pending[at];
            if inner.end > outer.end {
                // Closed before `outer` yet ends after it: the clock was set back in between.
                pending[kept] = inner;
                kept += 1;
                continue;
            }
            self.parent[inner.call as usize] = outer.call;
            let from = inner.start.max(covered_to);
            covered_ns += inner.end.saturating_sub(from).max(0);
            covered_to = covered_to.max(inner.end);
        }
        pending.truncate(kept);
        pending.insert(first, outer);
        let duration_ns = outer.end.saturating_sub(outer.start);
        self.exclusive_ns[outer.call as usize] = duration_ns - covered_ns;
    }
}

/// Columns by start; of calls that start together the one that closed last encloses, so it is first.
fn in_call_order(
    closed: &ClosedCalls<'_>,
    numbers: Option<&[i64]>,
    lane_of: &dyn Fn(usize) -> usize,
    nested: Nested,
) -> CallArrays {
    let calls = closed.starts.len();
    let start = |at: usize| closed.starts[at].min(closed.ends[at]);
    let mut order: Vec<u32> = (0..calls as u32).collect();
    order.sort_unstable_by_key(|&at| (start(at as usize), Reverse(at)));
    let mut place = vec![NO_PARENT; calls];
    order.iter().zip(0..).for_each(|(&at, id)| place[at as usize] = id);
    let mut seen = vec![0_u32; closed.regions.len()];
    let number_in_region = |&region: &u32| {
        let seen = &mut seen[region as usize];
        *seen += 1;
        *seen - 1
    };
    let call_index: Vec<u32> = closed.region_index.iter().map(number_in_region).collect();
    let mut arrays = CallArrays::with_capacity(Arc::clone(&closed.regions), numbers, calls);
    arrays.region_index.extend(order.iter().map(|&at| closed.region_index[at as usize]));
    for &at in &order {
        let at = at as usize;
        let parent = place.get(nested.parent[at] as usize).copied().unwrap_or(NO_PARENT);
        let above = arrays.depth.get(parent as usize).copied();
        arrays.depth.push(above.map_or(0, |depth| depth + 1));
        arrays.parent.push(parent);
        arrays.start_ns.push(start(at));
        arrays.end_ns.push(closed.ends[at]);
        arrays.call_index.push(call_index[at]);
        arrays.exclusive_ns.push(nested.exclusive_ns[at]);
    }
    if let Some(LaneColumn { index, .. }) = &mut arrays.lane {
        *index = SmallColumn::below(numbers.map_or(0, <[i64]>::len), calls);
        index.extend(order.iter().map(|&at| lane_of(at as usize) as u32));
    }
    arrays
}
