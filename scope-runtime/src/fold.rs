//! Totals of one lane without its events: what is kept in totals-only mode, past the event limit,
//! and when the disk is full.
//!
//! A fold takes the same words as a replay, chunk by chunk, and keeps a tree of call paths in ticks.
//! Where it takes over in the middle of a lane, calls are open whose beginning lies in the events
//! before: they are *inherited*. The fold notes when each of them ends and which of its calls hang
//! below it; whoever reads the events before puts the two together. So it is with calls that were set
//! aside before and go on here: they are [`Held`], each under a path that stands for it.

use std::collections::{BTreeMap, HashMap};

use crate::format::{FieldReader, Fields, instance_of};
use crate::pack::Word;
use crate::profile::{MessageKind, MessageSizes};
use crate::replay::{
    ChunkWords, Cut, Ended, Message, Part, Poll, Replay, SessionEdge, SetAside, UNKNOWN_REGION, Visitor,
};

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

impl Parent {
    fn write_to(self, fields: Fields) -> Fields {
        match self {
            Parent::Node(index) => fields.u32(0).u64(index.into()),
            Parent::Inherited(depth) => fields.u32(1).u64(depth),
            Parent::Task(depth, None) => fields.u32(2).u64(depth),
            Parent::Task(depth, Some(index)) => fields.u32(3).u64(depth).u64(index.into()),
        }
    }

    /// Reads what was written, with so many paths known.
    fn read(fields: &mut FieldReader<'_>, nodes: usize) -> Option<Parent> {
        let known = |index: u64| u32::try_from(index).ok().filter(|&index| (index as usize) < nodes);
        Some(match fields.u32()? {
            0 => Parent::Node(known(fields.u64()?)?),
            1 => Parent::Inherited(fields.u64()?),
            2 => Parent::Task(fields.u64()?, None),
            3 => Parent::Task(fields.u64()?, Some(known(fields.u64()?)?)),
            _ => return None,
        })
    }
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

impl OpenPart {
    /// In one word: 0 for none, 1 for the first, else twice the number and 2 or 3.
    fn word(part: Option<OpenPart>) -> u64 {
        match part {
            None => 0,
            Some(OpenPart::First) => 1,
            Some(OpenPart::Later(instance)) => 2 * instance + 2,
            Some(OpenPart::Held(instance)) => 2 * instance + 3,
        }
    }

    fn of_word(word: u64) -> Option<OpenPart> {
        match word {
            0 => None,
            1 => Some(OpenPart::First),
            _ => {
                let kind = if word & 1 == 0 { OpenPart::Later } else { OpenPart::Held };
                Some(kind(word / 2 - 1))
            }
        }
    }
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
        replay.is_of_same_frames().then_some(Fold { replay, first_sequence, begin })
    }
}

impl Replay<Folded> {
    /// Whether both have the same frames open and set aside, as they have unless a file is damaged.
    fn is_of_same_frames(&self) -> bool {
        let folded = &self.visitor;
        let same_aside = folded.aside.iter().map(|(instance, calls)| (instance, calls.len()));
        folded.open.len() == self.open_frames()
            && folded.polls.iter().map(|&index| index as usize).eq(self.open_polls())
            && folded.parts.iter().map(|&(index, _)| index as usize).eq(self.open_spans())
            && same_aside.eq(self.aside())
    }
}

impl Folded {
    fn write_to(&self, fields: Fields) -> Fields {
        let mut fields = fields.u64(self.calls).u64(self.inherited).u32(self.inherited_ends.len() as u32);
        for end in &self.inherited_ends {
            fields = match *end {
                InheritedEnd::Frames(at, count) => fields.u32(0).u64(at).u64(count),
                InheritedEnd::Completed(ended, at) => ended.write_to(fields.u32(1).u64(at)),
                InheritedEnd::Part(instance, at) => fields.u32(2).u64(at).u64(instance),
                InheritedEnd::Poll(word, at) => fields.u32(3).u64(at).u64(word),
                InheritedEnd::Since(at) => fields.u32(5).u64(at),
                InheritedEnd::Aside(instance, span, at) => {
                    fields.u32(4).u64(at).u64(instance).u64(span.map_or(0, |number| number + 1))
                }
            };
        }
        fields = fields.u32(self.nodes.len() as u32);
        for node in &self.nodes {
            fields = node.parent.write_to(fields).u32(node.region).u64(node.calls).u64(node.cut);
            fields = fields.u64(node.cancelled).u64(node.inclusive).u64(node.elsewhere.cast_unsigned());
            fields = fields.u64(node.waited.cast_unsigned()).u64(node.min).u64(node.max);
        }
        fields = fields.u32(self.open.len() as u32);
        fields = self
            .open
            .iter()
            .fold(fields, |fields, open| fields.u32(open.node).u64(open.first).u64(open.start));
        fields = fields.u32(self.polls.len() as u32);
        fields = self.polls.iter().fold(fields, |fields, &index| fields.u32(index));
        fields = fields.u32(self.aside.iter().len() as u32);
        for (instance, calls) in self.aside.iter() {
            fields = fields.u64(instance).u32(calls.len() as u32);
            for &Aside { node, first, since, part } in calls {
                fields = fields.u32(node).u64(first).u64(since).u64(OpenPart::word(part));
            }
        }
        fields = fields.u32(self.held.len() as u32);
        for held in &self.held {
            fields = match held.origin {
                Origin::Aside(instance, nth) => fields.u32(held.node).u32(0).u64(instance).u64(nth),
                Origin::Open(depth) => fields.u32(held.node).u32(1).u64(depth),
            };
        }
        fields = fields.u32(self.left.len() as u32);
        fields = self.left.iter().fold(fields, |fields, (&instance, &first)| fields.u64(instance).u64(first));
        fields = fields.u32(self.parts.len() as u32);
        for &(index, part) in &self.parts {
            fields = fields.u32(index).u64(OpenPart::word(Some(part)));
        }
        fields = fields.u32(self.unsettled.len() as u32);
        for (&instance, span) in &self.unsettled {
            // No node has this number.
            let (node, begin) = span.first.unwrap_or((NONE, 0));
            let owed = span.owed.unwrap_or(Owed { node: NONE, ..Owed::default() });
            fields = fields.u64(instance).u32(node).u64(begin).u64(span.last);
            fields = fields.u32(owed.node).u64(owed.ticks.cast_unsigned()).u32(owed.cut.into());
        }
        fields = fields.u32(self.begun.len() as u32);
        for (&(node, session), begun) in &self.begun {
            fields = fields.u32(node).u32(session).u64(begun.count.cast_unsigned()).u64(begun.starts);
        }
        fields = fields.u32(self.inherited_elsewhere.len() as u32);
        fields = self
            .inherited_elsewhere
            .iter()
            .fold(fields, |fields, (&depth, &ticks)| fields.u64(depth).u64(ticks.cast_unsigned()));
        fields = fields.u32(self.messages.len() as u32);
        self.messages.iter().fold(fields, |fields, (&(path, kind, peer), sizes)| {
            let fields = path.write_to(fields).u32(kind as u32).u32(peer);
            fields.u64(sizes.messages).u64(sizes.bytes).u64(sizes.min_bytes).u64(sizes.max_bytes)
        })
    }

    fn read_from(&mut self, fields: &mut FieldReader<'_>) -> Option<()> {
        (self.calls, self.inherited) = (fields.u64()?, fields.u64()?);
        for _ in 0..fields.u32()? {
            let (kind, at) = (fields.u32()?, fields.u64()?);
            self.inherited_ends.push(match kind {
                0 => InheritedEnd::Frames(at, fields.u64()?),
                1 => InheritedEnd::Completed(Ended::read(fields)?, at),
                2 => InheritedEnd::Part(fields.u64()?, at),
                3 => InheritedEnd::Poll(fields.u64()?, at),
                4 => InheritedEnd::Aside(fields.u64()?, fields.u64()?.checked_sub(1), at),
                5 => InheritedEnd::Since(at),
                _ => return None,
            });
        }
        for _ in 0..fields.u32()? {
            let parent = Parent::read(fields, self.nodes.len())?;
            let node = self.add(parent, fields.u32()?);
            let node = &mut self.nodes[node as usize];
            (node.calls, node.cut, node.cancelled) = (fields.u64()?, fields.u64()?, fields.u64()?);
            (node.inclusive, node.elsewhere) = (fields.u64()?, fields.u64()?.cast_signed());
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
            let instance = fields.u64()?;
            for _ in 0..fields.u32()? {
                let (node, first, since) = (known(fields.u32()?)?, fields.u64()?, fields.u64()?);
                let part = OpenPart::of_word(fields.u64()?);
                self.aside.push(instance, Aside { node, first, since, part });
            }
        }
        for _ in 0..fields.u32()? {
            let node = known(fields.u32()?)?;
            let origin = match fields.u32()? {
                0 => Origin::Aside(fields.u64()?, fields.u64()?),
                1 => Origin::Open(fields.u64()?),
                _ => return None,
            };
            self.held.push(Held { node, origin });
        }
        for _ in 0..fields.u32()? {
            self.left.insert(fields.u64()?, fields.u64()?);
        }
        for _ in 0..fields.u32()? {
            self.parts.push((fields.u32()?, OpenPart::of_word(fields.u64()?)?));
        }
        for _ in 0..fields.u32()? {
            let (instance, node, begin) = (fields.u64()?, fields.u32()?, fields.u64()?);
            let first = if node == NONE { None } else { Some((known(node)?, begin)) };
            let (last, node) = (fields.u64()?, fields.u32()?);
            let (ticks, cut) = (fields.u64()?.cast_signed(), fields.u32()? != 0);
            let owed = if node == NONE { None } else { Some(Owed { node: known(node)?, ticks, cut }) };
            self.unsettled.insert(instance, Unsettled { first, owed, last });
        }
        for _ in 0..fields.u32()? {
            let key = (known(fields.u32()?)?, fields.u32()?);
            let count = fields.u64()?.cast_signed();
            self.begun.insert(key, Begun { count, starts: fields.u64()? });
        }
        for _ in 0..fields.u32()? {
            self.inherited_elsewhere.insert(fields.u64()?, fields.u64()?.cast_signed());
        }
        for _ in 0..fields.u32()? {
            let path = Parent::read(fields, self.nodes.len())?;
            let kind = *MessageKind::ALL.get(fields.u32()? as usize)?;
            let (key, mut number) = ((path, kind, fields.u32()?), || fields.u64());
            let (messages, bytes, min_bytes, max_bytes) = (number()?, number()?, number()?, number()?);
            self.messages.insert(key, MessageSizes { messages, bytes, min_bytes, max_bytes });
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
        let inclusive = &mut self.nodes[open.node as usize].inclusive;
        // Sums that are read back may be anything.
        *inclusive = inclusive.saturating_add(at.saturating_sub(open.start));
        Some(open)
    }

    /// Adds to what ran directly in this frame and hangs elsewhere.
    fn add_elsewhere(&mut self, frame: Parent, ticks: i64) {
        let elsewhere = match frame {
            Parent::Node(node) | Parent::Task(_, Some(node)) => &mut self.nodes[node as usize].elsewhere,
            Parent::Inherited(depth) | Parent::Task(depth, None) => {
                self.inherited_elsewhere.entry(depth).or_default()
            }
        };
        *elsewhere = elsewhere.wrapping_add(ticks);
    }

    /// A part of a call has ended that had been set aside. Where its poll was in another frame than before,
    /// it is that one's time.
    #[cold]
    fn end_resumed(&mut self, part: &Open, at: u64) {
        let (parent, around) = (self.nodes[part.node as usize].parent, self.below());
        if parent != around {
            let ticks = at.saturating_sub(part.start).cast_signed();
            self.add_elsewhere(around, ticks);
            self.add_elsewhere(parent, ticks.wrapping_neg());
        }
    }

    /// Counts a call that has ended.
    #[inline]
    fn count(&mut self, node: u32, ticks: u64, cut: bool) {
        let totals = &mut self.nodes[node as usize];
        totals.count(ticks);
        totals.cut = totals.cut.saturating_add(u64::from(cut));
        self.calls = self.calls.saturating_add(1);
    }

    /// Lets a call that is counted be the shortest or longest.
    #[inline]
    fn note_duration(&mut self, node: u32, ticks: u64) {
        let node = &mut self.nodes[node as usize];
        node.min = node.min.min(ticks);
        node.max = node.max.max(ticks);
    }

    /// A span has ended, with its last part at `last`.
    fn settle(&mut self, span: Unsettled) {
        if let Some(Owed { node, ticks, cut }) = span.owed {
            self.add_waited(node, ticks);
            let node = &mut self.nodes[node as usize];
            node.cut = node.cut.saturating_add(cut.into());
        }
        if let Some((node, begin)) = span.first {
            self.note_duration(node, span.last.saturating_sub(begin));
        }
    }

    fn add_waited(&mut self, node: u32, ticks: i64) {
        let waited = &mut self.nodes[node as usize].waited;
        *waited = waited.wrapping_add(ticks);
    }

    /// Makes the call of a span longer, of which `node` is the path of a later part.
    fn lengthen(&mut self, instance: u64, node: u32, ticks: i64) {
        let mut span = self.unsettled.get(&instance).copied().unwrap_or_default();
        if let Some((counted, _)) = span.first {
            return self.add_waited(counted, ticks);
        }
        let owed = span.owed.get_or_insert(Owed { node, ..Owed::default() });
        owed.ticks = owed.ticks.wrapping_add(ticks);
        self.keep(instance, span);
    }

    /// Ends the innermost frame, a part of a span. The time from begin to end of the span counts where
    /// its call does.
    fn close_span_part(&mut self, part: OpenPart, at: u64) -> Option<Open> {
        let open = self.close_part(at)?;
        self.end_resumed(&open, at);
        self.count_part(part, &open, at);
        Some(open)
    }

    /// The innermost frame, a part of a span, has ended or is set aside.
    fn count_part(&mut self, part: OpenPart, open: &Open, at: u64) {
        let ticks = at.saturating_sub(open.start).cast_signed();
        if part != OpenPart::First {
            self.add_waited(open.node, ticks.wrapping_neg());
        }
        if let OpenPart::Later(instance) = part {
            self.lengthen(instance, open.node, ticks);
        }
    }

    /// Keeps a span that may go on, until there are too many.
    fn keep(&mut self, instance: u64, span: Unsettled) {
        self.unsettled.insert(instance, span);
        if self.unsettled.len() > MAX_UNSETTLED
            && let Some((_, oldest)) = self.unsettled.pop_first()
        {
            self.settle(oldest);
        }
    }

    /// The path below `parent` for `region`.
    #[inline(always)]
    fn step(&mut self, parent: Parent, region: u32) -> u32 {
        let last = match parent {
            Parent::Node(index) => self.nodes[index as usize].children.last,
            Parent::Inherited(_) => self.root.last,
            Parent::Task(..) => NONE,
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
            Parent::Task(..) => self.tasks.get(&(parent, region)).copied(),
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
            Parent::Task(..) => {}
        }
    }

    fn add(&mut self, parent: Parent, region: u32) -> u32 {
        let index = self.push_node(parent, region);
        match parent {
            Parent::Node(above) => drop(self.by_step.insert((above, region), index)),
            Parent::Task(..) => drop(self.tasks.insert((parent, region), index)),
            Parent::Inherited(_) => {}
        }
        index
    }

    /// A path that no step leads to.
    fn push_node(&mut self, parent: Parent, region: u32) -> u32 {
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
        if self.parts.last().is_some_and(|&(index, _)| index as usize + 1 == self.open.len()) {
            return self.leave_span(at, cut);
        }
        if let Some(open) = self.close_part(at) {
            if open.start != open.first {
                self.end_resumed(&open, at);
            }
            self.count(open.node, at.saturating_sub(open.first), cut == Cut::Open);
        }
    }

    #[inline(always)]
    fn leaf(&mut self, region: u32, start: u64, end: u64) {
        let node = self.step(self.below(), region);
        let (node, ticks) = (&mut self.nodes[node as usize], end - start);
        node.inclusive = node.inclusive.saturating_add(ticks);
        node.count(ticks);
        self.calls = self.calls.wrapping_add(1);
    }

    fn message(&mut self, message: Message) {
        let key = (self.below(), message.kind, message.peer.map_or(0, |peer| peer + 1));
        self.messages.entry(key).or_default().add(&MessageSizes::one(message.bytes));
    }

    fn enter_span(&mut self, region: u32, at: u64) {
        self.parts.push((self.open.len() as u32, OpenPart::First));
        self.enter(region, at);
    }

    fn begin_part(&mut self, part: Part, at: u64) {
        self.parts.push((self.open.len() as u32, OpenPart::Later(part.instance)));
        self.enter(part.region, at);
    }

    fn part_since(&mut self, end: u64) {
        if let (Some(&(_, OpenPart::Later(instance))), Some(open)) = (self.parts.last(), self.open.last()) {
            self.lengthen(instance, open.node, open.start.saturating_sub(end).cast_signed());
        }
    }

    fn end_part(&mut self, instance: u64, at: u64) {
        let Some((_, part)) = self.parts.pop() else { return };
        let Some(open) = self.close_span_part(part, at) else { return };
        let mut span = self.unsettled.get(&instance).copied().unwrap_or_default();
        match part {
            OpenPart::Held(held_by) => {
                return self.inherited_ends.push(InheritedEnd::Aside(held_by, Some(instance), at));
            }
            OpenPart::First => {
                let calls = &mut self.nodes[open.node as usize].calls;
                *calls = calls.saturating_add(1);
                self.calls = self.calls.saturating_add(1);
                span.first = Some((open.node, open.first));
            }
            OpenPart::Later(_) => {}
        }
        self.keep(instance, Unsettled { last: at, ..span });
    }

    fn begin_poll(&mut self, poll: Poll, at: u64) {
        let parent = match self.open.last().map(|open| open.node) {
            Some(node) if poll.nested => Parent::Node(node),
            node => Parent::Task(self.inherited, node),
        };
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
            node.waited = node.waited.wrapping_add(ticks.cast_signed());
            node.cancelled = node.cancelled.saturating_add(ended.cancelled.into());
            self.count(poll.node, ticks, false);
        }
        let ticks = at.saturating_sub(poll.start);
        let node = &mut self.nodes[poll.node as usize];
        node.waited = node.waited.wrapping_sub(ticks.cast_signed());
        if matches!(node.parent, Parent::Task(..)) {
            self.add_elsewhere(self.below(), ticks.cast_signed());
        }
    }

    fn suspend(&mut self, instance: u64, at: u64) {
        if let Some(open) = self.close_part(at) {
            self.end_resumed(&open, at);
            let Open { node, first, .. } = open;
            let frames = self.open.len();
            let part = self.parts.pop_if(|(index, _)| *index as usize == frames).map(|(_, part)| part);
            if let Some(part) = part {
                self.count_part(part, &open, at);
            }
            self.aside.push(instance, Aside { node, first, since: at, part });
        }
    }

    fn resume(&mut self, instance: u64, at: u64) {
        let Some(Aside { node, first, since, part }) = self.aside.pop(instance) else { return };
        let pause = at.saturating_sub(since).cast_signed();
        match part {
            None | Some(OpenPart::First) => self.add_waited(node, pause),
            Some(OpenPart::Later(span)) => self.lengthen(span, node, pause),
            Some(OpenPart::Held(_)) => {}
        }
        self.parts.extend(part.map(|part| (self.open.len() as u32, part)));
        self.open.push(Open { node, first, start: at });
    }

    fn leave_inherited(&mut self, at: u64, count: u64) {
        let count = count.min(self.inherited);
        self.end_inherited(count, InheritedEnd::Frames(at, count));
    }

    fn cut_inherited(&mut self) {
        self.inherited = 0;
        self.root = Children::default();
    }

    fn part_since_inherited(&mut self, end: u64) {
        if self.inherited > 0 {
            self.inherited_ends.push(InheritedEnd::Since(end));
        }
    }

    fn end_poll_inherited(&mut self, word: u64, at: u64, count: u64) {
        let count = count.min(self.inherited);
        self.end_inherited(count, InheritedEnd::Poll(word, at));
        if count > 1 {
            self.left.insert(instance_of(word).0, self.inherited + 2);
        }
    }

    fn resume_inherited(&mut self, instance: u64, nth: u64, at: u64) {
        let node = self.push_node(self.below(), UNKNOWN_REGION);
        let origin = match self.left.get(&instance) {
            Some(first) => Origin::Open(first.saturating_add(nth)),
            None => Origin::Aside(instance, nth),
        };
        self.held.push(Held { node, origin });
        self.parts.push((self.open.len() as u32, OpenPart::Held(instance)));
        self.open.push(Open { node, first: at, start: at });
    }

    fn complete_inherited(&mut self, ended: Ended, at: u64) {
        self.inherited_ends.push(InheritedEnd::Completed(ended, at));
    }

    fn end_part_inherited(&mut self, instance: u64, at: u64) {
        self.end_inherited(1.min(self.inherited), InheritedEnd::Part(instance, at));
    }
}

impl Folded {
    /// So many of the innermost frames that were open when the fold began have ended.
    fn end_inherited(&mut self, count: u64, end: InheritedEnd) {
        if count > 0 {
            self.inherited -= count;
            self.root = Children::default();
            self.inherited_ends.push(end);
        }
    }

    /// The last part of a span ends, or its only one.
    fn leave_span(&mut self, at: u64, cut: Cut) {
        let Some((_, part)) = self.parts.pop() else { return };
        let Some(open) = self.close_span_part(part, at) else { return };
        let instance = match part {
            OpenPart::First => return self.count(open.node, at.saturating_sub(open.first), cut == Cut::Open),
            OpenPart::Later(instance) => instance,
            OpenPart::Held(_) if cut == Cut::Open => return,
            OpenPart::Held(held_by) => {
                return self.inherited_ends.push(InheritedEnd::Aside(held_by, None, at));
            }
        };
        let mut span = self.unsettled.remove(&instance).unwrap_or_default();
        span.last = at;
        let is_cut = cut == Cut::Open;
        match span.first {
            Some((node, _)) => {
                let cut = &mut self.nodes[node as usize].cut;
                *cut = cut.saturating_add(is_cut.into());
                self.settle(span);
            }
            None => {
                span.owed.get_or_insert(Owed { node: open.node, ..Owed::default() }).cut |= is_cut;
                self.keep(instance, span);
            }
        }
    }

    fn add_begun(&mut self, node: u32, session: u32, count: i64, start: u64) {
        let begun = self.begun.entry((node, session)).or_default();
        begun.count = begun.count.wrapping_add(count);
        let start = if count < 0 { start.wrapping_neg() } else { start };
        begun.starts = begun.starts.wrapping_add(start);
        if *begun == Begun::default() {
            self.begun.remove(&(node, session));
        }
    }
}

#[cfg(test)]
mod tests;
