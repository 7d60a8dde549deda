//! Paths from recorded parents, as `ids.rs` has for calls in memory.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use super::blocks::{Call, Reader, parts};
use super::stacks::{LEAST_SWEEP, OpenCall, Stacks};
use super::windows::Windows;
use super::{CallColumn, CallVisitor, StoredCalls, StoredError};
use crate::call_stack::order::ordered;
use crate::profile::RegionId;
use crate::totals::{PathId, PathTree};

/// Of calls that start together the one with the smaller id was entered first.
pub(super) fn tie(call: &Call) -> u64 {
    ordered(call.id)
}

/// A call that may still have children.
struct Open {
    id: i64,
    path: PathId,
    start: i64,
    end: i64,
    lane: u32,
    exclusive_ns: i64,
}

impl OpenCall for Open {
    fn has_ended(&self, start: i64) -> bool {
        self.end < start
    }
}

/// The calls so far.
struct Recorded {
    totals: Totals,
    /// Per lane the calls around the last one, and it; those that have ended go when the next begins.
    open: Stacks<Open>,
    aside: Aside,
    /// `None` where no id is known to occur twice.
    seen: Option<SeenIds>,
}

/// Calls that others have followed on their lane although they end later or at that moment: with times as
/// coarse as that they may have children yet.
#[derive(Default)]
struct Aside {
    calls: HashMap<i64, Open>,
    /// The latest end among them.
    until: i64,
    /// So many were left when they were looked through.
    left: usize,
}

/// What ended calls add up to.
#[derive(Default)]
struct Totals {
    paths: PathTree,
    /// Children took more time than a call had.
    is_negative: bool,
}

/// The paths; `None` where ids contradict each other or the times: then the intervals decide. `are_unique`
/// where that is known of the ids.
pub(super) fn nest<S: StoredCalls>(
    reader: &mut Reader<'_, S>,
    mut windows: Windows,
    are_unique: bool,
    visitor: &mut impl CallVisitor,
) -> Result<Option<PathTree>, StoredError<S::Error>> {
    let mut recorded = Recorded::new(are_unique);
    while windows.read(reader)? {
        recorded.open.extend_to(reader.lanes.numbers.len());
        let taken = windows.in_order(|call| match recorded.take(call) {
            Some(path) => {
                visitor.call(&recorded.totals.paths, path, call.start, call.end);
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        });
        if taken.is_break() {
            return Ok(None);
        }
    }
    drop(windows);
    let are_sparse = recorded.seen.as_ref().is_some_and(|seen| seen.are_too_sparse);
    let Some(paths) = recorded.into_paths() else { return Ok(None) };
    let are_unique = !are_sparse || compare_ids(reader)?;
    Ok(are_unique.then_some(paths))
}

impl Recorded {
    fn new(are_unique: bool) -> Recorded {
        let (totals, aside) = Default::default();
        let seen = (!are_unique).then(SeenIds::default);
        Recorded { totals, open: Stacks::new(), aside, seen }
    }

    /// The path of the next call; `None` where it contradicts one before.
    fn take(&mut self, call: &Call) -> Option<PathId> {
        let seen = self.seen.as_mut();
        if call.end < call.start || call.id < 0 || !seen.is_none_or(|seen| seen.insert(call.id)) {
            return None;
        }
        let Recorded { totals, open, aside, .. } = &mut *self;
        aside.close_ended(call.start, totals);
        let open = open.at(call.lane, call.start, |ended| totals.close(ended));
        let duration_ns = call.end.wrapping_sub(call.start);
        let above = match call.parent {
            ..0 => {
                aside.extend(open.drain(..));
                None
            }
            parent => {
                let outer = match open.iter().rposition(|open| open.id == parent) {
                    Some(place) => {
                        aside.extend(open.drain(place + 1..));
                        open.last_mut()
                    }
                    None => aside.calls.get_mut(&parent).filter(|outer| outer.lane == call.lane),
                };
                let outer = outer.filter(|outer| outer.end >= call.end)?;
                outer.exclusive_ns = outer.exclusive_ns.saturating_sub(duration_ns);
                Some(outer.path)
            }
        };
        let path = totals.paths.step(above, RegionId(call.region));
        let &Call { id, start, end, lane, .. } = call;
        open.push(Open { id, path, start, end, lane, exclusive_ns: duration_ns });
        Some(path)
    }

    /// Ends all calls; `None` when children took more time than a call had.
    fn into_paths(self) -> Option<PathTree> {
        let Recorded { mut totals, open, aside, .. } = self;
        open.into_calls().chain(aside.calls.into_values()).for_each(|open| totals.close(open));
        (!totals.is_negative).then_some(totals.paths)
    }
}

impl Totals {
    fn close(&mut self, open: Open) {
        self.is_negative |= open.exclusive_ns < 0;
        self.paths.add_call(open.path, open.end.wrapping_sub(open.start), open.exclusive_ns, false);
    }
}

impl Aside {
    fn extend(&mut self, calls: impl Iterator<Item = Open>) {
        for open in calls {
            if self.calls.is_empty() {
                self.until = open.end;
            }
            self.until = self.until.max(open.end);
            self.calls.insert(open.id, open);
        }
    }

    /// Closes the calls that have ended before `start`, when that are all or they may be many.
    fn close_ended(&mut self, start: i64, totals: &mut Totals) {
        if self.calls.is_empty() || start <= self.until && self.calls.len() < 2 * self.left.max(LEAST_SWEEP) {
            return;
        }
        for (id, open) in std::mem::take(&mut self.calls) {
            if open.has_ended(start) {
                totals.close(open);
            } else {
                self.calls.insert(id, open);
            }
        }
        self.left = self.calls.len();
    }
}

/// Ids of one page of [`SeenIds`].
const PAGE: u64 = 1 << 16;
/// 64 MiB of pages: room for half a billion ids that lie close together.
const MOST_PAGES: usize = 8192;

/// The ids that have occurred, a bit each.
#[derive(Default)]
struct SeenIds {
    pages: Vec<Box<[u64; PAGE as usize / 64]>>,
    by_number: HashMap<u64, u32>,
    /// Mostly the next id is in it too.
    last: Option<(u64, u32)>,
    /// There are too many pages, and nothing is known of ids that are on none.
    are_too_sparse: bool,
}

impl SeenIds {
    /// False for an id that has occurred.
    fn insert(&mut self, id: i64) -> bool {
        let (number, bit) = (id as u64 / PAGE, id as u64 % PAGE);
        let page = match self.last {
            Some((last, page)) if last == number => page,
            _ => {
                let new = self.pages.len() as u32;
                let page = match self.by_number.get(&number) {
                    Some(&page) => page,
                    None if self.pages.len() == MOST_PAGES => {
                        self.are_too_sparse = true;
                        return true;
                    }
                    None => {
                        self.pages.push(Box::new([0; PAGE as usize / 64]));
                        self.by_number.insert(number, new);
                        new
                    }
                };
                self.last = Some((number, page));
                page
            }
        };
        let word = &mut self.pages[page as usize][bit as usize / 64];
        let mask = 1 << (bit % 64);
        let is_new = *word & mask == 0;
        *word |= mask;
        is_new
    }
}

/// Ids that are compared at a time.
const AT_A_TIME: usize = 1 << 21;

/// Whether no id occurs twice, however far apart they are: the column is read once for each share of them.
fn compare_ids<S: StoredCalls>(reader: &mut Reader<'_, S>) -> Result<bool, S::Error> {
    let calls: usize = reader.regions.iter().map(|region| region.calls.len()).sum();
    let shares = calls.div_ceil(AT_A_TIME) as u64;
    let mut values = Vec::new();
    for share in 0..shares {
        let mut seen = HashSet::new();
        for region in reader.regions {
            for part in parts(region.calls.clone(), reader.source.block().max(1 << 16)) {
                reader.source.read(CallColumn::Id, part, &mut values)?;
                let spread = |id: i64| (id as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                let mut of_share = values.iter().filter(|id| spread(**id) % shares == share);
                if !of_share.all(|id| seen.insert(*id)) {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ```text
    /// [0                                  T]
    ///    [1  4]
    ///      [3  6]     each set aside by the next, none of which is in another
    ///        [5  8]
    /// ```
    #[test]
    fn calls_that_are_set_aside_go_when_they_have_ended() {
        let mut recorded = Recorded::new(false);
        recorded.open.extend_to(1);
        let mut most = 0;
        for id in 0..10_000 {
            let (start, end) = if id == 0 { (0, i64::MAX) } else { (2 * id - 1, 2 * id + 2) };
            let call = Call { start, end, id, parent: -1, ..Call::default() };
            assert_eq!(recorded.take(&call), Some(PathId(0)));
            most = most.max(recorded.aside.calls.len());
        }
        assert!(most <= 2 * LEAST_SWEEP, "{most}");
        let paths = recorded.into_paths().unwrap();
        assert_eq!(paths.nodes()[0].calls, 10_000);
    }
}
