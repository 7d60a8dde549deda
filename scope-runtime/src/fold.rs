//! Totals of one lane without its events: what is kept in totals-only mode, past the event limit,
//! and when the disk is full.
//!
//! A fold takes the same words as a replay, chunk by chunk, and keeps a tree of call paths in ticks.
//! Where it takes over in the middle of a lane, calls are open whose beginning lies in the events
//! before: they are *inherited*. The fold notes when each of them ends and which of its calls hang
//! below it; whoever reads the events before puts the two together.

use std::collections::HashMap;

use crate::format::{FieldReader, Fields};
use crate::replay::{ChunkWords, Cut, Replay, SessionEdge, Visitor};

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
    /// Calls that were open when the fold began and still are.
    inherited: u64,
    /// When the others of those ended, innermost first, and how many at that time.
    pub(crate) inherited_ends: Vec<(u64, u64)>,
    roots: HashMap<u64, Children>,
    by_step: HashMap<(u32, u32), u32>,
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
    pub(crate) inclusive: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    children: Children,
    /// The sibling that was entered after this one the last time: the best guess for the next.
    after: u32,
}

/// What a path hangs from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// Another path of the fold.
    Node(u32),
    /// The call that was the n-th open one, counted from the outermost, when the fold began; 0: none.
    Inherited(u64),
}

/// The child that was entered last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Children {
    last: u32,
}

const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Open {
    node: u32,
    start: u64,
}

impl Fold {
    /// A fold that begins with the chunk of this sequence number and depth, at these ticks.
    pub(crate) fn new(first_sequence: u64, depth: u64, begin: u64, edges: &[SessionEdge]) -> Fold {
        let folded = Folded { inherited: depth, ..Folded::default() };
        Fold { replay: Replay::resume(folded, first_sequence, depth, edges), first_sequence, begin }
    }

    /// Adds the next chunk.
    pub(crate) fn chunk(&mut self, chunk: &ChunkWords<'_>) {
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

    /// Ticks of the last event so far.
    pub(crate) fn last_ticks(&self) -> u64 {
        self.replay.last_ticks()
    }

    /// Ends the lane at `ticks`.
    pub(crate) fn finish(self, ticks: u64) -> (Folded, crate::replay::LaneEnd) {
        self.replay.finish(ticks)
    }

    /// The payload of a totals block.
    pub(crate) fn to_fields(&self) -> Fields {
        let folded = &self.replay.visitor;
        let mut fields = self.replay.write_to(Fields::default().u64(self.first_sequence).u64(self.begin));
        fields = fields.u64(folded.calls).u64(folded.inherited).u32(folded.inherited_ends.len() as u32);
        fields = folded.inherited_ends.iter().fold(fields, |fields, &(at, count)| fields.u64(at).u64(count));
        fields = fields.u32(folded.nodes.len() as u32);
        for node in &folded.nodes {
            let (kind, parent) = match node.parent {
                Parent::Node(index) => (0, u64::from(index)),
                Parent::Inherited(depth) => (1, depth),
            };
            fields = fields.u32(kind).u64(parent).u32(node.region).u64(node.calls).u64(node.cut);
            fields = fields.u64(node.inclusive).u64(node.min).u64(node.max);
        }
        fields = fields.u32(folded.open.len() as u32);
        folded.open.iter().fold(fields, |fields, open| fields.u32(open.node).u64(open.start))
    }

    /// The fold in the payload of a totals block; `None` where it makes no sense.
    pub(crate) fn from_fields(fields: &mut FieldReader<'_>, edges: &[SessionEdge]) -> Option<Fold> {
        let (first_sequence, begin) = (fields.u64()?, fields.u64()?);
        let mut replay = Replay::read_from(fields, edges)?;
        let folded: &mut Folded = &mut replay.visitor;
        (folded.calls, folded.inherited) = (fields.u64()?, fields.u64()?);
        for _ in 0..fields.u32()? {
            folded.inherited_ends.push((fields.u64()?, fields.u64()?));
        }
        for _ in 0..fields.u32()? {
            let (kind, parent) = (fields.u32()?, fields.u64()?);
            let parent = match kind {
                0 => Parent::Node(
                    u32::try_from(parent).ok().filter(|&index| (index as usize) < folded.nodes.len())?,
                ),
                _ => Parent::Inherited(parent),
            };
            let node = folded.add(parent, fields.u32()?);
            let node = &mut folded.nodes[node as usize];
            (node.calls, node.cut, node.inclusive) = (fields.u64()?, fields.u64()?, fields.u64()?);
            (node.min, node.max) = (fields.u64()?, fields.u64()?);
        }
        for _ in 0..fields.u32()? {
            let open = Open { node: fields.u32()?, start: fields.u64()? };
            folded.nodes.get(open.node as usize)?;
            folded.open.push(open);
        }
        (folded.open.len() == replay.open_calls()).then_some(Fold { replay, first_sequence, begin })
    }
}

impl Folded {
    /// The path below `parent` for `region`.
    #[inline]
    fn step(&mut self, parent: Parent, region: u32) -> u32 {
        let last = match parent {
            Parent::Node(index) => self.nodes[index as usize].children.last,
            Parent::Inherited(depth) => self.roots.get(&depth).map_or(NONE, |children| children.last),
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
            Parent::Inherited(depth) => self.roots.entry(depth).or_insert(Children { last }).last = last,
        }
    }

    fn add(&mut self, parent: Parent, region: u32) -> u32 {
        let index = self.nodes.len() as u32;
        let (children, after) = (Children { last: NONE }, NONE);
        let (calls, cut, inclusive, min, max) = (0, 0, 0, u64::MAX, 0);
        self.nodes.push(Node { parent, region, calls, cut, inclusive, min, max, children, after });
        if let Parent::Node(above) = parent {
            self.by_step.insert((above, region), index);
        }
        index
    }
}

impl Visitor for Folded {
    #[inline]
    fn enter(&mut self, region: u32, at: u64) {
        let parent = match self.open.last() {
            Some(open) => Parent::Node(open.node),
            None => Parent::Inherited(self.inherited),
        };
        let node = self.step(parent, region);
        self.open.push(Open { node, start: at });
    }

    #[inline]
    fn leave(&mut self, at: u64, cut: Cut) {
        let Some(open) = self.open.pop() else { return };
        let ticks = at.saturating_sub(open.start);
        let node = &mut self.nodes[open.node as usize];
        // Sums that are read back may be anything.
        node.calls = node.calls.saturating_add(1);
        node.cut = node.cut.saturating_add(u64::from(cut == Cut::Open));
        node.inclusive = node.inclusive.saturating_add(ticks);
        node.min = node.min.min(ticks);
        node.max = node.max.max(ticks);
        self.calls = self.calls.saturating_add(1);
    }

    fn leave_inherited(&mut self, at: u64, count: u64) {
        let count = count.min(self.inherited);
        if count > 0 {
            self.inherited -= count;
            self.inherited_ends.push((at, count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{CODE_BITS, code};

    fn enter(region: u64, at: u64) -> u64 {
        at << CODE_BITS | (code::FIRST_REGION + region)
    }
    fn leave(at: u64) -> u64 {
        at << CODE_BITS | code::LEAVE
    }
    fn chunk(sequence: u64, depth: u64, words: &[u64]) -> ChunkWords<'_> {
        ChunkWords { sequence, depth, base: 0, words }
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
        fold.chunk(&chunk(0, 0, &words));
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
        fold.chunk(&chunk(3, 2, &[enter(0, 5), leave(6), leave(7), enter(1, 8), leave(9), enter(1, 10)]));
        // What is stored goes on as if nothing had happened.
        let bytes = fold.to_fields().0;
        let mut stored = Fold::from_fields(&mut FieldReader(&bytes), &[]).expect("what was written is read");
        assert_eq!((stored.first_sequence, stored.next_sequence(), stored.calls()), (3, 4, 2));
        stored.chunk(&chunk(4, 2, &[leave(12), leave(14), enter(2, 15)]));
        let (folded, _) = stored.finish(20);
        assert_eq!(folded.inherited_ends, [(7, 1), (14, 1)]);
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
        fold.chunk(&chunk(0, 0, &[enter(0, 5), enter(1, 6), leave(7)]));
        let bytes = fold.to_fields().0;
        for len in 0..bytes.len() {
            assert!(Fold::from_fields(&mut FieldReader(&bytes[..len]), &[]).is_none(), "{len} bytes");
        }
    }
}
