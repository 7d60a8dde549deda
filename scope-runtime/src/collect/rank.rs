//! The calls of one rank, lane by lane as recorded, into columns by region as in the file.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::merged::{Events, Statistics};
use crate::profile::{LaneId, Profile, RegionId};
use crate::profile_file::{self, BegunCall, CallColumns, EndedCall, Library, ProfileWriter};
use crate::recording::{CallRef, CallSink, Parent, RunId, TaskId, Tasks};

use super::{RankRecording, UNKNOWN};

/// The columns of all calls, one entry per call in each.
struct MemoryColumns {
    start_ns: Vec<i64>,
    duration_ns: Vec<i64>,
    call_ids: Vec<i64>,
    parent_ids: Vec<i64>,
    thread_ids: Vec<i64>,
    /// Of tasks, and how long they waited, in runs with such.
    of_tasks: Option<(Vec<i64>, Vec<i64>)>,
}

impl MemoryColumns {
    /// Columns of `len` calls that are to be filled in. The system gives zeros for nothing.
    fn new(len: usize, has_tasks: bool) -> MemoryColumns {
        MemoryColumns {
            start_ns: vec![0; len],
            duration_ns: vec![0; len],
            call_ids: vec![0; len],
            parent_ids: vec![0; len],
            thread_ids: vec![0; len],
            of_tasks: has_tasks.then(|| (vec![0; len], vec![0; len])),
        }
    }

    fn into_events(self) -> Events {
        let (task_ids, await_ns) = self.of_tasks.unzip();
        Events {
            start_ns: self.start_ns,
            duration_ns: self.duration_ns,
            call_ids: Some(self.call_ids),
            parent_ids: Some(self.parent_ids),
            thread_ids: Some(self.thread_ids),
            task_ids,
            await_ns,
            ..Events::default()
        }
    }
}

impl CallColumns for MemoryColumns {
    #[inline(always)]
    fn begin(&mut self, at: usize, call: &BegunCall) {
        self.start_ns[at] = call.start_ns;
        self.call_ids[at] = call.id;
        self.parent_ids[at] = call.parent_id;
        // Where nothing was written memory costs nothing, and all calls are of lane 0.
        if call.thread_id > 0 {
            self.thread_ids[at] = call.thread_id;
        }
    }

    #[inline(always)]
    fn end(&mut self, at: usize, _: usize, call: &EndedCall) -> Result<(), profile_file::Error> {
        self.duration_ns[at] = call.duration_ns;
        if let Some((task_ids, await_ns)) = &mut self.of_tasks {
            (task_ids[at], await_ns[at]) = (call.task_id, call.await_ns);
        }
        Ok(())
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
    /// They could not be written.
    File(profile_file::Error),
}

/// How it is known how many calls each region has.
///
/// The totals of a recording say so, so that every call is put in its place at once. They may be wrong, as
/// when a piece of the file went bad since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Counting {
    #[default]
    ByTotals,
    /// By a look at each call.
    ByCalls,
}

impl Counting {
    fn counts(self, recording: &impl RankRecording) -> Vec<u64> {
        let profile = recording.profile();
        // Where the timeline ends before the totals do, these have more.
        if self == Counting::ByTotals && profile.timeline_end_ns.is_none() {
            counts_by_totals(profile)
        } else {
            counts_by_calls(recording)
        }
    }
}

/// The calls of `recording` as columns: region by region in the order of the recording, inside a region
/// lane by lane, on a lane in order of entry. Gives the regions that have calls or totals too, with
/// their runs in the columns.
pub(super) fn columns(recording: &impl RankRecording) -> Result<(Events, Vec<RegionRun>), Failure> {
    let placed = match in_memory(recording, Counting::ByTotals) {
        Err(Failure::Miscounted) => in_memory(recording, Counting::ByCalls),
        placed => placed,
    };
    let (columns, mut runs) = placed?;
    runs.retain(has_calls(recording.profile()));
    Ok((columns.into_events(), runs))
}

fn in_memory(
    recording: &impl RankRecording,
    counting: Counting,
) -> Result<(MemoryColumns, Vec<RegionRun>), Failure> {
    let places = Places::new(recording.profile(), &counting.counts(recording));
    let columns = MemoryColumns::new(places.len(), !recording.tasks().tasks().is_empty());
    Placement::new(columns, recording.tasks(), places).place(recording)
}

/// The same into the columns of a file, with the statistics of each run.
pub(super) fn into_file<L: Library>(
    recording: &impl RankRecording,
    counting: Counting,
    file: &mut ProfileWriter<L>,
) -> Result<Vec<(RegionRun, Statistics)>, Failure> {
    let places = Places::new(recording.profile(), &counting.counts(recording));
    let runs: Vec<_> = places.runs.iter().map(|run| run.events.clone()).collect();
    let columns = file.place(&runs, !recording.tasks().tasks().is_empty()).map_err(Failure::File)?;
    let (columns, runs) = Placement::new(columns, recording.tasks(), places).place(recording)?;
    let has_calls = has_calls(recording.profile());
    Ok(runs.into_iter().zip(columns.statistics()).filter(|(run, _)| has_calls(run)).collect())
}

/// Whether the region of a run has calls or totals.
fn has_calls(profile: &Profile) -> impl Fn(&RegionRun) -> bool {
    let name = |region: RegionId| profile.regions.get(region.0 as usize).map(|region| region.name.as_str());
    let totalled: HashSet<_> = profile.paths.nodes().iter().filter_map(|path| name(path.region)).collect();
    move |run| !run.events.is_empty() || name(run.region).is_some_and(|name| totalled.contains(name))
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

/// The runs of regions in the columns, and where the next call of each goes.
struct Places {
    runs: Vec<RegionRun>,
    /// Position of each region's run in `runs`. A name is all that the file can tell regions by, so those of
    /// one name share a run, under the source of the first.
    run_of: Vec<usize>,
    next: Vec<Next>,
}

/// The next call of a run.
#[derive(Clone, Copy)]
struct Next {
    at: usize,
    end: usize,
    /// When the call before it began; 0 for none.
    before_ns: i64,
}

impl Places {
    /// For so many calls of each region.
    fn new(profile: &Profile, counts: &[u64]) -> Places {
        let mut by_name = HashMap::new();
        let mut runs: Vec<RegionRun> = Vec::new();
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
        let next = runs.iter().map(|run| Next { at: run.events.start, end: run.events.end, before_ns: 0 });
        Places { next: next.collect(), runs, run_of }
    }

    /// Calls in all.
    fn len(&self) -> usize {
        self.runs.last().map_or(0, |run| run.events.end)
    }

    #[inline]
    fn run_of(&self, region: RegionId) -> Option<usize> {
        self.run_of.get(region.0 as usize).copied()
    }
}

/// Puts calls where they belong in the columns, as they come.
struct Placement<'a, C> {
    columns: C,
    tasks: &'a Tasks,
    has_tasks: bool,
    ids: CallIds,
    places: Places,
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

impl<'a, C: CallColumns> Placement<'a, C> {
    fn new(columns: C, tasks: &'a Tasks, places: Places) -> Placement<'a, C> {
        Placement {
            columns,
            tasks,
            has_tasks: !tasks.tasks().is_empty(),
            ids: CallIds::of_lanes(tasks),
            places,
            lane: 0,
            first_call_id: 0,
            next_call_id: 0,
            failure: None,
        }
    }

    /// Places the calls of all lanes.
    fn place(mut self, recording: &impl RankRecording) -> Result<(C, Vec<RegionRun>), Failure> {
        for lane in 0..recording.profile().lanes.len() as u32 {
            (self.lane, self.first_call_id) = (lane, self.next_call_id);
            recording.visit_calls(LaneId(lane), &mut self);
        }
        match self.failure {
            Some(failure) => Err(failure),
            None if self.places.next.iter().any(|next| next.at < next.end) => Err(Failure::Miscounted),
            None => Ok((self.columns, self.places.runs)),
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
        let run = self.places.run_of(region).ok_or_else(|| dangling("region"))?;
        let (parent_id, around, task) = match parent {
            Parent::None => (UNKNOWN, None, None),
            Parent::Call(parent) if i64::from(parent) < index => {
                let id = self.first_call_id + i64::from(parent);
                (id, around.map(|around| around.run), around.and_then(|around| around.task))
            }
            Parent::Call(_) => return Err(dangling("parent")),
            Parent::Run(RunId(number)) => {
                let around = self.tasks.runs().get(number as usize).ok_or_else(|| dangling("parent"))?;
                let run = self.places.run_of(around.region).ok_or_else(|| dangling("region"))?;
                (self.ids.of(around.call), Some(run), around.task)
            }
        };
        let next = &mut self.places.next[run];
        if next.at == next.end {
            return Err(Failure::Miscounted);
        }
        let Next { at, before_ns, .. } = *next;
        (next.at, next.before_ns) = (at + 1, start_ns);
        let (id, thread_id) = (self.next_call_id - 1, self.lane.into());
        self.columns.begin(at, &BegunCall { start_ns, before_ns, id, parent_id, thread_id });
        Ok(Place { at, run, start_ns, around, task })
    }
}

impl<C: CallColumns> CallSink for Placement<'_, C> {
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
        // After a failure nothing more is put anywhere.
        if call.at == Place::NOWHERE.at || self.failure.is_some() {
            return;
        }
        let duration_ns = end_ns.wrapping_sub(call.start_ns);
        let mut ended = EndedCall { start_ns: call.start_ns, duration_ns, task_id: NO_TASK, await_ns: 0 };
        let mut task = call.task;
        if self.has_tasks {
            // The task is its own, or that of what is around it.
            let own = run.and_then(|RunId(run)| self.tasks.runs().get(run as usize)?.task);
            task = own.or(call.task);
            ended.task_id = task.map_or(NO_TASK, |TaskId(task)| task.into());
            ended.await_ns =
                run.map_or(0, |RunId(run)| duration_ns - self.tasks.runs()[run as usize].busy_ns);
        }
        if let Err(error) = self.columns.end(call.at, call.run, &ended) {
            self.failure = Some(Failure::File(error));
        }
        let runs = &mut self.places.runs;
        let sum = &mut runs[call.run].exclusive_ns;
        *sum = sum.wrapping_add(duration_ns);
        if let Some(around) = call.around.filter(|_| task == call.task) {
            let sum = &mut runs[around].exclusive_ns;
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
