//! The calls of one rank, lane by lane as recorded, into columns by region as in the file.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::profile::{LaneId, Profile, RegionId};
use crate::recording::{CallRef, CallSink, Parent, RunId, TaskId, Tasks};

use super::{RankRecording, UNKNOWN};
use crate::merged::Events;

/// The columns of all calls, one entry per call in each.
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
    /// Columns of `len` calls that are to be filled in; `with_tasks` says whether any will be of a task.
    /// The system gives zeros for nothing.
    fn new(len: usize, with_tasks: bool) -> Columns {
        let with_tasks_len = if with_tasks { len } else { 0 };
        Columns {
            start_ns: vec![0; len],
            duration_ns: vec![0; len],
            call_ids: vec![0; len],
            parent_ids: vec![0; len],
            thread_ids: vec![0; len],
            task_ids: vec![NO_TASK; with_tasks_len],
            await_ns: vec![0; with_tasks_len],
            with_tasks,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RegionRun {
    /// The first of this name.
    pub(super) region: RegionId,
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
pub(super) fn columns(recording: &impl RankRecording) -> Result<(Events, Vec<RegionRun>), Failure> {
    let profile = recording.profile();
    let (columns, mut runs) = place(recording)?;
    let name = |region: RegionId| profile.regions.get(region.0 as usize).map(|region| region.name.as_str());
    let totalled: HashSet<_> = profile.paths.nodes().iter().filter_map(|path| name(path.region)).collect();
    runs.retain(|run| !run.events.is_empty() || name(run.region).is_some_and(|name| totalled.contains(name)));
    Ok((columns.into_events(), runs))
}

fn place(recording: &impl RankRecording) -> Result<(Columns, Vec<RegionRun>), Failure> {
    let (profile, tasks) = (recording.profile(), recording.tasks());
    if profile.timeline_end_ns.is_none() {
        match Placement::new(profile, tasks, &counts_by_totals(profile)).place(recording) {
            Err(Failure::Miscounted) => (),
            placed => return placed,
        }
    }
    Placement::new(profile, tasks, &counts_by_calls(recording)).place(recording)
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
    let mut counts = Counts(vec![0; recording.profile().regions.len()]);
    for lane in 0..recording.profile().lanes.len() as u32 {
        recording.visit_calls(LaneId(lane), &mut counts);
    }
    counts.0
}

/// By region.
struct Counts(Vec<u64>);

impl CallSink for Counts {
    type Open = ();

    fn begin(&mut self, region: RegionId, _: i64, _: Parent, _: Option<&()>) {
        if let Some(count) = self.0.get_mut(region.0 as usize) {
            *count += 1;
        }
    }

    fn end(&mut self, (): (), _: i64, _: Option<RunId>, _: bool) {}
}

/// Puts calls where they belong in the columns, as they come.
struct Placement<'a> {
    columns: Columns,
    tasks: &'a Tasks,
    ids: CallIds,
    runs: Vec<RegionRun>,
    /// Position of each region's run in `runs`, and where its next call goes. A name is all that
    /// the file can tell regions by, so those of one name share a run, under the source of the first.
    run_of: Vec<usize>,
    next: Vec<usize>,
    lane: u32,
    /// Ids of the lane's first call, and of the next one.
    first_call_id: i64,
    next_call_id: i64,
    failure: Option<Failure>,
}

/// Where an open call is.
#[derive(Clone, Copy)]
struct Place {
    /// Its entry in the columns.
    at: usize,
    run: usize,
    start_ns: i64,
    /// The run of what is around it, and the task of that.
    around: Option<usize>,
    task: Option<TaskId>,
}

impl Place {
    /// Of a call that could not be placed.
    const NOWHERE: Place = Place { at: usize::MAX, run: usize::MAX, start_ns: 0, around: None, task: None };
}

impl<'a> Placement<'a> {
    fn new(profile: &'a Profile, tasks: &'a Tasks, counts: &[u64]) -> Placement<'a> {
        let mut by_name = HashMap::new();
        let mut runs = Vec::new();
        let mut sizes: Vec<usize> = Vec::new();
        let mut run_of = Vec::with_capacity(counts.len());
        for (id, (region, count)) in (0..).zip(profile.regions.iter().zip(counts)) {
            let run = *by_name.entry(&region.name).or_insert_with(|| {
                runs.push(RegionRun { region: RegionId(id), events: 0..0, exclusive_ns: 0 });
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
        Placement {
            columns: Columns::new(start, !tasks.tasks().is_empty()),
            tasks,
            ids: CallIds::of_lanes(tasks),
            next: runs.iter().map(|run: &RegionRun| run.events.start).collect(),
            runs,
            run_of,
            lane: 0,
            first_call_id: 0,
            next_call_id: 0,
            failure: None,
        }
    }

    /// Places the calls of all lanes.
    fn place(mut self, recording: &impl RankRecording) -> Result<(Columns, Vec<RegionRun>), Failure> {
        for lane in 0..recording.profile().lanes.len() as u32 {
            (self.lane, self.first_call_id) = (lane, self.next_call_id);
            recording.visit_calls(LaneId(lane), &mut self);
        }
        let is_full = || self.runs.iter().zip(&self.next).all(|(run, next)| run.events.end == *next);
        match self.failure {
            Some(failure) => Err(failure),
            None if !is_full() => Err(Failure::Miscounted),
            None => Ok((self.columns, self.runs)),
        }
    }

    /// Places the call that has just been given its id, all but its end.
    #[inline(always)]
    fn begin_at(
        &mut self,
        region: RegionId,
        start_ns: i64,
        parent: Parent,
        around: Option<&Place>,
    ) -> Result<Place, Failure> {
        let index = self.next_call_id - 1 - self.first_call_id;
        let dangling = |what| Failure::Dangling { lane: self.lane, call: index as usize, what };
        let run = self.run_of(region).ok_or_else(|| dangling("region"))?;
        let (parent_id, around, task) = match parent {
            Parent::None => (UNKNOWN, None, None),
            Parent::Call(parent) if i64::from(parent) < index => {
                let id = self.first_call_id + i64::from(parent);
                (id, around.map(|around| around.run), around.and_then(|around| around.task))
            }
            Parent::Call(_) => return Err(dangling("parent")),
            Parent::Run(RunId(number)) => {
                let around = self.tasks.runs().get(number as usize).ok_or_else(|| dangling("parent"))?;
                let run = self.run_of(around.region).ok_or_else(|| dangling("region"))?;
                (self.ids.of(around.call), Some(run), around.task)
            }
        };
        let at = self.next[run];
        if at == self.runs[run].events.end {
            return Err(Failure::Miscounted);
        }
        self.next[run] += 1;
        self.columns.start_ns[at] = start_ns;
        self.columns.call_ids[at] = self.next_call_id - 1;
        self.columns.parent_ids[at] = parent_id;
        // Where nothing was written memory costs nothing, and all calls are of lane 0.
        if self.lane > 0 {
            self.columns.thread_ids[at] = self.lane.into();
        }
        Ok(Place { at, run, start_ns, around, task })
    }

    fn run_of(&self, region: RegionId) -> Option<usize> {
        self.run_of.get(region.0 as usize).copied()
    }

    /// Writes what is known of a call in a program with tasks: the task is its own, or that of what is
    /// around it.
    fn note_task(&mut self, at: usize, duration_ns: i64, task: Option<TaskId>, run: Option<RunId>) {
        if let Some(TaskId(task)) = task {
            self.columns.task_ids[at] = task.into();
        }
        if let Some(RunId(run)) = run {
            self.columns.await_ns[at] = duration_ns - self.tasks.runs()[run as usize].busy_ns;
        }
    }
}

impl CallSink for Placement<'_> {
    type Open = Place;

    #[inline(always)]
    fn begin(&mut self, region: RegionId, start_ns: i64, parent: Parent, around: Option<&Place>) -> Place {
        self.next_call_id += 1;
        // What is around a call has a place as long as nothing failed.
        if self.failure.is_some() {
            return Place::NOWHERE;
        }
        self.begin_at(region, start_ns, parent, around).unwrap_or_else(|failure| {
            self.failure = Some(failure);
            Place::NOWHERE
        })
    }

    /// A parent's exclusive time is what is left of its duration when each child on its lane has
    /// taken its own from it; so the sums per region need no memory per call.
    #[inline(always)]
    fn end(&mut self, call: Place, end_ns: i64, run: Option<RunId>, _open: bool) {
        let Some(duration) = self.columns.duration_ns.get_mut(call.at) else { return };
        let duration_ns = end_ns.wrapping_sub(call.start_ns);
        *duration = duration_ns;
        let mut task = call.task;
        if self.columns.with_tasks {
            let own = run.and_then(|RunId(run)| self.tasks.runs().get(run as usize)?.task);
            task = own.or(call.task);
            self.note_task(call.at, duration_ns, task, run);
        }
        let sum = &mut self.runs[call.run].exclusive_ns;
        *sum = sum.wrapping_add(duration_ns);
        if let Some(around) = call.around.filter(|_| task == call.task) {
            let sum = &mut self.runs[around].exclusive_ns;
            *sum = sum.wrapping_sub(duration_ns);
        }
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
