//! The calls of async regions, put together from their polls on all threads, and their lanes.
//!
//! A task is a lane of its own: one flow of control on whatever threads it runs. A call that was first
//! polled outside any other opens one. Further in, a call shares the lane of its parent unless it
//! overlaps something else there:
//!
//! ```text
//! task 0   round [..............................]
//!            serve [..........]   serve [....]        in turn: on the lane of `round`
//! task 1       serve [..........]                     at the same time: on one of its own
//! ```

use std::collections::HashMap;

use crate::clock::TickScale;
use crate::profile::RegionId;
use crate::recording::{CallRef, Parent};
use crate::regions::Regions;
use crate::replay::{Cut, Ended, Poll, Visitor};

/// Index of a task in [`Tasks::tasks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// Index of a run in [`Tasks::runs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u32);

/// How a call went that did not run from begin to end: of an async region, or of a region that was
/// held over an `.await`. Times in ns on the recording clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The call.
    pub call: CallRef,
    /// Its region.
    pub region: RegionId,
    /// What it was called by; a call by its position is on the lane of `call`.
    pub parent: Parent,
    /// The task it opened or was put on; `None` for a region that was held, which is where its
    /// parent is.
    pub task: Option<TaskId>,
    /// Begin of the first poll.
    pub start_ns: i64,
    /// Completion or drop, or where it was cut.
    pub end_ns: i64,
    /// Sum of its polls; what is left of its duration is spent waiting.
    pub busy_ns: i64,
    /// Number of polls.
    pub polls: u64,
    /// Whether it was dropped before it completed.
    pub cancelled: bool,
    /// Cut at the end of recording.
    pub open: bool,
}

/// One poll. Times in ns on the recording clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollInterval {
    /// What was polled.
    pub run: RunId,
    /// The thread: its lane.
    pub lane: u32,
    /// Begin.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
}

/// A task: a lane of async calls. Times in ns on the recording clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Region of its first call.
    pub region: RegionId,
    /// Begin of its first call.
    pub start_ns: i64,
    /// End of its last call.
    pub end_ns: i64,
    /// Sum of the polls of its outermost calls.
    pub busy_ns: i64,
    /// Sum of their durations.
    pub wall_ns: i64,
    /// Number of their polls.
    pub polls: u64,
    /// Lane of the thread that was last to poll it.
    pub last_lane: u32,
    /// Whether a call on it was cut at the end of recording.
    pub open: bool,
}

/// All that is async in a recording.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tasks: Vec<Task>,
    runs: Vec<Run>,
    polls: Vec<PollInterval>,
    links: Vec<Started>,
    by_instance: HashMap<u64, RunId>,
    held: HashMap<CallRef, RunId>,
    calls: Vec<u32>,
}

/// Where a call was started that has nothing around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Started {
    pub(super) call: CallRef,
    /// The instance, where it is of an async region.
    pub(super) instance: Option<u64>,
    pub(super) position: u64,
}

impl Tasks {
    /// Number of calls on each lane, as [`Recording::calls`](super::Recording::calls) gives them.
    pub fn calls(&self) -> &[u32] {
        &self.calls
    }

    /// The tasks in order of their begin.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The calls that ran in parts.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Every poll of an async region, thread by thread in order of end.
    pub fn polls(&self) -> &[PollInterval] {
        &self.polls
    }

    /// Whether calls were started by others than those around them.
    pub fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// The calls that were started elsewhere.
    pub(super) fn started(&self) -> &[Started] {
        &self.links
    }

    /// The call of an async region's instance.
    pub(super) fn instance(&self, instance: u64) -> Option<RunId> {
        self.by_instance.get(&instance).copied()
    }

    /// How a region went that was set aside.
    pub(super) fn held(&self, call: CallRef) -> Option<RunId> {
        self.held.get(&call).copied()
    }
}

/// Gathers the polls of one lane after the other.
pub(super) struct TaskCollector<'a> {
    regions: &'a Regions,
    scale: TickScale,
    found: Found,
    /// The lane that is replayed, and its calls so far.
    lane: u32,
    calls: u32,
    open: Vec<Frame>,
    aside: HashMap<u64, Vec<Aside>>,
    started_at: u64,
}

/// What the lanes before have given.
#[derive(Default)]
pub(super) struct Found {
    instances: Vec<Instance>,
    by_instance: HashMap<u64, u32>,
    polls: Vec<PollInterval>,
    held: Vec<Run>,
    /// Begins of plain calls in tasks, by what they were called by.
    plain: HashMap<Caller, Vec<i64>>,
    /// Number of calls on each lane.
    calls: Vec<u32>,
    started: Vec<Started>,
}

struct Instance {
    number: u64,
    run: Option<Run>,
    parent: Option<Caller>,
    /// The instance in which it was first polled.
    around: Option<u32>,
    ended: bool,
    busy_ns: i64,
    polls: u64,
    last: (i64, u32),
}

/// Who called: an instance, or a plain call of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Caller {
    Instance(u32),
    Call(CallRef),
}

#[derive(Clone, Copy)]
enum Frame {
    Poll { instance: u32, start_ns: i64 },
    Call { index: u32, region: u32, aside: Option<Aside>, start_ns: i64 },
}

/// A region that was set aside: begin, what it ran so far, and how many parts that was.
#[derive(Clone, Copy)]
struct Aside {
    index: u32,
    region: u32,
    first_ns: i64,
    busy_ns: i64,
    parts: u64,
}

impl<'a> TaskCollector<'a> {
    pub(super) fn new(regions: &'a Regions, scale: TickScale, lane: u32, found: Found) -> Self {
        let (open, aside) = Default::default();
        TaskCollector { regions, scale, found, lane, calls: 0, open, aside, started_at: 0 }
    }

    pub(super) fn into_found(mut self) -> Found {
        self.found.calls.push(self.calls);
        self.found
    }

    fn instance(&mut self, number: u64) -> u32 {
        let next = self.found.instances.len() as u32;
        let index = *self.found.by_instance.entry(number).or_insert(next);
        if index == next {
            self.found.instances.push(Instance {
                number,
                run: None,
                parent: None,
                around: None,
                ended: false,
                busy_ns: 0,
                polls: 0,
                last: (i64::MIN, 0),
            });
        }
        index
    }

    fn caller(&self) -> Option<Caller> {
        self.open.last().map(|frame| match *frame {
            Frame::Poll { instance, .. } => Caller::Instance(instance),
            Frame::Call { index, .. } => Caller::Call(CallRef { lane: self.lane, index }),
        })
    }

    fn polled(&self) -> Option<u32> {
        self.open.iter().rev().find_map(|frame| match *frame {
            Frame::Poll { instance, .. } => Some(instance),
            Frame::Call { .. } => None,
        })
    }

    fn next_call(&mut self) -> u32 {
        self.calls += 1;
        self.calls - 1
    }

    /// Ends a part of the innermost call.
    fn end_part(&mut self, at: u64) -> Option<(Aside, i64)> {
        let end_ns = self.scale.ns(at);
        match self.open.pop()? {
            Frame::Call { index, region, aside, start_ns } => {
                let before =
                    aside.unwrap_or(Aside { index, region, first_ns: start_ns, busy_ns: 0, parts: 0 });
                let busy_ns = before.busy_ns + end_ns - start_ns;
                Some((Aside { busy_ns, parts: before.parts + 1, ..before }, end_ns))
            }
            Frame::Poll { .. } => None,
        }
    }
}

impl Visitor for TaskCollector<'_> {
    fn enter(&mut self, region: u32, at: u64) {
        let start_ns = self.scale.ns(at);
        if let Some(caller) = self.caller()
            && self.polled().is_some()
        {
            self.found.plain.entry(caller).or_default().push(start_ns);
        }
        let index = self.next_call();
        if self.open.is_empty() && self.started_at != 0 {
            let (call, position) = (CallRef { lane: self.lane, index }, self.started_at);
            self.found.started.push(Started { call, instance: None, position });
        }
        self.open.push(Frame::Call { index, region, aside: None, start_ns });
    }

    fn link(&mut self, position: u64) {
        if let Some(&Frame::Poll { instance, .. }) = self.open.last()
            && let Some(run) = self.found.instances[instance as usize].run
        {
            let number = self.found.instances[instance as usize].number;
            self.found.started.push(Started { call: run.call, instance: Some(number), position });
        }
    }

    fn started_at(&mut self, position: u64) {
        self.started_at = position;
    }

    fn leave(&mut self, at: u64, cut: Cut) {
        let Some((call, end_ns)) = self.end_part(at).filter(|(call, _)| call.parts > 1) else { return };
        let region = self.regions.called_id(call.region);
        let Aside { index, first_ns: start_ns, busy_ns, parts: polls, .. } = call;
        let open = cut == Cut::Open;
        let call = CallRef { lane: self.lane, index };
        self.found.held.push(Run { start_ns, end_ns, busy_ns, polls, open, ..Run::of(call, region) });
    }

    fn begin_poll(&mut self, poll: Poll, at: u64) {
        let instance = self.instance(poll.instance);
        let start_ns = self.scale.ns(at);
        if poll.first {
            let (parent, around) = (self.caller().filter(|_| poll.nested), self.polled());
            let call = CallRef { lane: self.lane, index: self.next_call() };
            let region = self.regions.called_id(poll.region);
            let known = &mut self.found.instances[instance as usize];
            (known.parent, known.around) = (parent, around);
            let end_ns = known.run.map_or(start_ns, |run| run.end_ns);
            let cancelled = known.run.is_some_and(|run| run.cancelled);
            known.run = Some(Run { start_ns, end_ns, cancelled, ..Run::of(call, region) });
        }
        self.open.push(Frame::Poll { instance, start_ns });
    }

    fn end_poll(&mut self, ended: Option<Ended>, at: u64) {
        let end_ns = self.scale.ns(at);
        let Some(Frame::Poll { instance, start_ns }) = self.open.pop() else { return };
        let known = &mut self.found.instances[instance as usize];
        known.busy_ns += end_ns - start_ns;
        known.polls += 1;
        known.last = known.last.max((end_ns, self.lane));
        if let Some(ended) = ended {
            known.ended = true;
            // Its begin may be on a lane that comes later.
            let nowhere = CallRef { lane: u32::MAX, index: 0 };
            let run = known.run.get_or_insert(Run::of(nowhere, RegionId(0)));
            (run.end_ns, run.cancelled) = (end_ns.max(run.start_ns), ended.cancelled);
        }
        self.found.polls.push(PollInterval { run: RunId(instance), lane: self.lane, start_ns, end_ns });
    }

    fn suspend(&mut self, instance: u64, at: u64) {
        if let Some((call, _)) = self.end_part(at) {
            self.aside.entry(instance).or_default().push(call);
        }
    }

    fn resume(&mut self, instance: u64, at: u64) {
        let start_ns = self.scale.ns(at);
        let known = self.aside.get_mut(&instance).and_then(Vec::pop);
        if let Some(aside @ Aside { index, region, .. }) = known {
            self.open.push(Frame::Call { index, region, aside: Some(aside), start_ns });
        }
    }
}

impl Run {
    fn of(call: CallRef, region: RegionId) -> Run {
        Run {
            call,
            region,
            parent: Parent::None,
            task: None,
            start_ns: 0,
            end_ns: 0,
            busy_ns: 0,
            polls: 0,
            cancelled: false,
            open: false,
        }
    }
}

impl Found {
    /// Puts together what all lanes gave. `cut_ns` is where a call that began at some time is cut if it
    /// did not end.
    pub(super) fn into_tasks(mut self, cut_ns: impl Fn(i64) -> i64) -> Tasks {
        let mut tasks = Tasks { calls: self.calls, links: self.started, ..Tasks::default() };
        // An instance whose begin is missing is none.
        let mut run_of: Vec<Option<RunId>> = Vec::with_capacity(self.instances.len());
        for instance in &self.instances {
            let run = instance.run.filter(|run| run.call.lane != u32::MAX);
            run_of.push(run.map(|run| {
                let open = !instance.ended;
                let end_ns = if open { cut_ns(run.start_ns).max(run.start_ns) } else { run.end_ns };
                let (busy_ns, polls) = (instance.busy_ns, instance.polls);
                let parent = match instance.parent {
                    None => Parent::None,
                    Some(Caller::Call(call)) => Parent::Call(call.index),
                    // Set below, when all runs are numbered.
                    Some(Caller::Instance(_)) => Parent::None,
                };
                tasks.runs.push(Run { parent, end_ns, busy_ns, polls, open, ..run });
                RunId(tasks.runs.len() as u32 - 1)
            }));
        }
        for (instance, run) in self.instances.iter().zip(&run_of) {
            if let (Some(RunId(run)), Some(Caller::Instance(parent))) = (run, instance.parent) {
                tasks.runs[*run as usize].parent = run_of[parent as usize].map_or(Parent::None, Parent::Run);
            }
        }
        for poll in self.polls {
            let run = run_of[poll.run.0 as usize];
            tasks.polls.extend(run.map(|run| PollInterval { run, ..poll }));
        }
        let known = |(&number, &index): (&u64, &u32)| Some((number, run_of[index as usize]?));
        tasks.by_instance = self.by_instance.iter().filter_map(known).collect();
        for run in self.held {
            tasks.held.insert(run.call, RunId(tasks.runs.len() as u32));
            tasks.runs.push(run);
        }
        self.plain.values_mut().for_each(|starts| starts.sort_unstable());
        let mut lanes =
            Lanes { instances: &self.instances, run_of: &run_of, plain: &self.plain, of: HashMap::new() };
        lanes.assign(&mut tasks);
        tasks
    }
}

/// Gives each instance its lane, in order of their begins.
struct Lanes<'a> {
    instances: &'a [Instance],
    run_of: &'a [Option<RunId>],
    plain: &'a HashMap<Caller, Vec<i64>>,
    /// Below each caller the lanes in use, the caller's own first, and until when.
    of: HashMap<Caller, Vec<(TaskId, i64)>>,
}

impl Lanes<'_> {
    fn assign(&mut self, tasks: &mut Tasks) {
        let begun = self.run_of.iter().zip(0u32..).filter_map(|(run, index)| Some(((*run)?, index)));
        let mut order: Vec<(i64, RunId, u32)> =
            begun.map(|(run, index)| (tasks.runs[run.0 as usize].start_ns, run, index)).collect();
        order.sort_unstable();
        for (_, RunId(run), index) in order {
            let instance = &self.instances[index as usize];
            let call = tasks.runs[run as usize];
            let next = TaskId(tasks.tasks.len() as u32);
            let task = self.lane_for(instance, &call, tasks).unwrap_or(next);
            if task == next {
                let Run { region, start_ns, end_ns, .. } = call;
                let last_lane = instance.last.1;
                let (busy_ns, wall_ns, polls, open) = (0, 0, 0, false);
                tasks.tasks.push(Task { region, start_ns, end_ns, busy_ns, wall_ns, polls, last_lane, open });
            }
            tasks.runs[run as usize].task = Some(task);
            let shares = instance.around.is_some_and(|around| {
                self.run_of[around as usize]
                    .is_some_and(|RunId(run)| tasks.runs[run as usize].task == Some(task))
            });
            let known = &mut tasks.tasks[task.0 as usize];
            known.end_ns = known.end_ns.max(call.end_ns);
            known.open |= call.open;
            if !shares {
                known.busy_ns += call.busy_ns;
                known.wall_ns += call.end_ns - call.start_ns;
                known.polls += call.polls;
                known.last_lane = instance.last.1;
            }
        }
    }

    /// The lane below its caller where `call` fits; `None` when it needs a new one, which is noted.
    fn lane_for(&mut self, instance: &Instance, call: &Run, tasks: &Tasks) -> Option<TaskId> {
        let caller = instance.parent?;
        let around = self.run_of[instance.around? as usize]?;
        let around = &tasks.runs[around.0 as usize];
        let own = around.task?;
        let lanes = self.of.entry(caller).or_insert_with(|| vec![(own, i64::MIN)]);
        let plain = self.plain.get(&caller).map_or(&[][..], Vec::as_slice);
        let next_plain = plain.partition_point(|&start_ns| start_ns < call.start_ns);
        let fits_own = call.end_ns <= around.end_ns
            && plain.get(next_plain).is_none_or(|&start_ns| start_ns >= call.end_ns);
        let free =
            lanes.iter_mut().enumerate().find(|(at, lane)| lane.1 <= call.start_ns && (*at > 0 || fits_own));
        match free {
            Some((_, lane)) => {
                lane.1 = call.end_ns;
                Some(lane.0)
            }
            None => {
                lanes.push((TaskId(tasks.tasks.len() as u32), call.end_ns));
                None
            }
        }
    }
}
