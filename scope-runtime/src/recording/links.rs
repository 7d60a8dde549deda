//! What was started where: links resolved to calls, and the totals with what was started elsewhere
//! below the calls that started it.
//!
//! An event tells of a position: a place between two events of some lane. The call that is open there
//! is the one that started. Which path it has depends on where it was started itself, so the totals
//! are taken again until no path changes: once more for each step of tasks that start tasks.

use std::collections::{BTreeMap, HashMap};

use super::visitors::{Hang, Pending, Totaller};
use super::{CallRef, Parent, Recording};
use crate::format::parts_of;
use crate::recording::tasks::{RunId, Tasks};
use crate::recording::total::cut_pending;
use crate::replay::{Cut, Ended, Part, Poll, SetAside, Visitor};
use crate::totals::{PathId, PathTree};

/// How often totals are taken; what was started by a longer chain of tasks hangs from its middle.
const MOST_PASSES: usize = 32;

/// A call that was started by another one, which is not around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLink {
    /// The call.
    pub call: CallRef,
    /// The call that started it.
    pub started_by: CallRef,
}

impl Recording {
    /// The calls that were started by another one than the one around them.
    pub fn links(&self) -> Vec<CallLink> {
        let mut callers = HashMap::new();
        for (lane, positions) in self.watched() {
            let Some(raw) = self.lanes.get(lane as usize) else { continue };
            let marker = Marker::new(self.tasks(), lane);
            let marker = self.replay_watching(raw, marker, &positions, |_, _, _| {}).visitor;
            callers.extend(marker.callers);
        }
        let started = self.tasks().started().iter();
        let link = |started: &super::tasks::Started| {
            let &started_by = callers.get(&started.position)?;
            Some(CallLink { call: started.call, started_by })
        };
        started.filter_map(link).collect()
    }

    /// The totals with what was started elsewhere below the call that started it; `None` when nothing
    /// was.
    pub fn linked_paths(&self) -> Option<PathTree> {
        let started = self.tasks().started();
        if started.is_empty() {
            return None;
        }
        let instances = started.iter().filter_map(|started| Some((started.instance?, started.position)));
        let instances: HashMap<u64, u64> = instances.collect();
        let watched = self.watched();
        let mut tree = PathTree::default();
        let mut paths: HashMap<u64, PathId> = HashMap::new();
        for _ in 0..MOST_PASSES {
            let hang = Hang { tree: &tree, paths: &paths, instances: &instances };
            let totals = self.totals(tree.clone().without_totals(), hang, &watched);
            tree = totals.tree;
            if totals.marks == paths {
                break;
            }
            paths = totals.marks;
        }
        Some(self.regions.called_tree(tree.without_empty()))
    }

    /// The positions that links name, by lane and in order.
    fn watched(&self) -> BTreeMap<u32, Vec<u64>> {
        let mut by_lane: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for started in self.tasks().started() {
            by_lane.entry(parts_of(started.position).0).or_default().push(started.position);
        }
        for positions in by_lane.values_mut() {
            positions.sort_unstable();
            positions.dedup();
        }
        by_lane
    }
}

/// Finds the calls that are open at the positions of a lane.
struct Marker<'a> {
    tasks: &'a Tasks,
    lane: u32,
    calls: u32,
    open: Vec<Parent>,
    aside: SetAside<Parent>,
    callers: HashMap<u64, CallRef>,
}

impl<'a> Marker<'a> {
    fn new(tasks: &'a Tasks, lane: u32) -> Self {
        let (open, aside, callers) = Default::default();
        Marker { tasks, lane, calls: 0, open, aside, callers }
    }
}

impl Visitor for Marker<'_> {
    fn enter(&mut self, _region: u32, _at: u64) {
        self.open.push(Parent::Call(self.calls));
        self.calls += 1;
    }

    fn enter_span(&mut self, region: u32, at: u64) {
        self.enter(region, at);
    }

    fn begin_part(&mut self, part: Part, _at: u64) {
        self.open.push(self.tasks.instance(part.instance).map_or(Parent::None, Parent::Run));
    }

    fn end_part(&mut self, _instance: u64, _at: u64) {
        self.open.pop();
    }

    fn leave(&mut self, _at: u64, _cut: Cut) {
        self.open.pop();
    }

    fn begin_poll(&mut self, poll: Poll, _at: u64) {
        let run = self.tasks.instance(poll.instance);
        self.calls += u32::from(poll.first && run.is_some());
        self.open.push(run.map_or(Parent::None, Parent::Run));
    }

    fn end_poll(&mut self, _ended: Option<Ended>, _at: u64) {
        self.open.pop();
    }

    fn suspend(&mut self, instance: u64, _at: u64) {
        let call = self.open.pop().unwrap_or(Parent::None);
        self.aside.push(instance, call);
    }

    fn resume(&mut self, instance: u64, _at: u64) {
        self.open.push(self.aside.pop(instance).unwrap_or(Parent::None));
    }

    fn end_aside(&mut self, instance: u64, _span: Option<u64>, _at: u64) {
        self.aside.take_innermost(instance);
    }

    fn mark(&mut self, position: u64) {
        let caller = match self.open.last() {
            Some(&Parent::Call(index)) => Some(CallRef { lane: self.lane, index }),
            Some(&Parent::Run(RunId(run))) => Some(self.tasks.runs()[run as usize].call),
            Some(Parent::None) | None => None,
        };
        self.callers.extend(caller.map(|caller| (position, caller)));
    }
}

/// What a pass over all lanes gave.
pub(super) struct Totals {
    pub(super) tree: PathTree,
    pub(super) marks: HashMap<u64, PathId>,
}

impl Recording {
    /// Takes the totals of all lanes, with no other result than the tree and the paths at the positions.
    fn totals(&self, mut tree: PathTree, hang: Hang<'_>, watched: &BTreeMap<u32, Vec<u64>>) -> Totals {
        let mut pending = Pending::default();
        let mut marks = HashMap::new();
        for (raw, lane) in self.lanes.iter().zip(0u32..) {
            let mut totaller = Totaller::new(&self.regions, self.scale);
            totaller.hang = Some(hang);
            let positions = watched.get(&lane).map_or(&[][..], Vec::as_slice);
            let totals = self.replay_watching(raw, totaller, positions, Totaller::join).visitor.finish();
            let paths = tree.add_tree(&totals.tree);
            pending.add_all(totals.pending, &paths);
            let in_tree = |(position, PathId(path)): (u64, PathId)| (position, paths[path as usize]);
            marks.extend(totals.marks.into_iter().map(in_tree));
        }
        pending.settle_spans(&mut tree);
        cut_pending(pending, &mut tree, &self.session_ends(), self.profile.end_ns);
        Totals { tree, marks }
    }
}
