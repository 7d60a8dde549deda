//! Collects the calls of a lane, in the order in which they were entered.

use std::collections::HashMap;

use crate::recording::tasks::{RunId, Tasks};
use crate::recording::{Call, CallRef, Parent, Recording};
use crate::replay::{Cut, Ended, Part, Poll, Visitor};

/// The calls of the lane with this number; `tasks` says how those went that ran in parts, maybe on
/// other lanes.
pub(in crate::recording) struct CallCollector<'a> {
    pub(in crate::recording) calls: Vec<Call>,
    recording: &'a Recording,
    tasks: &'a Tasks,
    lane: u32,
    open: Vec<Parent>,
    /// Calls that were set aside, by instance.
    aside: HashMap<u64, Vec<Parent>>,
}

impl<'a> CallCollector<'a> {
    pub(in crate::recording) fn new(recording: &'a Recording, tasks: &'a Tasks, lane: u32) -> Self {
        let (calls, open, aside) = Default::default();
        CallCollector { calls, recording, tasks, lane, open, aside }
    }

    fn parent(&self) -> Parent {
        self.open.last().copied().unwrap_or(Parent::None)
    }

    fn next(&self) -> u32 {
        u32::try_from(self.calls.len()).expect("fewer than 2^32 calls on a lane")
    }
}

impl Visitor for CallCollector<'_> {
    fn enter(&mut self, region: u32, at: u64) {
        let at_ns = self.recording.scale.ns(at);
        let region = self.recording.regions.called_id(region);
        let parent = self.parent();
        self.open.push(Parent::Call(self.next()));
        self.calls.push(Call { region, start_ns: at_ns, end_ns: at_ns, parent, run: None, open: false });
    }

    fn enter_span(&mut self, region: u32, at: u64) {
        let index = self.next();
        self.enter(region, at);
        // One that had more parts lasts as long as they say.
        if let Some(number @ RunId(run)) = self.tasks.span(CallRef { lane: self.lane, index }) {
            let known = &self.tasks.runs()[run as usize];
            let (start_ns, end_ns, parent, open) = (known.start_ns, known.end_ns, known.parent, known.open);
            let call = &mut self.calls[index as usize];
            *call = Call { region: call.region, start_ns, end_ns, parent, run: Some(number), open };
            *self.open.last_mut().expect("a call was entered") = Parent::Run(number);
        }
    }

    fn begin_part(&mut self, part: Part, _at: u64) {
        let run = self.tasks.instance(part.instance);
        self.open.push(run.map_or(Parent::None, Parent::Run));
    }

    fn end_part(&mut self, _instance: u64, at: u64) {
        self.leave(at, Cut::No);
    }

    fn leave(&mut self, at: u64, cut: Cut) {
        let Some(Parent::Call(call)) = self.open.pop() else { return };
        let at_ns = self.recording.scale.ns(at);
        let call = &mut self.calls[call as usize];
        (call.end_ns, call.open) = (at_ns, cut == Cut::Open);
    }

    fn begin_poll(&mut self, poll: Poll, _at: u64) {
        let run = self.tasks.instance(poll.instance);
        self.open.push(run.map_or(Parent::None, Parent::Run));
        if let Some(RunId(number)) = run.filter(|_| poll.first) {
            let region = self.recording.regions.called_id(poll.region);
            let known = &self.tasks.runs()[number as usize];
            let (start_ns, end_ns, parent, open) = (known.start_ns, known.end_ns, known.parent, known.open);
            self.calls.push(Call { region, start_ns, end_ns, parent, run, open });
        }
    }

    fn end_poll(&mut self, _ended: Option<Ended>, _at: u64) {
        self.open.pop();
    }

    fn suspend(&mut self, instance: u64, _at: u64) {
        let innermost = self.open.pop();
        if let Some(Parent::Call(index)) = innermost {
            self.calls[index as usize].run = self.tasks.held(CallRef { lane: self.lane, index });
        }
        self.aside.entry(instance).or_default().extend(innermost);
    }

    fn resume(&mut self, instance: u64, _at: u64) {
        let aside = self.aside.get_mut(&instance).and_then(Vec::pop);
        self.open.push(aside.unwrap_or(Parent::None));
    }
}
