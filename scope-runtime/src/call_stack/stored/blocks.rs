//! Calls as they are stored, a block at a time.

use std::collections::HashMap;
use std::ops::Range;

use super::super::lanes::{UNKNOWN_LANE, lane_number};
use super::super::sort::Starting;
use super::windows::Tie;
use super::{CallColumn, StoredCalls, StoredRegion};

/// A call while it is put in order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Call {
    pub(super) start: i64,
    pub(super) end: i64,
    /// Both -1 where ids are not read.
    pub(super) id: i64,
    pub(super) parent: i64,
    /// Position in the region's stored calls.
    pub(super) call: u32,
    /// Position in the list of regions.
    pub(super) region: u32,
    /// Position in [`Lanes::numbers`].
    pub(super) lane: u32,
}

impl Call {
    /// Decides the order of calls; `tie` of those that start together, then the list.
    pub(super) fn order(&self, tie: Tie) -> (i64, u64, u32, u32) {
        (self.start, tie(self), self.region, self.call)
    }
}

impl Starting for &Call {
    fn start(&self) -> i64 {
        self.start
    }
}

/// Regions with more runs than this are taken for unordered.
const MOST_RUNS: usize = 4096;
/// Values that are read together where all of a column is.
const READ_AHEAD: usize = 1 << 16;

/// What the starts of a region's calls are like.
#[derive(Clone, Debug)]
pub struct Starts {
    /// The earliest start in ns; `None` without calls.
    pub first_ns: Option<i64>,
    /// Where starts begin to ascend; `None` when that are too many places.
    pub(super) runs: Option<Vec<RunStart>>,
}

/// Where starts begin to ascend.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunStart {
    /// Position in the columns.
    pub(super) at: usize,
    /// The start before, from which the one here is a difference.
    pub(super) before_ns: i64,
}

impl Starts {
    /// Those of no calls.
    pub(super) fn none() -> Starts {
        Starts { first_ns: None, runs: Some(Vec::new()) }
    }

    /// Looks at the starts of these calls, which are those of one region.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn find<S: StoredCalls>(source: &mut S, calls: Range<usize>) -> Result<Starts, S::Error> {
        let has_differences = source.has_differences();
        let mut starts = Starts::none();
        let (mut values, mut before_ns) = (Vec::new(), 0);
        let read_ahead = READ_AHEAD.max(source.block());
        for part in parts(calls.clone(), read_ahead) {
            source.read(CallColumn::Start, part.clone(), &mut values)?;
            for (at, &value) in part.zip(&values) {
                let start_ns = if has_differences { value.wrapping_add(before_ns) } else { value };
                if at == calls.start || start_ns < before_ns {
                    starts.add_run(RunStart { at, before_ns });
                }
                if starts.first_ns.is_none_or(|first_ns| start_ns < first_ns) {
                    starts.first_ns = Some(start_ns);
                }
                before_ns = start_ns;
            }
        }
        Ok(starts)
    }

    fn add_run(&mut self, run: RunStart) {
        match &mut self.runs {
            Some(runs) if runs.len() < MOST_RUNS => runs.push(run),
            runs => *runs = None,
        }
    }
}

/// Parts of `calls` that end at multiples of `size`, except for the last.
pub(super) fn parts(calls: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let mut at = calls.start;
    std::iter::from_fn(move || {
        let part = at..(at / size + 1).saturating_mul(size).min(calls.end);
        at = part.end;
        (part.start < part.end).then_some(part)
    })
}

/// The lanes that have occurred, in the order in which they did.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Whether calls have threads; else the rank is one lane.
    has_threads: bool,
    pub(super) numbers: Vec<i64>,
    positions: HashMap<i64, u32>,
    /// Mostly the next call is on it too.
    last: Option<(i64, u32)>,
}

impl Lanes {
    fn position(&mut self, number: i64) -> u32 {
        if let Some((last, position)) = self.last
            && last == number
        {
            return position;
        }
        let position = *self.positions.entry(number).or_insert_with(|| {
            self.numbers.push(number);
            self.numbers.len() as u32 - 1
        });
        self.last = Some((number, position));
        position
    }

    /// Number of the lane at `position`; `None` when the rank is one lane.
    pub(super) fn number(&self, position: u32) -> Option<i64> {
        self.has_threads.then(|| self.numbers[position as usize])
    }
}

/// Reads the calls of a rank.
pub(super) struct Reader<'a, S> {
    pub(super) source: &'a mut S,
    pub(super) regions: &'a [StoredRegion<'a>],
    pub(super) lanes: Lanes,
    with_ids: bool,
    has_differences: bool,
    starts: Vec<i64>,
    durations: Vec<i64>,
    threads: Vec<i64>,
    tasks: Vec<i64>,
    ids: Vec<i64>,
    parents: Vec<i64>,
}

impl<'a, S: StoredCalls> Reader<'a, S> {
    pub(super) fn new(source: &'a mut S, regions: &'a [StoredRegion<'a>], with_ids: bool) -> Self {
        let has_differences = source.has_differences();
        let lanes = Lanes { has_threads: source.has(CallColumn::Thread), ..Lanes::default() };
        let (starts, durations, threads) = Default::default();
        let (tasks, ids, parents) = Default::default();
        Reader {
            source,
            regions,
            lanes,
            with_ids,
            has_differences,
            starts,
            durations,
            threads,
            tasks,
            ids,
            parents,
        }
    }

    /// Appends these calls of a region to `into`; `before_ns` is the start before, and then the last one.
    pub(super) fn read(
        &mut self,
        region: u32,
        calls: Range<usize>,
        before_ns: &mut i64,
        into: &mut Vec<Call>,
    ) -> Result<(), S::Error> {
        let source = &mut *self.source;
        source.read(CallColumn::Start, calls.clone(), &mut self.starts)?;
        source.read(CallColumn::Duration, calls.clone(), &mut self.durations)?;
        let tasks_count = self.lanes.has_threads && source.has(CallColumn::Task);
        if self.lanes.has_threads {
            source.read(CallColumn::Thread, calls.clone(), &mut self.threads)?;
        }
        if tasks_count {
            source.read(CallColumn::Task, calls.clone(), &mut self.tasks)?;
        }
        if self.with_ids {
            source.read(CallColumn::Id, calls.clone(), &mut self.ids)?;
            source.read(CallColumn::Parent, calls.clone(), &mut self.parents)?;
        }
        let first = (calls.start - self.regions[region as usize].calls.start) as u32;
        let lane = match self.lanes.has_threads {
            true => 0,
            false => self.lanes.position(UNKNOWN_LANE),
        };
        let from = into.len();
        into.extend(self.starts.iter().zip(&self.durations).zip(first..).map(
            |((&value, &duration), call)| {
                let start = if self.has_differences { value.wrapping_add(*before_ns) } else { value };
                *before_ns = start;
                let end = start.saturating_add(duration);
                Call { start, end, id: -1, parent: -1, call, region, lane }
            },
        ));
        let new = &mut into[from..];
        if self.lanes.has_threads {
            for (at, (call, &thread)) in new.iter_mut().zip(&self.threads).enumerate() {
                let task = if tasks_count { self.tasks[at] } else { -1 };
                call.lane = self.lanes.position(lane_number(thread, task));
            }
        }
        if self.with_ids {
            for ((call, &id), &parent) in new.iter_mut().zip(&self.ids).zip(&self.parents) {
                (call.id, call.parent) = (id, parent);
            }
        }
        Ok(())
    }
}
