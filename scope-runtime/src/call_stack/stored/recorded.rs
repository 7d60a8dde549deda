//! Paths from recorded parents, as `ids.rs` has for calls in memory.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use super::blocks::{Call, Reader, parts};
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

/// The calls so far.
#[derive(Default)]
struct Recorded {
    paths: PathTree,
    /// Per lane the calls around the last one, and it; those that have ended go when the next begins.
    open: Vec<Vec<Open>>,
    /// Calls that others have followed on their lane although they end later or at that moment: with
    /// times as coarse as that they may have children yet.
    aside: HashMap<i64, Open>,
    /// The latest end among them.
    aside_until: i64,
    seen: SeenIds,
    is_negative: bool,
}

/// The paths; `None` where ids contradict each other or the times: then the intervals decide.
pub(super) fn nest<S: StoredCalls>(
    reader: &mut Reader<'_, S>,
    mut windows: Windows,
    visitor: &mut impl CallVisitor,
) -> Result<Option<PathTree>, StoredError<S::Error>> {
    let mut recorded = Recorded::default();
    while windows.read(reader)? {
        recorded.open.resize_with(reader.lanes.numbers.len(), Vec::new);
        let taken = windows.in_order(|call| match recorded.take(call) {
            Some(path) => {
                visitor.call(&recorded.paths, path, call.start, call.end);
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        });
        if taken.is_break() {
            return Ok(None);
        }
    }
    drop(windows);
    let is_sound = recorded.close_all();
    let is_unique = is_sound && (!recorded.seen.are_too_sparse || are_unique(reader)?);
    Ok(is_unique.then_some(recorded.paths))
}

impl Recorded {
    /// The path of the next call; `None` where it contradicts one before.
    fn take(&mut self, call: &Call) -> Option<PathId> {
        if call.end < call.start || call.id < 0 || !self.seen.insert(call.id) {
            return None;
        }
        if call.start > self.aside_until && !self.aside.is_empty() {
            for (_, open) in std::mem::take(&mut self.aside) {
                self.close(open);
            }
        }
        let lane = call.lane as usize;
        while let Some(ended) = self.open[lane].pop_if(|open| open.end < call.start) {
            self.close(ended);
        }
        let duration_ns = call.end.wrapping_sub(call.start);
        let above = match call.parent {
            ..0 => {
                self.set_aside(lane, 0);
                None
            }
            parent => {
                let outer = match self.open[lane].iter().rposition(|open| open.id == parent) {
                    Some(place) => {
                        self.set_aside(lane, place + 1);
                        self.open[lane].last_mut()
                    }
                    None => self.aside.get_mut(&parent).filter(|outer| outer.lane == call.lane),
                };
                let outer = outer.filter(|outer| outer.end >= call.end)?;
                outer.exclusive_ns = outer.exclusive_ns.saturating_sub(duration_ns);
                Some(outer.path)
            }
        };
        let path = self.paths.step(above, RegionId(call.region));
        let &Call { id, start, end, lane, .. } = call;
        self.open[lane as usize].push(Open { id, path, start, end, lane, exclusive_ns: duration_ns });
        Some(path)
    }

    /// Takes the open calls of a lane from `from` on off its stack.
    fn set_aside(&mut self, lane: usize, from: usize) {
        for open in self.open[lane].drain(from..) {
            if self.aside.is_empty() {
                self.aside_until = open.end;
            }
            self.aside_until = self.aside_until.max(open.end);
            self.aside.insert(open.id, open);
        }
    }

    fn close(&mut self, open: Open) {
        self.is_negative |= open.exclusive_ns < 0;
        self.paths.add_call(open.path, open.end.wrapping_sub(open.start), open.exclusive_ns, false);
    }

    /// Ends all calls; false when children took more time than a call had.
    fn close_all(&mut self) -> bool {
        let open = std::mem::take(&mut self.open).into_iter().flatten();
        let aside = std::mem::take(&mut self.aside).into_values();
        open.chain(aside).for_each(|open| self.close(open));
        !self.is_negative
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
fn are_unique<S: StoredCalls>(reader: &mut Reader<'_, S>) -> Result<bool, S::Error> {
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
