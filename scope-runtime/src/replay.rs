//! Replays the events of one lane: words in, calls in their true nesting out.
//!
//! ```text
//! words      E(a) E(b) L   E(c) L   L        E = enter, L = leave
//! open       a    a b  a   a c  a   -        what is open after each
//! visited         b closes      c   a
//! ```
//!
//! The order of events alone decides what is inside what. Times only ever go forward: an event
//! that claims an earlier time than the one before it happens at that one's time, and a call whose
//! end lay before its start is counted as faulty.
//!
//! Polls of async regions are frames like calls. A region that is open when its poll ends is set
//! aside with the instance and goes on with the next poll:
//!
//! ```text
//! words      P(f) E(a) e   E(b) L   P(f) R   L   C e      P = poll, e = its end, R = resume,
//! open       f    f a  -   b    -   f    f a f     -      C = completed
//! ```
//!
//! A `tracing` span is a frame like a region, only that it may go on after its end, on whatever thread:
//!
//! ```text
//! words      S(s) E(a) L   X(s)   E(b) L   S'(s) L        S = first part, S' = later one,
//! open       s    s a  s   -      b    -   s     -        X = end of a part that is not the last
//! ```

use std::collections::VecDeque;

use crate::format::{PAYLOAD, code, has_payload, instance_of, parts_of};
use crate::pack::Word;

mod aside;
mod stored;
mod visitor;

pub(crate) use aside::SetAside;
pub(crate) use visitor::{Collective, Cut, Ended, Message, Part, Poll, UNKNOWN_REGION, Visitor};

/// Regions that one poll can have left open; a number beyond that is damage.
const MAX_RESUMED: u64 = 4096;

/// The moment at which a session ends or a later one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionEdge {
    pub(crate) ticks: u64,
    pub(crate) begins: bool,
}

/// What the replay of a lane found besides calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneEnd {
    /// CPU time in ns, where the thread ended.
    pub(crate) cpu_ns: Option<u64>,
    /// Ticks of the first and the last event.
    pub(crate) first_ticks: Option<u64>,
    pub(crate) last_ticks: u64,
    /// Calls whose end lay before their start.
    pub(crate) faulty: u64,
}

impl LaneEnd {
    /// Adds what came later on the same lane.
    pub(crate) fn add(&mut self, later: &LaneEnd) {
        self.cpu_ns = later.cpu_ns.or(self.cpu_ns);
        self.first_ticks = self.first_ticks.or(later.first_ticks);
        self.last_ticks = self.last_ticks.max(later.last_ticks);
        self.faulty = self.faulty.saturating_add(later.faulty);
    }
}

/// The words of one chunk, with what its head says.
pub(crate) struct ChunkWords<W> {
    pub(crate) sequence: u64,
    pub(crate) depth: u64,
    pub(crate) base: u64,
    pub(crate) words: W,
}

/// The state between two chunks of a lane.
#[derive(Debug)]
pub(crate) struct Replay<V> {
    pub(crate) visitor: V,
    /// Where sessions end and begin again, in order of time; the ones not passed yet.
    edges: VecDeque<SessionEdge>,
    /// Up to these ticks nothing of that kind happens: those of the first edge, 0 outside sessions.
    next_edge: u64,
    /// Whether the time reached so far is inside a session.
    in_session: bool,
    session: u32,
    /// Frames that are open on the program's side but were cut here: the outermost ones.
    dead: u64,
    /// Ticks, as recorded, at which the other open frames began.
    open: Vec<u64>,
    /// Those of them that are polls, by their index.
    polls: Vec<OpenPoll>,
    /// Those of them that are parts of spans, by their index.
    spans: Vec<usize>,
    /// Whether the innermost poll of those that are not known ends its instance.
    dead_ended: bool,
    aside: SetAside<Aside>,
    /// Positions on the lane at which the visitor is told, in order.
    marks: VecDeque<u64>,
    next_sequence: u64,
    now: u64,
    end: LaneEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenPoll {
    index: usize,
    instance: u64,
    ended: Option<Ended>,
}

/// A call that was set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Aside {
    /// Ticks, as recorded, at which it began.
    start: u64,
    /// Whether it is a part of a span.
    is_span: bool,
}

impl<V: Visitor> Replay<V> {
    /// A replay from the begin of a lane. `edges` are in order of time.
    pub(crate) fn new(visitor: V, edges: &[SessionEdge]) -> Self {
        Replay {
            visitor,
            edges: edges.iter().copied().collect(),
            next_edge: edges.first().map_or(u64::MAX, |edge| edge.ticks),
            in_session: true,
            session: 0,
            dead: 0,
            open: Vec::new(),
            polls: Vec::new(),
            spans: Vec::new(),
            dead_ended: false,
            aside: SetAside::default(),
            marks: VecDeque::new(),
            next_sequence: 0,
            now: 0,
            end: LaneEnd::default(),
        }
    }

    /// A replay that begins with the chunk `next_sequence` at the ticks `begin`, when `depth` calls are open
    /// whose begin it has not seen.
    pub(crate) fn resume(
        visitor: V,
        next_sequence: u64,
        depth: u64,
        begin: u64,
        edges: &[SessionEdge],
    ) -> Self {
        let mut replay = Replay { dead: depth, next_sequence, ..Replay::new(visitor, edges) };
        replay.pass_edges(begin);
        replay.now = replay.now.max(begin);
        replay
    }

    /// Tells the visitor when the replay is at these positions, which are in order and of this lane.
    pub(crate) fn watch(&mut self, positions: &[u64]) {
        self.marks.extend(positions);
    }

    /// The sequence number of the chunk that comes next.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Ticks of the last event; 0 before the first.
    pub(crate) fn last_ticks(&self) -> u64 {
        self.end.last_ticks
    }

    /// Number of open frames that the visitor knows.
    pub(crate) fn open_frames(&self) -> usize {
        self.open.len()
    }

    /// Positions of the open frames that are polls.
    pub(crate) fn open_polls(&self) -> impl Iterator<Item = usize> {
        self.polls.iter().map(|poll| poll.index)
    }

    /// Positions of the open frames that are parts of spans.
    pub(crate) fn open_spans(&self) -> impl Iterator<Item = usize> {
        self.spans.iter().copied()
    }

    /// How many calls are set aside with each instance.
    pub(crate) fn aside(&self) -> impl Iterator<Item = (u64, usize)> {
        self.aside.iter().map(|(instance, calls)| (instance, calls.len()))
    }

    /// Replays the next chunk. Where one is missing before it, what is open is cut.
    pub(crate) fn chunk(&mut self, chunk: ChunkWords<impl Iterator<Item = Word>>) {
        if chunk.sequence != self.next_sequence {
            self.cut_open();
            self.dead = chunk.depth;
        }
        self.next_sequence = chunk.sequence.wrapping_add(1);
        let mut base = chunk.base;
        let is_watched = self.marks.front().is_some_and(|&mark| parts_of(mark).1 <= chunk.sequence);
        if is_watched {
            self.marks.retain(|&mark| parts_of(mark).1 >= chunk.sequence);
            self.words::<true>(chunk.sequence, chunk.words, &mut base);
        } else {
            self.words::<false>(chunk.sequence, chunk.words, &mut base);
        }
        if self.end.first_ticks.is_some() {
            self.end.last_ticks = self.now;
        }
    }

    /// The events of a chunk. Where `WATCHED`, the visitor is told of the marks between them.
    fn words<const WATCHED: bool>(
        &mut self,
        sequence: u64,
        mut words: impl Iterator<Item = Word>,
        base: &mut u64,
    ) {
        // Words are no more than items, so the bound tells how many items are left.
        let items = |words: &dyn Iterator<Item = Word>| words.size_hint().1.unwrap_or(0);
        let all_items = if WATCHED { items(&words) } else { 0 };
        // A call that was entered by the word before: most are left by the next.
        let mut entered: Option<(u32, u64)> = None;
        loop {
            if WATCHED && self.is_at_mark(sequence, all_items - items(&words)) {
                if let Some((region, start)) = entered.take() {
                    self.enter(region, start);
                }
                self.pass_mark();
                continue;
            }
            let Some(word) = words.next() else { break };
            let Word { ticks, code: event } = word;
            let at = base.wrapping_add(ticks);
            if let Some((region, start)) = entered.take() {
                if event == code::LEAVE && start.max(at) <= self.next_edge {
                    self.leaf(region, start, at);
                    continue;
                }
                self.enter(region, start);
            }
            match event {
                code::LEAVE => self.leave_call(at),
                span if span >= code::FIRST_SPAN => self.enter_span((span - code::FIRST_SPAN) as u32, at),
                region if region >= code::FIRST_REGION => {
                    entered = Some(((region - code::FIRST_REGION) as u32, at));
                }
                two_words if has_payload(two_words) => match words.next() {
                    Some(payload) if two_words == code::REBASE => *base = payload.bits() & !PAYLOAD,
                    Some(payload) => self.event(two_words, payload.bits() & !PAYLOAD, at),
                    None => break,
                },
                message if (code::MESSAGE..=code::LAST_MESSAGE).contains(&message) && self.in_session => {
                    self.visitor.message(Message::of(message, ticks));
                }
                // A code of which this version knows nothing says nothing about calls.
                _ => {}
            }
        }
        if let Some((region, start)) = entered {
            self.enter_last(region, start);
        }
    }

    fn is_at_mark(&self, sequence: u64, items: usize) -> bool {
        self.marks.front().is_some_and(|&mark| {
            let (_, of, item) = parts_of(mark);
            of == sequence && item <= items
        })
    }

    fn pass_mark(&mut self) {
        if let Some(mark) = self.marks.pop_front() {
            self.visitor.mark(mark);
        }
    }

    /// An event of two words.
    fn event(&mut self, code: u64, payload: u64, at: u64) {
        self.pass(at);
        match code {
            code::CLOSE_TO => self.close_to(payload, at),
            code::LANE_END => self.end.cpu_ns = Some(payload),
            code::FIRST_POLL | code::POLL => self.begin_poll(payload, code == code::FIRST_POLL, at),
            code::POLL_END => self.end_poll(payload, at),
            code::COMPLETED | code::CANCELLED => self.complete(payload, code == code::CANCELLED, at),
            code::RESUME => self.resume_aside(payload, at),
            code::LINK => self.visitor.link(payload),
            code::LINKED => self.visitor.started_at(payload),
            code::TASK => self.visitor.executor_task(payload),
            code::COLLECTIVE if self.in_session && !self.open.is_empty() => {
                let (communicator, number) = ((payload >> 32) as u32, payload as u32);
                self.visitor.collective(Collective { communicator, number }, self.now);
            }
            code::PART_BEGIN => self.begin_part(payload, at),
            code::PART_END => self.end_part(instance_of(payload).0, at),
            code::SINCE => self.part_since(payload),
            _ => {}
        }
    }

    /// How many frames are open further out than those that the visitor knows.
    pub(crate) fn dead(&self) -> u64 {
        self.dead
    }

    /// Ends the lane: what is still open is cut at `ticks`, or at the last event if that is later.
    pub(crate) fn finish(mut self, ticks: u64) -> (V, LaneEnd) {
        if self.end.first_ticks.is_some() {
            self.pass_edges(ticks);
            self.now = self.now.max(ticks);
        }
        self.cut_open();
        self.cut_aside();
        (self.visitor, self.end)
    }

    /// Moves to the time of an event.
    #[inline]
    fn pass(&mut self, at: u64) {
        if at > self.next_edge {
            self.pass_edges(at);
        }
        self.now = self.now.max(at);
        self.end.first_ticks.get_or_insert(at);
        self.end.last_ticks = self.now;
    }

    /// Ends and begins the sessions that do so before these ticks.
    #[cold]
    pub(crate) fn pass_edges(&mut self, at: u64) {
        while let Some(&edge) = self.edges.front()
            && edge.ticks < at
        {
            self.edges.pop_front();
            if !edge.begins {
                self.now = self.now.max(edge.ticks);
                self.cut_open();
                self.cut_aside();
                self.session = self.session.saturating_add(self.in_session.into());
            }
            self.in_session = edge.begins;
        }
        self.note_next_edge();
    }

    fn note_next_edge(&mut self) {
        let edge = self.edges.front().map_or(u64::MAX, |edge| edge.ticks);
        self.next_edge = if self.in_session { edge } else { 0 };
    }

    /// Learns of an edge while the replay goes on; it is later than all known ones.
    pub(crate) fn add_edge(&mut self, edge: SessionEdge) {
        self.edges.push_back(edge);
        self.note_next_edge();
    }

    /// Cuts all open calls now; their guards still exist in the program.
    fn cut_open(&mut self) {
        self.dead = self.frames();
        self.dead_ended = false;
        self.spans.clear();
        while self.open.pop().is_some() {
            match self.polls.pop_if(|poll| poll.index == self.open.len()) {
                Some(poll) => self.visitor.end_poll(poll.ended, self.now),
                None => self.visitor.leave(self.now, Cut::Open),
            }
        }
        self.visitor.cut_inherited();
    }

    /// Cuts all calls that were set aside.
    fn cut_aside(&mut self) {
        for (instance, calls) in std::mem::take(&mut self.aside).iter() {
            calls.iter().for_each(|_| self.visitor.resume(instance, self.now));
            calls.iter().for_each(|_| self.visitor.leave(self.now, Cut::Open));
        }
    }

    /// [`Replay::enter`] where it is not worth a copy of its code.
    #[cold]
    #[inline(never)]
    fn enter_last(&mut self, region: u32, at: u64) {
        self.enter(region, at);
    }

    #[inline(always)]
    fn enter(&mut self, region: u32, at: u64) {
        self.pass(at);
        if self.in_session {
            self.open.push(at);
            self.visitor.enter(region, self.now);
        } else {
            // It was entered while the session ended, and came too late for it.
            self.dead = self.dead.saturating_add(1);
        }
    }

    /// A call is entered and left again before anything else happens. The session goes on.
    #[inline(always)]
    fn leaf(&mut self, region: u32, start: u64, end: u64) {
        let begun = self.now.max(start);
        self.now = begun.max(end);
        self.end.first_ticks.get_or_insert(start);
        if end < start {
            self.end.faulty = self.end.faulty.saturating_add(1);
        }
        self.visitor.leaf(region, begun, self.now);
    }

    /// The innermost frame ends, which is a call nearly always.
    #[inline(always)]
    fn leave_call(&mut self, at: u64) {
        match self.open.last().copied() {
            Some(start) if self.polls.is_empty() && self.spans.is_empty() && at <= self.next_edge => {
                self.open.truncate(self.open.len() - 1);
                self.now = self.now.max(at);
                self.end.faulty = self.end.faulty.saturating_add((at < start).into());
                self.visitor.leave(self.now, Cut::No);
            }
            _ => self.leave(at),
        }
    }

    fn enter_span(&mut self, region: u32, at: u64) {
        self.pass(at);
        if self.in_session {
            self.push_span(at);
            self.visitor.enter_span(region, self.now);
        } else {
            self.dead = self.dead.saturating_add(1);
        }
    }

    fn begin_part(&mut self, word: u64, at: u64) {
        if self.in_session {
            self.push_span(at);
            let (instance, code) = instance_of(word);
            let region = code.checked_sub(code::FIRST_SPAN).map_or(UNKNOWN_REGION, |region| region as u32);
            self.visitor.begin_part(Part { instance, region }, self.now);
        } else {
            self.dead = self.dead.saturating_add(1);
        }
    }

    fn push_span(&mut self, at: u64) {
        self.spans.push(self.open.len());
        self.open.push(at);
    }

    fn innermost_is_span(&self) -> bool {
        self.spans.last().is_some_and(|&index| index + 1 == self.open.len())
    }

    /// The part of a span that is the innermost frame comes after one that ended at `end`.
    pub(crate) fn part_since(&mut self, end: u64) {
        if self.innermost_is_span() {
            self.visitor.part_since(end);
        } else if self.open.is_empty() && self.dead > 0 {
            self.visitor.part_since_inherited(end);
        }
    }

    /// A part of a span ends, which is the innermost frame.
    pub(crate) fn end_part(&mut self, instance: u64, at: u64) {
        self.pass(at);
        if self.innermost_is_span() {
            self.spans.pop();
            let is_faulty = self.open.pop().is_some_and(|start| at < start);
            self.end.faulty = self.end.faulty.saturating_add(is_faulty.into());
            self.visitor.end_part(instance, self.now);
        } else if self.open.is_empty() && self.dead > 0 {
            self.dead -= 1;
            self.visitor.end_part_inherited(instance, self.now);
        } else {
            self.close_innermost(at, Cut::No);
        }
    }

    /// The innermost frame ends.
    #[inline(never)]
    fn leave(&mut self, at: u64) {
        self.pass(at);
        self.close_innermost(at, Cut::No);
    }

    /// The `count` innermost open frames end at `at`, all newer ones being in totals.
    pub(crate) fn leave_inherited(&mut self, at: u64, count: u64) {
        let depth = self.frames().saturating_sub(count);
        self.pass(at);
        self.close_down_to(depth, at, |_| Cut::No);
    }

    /// Frames that are open on the program's side.
    fn frames(&self) -> u64 {
        self.dead.saturating_add(self.open.len() as u64)
    }

    fn close_to(&mut self, depth: u64, at: u64) {
        self.close_down_to(depth, at, |innermost| if innermost == depth { Cut::No } else { Cut::Outlived });
    }

    /// Closes frames until `depth` are open; `cut` gets the position of each. Those that are not known
    /// are closed at once, since a damaged recording may claim any number of them.
    fn close_down_to(&mut self, depth: u64, at: u64, cut: impl Fn(u64) -> Cut) {
        while self.frames() > depth && !self.open.is_empty() {
            self.close_innermost(at, cut(self.frames() - 1));
        }
        if let Some(count) = self.dead.checked_sub(depth).filter(|&count| count > 0 && self.open.is_empty()) {
            self.dead = depth;
            self.visitor.leave_inherited(self.now, count);
        }
    }

    fn begin_poll(&mut self, word: u64, first: bool, at: u64) {
        if !self.in_session {
            self.dead = self.dead.saturating_add(1);
            return;
        }
        let (instance, code) = instance_of(word);
        let region = code.checked_sub(code::FIRST_REGION).map_or(UNKNOWN_REGION, |region| region as u32);
        let nested = !self.polls.is_empty() || !self.spans.is_empty();
        let session = self.session;
        self.polls.push(OpenPoll { index: self.open.len(), instance, ended: None });
        self.open.push(at);
        self.visitor.begin_poll(Poll { instance, start: at, region, first, nested, session }, self.now);
    }

    /// The instance of the innermost poll ends with it.
    pub(crate) fn complete(&mut self, start: u64, cancelled: bool, at: u64) {
        self.pass(at);
        let ended = Ended { start, cancelled, session: self.session };
        match self.polls.last_mut() {
            Some(poll) => poll.ended = Some(ended),
            None if self.dead > 0 => {
                self.dead_ended = true;
                self.visitor.complete_inherited(ended, self.now);
            }
            None => {}
        }
    }

    /// A poll ends in which regions are open. They are set aside, unless its instance ends with it.
    pub(crate) fn end_poll(&mut self, word: u64, at: u64) {
        self.pass(at);
        let (instance, depth) = instance_of(word);
        if let Some(poll) = self.polls.iter().rfind(|poll| poll.instance == instance).copied() {
            match poll.ended {
                None => self.set_aside_down_to(poll.index + 1, instance, at),
                Some(_) => {
                    while self.open.len() > poll.index + 1 {
                        self.close_innermost(at, Cut::Outlived);
                    }
                }
            }
            self.close_innermost(at, Cut::No);
        } else if self.dead <= depth || std::mem::take(&mut self.dead_ended) {
            self.close_to(depth, at);
        } else {
            self.set_aside_down_to(0, instance, at);
            let count = self.dead - depth;
            self.dead = depth;
            self.visitor.end_poll_inherited(word, self.now, count);
        }
    }

    /// Sets calls aside with the instance until `frames` that the visitor knows are open; polls among them
    /// end.
    fn set_aside_down_to(&mut self, frames: usize, instance: u64, at: u64) {
        while let Some(&start) = self.open.last().filter(|_| self.open.len() > frames) {
            if self.polls.last().is_some_and(|inner| inner.index + 1 == self.open.len()) {
                self.close_innermost(at, Cut::Outlived);
                continue;
            }
            let is_span = self.innermost_is_span();
            self.spans.truncate(self.spans.len() - usize::from(is_span));
            self.open.pop();
            self.aside.push(instance, Aside { start, is_span });
            self.visitor.suspend(instance, self.now);
        }
    }

    /// Regions that were set aside with the instance that is polled go on.
    fn resume_aside(&mut self, word: u64, at: u64) {
        let (instance, count) = instance_of(word);
        if !self.in_session {
            self.dead = self.dead.saturating_add(count);
            return;
        }
        // Those of which nothing is known were set aside before the others, so they are further out.
        let most = MAX_RESUMED.saturating_sub(self.spans.len() as u64);
        let unknown = count.saturating_sub(self.aside.len(instance) as u64).min(most);
        for nth in 0..unknown {
            self.push_span(at);
            self.visitor.resume_inherited(instance, nth, self.now);
        }
        for _ in 0..count - unknown {
            let Some(Aside { start, is_span }) = self.aside.pop(instance) else { break };
            self.spans.extend(is_span.then_some(self.open.len()));
            self.open.push(start);
            self.visitor.resume(instance, self.now);
        }
    }

    /// The innermost call of those that are set aside with the instance went on in totals, and ended. As a part
    /// of the span of that number, if one is given, it may go on in a later part.
    pub(crate) fn end_aside(&mut self, instance: u64, span: Option<u64>, at: u64) {
        self.pass(at);
        if let Some(call) = self.aside.take_innermost(instance) {
            self.visitor.end_aside(instance, span.filter(|_| call.is_span), self.now);
        }
    }

    fn close_innermost(&mut self, at: u64, cut: Cut) {
        match self.open.pop() {
            Some(start) => {
                self.spans.pop_if(|index| *index == self.open.len());
                self.end.faulty = self.end.faulty.saturating_add(u64::from(at < start));
                match self.polls.pop_if(|poll| poll.index == self.open.len()) {
                    Some(poll) => self.visitor.end_poll(poll.ended, self.now),
                    None => self.visitor.leave(self.now, cut),
                }
            }
            None if self.dead > 0 => {
                self.dead -= 1;
                self.dead_ended = false;
                self.visitor.leave_inherited(self.now, 1);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
