//! Takes the calls of a lane, in the order in which they were entered.

use crate::profile::RegionId;
use crate::recording::tasks::{RunId, Tasks};
use crate::recording::{Call, CallRef, Parent, Recording};
use crate::replay::{Cut, Ended, Part, Poll, SetAside, Visitor};

/// Takes the calls of a lane while these are read, so that they need not be in memory all at once.
pub trait CallSink {
    /// What is kept of a call until it ends.
    type Open: Copy;

    /// The next call of the lane is entered. Where `parent` is a call, `around` is what was kept of it.
    fn begin(
        &mut self,
        region: RegionId,
        start_ns: i64,
        parent: Parent,
        around: Option<&Self::Open>,
    ) -> Self::Open;

    /// A call ends; the rest is as in [`Call`].
    fn end(&mut self, call: Self::Open, end_ns: i64, run: Option<RunId>, open: bool);
}

impl CallSink for Vec<Call> {
    type Open = usize;

    fn begin(&mut self, region: RegionId, start_ns: i64, parent: Parent, _: Option<&usize>) -> usize {
        self.push(Call { region, start_ns, end_ns: start_ns, parent, run: None, open: false });
        self.len() - 1
    }

    fn end(&mut self, call: usize, end_ns: i64, run: Option<RunId>, open: bool) {
        let call = &mut self[call];
        (call.end_ns, call.run, call.open) = (end_ns, run, open);
    }
}

/// Hands the calls of the lane with this number to a sink; `tasks` says how those went that ran in
/// parts, maybe on other lanes.
pub(in crate::recording) struct CallCollector<'a, S: CallSink> {
    sink: &'a mut S,
    recording: &'a Recording,
    tasks: &'a Tasks,
    lane: u32,
    /// Number of calls so far.
    calls: u32,
    open: Vec<Frame<S::Open>>,
    aside: SetAside<Frame<S::Open>>,
}

#[derive(Clone, Copy)]
enum Frame<O> {
    /// Nothing that is known.
    Unknown,
    /// A plain call and its position on the lane.
    Call(u32, O),
    /// A part of a call that ran in parts.
    Part(RunId),
}

impl<'a, S: CallSink> CallCollector<'a, S> {
    pub(in crate::recording) fn new(
        recording: &'a Recording,
        tasks: &'a Tasks,
        lane: u32,
        sink: &'a mut S,
    ) -> Self {
        let (open, aside) = Default::default();
        CallCollector { sink, recording, tasks, lane, calls: 0, open, aside }
    }

    fn part_of(run: Option<RunId>) -> Frame<S::Open> {
        run.map_or(Frame::Unknown, Frame::Part)
    }

    /// A plain call begins inside the innermost frame.
    #[inline(always)]
    fn begin(&mut self, region: u32, at: u64) -> S::Open {
        let (parent, around) = match self.open.last() {
            Some(Frame::Call(index, call)) => (Parent::Call(*index), Some(call)),
            Some(Frame::Part(run)) => (Parent::Run(*run), None),
            Some(Frame::Unknown) | None => (Parent::None, None),
        };
        let region = self.recording.regions.called_id(region);
        self.sink.begin(region, self.recording.scale.ns(at), parent, around)
    }

    /// Gives the position of the call that has just begun.
    #[inline]
    fn count(&mut self) -> u32 {
        let index = self.calls;
        self.calls = index.checked_add(1).expect("fewer than 2^32 calls on a lane");
        index
    }

    /// Hands over a call that ran in parts, of which all is known.
    fn whole(&mut self, region: u32, number: RunId) {
        let run = &self.tasks.runs()[number.0 as usize];
        let around = self.open.iter().rev().find_map(|frame| match frame {
            Frame::Call(index, call) if run.parent == Parent::Call(*index) => Some(call),
            _ => None,
        });
        let region = self.recording.regions.called_id(region);
        let call = self.sink.begin(region, run.start_ns, run.parent, around);
        self.sink.end(call, run.end_ns, Some(number), run.open);
        self.count();
    }
}

impl<S: CallSink> Visitor for CallCollector<'_, S> {
    #[inline(always)]
    fn enter(&mut self, region: u32, at: u64) {
        let call = self.begin(region, at);
        let index = self.count();
        self.open.push(Frame::Call(index, call));
    }

    #[inline(always)]
    fn leaf(&mut self, region: u32, start: u64, end: u64) {
        let call = self.begin(region, start);
        self.count();
        self.sink.end(call, self.recording.scale.ns(end), None, false);
    }

    fn enter_span(&mut self, region: u32, at: u64) {
        // One that had more parts lasts as long as they say.
        match self.tasks.span(CallRef { lane: self.lane, index: self.calls }) {
            Some(run) => {
                self.whole(region, run);
                self.open.push(Frame::Part(run));
            }
            None => self.enter(region, at),
        }
    }

    fn begin_part(&mut self, part: Part, _at: u64) {
        self.open.push(Self::part_of(self.tasks.instance(part.instance)));
    }

    fn end_part(&mut self, _instance: u64, at: u64) {
        self.leave(at, Cut::No);
    }

    #[inline(always)]
    fn leave(&mut self, at: u64, cut: Cut) {
        if let Some(Frame::Call(index, call)) = self.open.pop() {
            let run = self.tasks.held(CallRef { lane: self.lane, index });
            self.sink.end(call, self.recording.scale.ns(at), run, cut == Cut::Open);
        }
    }

    fn begin_poll(&mut self, poll: Poll, _at: u64) {
        let run = self.tasks.instance(poll.instance);
        if let Some(run) = run.filter(|_| poll.first) {
            self.whole(poll.region, run);
        }
        self.open.push(Self::part_of(run));
    }

    fn end_poll(&mut self, _ended: Option<Ended>, _at: u64) {
        self.open.pop();
    }

    fn suspend(&mut self, instance: u64, _at: u64) {
        if let Some(frame) = self.open.pop() {
            self.aside.push(instance, frame);
        }
    }

    fn resume(&mut self, instance: u64, _at: u64) {
        self.open.push(self.aside.pop(instance).unwrap_or(Frame::Unknown));
    }

    fn end_aside(&mut self, instance: u64, _span: Option<u64>, at: u64) {
        self.open.push(self.aside.take_innermost(instance).unwrap_or(Frame::Unknown));
        self.leave(at, Cut::No);
    }
}
