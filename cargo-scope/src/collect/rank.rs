//! The calls of one rank, lane by lane as recorded, into columns by region as in the file.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use scope_runtime::profile::{LaneId, Profile, Region, RegionId};
use scope_runtime::recording::{Call, CallRef, Parent, RunId, TaskId, Tasks};

use super::{RankRecording, UNKNOWN};
use crate::merged::Events;

/// The columns of all calls, one entry per call in each.
#[derive(Default)]
pub(super) struct Columns {
    start_ns: Vec<i64>,
    duration_ns: Vec<i64>,
    call_ids: Vec<i64>,
    parent_ids: Vec<i64>,
    thread_ids: Vec<i64>,
    /// Empty in runs without async regions.
    task_ids: Vec<i64>,
    await_ns: Vec<i64>,
    with_tasks: bool,
}

impl Columns {
    /// No calls yet; `with_tasks` says whether any will be of a task.
    fn new(with_tasks: bool) -> Columns {
        Columns { with_tasks, ..Columns::default() }
    }

    /// Makes columns of `len` calls that are to be filled in. The system gives zeros for nothing.
    fn make(&mut self, len: usize) {
        let Columns { start_ns, duration_ns, call_ids, parent_ids, thread_ids, .. } = self;
        for column in [start_ns, duration_ns, call_ids, parent_ids, thread_ids] {
            *column = vec![0; len];
        }
        if self.with_tasks {
            (self.task_ids, self.await_ns) = (vec![NO_TASK; len], vec![0; len]);
        }
    }

    fn into_events(self) -> Events {
        Events {
            start_ns: self.start_ns,
            duration_ns: self.duration_ns,
            call_ids: Some(self.call_ids),
            parent_ids: Some(self.parent_ids),
            thread_ids: Some(self.thread_ids),
            task_ids: Some(self.task_ids).filter(|_| self.with_tasks),
            await_ns: Some(self.await_ns).filter(|_| self.with_tasks),
            ..Events::default()
        }
    }
}

/// Stands for no task in the column of tasks.
const NO_TASK: i64 = -1;

/// A region and its run of calls in the columns.
pub(super) struct RegionRun<'a> {
    pub(super) region: &'a Region,
    pub(super) events: Range<usize>,
    /// Durations of the calls, less those of their direct children.
    pub(super) exclusive_ns: i64,
}

/// Why the calls of a rank could not be placed.
pub(super) enum Failure {
    /// A call refers to something that is not there.
    Dangling { lane: u32, call: usize, what: &'static str },
    /// A region has more or fewer calls than room was made for.
    Miscounted,
}

/// The calls of `recording` as columns: region by region in the order of the recording, inside a region
/// lane by lane, on a lane in order of entry. Gives the regions that have calls or totals too, with
/// their runs in the columns.
///
/// The totals of the recording say how many calls each region has, so that every call is put in
/// its place at once. Should they be wrong, as when a piece of the file went bad since it was
/// opened, or where the timeline ends before the totals do, the calls are counted first.
pub(super) fn columns<R: RankRecording>(recording: &R) -> Result<(Events, Vec<RegionRun<'_>>), Failure> {
    let profile = recording.profile();
    let mut columns = Columns::new(!recording.tasks().tasks().is_empty());
    let mut runs = place(&mut columns, recording)?;
    let paths = profile.paths.nodes().iter();
    let totalled: HashSet<&str> = paths
        .filter_map(|path| profile.regions.get(path.region.0 as usize))
        .map(|region| region.name.as_str())
        .collect();
    runs.retain(|run| !run.events.is_empty() || totalled.contains(run.region.name.as_str()));
    Ok((columns.into_events(), runs))
}

fn place<'a, R: RankRecording>(
    columns: &mut Columns,
    recording: &'a R,
) -> Result<Vec<RegionRun<'a>>, Failure> {
    let profile = recording.profile();
    let ids = || CallIds::of_lanes(recording.tasks());
    if profile.timeline_end_ns.is_none() {
        match Placement::new(profile, &counts_by_totals(profile), ids()).place(columns, recording) {
            Err(Failure::Miscounted) => (),
            placed => return placed,
        }
    }
    Placement::new(profile, &counts_by_calls(recording), ids()).place(columns, recording)
}

/// Calls of each region, by the totals of its call paths.
fn counts_by_totals(profile: &Profile) -> Vec<u64> {
    let mut counts = vec![0; profile.regions.len()];
    for node in profile.paths.nodes() {
        if let Some(count) = counts.get_mut(node.region.0 as usize) {
            *count += node.calls;
        }
    }
    counts
}

/// Calls of each region, by looking at each of them.
fn counts_by_calls(recording: &impl RankRecording) -> Vec<u64> {
    let mut counts = vec![0; recording.profile().regions.len()];
    for lane in 0..recording.profile().lanes.len() as u32 {
        for call in recording.calls(LaneId(lane)) {
            if let Some(count) = counts.get_mut(call.region.0 as usize) {
                *count += 1;
            }
        }
    }
    counts
}

/// Where the calls of each region go.
struct Placement<'a> {
    runs: Vec<RegionRun<'a>>,
    /// Position of each region's run in `runs`, and where its next call goes. A name is all that
    /// the file can tell regions by, so those of one name share a run, under the source of the first.
    run_of: Vec<usize>,
    next: Vec<usize>,
    next_call_id: i64,
    ids: CallIds,
}

impl<'a> Placement<'a> {
    fn new(profile: &'a Profile, counts: &[u64], ids: CallIds) -> Placement<'a> {
        let mut by_name = HashMap::new();
        let mut runs = Vec::new();
        let mut sizes: Vec<usize> = Vec::new();
        let mut run_of = Vec::with_capacity(counts.len());
        for (region, count) in profile.regions.iter().zip(counts) {
            let run = *by_name.entry(&region.name).or_insert_with(|| {
                runs.push(RegionRun { region, events: 0..0, exclusive_ns: 0 });
                sizes.push(0);
                runs.len() - 1
            });
            sizes[run] += *count as usize;
            run_of.push(run);
        }
        let mut start = 0;
        for (run, size) in runs.iter_mut().zip(sizes) {
            run.events = start..start + size;
            start += size;
        }
        let next = runs.iter().map(|run| run.events.start).collect();
        Placement { runs, run_of, next, next_call_id: 0, ids }
    }

    fn place(
        mut self,
        columns: &mut Columns,
        recording: &impl RankRecording,
    ) -> Result<Vec<RegionRun<'a>>, Failure> {
        columns.make(self.runs.last().map_or(0, |run| run.events.end));
        let tasks = recording.tasks();
        let mut lane_tasks = Vec::new();
        for lane in 0..recording.profile().lanes.len() as u32 {
            let calls = recording.calls(LaneId(lane));
            tasks_of_calls(&calls, tasks, &mut lane_tasks);
            self.place_lane(columns, lane, &calls, tasks, &lane_tasks)?;
        }
        if self.runs.iter().zip(&self.next).any(|(run, next)| run.events.end != *next) {
            return Err(Failure::Miscounted);
        }
        Ok(self.runs)
    }

    /// Places the calls of the next lane.
    ///
    /// A parent's exclusive time is what is left of its duration when each child on its lane has
    /// taken its own from it; so the sums per region need no memory per call.
    fn place_lane(
        &mut self,
        columns: &mut Columns,
        lane: u32,
        calls: &[Call],
        tasks: &Tasks,
        lane_tasks: &[Option<TaskId>],
    ) -> Result<(), Failure> {
        let task_of = |index: usize| lane_tasks.get(index).copied().flatten();
        let dangling = |call, what| Failure::Dangling { lane, call, what };
        for (index, call) in calls.iter().enumerate() {
            let run = self.run_of(call.region).ok_or_else(|| dangling(index, "region"))?;
            let duration_ns = call.end_ns.wrapping_sub(call.start_ns);
            let mut parent_id = -1;
            let enclosing = match call.parent {
                Parent::None => None,
                Parent::Call(parent) => {
                    let enclosing = calls[..index].get(parent as usize);
                    parent_id = self.next_call_id + i64::from(parent);
                    let region = enclosing.ok_or_else(|| dangling(index, "parent"))?.region;
                    Some(region).filter(|_| task_of(index) == task_of(parent as usize))
                }
                Parent::Run(RunId(run)) => {
                    let enclosing =
                        tasks.runs().get(run as usize).ok_or_else(|| dangling(index, "parent"))?;
                    parent_id = self.ids.of(enclosing.call);
                    Some(enclosing.region).filter(|_| task_of(index) == enclosing.task)
                }
            };
            if let Some(region) = enclosing {
                let enclosing = self.run_of(region).ok_or_else(|| dangling(index, "region"))?;
                let sum = &mut self.runs[enclosing].exclusive_ns;
                *sum = sum.wrapping_sub(duration_ns);
            }
            self.runs[run].exclusive_ns = self.runs[run].exclusive_ns.wrapping_add(duration_ns);
            let at = self.next[run];
            if at == self.runs[run].events.end {
                return Err(Failure::Miscounted);
            }
            self.next[run] += 1;
            columns.start_ns[at] = call.start_ns;
            columns.duration_ns[at] = duration_ns;
            columns.call_ids[at] = self.next_call_id + index as i64;
            columns.parent_ids[at] = parent_id;
            columns.thread_ids[at] = lane.into();
            if let Some(TaskId(task)) = task_of(index) {
                columns.task_ids[at] = task.into();
            }
            if let Some(RunId(run)) = call.run {
                columns.await_ns[at] = duration_ns - tasks.runs()[run as usize].busy_ns;
            }
        }
        self.next_call_id += calls.len() as i64;
        Ok(())
    }

    fn run_of(&self, region: RegionId) -> Option<usize> {
        self.run_of.get(region.0 as usize).copied()
    }
}

/// The task of each call of a lane: its own, or that of what it was called by. Empty where there are
/// no tasks.
fn tasks_of_calls(calls: &[Call], tasks: &Tasks, found: &mut Vec<Option<TaskId>>) {
    found.clear();
    if tasks.tasks().is_empty() {
        return;
    }
    let task = |run: RunId| tasks.runs().get(run.0 as usize).and_then(|run| run.task);
    for call in calls {
        let inherited = match call.parent {
            Parent::None => None,
            Parent::Call(parent) => found.get(parent as usize).copied().flatten(),
            Parent::Run(run) => task(run),
        };
        found.push(call.run.and_then(task).or(inherited));
    }
}

/// The ids of calls, which count through the lanes.
pub(super) struct CallIds {
    before: Vec<i64>,
}

impl CallIds {
    /// Of a recording with these tasks.
    pub(super) fn of_lanes(tasks: &Tasks) -> CallIds {
        let before = tasks.calls().iter().scan(0, |next, &calls| {
            let first = *next;
            *next += i64::from(calls);
            Some(first)
        });
        CallIds { before: before.collect() }
    }

    pub(super) fn of(&self, call: CallRef) -> i64 {
        self.before.get(call.lane as usize).map_or(UNKNOWN, |before| before + i64::from(call.index))
    }
}
