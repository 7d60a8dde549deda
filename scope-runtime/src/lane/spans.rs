//! Spans of `tracing` on the calling thread: frames like regions, which may go on after their end.
//!
//! Each time that a span is entered is a part of its call. Whether a part is the last one is known when
//! the span is closed, which mostly follows at once:
//!
//! ```text
//! enter   | begin of the span |
//! exit    | begin of the span | end of a part | number |
//! close   | begin of the span | leave         |             as for a region
//! ```
//!
//! When something else was recorded since the exit, or on another thread, the end of the part stays:
//! the last part is the one that none follows.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

use super::{Lane, SESSION, depth_of, enter_cold, here, leave, with_lane};
use crate::format::{CODE_BITS, code, instance_word};
use crate::pack::WORD_ITEMS;

/// A span between its making and its close, for all threads. Only the thread that has it open writes
/// to it.
#[derive(Debug, Default)]
pub(crate) struct Span {
    /// The lane that has it open, by its address; 0 for none. Another thread that enters it meanwhile
    /// does so apart.
    open_on: AtomicUsize,
    /// Token of the frame there, as in a guard; 0 when it is not recorded.
    token: AtomicU64,
    /// How often it was entered there again since.
    again: AtomicU32,
    /// Event code that begins its first part.
    code: AtomicU32,
    /// The position at which it was made, or said to follow another span; 0 for none.
    made_at: AtomicU64,
    /// The session in which its last part began.
    session: AtomicU32,
    /// Number of the instance plus 1 once a part has ended, else 0.
    number: AtomicU64,
    /// Parts that have ended.
    parts: AtomicU32,
    /// Ticks at the end of its last part.
    ended_at: AtomicU64,
}

/// Tells spans apart: number of the layer, and the id that the subscriber gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanKey {
    pub(crate) layer: u64,
    pub(crate) id: u64,
}

/// What a thread knows about spans.
pub(super) struct SpanLane {
    /// Those that it has open while another thread has. Emptied by hand when the thread ends.
    apart: ManuallyDrop<RefCell<Vec<OpenApart>>>,
    /// The newest end of a part that was written.
    newest_end: Cell<PartEnd>,
}

#[derive(Clone, Copy)]
struct PartEnd {
    /// The first item of its two words; null for none.
    item: *const AtomicU32,
    /// Number of the instance.
    number: u64,
    /// How many parts had ended before.
    part: u32,
}

impl PartEnd {
    const NONE: PartEnd = PartEnd { item: std::ptr::null(), number: 0, part: 0 };
}

#[derive(Clone, Copy)]
struct OpenApart {
    key: SpanKey,
    token: u64,
    again: u32,
}

impl SpanLane {
    pub(super) const fn new() -> SpanLane {
        SpanLane { apart: ManuallyDrop::new(RefCell::new(Vec::new())), newest_end: Cell::new(PartEnd::NONE) }
    }

    /// The end of a part that was written last is not to be changed any more.
    pub(super) fn forget_newest_end(&self) {
        self.newest_end.set(PartEnd::NONE);
    }

    /// Forgets all spans.
    pub(super) fn clear(&self) {
        self.forget_newest_end();
        self.apart.take();
    }
}

impl Span {
    /// Makes this the state of a new span, whose first part begins with this event code, and which is
    /// made here.
    pub(crate) fn reset(&self, code: u32) {
        self.open_on.store(0, Relaxed);
        self.code.store(code, Relaxed);
        self.made_at.store(here(), Relaxed);
        self.number.store(0, Relaxed);
    }

    /// The calling thread enters the span.
    #[inline]
    pub(crate) fn enter(&self, key: SpanKey) {
        with_lane(|lane| {
            if self.open_on.compare_exchange(0, lane.address(), Acquire, Relaxed).is_err() {
                return self.enter_open(lane, key);
            }
            self.token.store(self.begin_part(lane), Relaxed);
            self.again.store(0, Relaxed);
        });
    }

    /// Begins a part and gives the token of its frame, 0 when it is not recorded.
    #[inline]
    fn begin_part(&self, lane: &Lane) -> u64 {
        let number = self.number.load(Relaxed);
        if number != 0 && self.session.load(Relaxed) == SESSION.load(Relaxed) {
            return self.begin_later_part(lane, number - 1);
        }
        if number != 0 {
            self.number.store(0, Relaxed);
        }
        let token = lane.begin_span(self.code.load(Relaxed), self.made_at.load(Relaxed));
        // The session may have begun with it.
        self.session.store(SESSION.load(Relaxed), Relaxed);
        token
    }

    #[cold]
    #[inline(never)]
    fn begin_later_part(&self, lane: &Lane, number: u64) -> u64 {
        let word = instance_word(number, self.code.load(Relaxed).into());
        if lane.push_two(code::PART_BEGIN, word).is_none() {
            return 0;
        }
        let token = lane.deepen();
        let _ = lane.push_two(code::SINCE, self.ended_at.load(Relaxed));
        token
    }

    /// It is said to follow another span. Where that is open here, it counts as made here.
    pub(crate) fn follow(&self, other: &Span) {
        let is_open_here = with_lane(|lane| other.open_on.load(Relaxed) == lane.address());
        if is_open_here {
            self.made_at.store(here(), Relaxed);
        }
    }

    /// Enters it while it is open: here, which is only counted, or on another thread, which is a call
    /// of its own here.
    #[cold]
    #[inline(never)]
    fn enter_open(&self, lane: &Lane, key: SpanKey) {
        if !self.enter_again(key) {
            let token = lane.begin_span(self.code.load(Relaxed), 0);
            lane.spans.apart.borrow_mut().push(OpenApart { key, token, again: 0 });
        }
    }

    /// Counts that the calling thread enters the span again, if it has it open.
    pub(crate) fn enter_again(&self, key: SpanKey) -> bool {
        with_lane(|lane| {
            if self.open_on.load(Relaxed) == lane.address() {
                self.again.fetch_add(1, Relaxed);
                return true;
            }
            let mut apart = lane.spans.apart.borrow_mut();
            let known = apart.iter_mut().rfind(|span| span.key == key);
            known.map(|span| span.again += 1).is_some()
        })
    }

    /// The calling thread exits the span.
    #[inline]
    pub(crate) fn exit(&self, key: SpanKey) {
        with_lane(|lane| {
            if self.open_on.load(Relaxed) != lane.address() {
                lane.exit_apart(key);
            } else if self.again.load(Relaxed) > 0 {
                self.again.fetch_sub(1, Relaxed);
            } else {
                self.end_part(lane, self.token.load(Relaxed));
                self.open_on.store(0, Release);
            }
        });
    }

    #[inline]
    fn end_part(&self, lane: &Lane, token: u64) {
        if token == 0 {
            return;
        }
        let known = self.number.load(Relaxed).checked_sub(1);
        let Some(number) = known.or_else(|| lane.next_instance()) else {
            return leave(token);
        };
        let part = if known.is_some() { self.parts.load(Relaxed) } else { 0 };
        let ended_at = if lane.token.get() == token {
            lane.end_innermost_part(number, part)
        } else {
            lane.end_outer_part(token, number)
        };
        match ended_at {
            Some(ticks) => {
                self.number.store(number + 1, Relaxed);
                self.parts.store(part.wrapping_add(1), Relaxed);
                self.ended_at.store(ticks, Relaxed);
            }
            None => self.number.store(0, Relaxed),
        }
    }

    /// The span is closed: nobody can enter it any more.
    #[inline]
    pub(crate) fn close(&self) {
        let number = self.number.load(Relaxed);
        if number != 0 {
            let part = self.parts.load(Relaxed).wrapping_sub(1);
            with_lane(|lane| lane.make_last_part(number - 1, part));
        }
    }
}

impl Lane {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Exits a span that was entered while another thread had it open, or never.
    #[cold]
    #[inline(never)]
    fn exit_apart(&self, key: SpanKey) {
        let mut apart = self.spans.apart.borrow_mut();
        let Some(at) = apart.iter().rposition(|span| span.key == key) else { return };
        if apart[at].again > 0 {
            apart[at].again -= 1;
            return;
        }
        let OpenApart { token, .. } = apart.remove(at);
        drop(apart);
        if token != 0 {
            leave(token);
        }
    }

    /// Begins the first part of a span and gives the token of its frame, 0 when it is not recorded.
    #[inline]
    fn begin_span(&self, code: u32, made_at: u64) -> u64 {
        if made_at != 0 && self.frames() == 0 {
            return self.begin_linked_span(code, made_at);
        }
        let code = u64::from(code);
        if self.push_word(code) {
            return self.deepen();
        }
        ManuallyDrop::new(enter_cold(|| code)).token
    }

    /// The same for one that was made elsewhere and has nothing around it here.
    #[cold]
    fn begin_linked_span(&self, code: u32, made_at: u64) -> u64 {
        let before = self.set_started_at(made_at);
        let token = self.begin_span(code, 0);
        self.set_started_at(before);
        token
    }

    /// The innermost frame, a part of a span, ends. Gives the ticks; `None` when it could not be kept.
    #[inline]
    fn end_innermost_part(&self, number: u64, part: u32) -> Option<u64> {
        let item = self.cursor.get();
        let ticks = self.push_two(code::PART_END, instance_word(number, 0))?;
        self.token.set(self.token.get() - 1);
        let is_here = self.cursor.get() == item.wrapping_add(2 * WORD_ITEMS);
        self.spans.newest_end.set(if is_here { PartEnd { item, number, part } } else { PartEnd::NONE });
        Some(ticks)
    }

    /// A part of a span ends that may not be the innermost frame. Gives the ticks; `None` where it has
    /// ended before, with something around it, or is to end later.
    #[cold]
    #[inline(never)]
    fn end_outer_part(&self, token: u64, number: u64) -> Option<u64> {
        self.in_cold_path(|recorder| {
            if !self.is_of_context(token) {
                self.keep_late(token);
                return None;
            }
            if !self.is_open(token) {
                return None;
            }
            let depth = depth_of(token);
            let open_after = self.below.get() + depth;
            if depth < depth_of(self.token.get()) {
                self.push_pair(recorder, code::CLOSE_TO, u64::from(open_after))?;
            }
            let ticks = self.push_pair(recorder, code::PART_END, instance_word(number, 0));
            self.begin_epoch(depth - 1);
            ticks
        })
    }

    /// No part of this instance follows the one that ended when this many had. If that is the newest
    /// event here, it is made a plain end in its place.
    #[inline]
    fn make_last_part(&self, number: u64, part: u32) {
        let newest = self.spans.newest_end.get();
        let item = newest.item;
        if item.is_null()
            || (newest.number, newest.part) != (number, part)
            || self.cursor.get() != item.wrapping_add(2 * WORD_ITEMS)
        {
            return;
        }
        // SAFETY: both words are the newest of the chunk that this thread owns: the cursor is right
        // behind them, and it is in another place once the chunk is given away. A reader that comes in
        // between finds the second word without its first, which has code 0 and tells nothing.
        unsafe {
            let low = &*item.add(1);
            let ticks = low.load(Relaxed) >> CODE_BITS;
            low.store(ticks << CODE_BITS | code::LEAVE as u32, Release);
            let second = item.add(WORD_ITEMS);
            for index in (0..WORD_ITEMS).rev() {
                (*second.add(index)).store(0, Release);
            }
            self.cursor.set(second);
        }
        self.spans.forget_newest_end();
    }
}
