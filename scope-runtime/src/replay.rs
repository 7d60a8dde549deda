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

use std::collections::VecDeque;

use crate::format::{CODE_BITS, FieldReader, Fields, MAX_TICKS, PAYLOAD, code};

/// Receives the calls of one lane. Times are ticks of the recording clock and never go back.
pub(crate) trait Visitor {
    /// Region number `region` is entered.
    fn enter(&mut self, region: u32, at: u64);
    /// The innermost open call ends; `cut` when it did not end by itself.
    fn leave(&mut self, at: u64, cut: Cut);
    /// The `count` innermost of the calls that were open before the replay began end, all newer ones
    /// have.
    fn leave_inherited(&mut self, _at: u64, _count: u64) {}
}

/// For who wants to know no more than when events were.
impl Visitor for () {
    fn enter(&mut self, _: u32, _: u64) {}
    fn leave(&mut self, _: u64, _: Cut) {}
}

/// Whether a call came to its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It did.
    No,
    /// A region outside it ended first.
    Outlived,
    /// Recording ended, or what followed is missing.
    Open,
}

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
pub(crate) struct ChunkWords<'a> {
    pub(crate) sequence: u64,
    pub(crate) depth: u64,
    pub(crate) base: u64,
    pub(crate) words: &'a [u64],
}

/// The state between two chunks of a lane.
#[derive(Debug)]
pub(crate) struct Replay<V> {
    pub(crate) visitor: V,
    /// Where sessions end and begin again, in order of time; the ones not passed yet.
    edges: VecDeque<SessionEdge>,
    /// Whether the time reached so far is inside a session.
    in_session: bool,
    /// Calls that are open on the program's side but were cut here: the outermost ones.
    dead: u64,
    /// Ticks, as recorded, at which the other open calls began.
    open: Vec<u64>,
    next_sequence: u64,
    now: u64,
    end: LaneEnd,
}

impl<V: Visitor> Replay<V> {
    /// A replay from the begin of a lane. `edges` are in order of time.
    pub(crate) fn new(visitor: V, edges: &[SessionEdge]) -> Self {
        Replay {
            visitor,
            edges: edges.iter().copied().collect(),
            in_session: true,
            dead: 0,
            open: Vec::new(),
            next_sequence: 0,
            now: 0,
            end: LaneEnd::default(),
        }
    }

    /// A replay that begins with the chunk `next_sequence`, when `depth` calls are open whose begin
    /// it has not seen.
    pub(crate) fn resume(visitor: V, next_sequence: u64, depth: u64, edges: &[SessionEdge]) -> Self {
        Replay { dead: depth, next_sequence, ..Replay::new(visitor, edges) }
    }

    /// The sequence number of the chunk that comes next.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Ticks of the last event; 0 before the first.
    pub(crate) fn last_ticks(&self) -> u64 {
        self.end.last_ticks
    }

    /// Number of open calls that the visitor knows.
    pub(crate) fn open_calls(&self) -> usize {
        self.open.len()
    }

    /// Writes all but visitor and edges.
    pub(crate) fn write_to(&self, fields: Fields) -> Fields {
        let LaneEnd { cpu_ns, first_ticks, last_ticks, faulty } = self.end;
        let fields =
            fields.u64(self.next_sequence).u64(self.dead).u64(self.now).u32(u32::from(self.in_session));
        let fields = fields.u64(cpu_ns.map_or(0, |ns| ns + 1)).u64(first_ticks.map_or(0, |ticks| ticks + 1));
        let fields = fields.u64(last_ticks).u64(faulty).u32(self.open.len() as u32);
        self.open.iter().fold(fields, |fields, &start| fields.u64(start))
    }

    /// Reads what [`Replay::write_to`] wrote.
    pub(crate) fn read_from(fields: &mut FieldReader<'_>, edges: &[SessionEdge]) -> Option<Self>
    where
        V: Default,
    {
        let mut replay = Replay::new(V::default(), &[]);
        (replay.next_sequence, replay.dead, replay.now) = (fields.u64()?, fields.u64()?, fields.u64()?);
        replay.in_session = fields.u32()? != 0;
        replay.end = LaneEnd {
            cpu_ns: fields.u64()?.checked_sub(1),
            first_ticks: fields.u64()?.checked_sub(1),
            last_ticks: fields.u64()?,
            faulty: fields.u64()?,
        };
        for _ in 0..fields.u32()? {
            replay.open.push(fields.u64()?);
        }
        replay.edges = edges.iter().copied().filter(|edge| edge.ticks >= replay.now).collect();
        Some(replay)
    }

    /// Replays the next chunk. Where one is missing before it, what is open is cut.
    pub(crate) fn chunk(&mut self, chunk: &ChunkWords<'_>) {
        if chunk.sequence != self.next_sequence {
            self.cut_open();
            self.dead = chunk.depth;
        }
        self.next_sequence = chunk.sequence.wrapping_add(1);
        let mut base = chunk.base;
        let mut words = chunk.words.iter();
        while let Some(&word) = words.next() {
            let at = base.wrapping_add(word >> CODE_BITS);
            match word & ((1 << CODE_BITS) - 1) {
                code::LEAVE => self.leave(at),
                code::REBASE => match words.next() {
                    Some(ticks) => base = ticks & !PAYLOAD,
                    None => return,
                },
                code::CLOSE_TO => match words.next() {
                    Some(depth) => self.close_to(depth & !PAYLOAD, at),
                    None => return,
                },
                code::LANE_END => match words.next() {
                    Some(cpu) => {
                        self.pass(at);
                        self.end.cpu_ns = Some(cpu & !PAYLOAD);
                    }
                    None => return,
                },
                region if region >= code::FIRST_REGION => {
                    self.enter((region - code::FIRST_REGION) as u32, at)
                }
                // A code of which this version knows nothing says nothing about calls.
                _ => {}
            }
        }
    }

    /// Totals take over: calls that are open now end by [`Replay::leave_inherited`]. Gives how many
    /// are open further out that the visitor does not know.
    pub(crate) fn inherit(&mut self) -> u64 {
        self.dead
    }

    /// The `count` innermost open calls end at `at`, all newer ones being in totals.
    pub(crate) fn leave_inherited(&mut self, at: u64, count: u64) {
        let depth = self.depth().saturating_sub(count);
        self.pass(at);
        self.close_down_to(depth, at, |_| Cut::No);
    }

    /// Number of open calls, known ones and others.
    fn depth(&self) -> u64 {
        self.dead.saturating_add(self.open.len() as u64)
    }

    /// Ends the lane: what is still open is cut at `ticks`, or at the last event if that is later.
    pub(crate) fn finish(mut self, ticks: u64) -> (V, LaneEnd) {
        if self.end.first_ticks.is_some() {
            self.pass_edges(ticks);
            self.now = self.now.max(ticks);
        }
        self.cut_open();
        (self.visitor, self.end)
    }

    /// Moves to the time of an event.
    fn pass(&mut self, at: u64) {
        self.pass_edges(at);
        self.now = self.now.max(at);
        self.end.first_ticks.get_or_insert(at);
        self.end.last_ticks = self.now;
    }

    fn pass_edges(&mut self, at: u64) {
        while let Some(&edge) = self.edges.front()
            && edge.ticks < at
        {
            self.edges.pop_front();
            self.in_session = edge.begins;
            if !edge.begins {
                self.now = self.now.max(edge.ticks);
                self.cut_open();
            }
        }
    }

    /// Learns of an edge while the replay goes on; it is later than all known ones.
    pub(crate) fn add_edge(&mut self, edge: SessionEdge) {
        self.edges.push_back(edge);
    }

    /// Cuts all open calls now; their guards still exist in the program.
    fn cut_open(&mut self) {
        self.dead = self.depth();
        for _ in self.open.drain(..) {
            self.visitor.leave(self.now, Cut::Open);
        }
    }

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

    fn leave(&mut self, at: u64) {
        self.pass(at);
        match self.open.pop() {
            Some(start) => {
                self.end.faulty = self.end.faulty.saturating_add(u64::from(at < start));
                self.visitor.leave(self.now, Cut::No);
            }
            None if self.dead > 0 => {
                self.dead -= 1;
                self.visitor.leave_inherited(self.now, 1);
            }
            None => {}
        }
    }

    fn close_to(&mut self, depth: u64, at: u64) {
        self.pass(at);
        self.close_down_to(depth, at, |innermost| if innermost == depth { Cut::No } else { Cut::Outlived });
    }

    /// Closes calls until `depth` are open; `cut` gets the position of each. Those that are not known
    /// are closed at once, since a damaged recording may claim any number of them.
    fn close_down_to(&mut self, depth: u64, at: u64, cut: impl Fn(u64) -> Cut) {
        while self.depth() > depth
            && let Some(start) = self.open.pop()
        {
            self.end.faulty = self.end.faulty.saturating_add(u64::from(at < start));
            self.visitor.leave(self.now, cut(self.depth()));
        }
        if let Some(count) = self.dead.checked_sub(depth).filter(|&count| count > 0 && self.open.is_empty()) {
            self.dead = depth;
            self.visitor.leave_inherited(self.now, count);
        }
    }
}

const _: () = assert!(MAX_TICKS == 1 << 40, "the drawn layout of a word");

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls as `(region, start, end, depth, cut)` in order of their end.
    #[derive(Default)]
    struct Calls {
        open: Vec<(u32, u64)>,
        closed: Vec<(u32, u64, u64, usize, Cut)>,
    }

    impl Visitor for Calls {
        fn enter(&mut self, region: u32, at: u64) {
            self.open.push((region, at));
        }
        fn leave(&mut self, at: u64, cut: Cut) {
            let (region, start) = self.open.pop().expect("a call is open");
            self.closed.push((region, start, at, self.open.len(), cut));
        }
    }

    fn enter(region: u64, at: u64) -> u64 {
        at << CODE_BITS | (code::FIRST_REGION + region)
    }
    fn event(code: u64, at: u64) -> u64 {
        at << CODE_BITS | code
    }

    fn replay(chunks: &[(u64, u64, &[u64])], edges: &[(u64, bool)], end: u64) -> (Calls, LaneEnd) {
        let edges: Vec<_> = edges.iter().map(|&(ticks, begins)| SessionEdge { ticks, begins }).collect();
        let mut replay = Replay::new(Calls::default(), &edges);
        for &(sequence, depth, words) in chunks {
            replay.chunk(&ChunkWords { sequence, depth, base: 0, words });
        }
        replay.finish(end)
    }

    #[test]
    fn events_nest_by_their_order() {
        let words = [
            enter(0, 1),
            enter(1, 1),
            event(code::LEAVE, 1),
            enter(1, 5),
            event(code::LEAVE, 7),
            event(code::LEAVE, 7),
        ];
        let (calls, end) = replay(&[(0, 0, &words)], &[], 9);
        assert_eq!(calls.closed, [(1, 1, 1, 1, Cut::No), (1, 5, 7, 1, Cut::No), (0, 1, 7, 0, Cut::No)]);
        assert_eq!((end.first_ticks, end.last_ticks, end.faulty), (Some(1), 7, 0));
    }

    #[test]
    fn a_region_that_ends_closes_what_is_open_inside_it() {
        let words = [
            enter(0, 1),
            enter(1, 2),
            enter(2, 3),
            event(code::CLOSE_TO, 4),
            PAYLOAD,
            enter(3, 5),
            event(code::LEAVE, 6),
        ];
        let (calls, _) = replay(&[(0, 0, &words)], &[], 9);
        let expected = [
            (2, 3, 4, 2, Cut::Outlived),
            (1, 2, 4, 1, Cut::Outlived),
            (0, 1, 4, 0, Cut::No),
            (3, 5, 6, 0, Cut::No),
        ];
        assert_eq!(calls.closed, expected);
    }

    #[test]
    fn what_is_open_is_cut_at_the_end_of_the_session_or_of_the_lane() {
        let words = [
            enter(0, 1),
            enter(1, 2),
            event(code::LEAVE, 12),
            enter(2, 13),
            event(code::LEAVE, 14),
            event(code::LEAVE, 15),
            enter(3, 20),
        ];
        let (calls, _) = replay(&[(0, 0, &words)], &[(10, false), (12, true)], 30);
        let expected = [
            (1, 2, 10, 1, Cut::Open),
            (0, 1, 10, 0, Cut::Open),
            (2, 13, 14, 0, Cut::No),
            (3, 20, 30, 0, Cut::Open),
        ];
        assert_eq!(calls.closed, expected);
    }

    #[test]
    fn what_is_entered_between_two_sessions_is_left_out() {
        let words = [enter(0, 11), enter(1, 21), event(code::LEAVE, 22), event(code::LEAVE, 23)];
        let (calls, _) = replay(&[(0, 0, &words)], &[(10, false), (20, true)], 30);
        assert_eq!(calls.closed, [(1, 21, 22, 0, Cut::No)]);
    }

    #[test]
    fn a_missing_chunk_cuts_what_was_open_and_keeps_the_depth() {
        let first = [enter(0, 1), enter(1, 2)];
        let third = [event(code::LEAVE, 20), enter(2, 21), event(code::LEAVE, 22), event(code::LEAVE, 23)];
        let (calls, _) = replay(&[(0, 0, &first), (2, 2, &third)], &[], 30);
        assert_eq!(calls.closed, [(1, 2, 2, 1, Cut::Open), (0, 1, 2, 0, Cut::Open), (2, 21, 22, 0, Cut::No)]);
    }

    #[test]
    fn a_clock_that_steps_back_makes_calls_of_no_length() {
        let words = [
            enter(0, 50),
            enter(1, 60),
            event(code::LEAVE, 55),
            event(code::REBASE, 0),
            PAYLOAD | 10,
            event(code::LEAVE, 5),
        ];
        let (calls, end) = replay(&[(0, 0, &words)], &[], 0);
        assert_eq!(calls.closed, [(1, 60, 60, 1, Cut::No), (0, 50, 60, 0, Cut::No)]);
        assert_eq!(end.faulty, 2);
    }

    #[test]
    fn leaves_without_a_call_and_cut_pairs_do_no_harm() {
        let words = [event(code::LEAVE, 1), enter(0, 2), event(code::LEAVE, 3), event(code::CLOSE_TO, 4)];
        assert_eq!(replay(&[(0, 0, &words)], &[], 9).0.closed, [(0, 2, 3, 0, Cut::No)]);
    }
}
