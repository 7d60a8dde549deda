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
//!
//! A `tracing` span that was entered more than once is such a call too, its parts are its polls; one
//! that was entered once is a plain call of its thread.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::clock::TickScale;
use crate::profile::RegionId;
use crate::recording::{CallRef, Parent};
use crate::regions::Regions;
use crate::replay::{Cut, Ended, Part, Poll, SetAside, Visitor};

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
    /// The number that its executor gives it, where that is known.
    pub executor_id: Option<u64>,
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
    spans: HashMap<CallRef, RunId>,
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

    /// How a span went that was entered more than once; the call is the first time.
    pub(super) fn span(&self, call: CallRef) -> Option<RunId> {
        self.spans.get(&call).copied()
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
    open: Frames,
    aside: SetAside<Suspended>,
    /// Begins of calls directly in spans that are open for the first time, by the span's position in
    /// `open`.
    in_spans: Vec<(usize, i64)>,
    started_at: u64,
}

/// What the lanes before have given.
#[derive(Default)]
pub(super) struct Found {
    instances: Vec<Instance>,
    by_instance: HashMap<u64, u32>,
    polls: Vec<PollInterval>,
    held: Vec<Run>,
    /// The instance of each span that may have been entered again.
    spans: HashMap<CallRef, u32>,
    /// What is around other spans that have async calls in them.
    around_span: HashMap<CallRef, Option<Caller>>,
    /// Begins of plain calls in tasks, by what they were called by.
    plain: HashMap<Caller, Vec<i64>>,
    /// Number of calls on each lane.
    calls: Vec<u32>,
    started: Vec<Started>,
}

struct Instance {
    number: u64,
    executor_id: Option<u64>,
    run: Option<Run>,
    parent: Option<Caller>,
    /// The instance in which it was first polled, or a span that may be one.
    around: Option<Caller>,
    is_span: bool,
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
    Call { index: u32, region: u32, aside: Option<Aside>, start_ns: i64, is_span: bool },
}

/// What is open on a lane, the innermost last.
#[derive(Default)]
struct Frames {
    all: Vec<Frame>,
    /// Positions of polls.
    polls: Vec<usize>,
    /// Positions of polls and of spans.
    named: Vec<usize>,
}

impl Frames {
    fn push(&mut self, frame: Frame) {
        let position = self.all.len();
        if frame.is_poll() {
            self.polls.push(position);
        }
        if frame.is_poll() || matches!(frame, Frame::Call { is_span: true, .. }) {
            self.named.push(position);
        }
        self.all.push(frame);
    }

    fn pop(&mut self) -> Option<Frame> {
        let popped = self.all.pop();
        for positions in [&mut self.polls, &mut self.named] {
            positions.pop_if(|position| *position == self.all.len());
        }
        popped
    }

    fn last(&self) -> Option<&Frame> {
        self.all.last()
    }

    fn len(&self) -> usize {
        self.all.len()
    }

    /// The innermost poll and the spans in it, from the outside in; all spans where nothing is polled.
    fn around(&self) -> impl Iterator<Item = &Frame> {
        let innermost = self.polls.last().copied().unwrap_or(0);
        let from = self.named.partition_point(|position| *position < innermost);
        self.named[from..].iter().map(|position| &self.all[*position])
    }
}

impl Frame {
    fn is_poll(&self) -> bool {
        matches!(self, Frame::Poll { .. })
    }
}

/// What was set aside: a call, or a later part of a span, which is an instance.
#[derive(Clone, Copy)]
enum Suspended {
    Call(Aside),
    Part(u32),
}

/// A region that was set aside: begin, what it ran so far, and how many parts that was.
#[derive(Clone, Copy)]
struct Aside {
    index: u32,
    region: u32,
    first_ns: i64,
    busy_ns: i64,
    parts: u64,
    is_span: bool,
}

impl Suspended {
    /// It goes on.
    fn frame(self, start_ns: i64) -> Frame {
        match self {
            Suspended::Call(aside @ Aside { index, region, is_span, .. }) => {
                Frame::Call { index, region, aside: Some(aside), start_ns, is_span }
            }
            Suspended::Part(instance) => Frame::Poll { instance, start_ns },
        }
    }
}

impl<'a> TaskCollector<'a> {
    pub(super) fn new(regions: &'a Regions, scale: TickScale, lane: u32, found: Found) -> Self {
        let (open, aside, in_spans) = Default::default();
        let started_at = 0;
        TaskCollector { regions, scale, found, lane, calls: 0, open, aside, in_spans, started_at }
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
                executor_id: None,
                run: None,
                parent: None,
                around: None,
                is_span: false,
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

    /// The innermost instance, or span that may be one.
    fn around(&mut self) -> Option<Caller> {
        let mut around = None;
        for frame in self.open.around() {
            match *frame {
                Frame::Poll { instance, .. } => around = Some(Caller::Instance(instance)),
                Frame::Call { index, is_span: true, .. } => {
                    let call = CallRef { lane: self.lane, index };
                    self.found.around_span.insert(call, around);
                    around = Some(Caller::Call(call));
                }
                Frame::Call { .. } => {}
            }
        }
        around
    }

    /// Notes that a plain call begins, on the lane of what is around it.
    fn begin_plain(&mut self, start_ns: i64) {
        match self.open.last() {
            Some(Frame::Call { is_span: true, .. }) => self.in_spans.push((self.open.len() - 1, start_ns)),
            Some(_) if !self.open.polls.is_empty() => {
                let caller = self.caller().expect("a frame is open");
                self.found.plain.entry(caller).or_default().push(start_ns);
            }
            _ => {}
        }
    }

    /// The innermost call, which has just been closed, was no plain one.
    fn take_plain_back(&mut self, start_ns: i64) {
        let position = self.open.len().wrapping_sub(1);
        if self.in_spans.pop_if(|begun| *begun == (position, start_ns)).is_none()
            && let Some(begun) = self.caller().and_then(|caller| self.found.plain.get_mut(&caller))
            && let Some(at) = begun.iter().rposition(|&begun_ns| begun_ns == start_ns)
        {
            begun.remove(at);
        }
    }

    /// What began directly in the span that has just been closed.
    fn take_begun_in_span(&mut self) -> Vec<i64> {
        let position = self.open.len();
        let from = self.in_spans.partition_point(|&(index, _)| index < position);
        self.in_spans.drain(from..).map(|(_, start_ns)| start_ns).collect()
    }

    fn push_call(&mut self, region: u32, at: u64, is_span: bool) {
        let start_ns = self.scale.ns(at);
        self.begin_plain(start_ns);
        let index = self.next_call();
        if self.open.len() == 0 && self.started_at != 0 {
            let (call, position) = (CallRef { lane: self.lane, index }, self.started_at);
            self.found.started.push(Started { call, instance: None, position });
        }
        self.open.push(Frame::Call { index, region, aside: None, start_ns, is_span });
    }

    /// Adds a poll to an instance.
    fn add_poll(&mut self, instance: u32, start_ns: i64, end_ns: i64, busy_ns: i64) {
        let known = &mut self.found.instances[instance as usize];
        known.busy_ns = known.busy_ns.saturating_add(busy_ns);
        known.polls += 1;
        known.last = known.last.max((end_ns, self.lane));
        self.found.polls.push(PollInterval { run: RunId(instance), lane: self.lane, start_ns, end_ns });
    }

    fn next_call(&mut self) -> u32 {
        self.calls += 1;
        self.calls - 1
    }

    /// Ends a part of the innermost call.
    fn close_part(&mut self, at: u64) -> Option<(Aside, i64)> {
        let end_ns = self.scale.ns(at);
        match self.open.pop()? {
            Frame::Call { index, region, aside, start_ns, is_span } => {
                let new = Aside { index, region, first_ns: start_ns, busy_ns: 0, parts: 0, is_span };
                let before = aside.unwrap_or(new);
                let busy_ns = before.busy_ns.saturating_add(end_ns - start_ns);
                Some((Aside { busy_ns, parts: before.parts + 1, ..before }, end_ns))
            }
            Frame::Poll { .. } => None,
        }
    }
}

impl Visitor for TaskCollector<'_> {
    fn enter(&mut self, region: u32, at: u64) {
        self.push_call(region, at, false);
    }

    fn enter_span(&mut self, region: u32, at: u64) {
        self.push_call(region, at, true);
    }

    fn begin_part(&mut self, part: Part, at: u64) {
        let instance = self.instance(part.instance);
        let known = &mut self.found.instances[instance as usize];
        (known.is_span, known.ended) = (true, true);
        self.open.push(Frame::Poll { instance, start_ns: self.scale.ns(at) });
    }

    fn end_part(&mut self, instance: u64, at: u64) {
        if self.open.last().is_some_and(Frame::is_poll) {
            return self.leave(at, Cut::No);
        }
        let Some((call, end_ns)) = self.close_part(at) else { return };
        let begun = self.take_begun_in_span();
        self.take_plain_back(call.first_ns);
        let (parent, around) = (self.caller(), self.around());
        let place = CallRef { lane: self.lane, index: call.index };
        if !begun.is_empty() {
            self.found.plain.insert(Caller::Call(place), begun);
        }
        let run = Run::of(place, self.regions.called_id(call.region));
        let instance = self.instance(instance);
        self.found.spans.insert(place, instance);
        let known = &mut self.found.instances[instance as usize];
        (known.parent, known.around) = (parent, around);
        (known.is_span, known.ended) = (true, true);
        known.run = Some(Run { start_ns: call.first_ns, ..run });
        let number = known.number;
        // Those that were started since it began come behind it.
        let mut newest = self.found.started.iter_mut().rev().take_while(|started| started.call >= place);
        if let Some(started) = newest.find(|started| started.call == place) {
            started.instance = Some(number);
        }
        self.add_poll(instance, call.first_ns, end_ns, call.busy_ns);
    }

    fn link(&mut self, position: u64) {
        if let Some(&Frame::Poll { instance, .. }) = self.open.last()
            && let Some(run) = self.found.instances[instance as usize].run
        {
            let number = self.found.instances[instance as usize].number;
            self.found.started.push(Started { call: run.call, instance: Some(number), position });
        }
    }

    fn executor_task(&mut self, number: u64) {
        if let Some(&Frame::Poll { instance, .. }) = self.open.last() {
            self.found.instances[instance as usize].executor_id = Some(number);
        }
    }

    fn started_at(&mut self, position: u64) {
        self.started_at = position;
    }

    fn leave(&mut self, at: u64, cut: Cut) {
        if let Some(&Frame::Poll { instance, start_ns }) = self.open.last() {
            self.open.pop();
            let end_ns = self.scale.ns(at);
            self.found.instances[instance as usize].ended &= cut != Cut::Open;
            return self.add_poll(instance, start_ns, end_ns, end_ns - start_ns);
        }
        let closed = self.close_part(at);
        self.take_begun_in_span();
        let Some((call, end_ns)) = closed.filter(|(call, _)| call.parts > 1) else { return };
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
            let (parent, around) = (self.caller().filter(|_| poll.nested), self.around());
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
        self.add_poll(instance, start_ns, end_ns, end_ns - start_ns);
        let known = &mut self.found.instances[instance as usize];
        if let Some(ended) = ended {
            known.ended = true;
            // Its begin may be on a lane that comes later.
            let nowhere = CallRef { lane: u32::MAX, index: 0 };
            let run = known.run.get_or_insert(Run::of(nowhere, RegionId(0)));
            (run.end_ns, run.cancelled) = (end_ns.max(run.start_ns), ended.cancelled);
        }
    }

    fn suspend(&mut self, instance: u64, at: u64) {
        let suspended = match self.open.last() {
            Some(&Frame::Poll { instance: span, .. }) => {
                self.leave(at, Cut::No);
                Some(Suspended::Part(span))
            }
            _ => self.close_part(at).map(|(call, _)| Suspended::Call(call)),
        };
        if let Some(suspended) = suspended {
            self.aside.push(instance, suspended);
        }
    }

    fn resume(&mut self, instance: u64, at: u64) {
        let start_ns = self.scale.ns(at);
        if let Some(suspended) = self.aside.pop(instance) {
            self.open.push(suspended.frame(start_ns));
        }
    }

    fn end_aside(&mut self, instance: u64, span: Option<u64>, at: u64) {
        let end_ns = self.scale.ns(at);
        match self.aside.take_innermost(instance) {
            // What ran in totals is no poll that is known.
            Some(Suspended::Part(part)) => {
                let known = &mut self.found.instances[part as usize];
                known.last = known.last.max((end_ns, self.lane));
            }
            Some(call) => {
                self.open.push(call.frame(end_ns));
                match span {
                    Some(span) => self.end_part(span, at),
                    None => self.leave(at, Cut::No),
                }
            }
            None => {}
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
        self.settle_spans();
        let calls = std::mem::take(&mut self.calls);
        let mut tasks = Tasks { calls, links: std::mem::take(&mut self.started), ..Tasks::default() };
        // An instance whose begin is missing is none.
        let mut run_of: Vec<Option<RunId>> = Vec::with_capacity(self.instances.len());
        for instance in &self.instances {
            let run = instance.run.filter(|run| run.call.lane != u32::MAX);
            run_of.push(run.map(|run| {
                let open = !instance.ended;
                let end_ns = if instance.is_span && !open {
                    instance.last.0
                } else if open {
                    cut_ns(run.start_ns).max(run.start_ns)
                } else {
                    run.end_ns
                };
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
        let spans = self.spans.iter();
        tasks.spans = spans.filter_map(|(&call, &index)| Some((call, run_of[index as usize]?))).collect();
        for run in self.held {
            tasks.held.insert(run.call, RunId(tasks.runs.len() as u32));
            tasks.runs.push(run);
        }
        self.plain.values_mut().for_each(|starts| starts.sort_unstable());
        let (instances, around_span) = (&self.instances, &self.around_span);
        let mut lanes =
            Lanes { instances, run_of: &run_of, plain: &self.plain, around_span, of: HashMap::new() };
        lanes.assign(&mut tasks);
        tasks
    }
}

impl Found {
    /// Makes plain calls of the spans that were entered once, and instances of the others wherever a
    /// call in them names what it is in.
    fn settle_spans(&mut self) {
        self.spans.retain(|&call, index| {
            let span = &mut self.instances[*index as usize];
            let is_plain = span.polls == 1;
            if is_plain {
                self.around_span.insert(call, span.around);
                if let (Some(run), Some(parent)) = (span.run.take(), span.parent) {
                    self.plain.entry(parent).or_default().push(run.start_ns);
                }
            }
            !is_plain
        });
        for (&call, &index) in &self.spans {
            if let Some(begun) = self.plain.remove(&Caller::Call(call)) {
                self.plain.entry(Caller::Instance(index)).or_default().extend(begun);
            }
        }
        let resolve = |caller: &mut Caller| {
            if let Caller::Call(call) = caller
                && let Some(&index) = self.spans.get(call)
            {
                *caller = Caller::Instance(index);
            }
        };
        for instance in &mut self.instances {
            instance.parent.as_mut().map(resolve);
            instance.around.as_mut().map(resolve);
        }
        self.around_span.values_mut().flatten().for_each(resolve);
    }
}

/// Gives each instance its lane, in order of their begins.
struct Lanes<'a> {
    instances: &'a [Instance],
    run_of: &'a [Option<RunId>],
    plain: &'a HashMap<Caller, Vec<i64>>,
    around_span: &'a HashMap<CallRef, Option<Caller>>,
    of: HashMap<Caller, LanesBelow>,
}

/// The lanes below a caller.
struct LanesBelow {
    /// The caller's own, and until when it is in use.
    own: (TaskId, i64),
    /// Others in use, by when they become free.
    busy: BinaryHeap<Reverse<(i64, TaskId)>>,
    free: BinaryHeap<Reverse<TaskId>>,
}

impl LanesBelow {
    fn new(own: TaskId) -> LanesBelow {
        LanesBelow { own: (own, i64::MIN), busy: BinaryHeap::new(), free: BinaryHeap::new() }
    }

    /// The first lane that is free when `call` begins, the caller's own only if the call `fits_own`; else
    /// `next`. To be asked in order of begins.
    fn take(&mut self, call: &Run, fits_own: bool, next: TaskId) -> TaskId {
        if fits_own && self.own.1 <= call.start_ns {
            self.own.1 = call.end_ns;
            return self.own.0;
        }
        while let Some(&Reverse((until, lane))) = self.busy.peek()
            && until <= call.start_ns
        {
            self.busy.pop();
            self.free.push(Reverse(lane));
        }
        let lane = self.free.pop().map_or(next, |Reverse(lane)| lane);
        self.busy.push(Reverse((call.end_ns, lane)));
        lane
    }
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
            let task = self.lane_for(instance, &call, tasks, next).unwrap_or(next);
            if task == next {
                let Run { region, start_ns, end_ns, .. } = call;
                let (last_lane, executor_id) = (instance.last.1, instance.executor_id);
                let (busy_ns, wall_ns, polls, open) = (0, 0, 0, false);
                tasks.tasks.push(Task {
                    region,
                    start_ns,
                    end_ns,
                    busy_ns,
                    wall_ns,
                    polls,
                    last_lane,
                    open,
                    executor_id,
                });
            }
            tasks.runs[run as usize].task = Some(task);
            let shares =
                self.around(instance).is_some_and(|RunId(run)| tasks.runs[run as usize].task == Some(task));
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

    /// The instance around another one.
    fn around(&self, instance: &Instance) -> Option<RunId> {
        let mut around = instance.around?;
        loop {
            match around {
                Caller::Instance(instance) => return self.run_of[instance as usize],
                Caller::Call(span) => around = (*self.around_span.get(&span)?)?,
            }
        }
    }

    /// The lane below its caller where `call` fits, `next` when it needs a new one; `None` without a caller.
    fn lane_for(&mut self, instance: &Instance, call: &Run, tasks: &Tasks, next: TaskId) -> Option<TaskId> {
        let caller = instance.parent?;
        let around = &tasks.runs[self.around(instance)?.0 as usize];
        let own = around.task?;
        let plain = self.plain.get(&caller).map_or(&[][..], Vec::as_slice);
        let next_plain = plain.partition_point(|&start_ns| start_ns < call.start_ns);
        // What else is in a span that is a plain call is not known.
        let in_plain_span = matches!(caller, Caller::Call(call) if self.around_span.contains_key(&call));
        let fits_own = !in_plain_span
            && call.end_ns <= around.end_ns
            && plain.get(next_plain).is_none_or(|&start_ns| start_ns >= call.end_ns);
        let lanes = self.of.entry(caller).or_insert_with(|| LanesBelow::new(own));
        Some(lanes.take(call, fits_own, next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_get_the_first_lane_that_is_free() {
        let (mut random, mut start_ns) = (1_u32, 0);
        let mut below = |bound: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 16) % bound
        };
        let mut lanes = LanesBelow::new(TaskId(0));
        // Until when each is in use, the caller's own first.
        let mut expected: Vec<i64> = vec![i64::MIN];
        for index in 0..5000 {
            start_ns += i64::from(below(3));
            let (end_ns, fits_own) = (start_ns + i64::from(below(40)), below(4) == 0);
            let call = CallRef { lane: 0, index };
            let call = Run { start_ns, end_ns, ..Run::of(call, RegionId(0)) };
            let next = expected.len();
            let is_free = |at: usize| expected[at] <= start_ns && (at > 0 || fits_own);
            let lane = (0..next).find(|&at| is_free(at)).unwrap_or(next);
            expected.resize(expected.len().max(lane + 1), 0);
            expected[lane] = end_ns;
            assert_eq!(lanes.take(&call, fits_own, TaskId(next as u32)), TaskId(lane as u32), "call {index}");
        }
        assert!(expected.len() > 10, "{}", expected.len());
    }
}
