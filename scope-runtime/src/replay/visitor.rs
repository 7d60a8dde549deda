//! Who is told of the calls of a lane, and what is said of them.

use crate::format::{FieldReader, Fields, code, message_of};
use crate::profile::MessageKind;

/// Receives the calls of one lane. Times are ticks of the recording clock and never go back.
pub(crate) trait Visitor {
    /// Region number `region` is entered.
    fn enter(&mut self, region: u32, at: u64);
    /// The innermost open call ends; `cut` when it did not end by itself.
    fn leave(&mut self, at: u64, cut: Cut);
    /// A call that calls nothing: it is entered, and left by itself.
    #[inline]
    fn leaf(&mut self, region: u32, start: u64, end: u64) {
        self.enter(region, start);
        self.leave(end, Cut::No);
    }
    /// An instance of an async region is polled.
    fn begin_poll(&mut self, poll: Poll, at: u64);
    /// The poll, which is the innermost frame, ends, and maybe with it the instance.
    fn end_poll(&mut self, ended: Option<Ended>, at: u64);
    /// The innermost call is set aside with the instance in whose poll it was left open.
    fn suspend(&mut self, instance: u64, at: u64);
    /// The call that was last set aside with the instance goes on.
    fn resume(&mut self, instance: u64, at: u64);
    /// The innermost call of those that are set aside with the instance went on where the events are not, and
    /// ended. As a part of the span of that number, if one is given, it may go on in a later part.
    fn end_aside(&mut self, _instance: u64, _span: Option<u64>, _at: u64) {}
    /// A call goes on that was set aside before the replay began, or where events are missing: the n-th of
    /// those of the instance, counted from the outermost, which is 0. It may be a span.
    fn resume_inherited(&mut self, _instance: u64, _nth: u64, at: u64) {
        self.enter_span(UNKNOWN_REGION, at);
    }
    /// The instance that was first polled just now was made at this position.
    fn link(&mut self, _position: u64) {}
    /// The instance that was first polled just now opens the task of this number of the executor.
    fn executor_task(&mut self, _number: u64) {}
    /// What is entered with nothing around it from here on was started at this position, 0 for none.
    fn started_at(&mut self, _position: u64) {}
    /// The replay is at a place that was asked for by [`Replay::watch`].
    fn mark(&mut self, _position: u64) {}
    /// The innermost frame moved a message.
    fn message(&mut self, _message: Message) {}
    /// The innermost frame, a collective call, is done by `at`.
    fn collective(&mut self, _collective: Collective, _at: u64) {}
    /// The first part of a span of this region begins.
    fn enter_span(&mut self, region: u32, at: u64);
    /// A later part of a span begins; the part before it may be on another lane.
    fn begin_part(&mut self, part: Part, at: u64);
    /// The innermost frame, which is a later part, comes after one that ended at `end`.
    fn part_since(&mut self, _end: u64) {}
    /// The innermost frame, a part of a span, ends. A later part may follow; after
    /// [`leave`](Visitor::leave) none does.
    fn end_part(&mut self, instance: u64, at: u64);
    /// All frames that were open before the replay began are cut: what comes later is not in them.
    fn cut_inherited(&mut self) {}
    /// The `count` innermost of the frames that were open before the replay began end, all newer ones
    /// have.
    fn leave_inherited(&mut self, _at: u64, _count: u64) {}
    /// The innermost of those frames is a part of a span that comes after one that ended at `end`.
    fn part_since_inherited(&mut self, _end: u64) {}
    /// The innermost of those frames ends, a part of a span after which a later one may follow.
    fn end_part_inherited(&mut self, _instance: u64, _at: u64) {}
    /// With the poll that is the innermost one of those its instance ends.
    fn complete_inherited(&mut self, _ended: Ended, _at: u64) {}
    /// The same as [`leave_inherited`](Visitor::leave_inherited), the outermost of the frames being a poll, as
    /// the word of [`code::POLL_END`] says: the others are set aside with its instance.
    fn end_poll_inherited(&mut self, _word: u64, at: u64, count: u64) {
        self.leave_inherited(at, count);
    }
}

/// For who wants to know no more than when events were.
impl Visitor for () {
    fn enter(&mut self, _: u32, _: u64) {}
    fn leave(&mut self, _: u64, _: Cut) {}
    fn begin_poll(&mut self, _: Poll, _: u64) {}
    fn end_poll(&mut self, _: Option<Ended>, _: u64) {}
    fn suspend(&mut self, _: u64, _: u64) {}
    fn resume(&mut self, _: u64, _: u64) {}
    fn enter_span(&mut self, _: u32, _: u64) {}
    fn begin_part(&mut self, _: Part, _: u64) {}
    fn end_part(&mut self, _: u64, _: u64) {}
}

/// The begin of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Poll {
    /// Number of the instance.
    pub(crate) instance: u64,
    /// Ticks as recorded.
    pub(crate) start: u64,
    pub(crate) region: u32,
    /// Whether it is the instance's first.
    pub(crate) first: bool,
    /// Whether it runs inside the poll of another instance, or inside a span.
    pub(crate) nested: bool,
    /// Sessions that ended before.
    pub(crate) session: u32,
}

/// The begin of a part of a span that is not the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Number of the span as an instance.
    pub(crate) instance: u64,
    pub(crate) region: u32,
}

/// A message that a call moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: MessageKind,
    pub(crate) peer: Option<u32>,
    pub(crate) bytes: u64,
}

impl Message {
    pub(super) fn of(code: u64, word: u64) -> Message {
        let kind = MessageKind::ALL[(code - code::MESSAGE) as usize];
        let (peer, bytes) = message_of(word);
        Message { kind, peer, bytes }
    }
}

/// Which call of all ranks of a communicator a call belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Collective {
    pub(crate) communicator: u32,
    pub(crate) number: u32,
}

/// The end of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Ticks at the begin of its first poll.
    pub(crate) start: u64,
    /// Whether it was dropped before it completed.
    pub(crate) cancelled: bool,
    /// Sessions that ended before it began.
    pub(crate) session: u32,
}

impl Ended {
    pub(crate) fn write_to(self, fields: Fields) -> Fields {
        fields.u64(self.start).u32(self.cancelled.into()).u32(self.session)
    }

    pub(crate) fn read(fields: &mut FieldReader<'_>) -> Option<Ended> {
        Some(Ended { start: fields.u64()?, cancelled: fields.u32()? != 0, session: fields.u32()? })
    }
}

/// Stands for a region of which nothing is known.
pub(crate) const UNKNOWN_REGION: u32 = u32::MAX;

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
