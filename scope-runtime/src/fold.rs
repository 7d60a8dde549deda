//! Totals of one lane without its events: what is kept in totals-only mode, past the event limit,
//! and when the disk is full.
//!
//! A fold takes the same words as a replay, chunk by chunk, and keeps a tree of call paths in ticks.
//! Where it takes over in the middle of a lane, calls are open whose beginning lies in the events
//! before: they are *inherited*. The fold notes when each of them ends and which of its calls hang
//! below it; whoever reads the events before puts the two together. So it is with calls that were set
//! aside before and go on here: they are [`Held`], each under a path that stands for it.

use std::collections::{BTreeMap, HashMap};

use crate::pack::Word;
use crate::profile::{MessageKind, MessageSizes};
use crate::replay::{ChunkWords, Ended, LaneEnd, Replay, SessionEdge, SetAside};

mod stored;
mod visitor;

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
    /// Positions in `open` of parts of spans, and which one of its span it is.
    parts: Vec<(u32, OpenPart)>,
    /// Spans that may go on.
    pub(crate) unsettled: BTreeMap<u64, Unsettled>,
    /// Calls that were set aside, by instance.
    aside: SetAside<Aside>,
    /// Calls that went on here, having been set aside before.
    pub(crate) held: Vec<Held>,
    /// By instance the outermost of the frames, counted as in [`Origin::Open`], that were set aside when a
    /// poll ended that was open when the fold began.
    left: BTreeMap<u64, u64>,
    /// Instances of async regions that began less those that ended, by node and session.
    pub(crate) begun: BTreeMap<(u32, u32), Begun>,
    /// Frames that were open when the fold began and still are.
    inherited: u64,
    /// What became of the others of those, innermost first.
    pub(crate) inherited_ends: Vec<InheritedEnd>,
    /// The same as [`Node::elsewhere`] of such frames, by the frame's depth.
    pub(crate) inherited_elsewhere: BTreeMap<u64, i64>,
    /// What hangs from the innermost of those frames.
    root: Children,
    by_step: HashMap<(u32, u32), u32>,
    /// Nodes of async regions that may hang from nothing, by parent and region.
    tasks: HashMap<(Parent, u32), u32>,
    /// Messages by path, kind and peer.
    pub(crate) messages: BTreeMap<MessageKey, MessageSizes>,
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
    /// Time of what ran directly in them and hangs elsewhere, as tasks do, less that of what hangs below them
    /// and ran elsewhere.
    pub(crate) elsewhere: i64,
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
        self.calls = self.calls.saturating_add(1);
        self.min = self.min.min(ticks);
        self.max = self.max.max(ticks);
    }

    /// One of the calls was cut, or none.
    #[inline]
    fn add_cut(&mut self, is_cut: bool) {
        self.cut = self.cut.saturating_add(is_cut.into());
    }
}

/// The path on which messages were moved (where a frame that was open when the fold began is the innermost
/// one, that), what became of them, and the peer's number plus 1.
pub(crate) type MessageKey = (Parent, MessageKind, u32);

/// What a path hangs from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Parent {
    /// Another path of the fold.
    Node(u32),
    /// The frame that was the n-th open one, counted from the outermost, when the fold began; 0: none.
    Inherited(u64),
    /// The same for an async region: it has a parent only if a poll is that frame or among the outer ones.
    /// That is the path of the fold in which it was polled, if it was in one, else the frame.
    Task(u64, Option<u32>),
}

/// What became of a call that had begun before the fold, mostly that it ended: of the innermost frame that was
/// open then and still is, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InheritedEnd {
    /// It ended at these ticks, and as many more.
    Frames(u64, u64),
    /// The instance ended whose poll is the innermost one.
    Completed(Ended, u64),
    /// It was a part of the span with this number and ended at these ticks; a later part may follow.
    Part(u64, u64),
    /// The poll ended of which this word says more, at these ticks; what was open in it is set aside.
    Poll(u64, u64),
    /// The innermost one was a part of a span that comes after one that ended at these ticks.
    Since(u64),
    /// Of what had been set aside with this instance the innermost call ended, at these ticks. A later part
    /// may follow if it was one of the span with this number.
    Aside(u64, Option<u64>, u64),
}

/// A call that had been set aside before the fold began. Its path is that of the call, and none of the
/// fold's own. Only the time is counted that a thread ran it here; who reads the events before counts the
/// call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// The path that stands for it.
    pub(crate) node: u32,
    pub(crate) origin: Origin,
}

/// What a [`Held`] call was when the fold began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Set aside with an instance, as the n-th from the outermost, which is 0.
    Aside(u64, u64),
    /// The frame that was the n-th open one, counted from the outermost; its poll ended after that.
    Open(u64),
}

/// A span of which a later part may come, maybe on another lane. It is counted, but how long it
/// lasts is not known yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unsettled {
    /// Path and begin of its first part, unless that is on another lane or before the fold.
    pub(crate) first: Option<(u32, u64)>,
    /// What later parts add to the call, where the path on which it counts is not known here.
    pub(crate) owed: Option<Owed>,
    /// End of its last part.
    pub(crate) last: u64,
}

/// See [`Unsettled`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owed {
    /// The path of one of the later parts.
    pub(crate) node: u32,
    /// From the begin of the first of them to the end of the last.
    pub(crate) ticks: i64,
    /// Whether the last one was cut.
    pub(crate) cut: bool,
}

/// How many spans a lane keeps as [`Unsettled`]; of more, the oldest are taken to have ended, so that
/// a shortest and longest duration may be too short.
const MAX_UNSETTLED: usize = 1024;

/// A part of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenPart {
    First,
    /// A later one of the span with this number.
    Later(u64),
    /// Not of a span that is known, but of one of the [`Held`] calls, of this instance.
    Held(u64),
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
    part: Option<OpenPart>,
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
        let mut replay = Replay::resume(Folded::default(), first_sequence, depth, begin, edges);
        replay.visitor.inherited = depth;
        Fold { replay, first_sequence, begin }
    }

    /// Adds the next chunk.
    pub(crate) fn chunk(&mut self, chunk: ChunkWords<impl Iterator<Item = Word>>) {
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
    pub(crate) fn finish(self, ticks: u64) -> (Folded, LaneEnd) {
        self.replay.finish(ticks)
    }
}

#[cfg(test)]
mod tests;
