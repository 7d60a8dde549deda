//! Totals of one lane without its events: what is kept in totals-only mode, past the event limit,
//! and when the disk is full.
//!
//! A fold takes the same words as a replay, chunk by chunk, and keeps a tree of call paths in ticks.
//! Where it takes over in the middle of a lane, calls are open whose beginning lies in the events
//! before: they are *inherited*. The fold notes when each of them ends and which of its calls hang
//! below it; whoever reads the events before puts the two together.

use std::collections::{BTreeMap, HashMap};

use crate::format::{FieldReader, Fields};
use crate::replay::{ChunkWords, Cut, Ended, Poll, Replay, SessionEdge, Visitor};

/// The fold of a lane, between two chunks.
#[derive(Debug)]
pub(crate) struct Fold {
    replay: Replay<Folded>,
    /// Sequence number of the first chunk that was folded; those before are events.
    pub(crate) first_sequence: u64,
    /// Ticks at which that chunk began.
    pub(crate) begin: u64,
}

/// What was folded.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    pub(crate) nodes: Vec<Node>,
    open: Vec<Open>,
    /// Positions in `open` of what is being polled.
    polls: Vec<u32>,
    /// Calls that were set aside, by instance.
    aside: BTreeMap<u64, Vec<Aside>>,
    /// Instances of async regions that began less those that ended, by node and session.
    pub(crate) begun: BTreeMap<(u32, u32), Begun>,
    /// Frames that were open when the fold began and still are.
    inherited: u64,
    /// What became of the others of those, innermost first.
    pub(crate) inherited_ends: Vec<InheritedEnd>,
    /// Ticks of tasks that were polled directly in such frames, by the frame's depth.
    pub(crate) inherited_elsewhere: BTreeMap<u64, u64>,
    /// What hangs from the innermost of those frames.
    root: Children,
    by_step: HashMap<(u32, u32), u32>,
    /// Nodes of async regions that hang from nothing, by depth and region.
    tasks: HashMap<(u64, u32), u32>,
    /// Calls that ended.
    pub(crate) calls: u64,
}

/// One call path. Times in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) parent: Parent,
    pub(crate) region: u32,
    pub(crate) calls: u64,
    /// Calls among them that were cut.
    pub(crate) cut: u64,
    /// Calls among them that were dropped before they completed.
    pub(crate) cancelled: u64,
    /// Time in which a thread ran them.
    pub(crate) inclusive: u64,
    /// Time of tasks that were polled directly in them.
    pub(crate) elsewhere: u64,
    /// From begin to end of the calls, less the time in which a thread ran them.
    pub(crate) waited: i64,
    /// From begin to end of one call.
    pub(crate) min: u64,
    pub(crate) max: u64,
    children: Children,
    /// The sibling that was entered after this one the last time: the best guess for the next.
    after: u32,
}

impl Node {
    #[inline]
    fn count(&mut self, ticks: u64) {
        self.calls += 1;
        self.min = self.min.min(ticks);
        self.max = self.max.max(ticks);
    }
}

/// What a path hangs from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// Another path of the fold.
    Node(u32),
    /// The frame that was the n-th open one, counted from the outermost, when the fold began; 0: none.
    Inherited(u64),
    /// The same for an async region: the frame is its parent only if a poll is among the outer ones.
    Task(u64),
}

/// What happened to a frame that was open when the fold began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InheritedEnd {
    /// It ended at these ticks.
    Frame(u64),
    /// The instance ended whose poll is the innermost one.
    Completed(Ended, u64),
}

/// Begins of instances. See `Pending` of the reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) count: i64,
    /// Sum of the ticks of the begins, modulo 2^64.
    pub(crate) starts: u64,
}

#[derive(Clone, Copy, Debug)]
struct Aside {
    node: u32,
    first: u64,
    since: u64,
}

/// The child that was entered last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Children {
    last: u32,
}

impl Default for Children {
    fn default() -> Children {
        Children { last: NONE }
    }
}

const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Open {
    node: u32,
    /// Begin of the call.
    first: u64,
    /// Begin of this part of it.
    start: u64,
}

impl Fold {
    /// A fold that begins with the chunk of this sequence number and depth, at these ticks.
    pub(crate) fn new(first_sequence: u64, depth: u64, begin: u64, edges: &[SessionEdge]) -> Fold {
        let folded = Folded { inherited: depth, ..Folded::default() };
        Fold { replay: Replay::resume(folded, first_sequence, depth, edges), first_sequence, begin }
    }

    /// Adds the next chunk.
    pub(crate) fn chunk(&mut self, chunk: ChunkWords<impl ExactSizeIterator<Item = u32>>) {
        self.replay.chunk(chunk);
    }

    /// Learns of the end of a session, or the begin of a later one.
    pub(crate) fn add_edge(&mut self, edge: SessionEdge) {
        self.replay.add_edge(edge);
    }

    /// Calls that ended so far.
    pub(crate) fn calls(&self) -> u64 {
        self.replay.visitor.calls
    }

    /// The sequence number of the chunk that comes next.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.replay.next_sequence()
    }

    /// Ends the lane at `ticks`.
    pub(crate) fn finish(self, ticks: u64) -> (Folded, crate::replay::LaneEnd) {
        self.replay.finish(ticks)
    }

    /// The payload of a totals block.
    pub(crate) fn to_fields(&self) -> Fields {
        let fields = Fields::default().u64(self.first_sequence).u64(self.begin);
        self.replay.visitor.write_to(self.replay.write_to(fields))
    }

    /// The fold in the payload of a totals block; `None` where it makes no sense.
    pub(crate) fn from_fields(fields: &mut FieldReader<'_>, edges: &[SessionEdge]) -> Option<Fold> {
        let (first_sequence, begin) = (fields.u64()?, fields.u64()?);
        let mut replay = Replay::<Folded>::read_from(fields, edges)?;
        replay.visitor.read_from(fields)?;
        let folded = &replay.visitor;
        let same_polls = folded.polls.iter().map(|&index| index as usize).eq(replay.open_polls());
        let same_aside = folded.aside.iter().map(|(&instance, calls)| (instance, calls.len()));
        let sound = folded.open.len() == replay.open_frames() && same_polls && same_aside.eq(replay.aside());
        sound.then_some(Fold { replay, first_sequence, begin })
    }
}

impl Folded {
    fn write_to(&self, fields: Fields) -> Fields {
        let mut fields = fields.u64(self.calls).u64(self.inherited).u32(self.inherited_ends.len() as u32);
        for end in &self.inherited_ends {
            fields = match *end {
                InheritedEnd::Frame(at) => fields.u32(0).u64(at),
                InheritedEnd::Completed(ended, at) => ended.write_to(fields.u32(1).u64(at)),
            };
        }
        fields = fields.u32(self.nodes.len() as u32);
        for node in &self.nodes {
            let (kind, parent) = match node.parent {
                Parent::Node(index) => (0, u64::from(index)),
                Parent::Inherited(depth) => (1, depth),
                Parent::Task(depth) => (2, depth),
            };
            fields = fields.u32(kind).u64(parent).u32(node.region).u64(node.calls).u64(node.cut);
            fields = fields.u64(node.cancelled).u64(node.inclusive).u64(node.elsewhere);
            fields = fields.u64(node.waited.cast_unsigned()).u64(node.min).u64(node.max);
        }
        fields = fields.u32(self.open.len() as u32);
        fields = self
            .open
            .iter()
            .fold(fields, |fields, open| fields.u32(open.node).u64(open.first).u64(open.start));
        fields = fields.u32(self.polls.len() as u32);
        fields = self.polls.iter().fold(fields, |fields, &index| fields.u32(index));
        fields = fields.u32(self.aside.len() as u32);
        for (&instance, calls) in &self.aside {
            fields = fields.u64(instance).u32(calls.len() as u32);
            fields = calls
                .iter()
                .fold(fields, |fields, call| fields.u32(call.node).u64(call.first).u64(call.since));
        }
        fields = fields.u32(self.begun.len() as u32);
        for (&(node, session), begun) in &self.begun {
            fields = fields.u32(node).u32(session).u64(begun.count.cast_unsigned()).u64(begun.starts);
        }
        fields = fields.u32(self.inherited_elsewhere.len() as u32);
        self.inherited_elsewhere.iter().fold(fields, |fields, (&depth, &ticks)| fields.u64(depth).u64(ticks))
    }

    fn read_from(&mut self, fields: &mut FieldReader<'_>) -> Option<()> {
        (self.calls, self.inherited) = (fields.u64()?, fields.u64()?);
        for _ in 0..fields.u32()? {
            let (completed, at) = (fields.u32()? != 0, fields.u64()?);
            self.inherited_ends.push(match completed {
                true => InheritedEnd::Completed(Ended::read(fields)?, at),
                false => InheritedEnd::Frame(at),
            });
        }
        for _ in 0..fields.u32()? {
            let (kind, parent) = (fields.u32()?, fields.u64()?);
            let parent = match kind {
                0 => Parent::Node(
                    u32::try_from(parent).ok().filter(|&index| (index as usize) < self.nodes.len())?,
                ),
                1 => Parent::Inherited(parent),
                _ => Parent::Task(parent),
            };
            let node = self.add(parent, fields.u32()?);
            let node = &mut self.nodes[node as usize];
            (node.calls, node.cut, node.cancelled) = (fields.u64()?, fields.u64()?, fields.u64()?);
            (node.inclusive, node.elsewhere) = (fields.u64()?, fields.u64()?);
            node.waited = fields.u64()?.cast_signed();
            (node.min, node.max) = (fields.u64()?, fields.u64()?);
        }
        let nodes = self.nodes.len() as u32;
        let known = |node: u32| (node < nodes).then_some(node);
        for _ in 0..fields.u32()? {
            let node = known(fields.u32()?)?;
            self.open.push(Open { node, first: fields.u64()?, start: fields.u64()? });
        }
        for _ in 0..fields.u32()? {
            self.polls.push(fields.u32()?);
        }
        for _ in 0..fields.u32()? {
            let calls = self.aside.entry(fields.u64()?).or_default();
            for _ in 0..fields.u32()? {
                let node = known(fields.u32()?)?;
                calls.push(Aside { node, first: fields.u64()?, since: fields.u64()? });
            }
        }
        for _ in 0..fields.u32()? {
            let key = (known(fields.u32()?)?, fields.u32()?);
            let count = fields.u64()?.cast_signed();
            self.begun.insert(key, Begun { count, starts: fields.u64()? });
        }
        for _ in 0..fields.u32()? {
            self.inherited_elsewhere.insert(fields.u64()?, fields.u64()?);
        }
        Some(())
    }

    fn below(&self) -> Parent {
        match self.open.last() {
            Some(open) => Parent::Node(open.node),
            None => Parent::Inherited(self.inherited),
        }
    }

    /// Ends the innermost frame, or a part of it.
    #[inline]
    fn close_part(&mut self, at: u64) -> Option<Open> {
        let open = self.open.pop()?;
        self.nodes[open.node as usize].inclusive += at - open.start;
        Some(open)
    }

    /// Counts a call that has ended.
    #[inline]
    fn count(&mut self, node: u32, ticks: u64, cut: bool) {
        let node = &mut self.nodes[node as usize];
        node.count(ticks);
        node.cut += u64::from(cut);
        self.calls += 1;
    }
    /// The path below `parent` for `region`.
    #[inline(always)]
    fn step(&mut self, parent: Parent, region: u32) -> u32 {
        let last = match parent {
            Parent::Node(index) => self.nodes[index as usize].children.last,
            Parent::Inherited(_) => self.root.last,
            Parent::Task(_) => NONE,
        };
        if last != NONE {
            let node = &self.nodes[last as usize];
            if node.region == region {
                return last;
            }
            let after = node.after;
            if after != NONE && self.nodes[after as usize].region == region {
                self.set_last(parent, after);
                return after;
            }
        }
        self.step_slowly(parent, region, last)
    }

    #[cold]
    fn step_slowly(&mut self, parent: Parent, region: u32, last: u32) -> u32 {
        let known = match parent {
            Parent::Node(index) => self.by_step.get(&(index, region)).copied(),
            // Few calls hang from nothing; a list that is walked does.
            Parent::Inherited(_) => {
                let same = |node: &Node| node.parent == parent && node.region == region;
                self.nodes.iter().position(same).map(|index| index as u32)
            }
            Parent::Task(depth) => self.tasks.get(&(depth, region)).copied(),
        };
        let node = known.unwrap_or_else(|| self.add(parent, region));
        if last != NONE {
            self.nodes[last as usize].after = node;
        }
        self.set_last(parent, node);
        node
    }

    fn set_last(&mut self, parent: Parent, last: u32) {
        match parent {
            Parent::Node(index) => self.nodes[index as usize].children.last = last,
            Parent::Inherited(_) => self.root.last = last,
            Parent::Task(_) => {}
        }
    }

    fn add(&mut self, parent: Parent, region: u32) -> u32 {
        let index = self.nodes.len() as u32;
        let (children, after) = (Children::default(), NONE);
        let (calls, cut, cancelled, inclusive, elsewhere, waited, min, max) = (0, 0, 0, 0, 0, 0, u64::MAX, 0);
        self.nodes.push(Node {
            parent,
            region,
            calls,
            cut,
            cancelled,
            inclusive,
            elsewhere,
            waited,
            min,
            max,
            children,
            after,
        });
        match parent {
            Parent::Node(above) => drop(self.by_step.insert((above, region), index)),
            Parent::Task(depth) => drop(self.tasks.insert((depth, region), index)),
            Parent::Inherited(_) => {}
        }
        index
    }
}

impl Visitor for Folded {
    #[inline(always)]
    fn enter(&mut self, region: u32, at: u64) {
        let node = self.step(self.below(), region);
        self.open.push(Open { node, first: at, start: at });
    }

    #[inline(always)]
    fn leave(&mut self, at: u64, cut: Cut) {
        if let Some(open) = self.close_part(at) {
            self.count(open.node, at - open.first, cut == Cut::Open);
        }
    }

    #[inline(always)]
    fn leaf(&mut self, region: u32, start: u64, end: u64) {
        let node = self.step(self.below(), region);
        let (node, ticks) = (&mut self.nodes[node as usize], end - start);
        node.inclusive += ticks;
        node.count(ticks);
        self.calls += 1;
    }

    fn begin_poll(&mut self, poll: Poll, at: u64) {
        let parent = if poll.nested { self.below() } else { Parent::Task(self.inherited) };
        let node = self.step(parent, poll.region);
        if poll.first {
            self.add_begun(node, poll.session, 1, poll.start);
        }
        self.polls.push(self.open.len() as u32);
        self.open.push(Open { node, first: at, start: at });
    }

    fn end_poll(&mut self, ended: Option<Ended>, at: u64) {
        self.polls.pop();
        let Some(poll) = self.close_part(at) else { return };
        if let Some(ended) = ended {
            self.add_begun(poll.node, ended.session, -1, ended.start);
            let ticks = at.saturating_sub(ended.start);
            let node = &mut self.nodes[poll.node as usize];
            node.waited += ticks.cast_signed();
            node.cancelled += u64::from(ended.cancelled);
            self.count(poll.node, ticks, false);
        }
        let ticks = at - poll.start;
        let node = &mut self.nodes[poll.node as usize];
        node.waited -= ticks.cast_signed();
        if matches!(node.parent, Parent::Task(_)) {
            match self.open.last() {
                Some(around) => self.nodes[around.node as usize].elsewhere += ticks,
                None => *self.inherited_elsewhere.entry(self.inherited).or_default() += ticks,
            }
        }
    }

    fn suspend(&mut self, instance: u64, at: u64) {
        if let Some(Open { node, first, .. }) = self.close_part(at) {
            self.aside.entry(instance).or_default().push(Aside { node, first, since: at });
        }
    }

    fn resume(&mut self, instance: u64, at: u64) {
        let Some(calls) = self.aside.get_mut(&instance) else { return };
        if let Some(Aside { node, first, since }) = calls.pop() {
            self.nodes[node as usize].waited += (at - since).cast_signed();
            self.open.push(Open { node, first, start: at });
        }
        if calls.is_empty() {
            self.aside.remove(&instance);
        }
    }

    fn leave_inherited(&mut self, at: u64) {
        if self.inherited > 0 {
            self.inherited -= 1;
            self.root = Children::default();
            self.inherited_ends.push(InheritedEnd::Frame(at));
        }
    }

    fn complete_inherited(&mut self, ended: Ended, at: u64) {
        self.inherited_ends.push(InheritedEnd::Completed(ended, at));
    }
}

impl Folded {
    fn add_begun(&mut self, node: u32, session: u32, count: i64, start: u64) {
        let begun = self.begun.entry((node, session)).or_default();
        begun.count += count;
        let start = if count < 0 { start.wrapping_neg() } else { start };
        begun.starts = begun.starts.wrapping_add(start);
        if *begun == Begun::default() {
            self.begun.remove(&(node, session));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{CODE_BITS, code};
    use crate::pack::{Words, items_of};

    fn enter(region: u64, at: u64) -> u64 {
        at << CODE_BITS | (code::FIRST_REGION + region)
    }
    fn leave(at: u64) -> u64 {
        at << CODE_BITS | code::LEAVE
    }
    fn chunk(sequence: u64, depth: u64, words: &[u64]) -> ChunkWords<impl ExactSizeIterator<Item = u32>> {
        ChunkWords { sequence, depth, base: 0, words: Words::of(items_of(words).into_iter()) }
    }

    /// `(parent, region, calls, inclusive, min, max)` of each path.
    fn rows(folded: &Folded) -> Vec<(Parent, u32, u64, u64, u64, u64)> {
        let row = |n: &Node| (n.parent, n.region, n.calls, n.inclusive, n.min, n.max);
        folded.nodes.iter().map(row).collect()
    }

    #[test]
    fn siblings_in_turn_and_out_of_turn_are_found_again() {
        let mut words = vec![enter(9, 0)];
        for (n, region) in [0, 1, 2, 0, 1, 2, 2, 0, 1].into_iter().enumerate() {
            let at = 10 * n as u64;
            words.extend([enter(region, at), leave(at + 1 + region)]);
        }
        words.push(leave(100));
        let mut fold = Fold::new(0, 0, 0, &[]);
        fold.chunk(chunk(0, 0, &words));
        let (folded, _) = fold.finish(100);
        let top = Parent::Inherited(0);
        let below = Parent::Node(0);
        let expected = [
            (top, 9, 1, 100, 100, 100),
            (below, 0, 3, 3, 1, 1),
            (below, 1, 3, 6, 2, 2),
            (below, 2, 3, 9, 3, 3),
        ];
        assert_eq!(rows(&folded), expected);
    }

    #[test]
    fn a_fold_that_takes_over_notes_what_it_inherits() {
        let mut fold = Fold::new(3, 2, 0, &[]);
        fold.chunk(chunk(3, 2, &[enter(0, 5), leave(6), leave(7), enter(1, 8), leave(9), enter(1, 10)]));
        // What is stored goes on as if nothing had happened.
        let bytes = fold.to_fields().0;
        let mut stored = Fold::from_fields(&mut FieldReader(&bytes), &[]).expect("what was written is read");
        assert_eq!((stored.first_sequence, stored.next_sequence(), stored.calls()), (3, 4, 2));
        stored.chunk(chunk(4, 2, &[leave(12), leave(14), enter(2, 15)]));
        let (folded, _) = stored.finish(20);
        assert_eq!(folded.inherited_ends, [InheritedEnd::Frame(7), InheritedEnd::Frame(14)]);
        let expected = [
            (Parent::Inherited(2), 0, 1, 1, 1, 1),
            (Parent::Inherited(1), 1, 2, 3, 1, 2),
            (Parent::Inherited(0), 2, 1, 5, 5, 5),
        ];
        assert_eq!(rows(&folded), expected);
        assert_eq!(folded.nodes[2].cut, 1);
    }

    #[test]
    fn a_damaged_fold_is_refused() {
        let mut fold = Fold::new(0, 0, 0, &[]);
        fold.chunk(chunk(0, 0, &[enter(0, 5), enter(1, 6), leave(7)]));
        let bytes = fold.to_fields().0;
        for len in 0..bytes.len() {
            assert!(Fold::from_fields(&mut FieldReader(&bytes[..len]), &[]).is_none(), "{len} bytes");
        }
    }
}
