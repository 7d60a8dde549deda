//! Adds the calls of a lane to a tree of paths.
//!
//! A poll hangs below what was running on its thread when it began: in another poll below that call's
//! path; else it is the top of a task of its own, whatever region of the thread waits for it. Its time
//! is never that region's own.

use std::collections::{BTreeMap, HashMap};

use crate::clock::TickScale;
use crate::fold::{Begun, Folded, Origin, Owed, Parent};
use crate::profile::{CollectiveCall, MessageKind, MessageSizes};
use crate::recording::visitors::spans::{UnsettledSpans, counted, longer};
use crate::regions::Regions;
use crate::replay::{Collective, Cut, Ended, Message, Part, Poll, SetAside, Visitor};
use crate::totals::{PathId, PathTotals, PathTree, Whole};

/// Adds the calls of a lane to a tree of paths. Region ids in it are those of [`Regions`].
pub(in crate::recording) struct Totaller<'a> {
    pub(in crate::recording) regions: &'a Regions,
    pub(in crate::recording) scale: TickScale,
    totals: LaneTotals,
    /// How to hang what was started elsewhere; else it is at the top.
    pub(in crate::recording) hang: Option<Hang<'a>>,
    /// Whether collective calls are kept, each for itself.
    pub(in crate::recording) keeps_collectives: bool,
    started_at: u64,
    /// Per path what is not in the tree yet: sums of calls that ran from begin to end.
    sums: Vec<Sums>,
    open: Vec<OpenPath>,
    /// Positions in `open` of what is being polled.
    polls: Vec<usize>,
    /// Positions in `open` of parts of spans, with the span's number where it is not the first part.
    parts: Vec<(usize, Option<u64>)>,
    /// Calls that were set aside, by instance.
    aside: SetAside<Aside>,
}

/// A call that was set aside.
struct Aside {
    path: PathId,
    /// Begin of the call.
    first_ns: i64,
    /// If it is a part of a span, that span's number, as in `parts`.
    part: Option<Option<u64>>,
}

/// What the calls of a lane add up to.
pub(in crate::recording) struct LaneTotals {
    pub(in crate::recording) tree: PathTree,
    pub(in crate::recording) pending: Pending,
    /// Calls that were cut.
    pub(in crate::recording) cut: u64,
    /// Whether there were polls.
    pub(in crate::recording) is_async: bool,
    /// The path at each position that was watched.
    pub(in crate::recording) marks: Vec<(u64, PathId)>,
    pub(in crate::recording) messages: HashMap<MessageKey, MessageSizes>,
    pub(in crate::recording) collectives: Vec<CollectiveCall>,
}

/// Path, kind and peer of messages.
pub(in crate::recording) type MessageKey = (PathId, MessageKind, Option<u32>);

/// Sums over calls of one path that came to their own end: all that one of them changes, in less than
/// a line of the cache. Times in ns.
#[derive(Clone, Copy)]
struct Sums {
    calls: u64,
    duration: i64,
    own: i64,
    min: i64,
    max: i64,
}

impl Sums {
    const NONE: Sums = Sums { calls: 0, duration: 0, own: 0, min: i64::MAX, max: 0 };

    #[inline]
    fn add(&mut self, duration_ns: i64, self_ns: i64) {
        self.calls += 1;
        self.duration = self.duration.saturating_add(duration_ns);
        self.own = self.own.saturating_add(self_ns);
        self.min = self.min.min(duration_ns);
        self.max = self.max.max(duration_ns);
    }
}

/// Where what was started elsewhere belongs.
#[derive(Clone, Copy)]
pub(in crate::recording) struct Hang<'a> {
    /// Paths as they were found before.
    pub(in crate::recording) tree: &'a PathTree,
    /// The path at each position.
    pub(in crate::recording) paths: &'a HashMap<u64, PathId>,
    /// The position at which each instance was started.
    pub(in crate::recording) instances: &'a HashMap<u64, u64>,
}

struct OpenPath {
    path: PathId,
    /// Begin of the call.
    first_ns: i64,
    /// Begin of this part of it.
    start_ns: i64,
    children_ns: i64,
}

/// What is counted when all lanes are read.
#[derive(Debug, Default)]
pub(in crate::recording) struct Pending {
    /// Instances of async regions that have begun and not ended, by path and by how many sessions had
    /// ended before: their number, and the sum of the ns of their begins. One that ends on another
    /// thread than it began on is taken from that sum there.
    begun: BTreeMap<(PathId, u32), (i64, i64)>,
    spans: UnsettledSpans,
}

impl Pending {
    fn add(&mut self, path: PathId, session: u32, count: i64, start_ns: i64) {
        let (begun, starts_ns) = self.begun.entry((path, session)).or_default();
        *begun = begun.wrapping_add(count);
        *starts_ns = starts_ns.wrapping_add(start_ns.wrapping_mul(count.signum()));
    }

    /// Adds what was found on another lane, whose paths are at `paths` here.
    pub(in crate::recording) fn add_all(&mut self, other: Pending, paths: &[PathId]) {
        for ((path, session), (count, sum_ns)) in other.begun {
            let (begun, starts_ns) = self.begun.entry((paths[path.0 as usize], session)).or_default();
            *begun += count;
            *starts_ns = starts_ns.wrapping_add(sum_ns);
        }
        self.spans.add_all(other.spans, paths);
    }

    /// Ends the spans that may have gone on, but did not.
    pub(in crate::recording) fn settle_spans(&mut self, tree: &mut PathTree) {
        std::mem::take(&mut self.spans).settle(tree);
    }

    /// Counts in `tree` what has not ended: cut at the end of its session, which `end_ns` gives.
    /// Gives the number of calls. Of several on one path only the sum of their times is known, so
    /// shortest and longest are the mean.
    pub(in crate::recording) fn cut(
        mut self,
        tree: &mut PathTree,
        mut end_ns: impl FnMut(u32) -> i64,
    ) -> u64 {
        self.move_ended(tree);
        let mut calls = 0;
        for ((path, session), (begun, starts_ns)) in self.begun {
            if begun > 0 {
                let wall_ns = begun.wrapping_mul(end_ns(session)).wrapping_sub(starts_ns).max(0);
                let (open, mean_ns) = (begun as u64, wall_ns / begun);
                let whole =
                    Whole { calls: open, open, cancelled: 0, wall_ns, min_ns: mean_ns, max_ns: mean_ns };
                tree.add_whole(path, &whole);
                calls += open;
            }
        }
        calls
    }

    /// A future that was moved into another call before it ended has begun on one path and ended on
    /// another one, where there are more ends than begins now.
    fn move_ended(&mut self, tree: &PathTree) {
        let region = |path: &PathId| tree.nodes()[path.0 as usize].region;
        let ended: Vec<_> =
            self.begun.iter().filter(|(_, sums)| sums.0 < 0).map(|(&key, &sums)| (key, sums)).collect();
        for ((path, session), (ends, mut starts_ns)) in ended {
            let mut left = ends.saturating_neg();
            let same = |key: &(PathId, u32)| key.1 == session && region(&key.0) == region(&path);
            for (_, (begun, sum_ns)) in
                self.begun.iter_mut().filter(|(key, (begun, _))| same(key) && *begun > 0)
            {
                let moved = left.min(*begun);
                let part_ns = if moved == left { starts_ns } else { (starts_ns / left).wrapping_mul(moved) };
                *begun -= moved;
                *sum_ns = sum_ns.wrapping_add(part_ns);
                left -= moved;
                starts_ns = starts_ns.wrapping_sub(part_ns);
                if left == 0 {
                    break;
                }
            }
        }
    }
}

impl<'a> Totaller<'a> {
    pub(in crate::recording) fn new(regions: &'a Regions, scale: TickScale) -> Self {
        let (tree, pending) = (PathTree::default(), Pending::default());
        let (marks, messages, collectives) = Default::default();
        let totals = LaneTotals { tree, pending, cut: 0, is_async: false, marks, messages, collectives };
        let (sums, open, polls, parts, aside) = Default::default();
        Totaller {
            regions,
            scale,
            totals,
            hang: None,
            keeps_collectives: false,
            started_at: 0,
            sums,
            open,
            polls,
            parts,
            aside,
        }
    }

    /// What the calls add up to.
    pub(in crate::recording) fn finish(mut self) -> LaneTotals {
        for (path, sums) in (0..).map(PathId).zip(self.sums).filter(|(_, sums)| sums.calls > 0) {
            let Sums { calls, duration: wall_ns, own, min: min_ns, max: max_ns } = sums;
            self.totals.tree.add_part(path, wall_ns, own);
            let whole = Whole { calls, open: 0, cancelled: 0, wall_ns, min_ns, max_ns };
            self.totals.tree.add_whole(path, &whole);
        }
        self.totals
    }

    /// The path for `region` below the innermost frame.
    #[inline]
    fn step(&mut self, region: u32) -> PathId {
        let parent = match self.open.last() {
            Some(open) => Some(open.path),
            None => self.top(self.started_at),
        };
        self.totals.tree.step(parent, self.regions.id(region))
    }

    /// The path below which something hangs that has nothing around it.
    fn top(&mut self, started_at: u64) -> Option<PathId> {
        let hang = self.hang?;
        let mut regions = Vec::new();
        let mut next = hang.paths.get(&started_at).copied();
        while let Some(PathId(path)) = next {
            let node = &hang.tree.nodes()[path as usize];
            regions.push(node.region);
            next = node.parent;
        }
        regions.into_iter().rev().fold(None, |parent, region| Some(self.totals.tree.step(parent, region)))
    }

    /// Adds a call that ran from begin to end.
    #[inline]
    fn add_call(&mut self, path: PathId, duration_ns: i64, self_ns: i64) {
        let path = path.0 as usize;
        if path >= self.sums.len() {
            self.sums.resize(self.totals.tree.nodes().len(), Sums::NONE);
        }
        self.sums[path].add(duration_ns, self_ns);
    }

    /// Adds what was kept in totals. `dead` frames were open further out that nobody counts.
    pub(in crate::recording) fn join(&mut self, folded: &Folded, dead: u64) {
        let ns = |ticks: u64| self.scale.span_ns(ticks);
        let mut children_ns: Vec<i64> =
            folded.nodes.iter().map(|node| self.scale.signed_span_ns(node.elsewhere)).collect();
        for node in &folded.nodes {
            if let Parent::Node(parent) = node.parent {
                let children_ns = &mut children_ns[parent as usize];
                *children_ns = children_ns.saturating_add(ns(node.inclusive));
            }
        }
        let index_of = |depth| frame_at(depth, dead);
        for (&depth, &ticks) in &folded.inherited_elsewhere {
            if let Some(call) = index_of(depth).and_then(|index| self.open.get_mut(index)) {
                call.children_ns = call.children_ns.saturating_add(self.scale.signed_span_ns(ticks));
            }
        }
        let first_poll = self.polls.first().copied().into_iter().chain(self.parts.first().map(|part| part.0));
        let first_poll = first_poll.min();
        let held: HashMap<u32, Option<PathId>> =
            folded.held.iter().map(|held| (held.node, self.path_of(held.origin, dead))).collect();
        let mut paths: Vec<PathId> = Vec::with_capacity(folded.nodes.len());
        for (number, (node, children_ns)) in (0..).zip(folded.nodes.iter().zip(children_ns)) {
            let inclusive_ns = ns(node.inclusive);
            let parent = match node.parent {
                Parent::Node(parent) => Some(paths[parent as usize]),
                Parent::Inherited(depth) => {
                    let frame = index_of(depth).and_then(|index| self.open.get_mut(index));
                    frame.map(|frame| {
                        frame.children_ns = frame.children_ns.saturating_add(inclusive_ns);
                        frame.path
                    })
                }
                Parent::Task(depth, within) => {
                    let frame =
                        index_of(depth).filter(|&index| first_poll.is_some_and(|first| first <= index));
                    let frame = frame.and_then(|index| self.open.get(index));
                    frame.map(|frame| within.map_or(frame.path, |node| paths[node as usize]))
                }
            };
            let region = self.regions.id(node.region);
            let held = held.get(&number);
            let path = held.copied().flatten().unwrap_or_else(|| self.totals.tree.step(parent, region));
            paths.push(path);
            self.totals.cut = self.totals.cut.saturating_add(node.cut);
            if held == Some(&None) {
                // Where it began is missing.
                self.totals.tree.add_whole(path, &Whole::one(inclusive_ns, false, false));
                self.totals.tree.add_part(path, inclusive_ns, inclusive_ns.saturating_sub(children_ns));
                continue;
            }
            self.totals.tree.add_totals(
                path,
                &PathTotals {
                    parent,
                    region,
                    calls: node.calls,
                    open: node.cut,
                    cancelled: node.cancelled,
                    inclusive_ns,
                    self_ns: inclusive_ns.saturating_sub(children_ns),
                    wall_ns: inclusive_ns.saturating_add(self.scale.signed_span_ns(node.waited)),
                    // Durations that are not known yet come from `unsettled`.
                    min_ns: if node.min > node.max { i64::MAX } else { ns(node.min) },
                    max_ns: ns(node.max),
                },
            );
        }
        for (&(path, kind, peer), sizes) in &folded.messages {
            let path = match path {
                Parent::Node(node) => Some(paths[node as usize]),
                Parent::Inherited(depth) | Parent::Task(depth, _) => {
                    index_of(depth).and_then(|index| self.open.get(index)).map(|open| open.path)
                }
            };
            if let Some(path) = path {
                self.totals.messages.entry((path, kind, peer.checked_sub(1))).or_default().add(sizes);
            }
        }
        self.totals.is_async |= folded.nodes.iter().any(|node| node.waited != 0) || !folded.begun.is_empty();
        for (&(node, session), begun) in &folded.begun {
            self.add_begun(paths[node as usize], session, begun);
        }
        for (&instance, span) in &folded.unsettled {
            let last_ns = self.scale.ns(span.last);
            if let Some(Owed { node, ticks, cut }) = span.owed {
                self.totals.cut = self.totals.cut.saturating_add(cut.into());
                self.lengthen(instance, paths[node as usize], self.scale.signed_span_ns(ticks), cut);
            }
            match span.first {
                Some((node, begin)) => {
                    self.totals.pending.spans.begin(
                        instance,
                        paths[node as usize],
                        self.scale.ns(begin),
                        last_ns,
                    );
                }
                None => self.totals.pending.spans.extend(instance, last_ns),
            }
        }
    }

    /// The path of a call that went on in totals, having been this when they began.
    fn path_of(&self, origin: Origin, dead: u64) -> Option<PathId> {
        match origin {
            Origin::Aside(instance, nth) => self.aside.nth(instance, nth).map(|call| call.path),
            Origin::Open(depth) => self.open.get(frame_at(depth, dead)?).map(|call| call.path),
        }
    }

    fn add_begun(&mut self, path: PathId, session: u32, begun: &Begun) {
        let starts_ns = self.scale.sum_ns(begun.count, begun.starts);
        let (count, sum_ns) = self.totals.pending.begun.entry((path, session)).or_default();
        *count = count.wrapping_add(begun.count);
        *sum_ns = sum_ns.wrapping_add(starts_ns);
    }

    /// Ends the innermost frame, or a part of it, and adds it to what the one around it called.
    #[inline]
    fn close_part(&mut self, at: u64) -> Option<(OpenPath, i64)> {
        let frame = self.open.pop()?;
        let duration_ns = self.scale.ns(at) - frame.start_ns;
        if let Some(around) = self.open.last_mut() {
            around.children_ns = around.children_ns.wrapping_add(duration_ns);
        }
        Some((frame, duration_ns))
    }

    /// Ends the innermost frame, a part of a span: `instance` if it is a later part. Gives its path,
    /// begin and end where it is the first.
    fn close_span_part(&mut self, instance: Option<u64>, at: u64, open: bool) -> Option<(PathId, i64, i64)> {
        let (frame, duration_ns) = self.close_part(at)?;
        self.totals.tree.add_part(frame.path, duration_ns, duration_ns.wrapping_sub(frame.children_ns));
        let end_ns = frame.start_ns + duration_ns;
        let Some(instance) = instance else { return Some((frame.path, frame.first_ns, end_ns)) };
        self.lengthen(instance, frame.path, end_ns - frame.first_ns, open);
        None
    }

    /// Makes the call of a span longer, by a part of it on `path`. It counts where the first part is;
    /// where that is on another lane, it is put together with it when all are read.
    fn lengthen(&mut self, instance: u64, path: PathId, wall_ns: i64, open: bool) {
        match self.totals.pending.spans.path(instance) {
            Some(counted) => self.totals.tree.add_whole(counted, &longer(wall_ns, open)),
            None => self.totals.pending.spans.owe(instance, path, wall_ns, open),
        }
    }

    /// A call that was set aside is the innermost frame again.
    fn go_on(&mut self, Aside { path, first_ns, part }: Aside, at: u64) {
        self.parts.extend(part.map(|instance| (self.open.len(), instance)));
        self.open.push(OpenPath { path, first_ns, start_ns: self.scale.ns(at), children_ns: 0 });
    }

    /// The number of the span whose part is the innermost frame, if one is, as in `parts`.
    fn pop_part(&mut self) -> Option<Option<u64>> {
        let innermost = self.open.len().wrapping_sub(1);
        self.parts.pop_if(|(index, _)| *index == innermost).map(|(_, instance)| instance)
    }
}

/// Where the open frame of a depth is, the outermost having depth 1, when nobody counts `dead` of them.
fn frame_at(depth: u64, dead: u64) -> Option<usize> {
    usize::try_from(depth.checked_sub(dead)?.checked_sub(1)?).ok()
}

impl Visitor for Totaller<'_> {
    #[inline(always)]
    fn enter(&mut self, region: u32, at: u64) {
        let at_ns = self.scale.ns(at);
        let path = self.step(region);
        self.open.push(OpenPath { path, first_ns: at_ns, start_ns: at_ns, children_ns: 0 });
    }

    fn message(&mut self, message: Message) {
        if let Some(open) = self.open.last() {
            let key = (open.path, message.kind, message.peer);
            self.totals.messages.entry(key).or_default().add(&MessageSizes::one(message.bytes));
        }
    }

    fn collective(&mut self, collective: Collective, at: u64) {
        if let Some(&OpenPath { path, first_ns, .. }) = self.open.last().filter(|_| self.keeps_collectives) {
            let Collective { communicator, number } = collective;
            let (start_ns, end_ns) = (first_ns, self.scale.ns(at));
            let call = CollectiveCall { path, communicator, number, start_ns, end_ns };
            self.totals.collectives.push(call);
        }
    }

    fn enter_span(&mut self, region: u32, at: u64) {
        self.parts.push((self.open.len(), None));
        self.enter(region, at);
    }

    fn begin_part(&mut self, part: Part, at: u64) {
        self.totals.is_async = true;
        self.parts.push((self.open.len(), Some(part.instance)));
        // It was started where its first part was.
        let before = self.started_at;
        let known = self.hang.and_then(|hang| hang.instances.get(&part.instance).copied());
        self.started_at = known.unwrap_or(before);
        self.enter(part.region, at);
        self.started_at = before;
    }

    fn part_since(&mut self, end: u64) {
        if let (Some(frame), Some(&(_, Some(instance)))) = (self.open.last(), self.parts.last()) {
            let waited_ns = (frame.first_ns - self.scale.ns(end)).max(0);
            self.lengthen(instance, frame.path, waited_ns, false);
        }
    }

    fn end_part(&mut self, instance: u64, at: u64) {
        let Some(known) = self.pop_part() else { return };
        match self.close_span_part(known, at, false) {
            Some((path, start_ns, end_ns)) => {
                self.totals.tree.add_whole(path, &counted(end_ns - start_ns));
                self.totals.pending.spans.begin(instance, path, start_ns, end_ns);
            }
            None => self.totals.pending.spans.extend(instance, self.scale.ns(at)),
        }
    }

    #[inline(always)]
    fn leave(&mut self, at: u64, cut: Cut) {
        let open = cut == Cut::Open;
        if let Some(Some(instance)) = self.pop_part() {
            self.totals.cut = self.totals.cut.saturating_add(open.into());
            self.close_span_part(Some(instance), at, open);
            let at_ns = self.scale.ns(at);
            return self.totals.pending.spans.end(instance, at_ns, &mut self.totals.tree);
        }
        let Some((call, duration_ns)) = self.close_part(at) else { return };
        let self_ns = duration_ns.wrapping_sub(call.children_ns);
        if call.first_ns == call.start_ns && !open {
            self.add_call(call.path, duration_ns, self_ns);
        } else {
            self.totals.tree.add_part(call.path, duration_ns, self_ns);
            let wall_ns = call.start_ns + duration_ns - call.first_ns;
            self.totals.tree.add_whole(call.path, &Whole::one(wall_ns, open, false));
        }
        self.totals.cut = self.totals.cut.saturating_add(open.into());
    }

    #[inline(always)]
    fn leaf(&mut self, region: u32, start: u64, end: u64) {
        let duration_ns = self.scale.ns(end) - self.scale.ns(start);
        let path = self.step(region);
        self.add_call(path, duration_ns, duration_ns);
        if let Some(around) = self.open.last_mut() {
            around.children_ns += duration_ns;
        }
    }

    fn begin_poll(&mut self, poll: Poll, at: u64) {
        let at_ns = self.scale.ns(at);
        let parent = if poll.nested {
            self.open.last().map(|open| open.path)
        } else {
            let started_at = self.hang.and_then(|hang| hang.instances.get(&poll.instance).copied());
            self.top(started_at.unwrap_or(0))
        };
        let path = self.totals.tree.step(parent, self.regions.id(poll.region));
        if poll.first {
            self.totals.pending.add(path, poll.session, 1, self.scale.ns(poll.start));
        }
        self.totals.is_async = true;
        self.polls.push(self.open.len());
        self.open.push(OpenPath { path, first_ns: at_ns, start_ns: at_ns, children_ns: 0 });
    }

    fn end_poll(&mut self, ended: Option<Ended>, at: u64) {
        self.polls.pop();
        let Some((OpenPath { path, start_ns, children_ns, .. }, duration_ns)) = self.close_part(at) else {
            return;
        };
        self.totals.tree.add_part(path, duration_ns, duration_ns.wrapping_sub(children_ns));
        if let Some(ended) = ended {
            let first_ns = self.scale.ns(ended.start);
            self.totals.pending.add(path, ended.session, -1, first_ns);
            let wall_ns = (start_ns + duration_ns - first_ns).max(0);
            self.totals.tree.add_whole(path, &Whole::one(wall_ns, false, ended.cancelled));
        }
    }

    fn started_at(&mut self, position: u64) {
        self.totals.is_async = true;
        self.started_at = position;
    }

    fn mark(&mut self, position: u64) {
        let path = match self.open.last() {
            Some(open) => Some(open.path),
            None => self.top(self.started_at),
        };
        self.totals.marks.extend(path.map(|path| (position, path)));
    }

    fn suspend(&mut self, instance: u64, at: u64) {
        let part = self.pop_part();
        if let Some((OpenPath { path, first_ns, children_ns, .. }, duration_ns)) = self.close_part(at) {
            self.totals.tree.add_part(path, duration_ns, duration_ns.wrapping_sub(children_ns));
            self.aside.push(instance, Aside { path, first_ns, part });
        }
    }

    fn resume(&mut self, instance: u64, at: u64) {
        if let Some(call) = self.aside.pop(instance) {
            self.go_on(call, at);
        }
    }

    fn end_aside(&mut self, instance: u64, span: Option<u64>, at: u64) {
        let Some(call) = self.aside.take_innermost(instance) else { return };
        self.go_on(call, at);
        match span {
            Some(span) => self.end_part(span, at),
            None => self.leave(at, Cut::No),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ClockPair;

    #[test]
    fn collective_calls_are_kept_where_they_are_wanted() {
        let regions = Regions::resolve(BTreeMap::new());
        let moment = |ticks: u64| ClockPair { ticks, ns: ticks.cast_signed() };
        let scale = TickScale::between(moment(0), moment(100));
        for (keeps, expected) in [(false, vec![]), (true, vec![(7, 3, 10, 15)])] {
            let mut totaller = Totaller::new(&regions, scale);
            totaller.keeps_collectives = keeps;
            totaller.enter(1, 10);
            totaller.collective(Collective { communicator: 7, number: 3 }, 15);
            totaller.leave(20, Cut::No);
            let calls = totaller.finish().collectives.into_iter();
            let calls: Vec<_> =
                calls.map(|call| (call.communicator, call.number, call.start_ns, call.end_ns)).collect();
            assert_eq!(calls, expected);
        }
    }
}
