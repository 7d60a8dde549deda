//! The hot path: entering and leaving regions on the calling thread.
//!
//! Each thread has a cursor into a chunk that it alone writes to. Entering reads the clock and
//! stores one item (`pack.rs`), leaving does the same; whatever does not fit that (the first region of a
//! thread, a full chunk, a guard that is not the innermost) takes a cold path.

mod guards;
mod instance;
#[cfg(feature = "tracing")]
mod spans;

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed, Ordering::Release};

use crate::clock;
use crate::format::{CHUNK_ITEMS, CODE_BITS, MAX_TICKS, PAYLOAD, code, position};
use crate::os;
use crate::pack::{self, MAX_DELTA, SECOND, SHORT_BITS, WORD, WORD_ITEMS};
use crate::pool::ChunkId;
#[cfg(feature = "mpi")]
use crate::profile::MessageKind;
use crate::recorder::Recorder;
use crate::region::{self, Site};
use crate::session;
use crate::sink::Sink;

use guards::{Epoch, depth_of};
pub(crate) use instance::{Instance, PollEnd};
#[cfg(feature = "tracing")]
pub(crate) use spans::{Span, SpanKey};

/// Whether regions are recorded; read first on every entry.
pub(crate) static STATE: AtomicU8 = AtomicU8::new(STARTING);
/// Regions are not recorded.
pub(crate) const OFF: u8 = 0;
/// Nothing was decided yet: the first region asks the environment.
pub(crate) const STARTING: u8 = 1;
/// Regions are recorded.
pub(crate) const ON: u8 = 2;

/// Counts the begins and ends of sessions, and forks: what began under another number has ended.
pub(crate) static SESSION: AtomicU32 = AtomicU32::new(0);

/// What a thread knows about its own recording. No destructor, so that access is a plain load
/// and stays possible while the thread's other locals are destroyed.
struct Lane {
    /// Next item to write; not below `end` when there is no room or no chunk.
    cursor: Cell<*const AtomicU32>,
    /// From here on [`LAST_ITEMS`] items are left: as many as one event can take.
    end: Cell<*const AtomicU32>,
    /// Ticks of the event before.
    last: Cell<u64>,
    /// Ticks since then from here on take the cold path: [`MAX_DELTA`], or 0 where the clock is not
    /// the processor's counter.
    limit: Cell<u64>,
    /// Epoch and number of open regions, see [`token`], in the current context.
    token: Cell<u64>,
    /// The flow of control that regions are entered in: 0 for the thread itself, while an instance of
    /// an async region is polled the first epoch of that one.
    context: Cell<u64>,
    /// Frames open outside the current context: regions and polls.
    below: Cell<u32>,
    /// Where what runs here was started, if somebody said so; 0 for nowhere.
    started_at: Cell<u64>,
    #[cfg(feature = "tracing")]
    spans: spans::SpanLane,
    cold: ColdLane,
}

/// The part that only the cold paths touch.
struct ColdLane {
    /// Whether this thread is in a cold path: what those call must not record.
    busy: Cell<bool>,
    recorder: Cell<Option<&'static Recorder>>,
    sink: Cell<Option<&'static Sink>>,
    /// Whether the thread has ended; late destructors may still have regions.
    ended: Cell<bool>,
    chunk: Cell<Option<ChunkId>>,
    /// Ticks that whole words are relative to.
    base: Cell<u64>,
    next_sequence: Cell<u64>,
    /// Numbers that are left for instances of async regions first polled here.
    instances: Cell<(u64, u64)>,
    next_epoch: Cell<u64>,
    /// Which guards of earlier epochs still count; emptied by hand when the thread ends.
    epochs: ManuallyDrop<RefCell<Vec<Epoch>>>,
    /// Tokens of guards that were dropped while another context than theirs ran.
    late: ManuallyDrop<RefCell<Vec<u64>>>,
    has_late: Cell<bool>,
}

/// An event has two words at most.
const LAST_ITEMS: usize = 2 * WORD_ITEMS;

thread_local! {
    static LANE: Lane = const {
        Lane {
            cursor: Cell::new(std::ptr::null()),
            end: Cell::new(std::ptr::null()),
            last: Cell::new(0),
            limit: Cell::new(0),
            token: Cell::new(0),
            context: Cell::new(0),
            below: Cell::new(0),
            started_at: Cell::new(0),
            #[cfg(feature = "tracing")]
            spans: spans::SpanLane::new(),
            cold: ColdLane {
                busy: Cell::new(false),
                recorder: Cell::new(None),
                sink: Cell::new(None),
                ended: Cell::new(false),
                chunk: Cell::new(None),
                base: Cell::new(0),
                next_sequence: Cell::new(0),
                instances: Cell::new((0, 0)),
                next_epoch: Cell::new(1),
                epochs: ManuallyDrop::new(RefCell::new(Vec::new())),
                late: ManuallyDrop::new(RefCell::new(Vec::new())),
                has_late: Cell::new(false),
            },
        }
    };
}

/// Runs `work` with the calling thread's lane.
#[inline(always)]
fn with_lane<T>(work: impl FnOnce(&Lane) -> T) -> T {
    // Through a pointer, since `with` is not inlined around work of any size, and then asks for the
    // address by a call.
    let lane = LANE.with(std::ptr::from_ref);
    // SAFETY: a lane has no destructor, so it is there until its thread ends, which is this one.
    work(unsafe { &*lane })
}

/// Keeps a region open; leaving it is dropping this.
///
/// A guard belongs to its thread. Guards may be dropped in any order or leaked: the end of a
/// region also ends whatever is still open inside it.
#[must_use = "the region ends when the guard is dropped; `let _ = ..` drops it at once"]
pub struct Guard {
    /// [`Lane::token`] just after entering; 0 when the call is not recorded.
    token: u64,
    not_send: PhantomData<*const ()>,
}

impl Guard {
    const fn new(token: u64) -> Guard {
        Guard { token, not_send: PhantomData }
    }

    #[cfg(feature = "mpi")]
    pub(crate) fn is_recorded(&self) -> bool {
        self.token != 0
    }
}

impl Drop for Guard {
    // In a debug build it would be compiled again in each part of each crate, and not be inlined.
    #[cfg_attr(not(debug_assertions), inline)]
    fn drop(&mut self) {
        if cfg!(not(feature = "off")) && self.token != 0 {
            leave(self.token);
        }
    }
}

/// Enters a region of any name on the calling thread, until the guard is dropped.
///
/// The name is kept once for the whole run, however often it is entered. A name that is known
/// when the program is written is faster with [`region!`](crate::region).
///
/// # Examples
/// ```
/// let species = "argon";
/// let guard = scope_runtime::enter(&format!("push {species}"));
/// // ... the work ...
/// drop(guard);
/// ```
#[track_caller]
pub fn enter(name: &str) -> Guard {
    if cfg!(feature = "off") || STATE.load(Relaxed) == OFF {
        return Guard::new(0);
    }
    enter_name(name, Location::caller())
}

#[cold]
fn enter_name(name: &str, place: &'static Location<'static>) -> Guard {
    enter_cold(|| region::code_of_name(name, place))
}

#[inline]
pub(crate) fn enter_site(site: &'static Site) -> Guard {
    if cfg!(feature = "off") || STATE.load(Relaxed) == OFF {
        return Guard::new(0);
    }
    with_lane(|lane| {
        let short = site.short_code();
        if short != 0 && lane.push(short) {
            return Guard::new(lane.deepen());
        }
        enter_site_cold(site)
    })
}

#[cold]
#[inline(never)]
fn enter_site_cold(site: &'static Site) -> Guard {
    enter_cold(|| match site.code() {
        0 => site.register(),
        code => code,
    })
}

/// Enters with room made and the lane opened as need be. `code_of_region` may register it.
fn enter_cold(code_of_region: impl FnOnce() -> u64) -> Guard {
    with_lane(|lane| {
        let token = lane.in_cold_path(|recorder| {
            let code = code_of_region();
            lane.push_cold(recorder, code).map(|_| lane.deepen())
        });
        if token.is_none()
            && let Some(recorder) = lane.cold.recorder.get()
        {
            recorder.writer().add_lost(1);
        }
        Guard::new(token.unwrap_or(0))
    })
}

#[inline]
fn leave(token: u64) {
    with_lane(|lane| {
        if lane.token.get() != token || !lane.push(pack::LEAVE) {
            return leave_cold(token);
        }
        lane.token.set(token - 1);
    });
}

#[cold]
#[inline(never)]
fn leave_cold(token: u64) {
    with_lane(|lane| {
        lane.in_cold_path(|recorder| {
            if lane.is_of_context(token) {
                lane.close(recorder, token);
            } else {
                lane.keep_late(token);
            }
            Some(token)
        });
    });
}

impl Lane {
    /// Stores an event that happens now, if there is room and the clock is the counter.
    #[inline(always)]
    fn push(&self, short_code: u32) -> bool {
        let cursor = self.cursor.get();
        if cursor >= self.end.get() {
            return false;
        }
        let now = clock::counter();
        let delta = now.wrapping_sub(self.last.get());
        if delta >= self.limit.get() {
            return false;
        }
        // SAFETY: as the cursor is below the end, it points to an item of the chunk that this thread
        // owns; the mapping is never undone.
        unsafe {
            (*cursor).store((delta as u32) << SHORT_BITS | short_code, Release);
            self.cursor.set(cursor.add(1));
        }
        self.last.set(now);
        true
    }

    /// [`Lane::push`] for an event without a short code.
    #[cfg(feature = "tracing")]
    #[inline]
    fn push_word(&self, code: u64) -> bool {
        let now = clock::counter();
        let ticks = now.wrapping_sub(self.cold.base.get());
        if self.cursor.get() >= self.end.get() || self.limit.get() == 0 || ticks >= MAX_TICKS {
            return false;
        }
        self.store(WORD, ticks << CODE_BITS | code);
        self.last.set(now);
        true
    }

    /// Stores that an instance is polled again; whether it could be kept.
    #[inline]
    fn push_poll(&self, instance: u64) -> bool {
        if !self.push(pack::POLL) {
            return self.push_two_cold(code::POLL, instance).is_some();
        }
        self.store(SECOND, instance | PAYLOAD);
        true
    }

    /// Stores an event of two words that happens now, the second a number below 2^63. Gives the ticks;
    /// `None` when it could not be kept.
    #[inline]
    fn push_two(&self, code: u64, payload: u64) -> Option<u64> {
        let now = clock::counter();
        let ticks = now.wrapping_sub(self.cold.base.get());
        if self.cursor.get() >= self.end.get() || self.limit.get() == 0 || ticks >= MAX_TICKS {
            return self.push_two_cold(code, payload);
        }
        self.store(WORD, ticks << CODE_BITS | code);
        self.store(SECOND, payload | PAYLOAD);
        self.last.set(now);
        Some(now)
    }

    #[cold]
    #[inline(never)]
    fn push_two_cold(&self, code: u64, payload: u64) -> Option<u64> {
        self.in_cold_path(|recorder| self.push_pair(recorder, code, payload))
    }

    /// Stores an event that happens now on whatever clock, making room as need be. Gives the ticks.
    #[cold]
    fn push_cold(&self, recorder: &'static Recorder, code: u64) -> Option<u64> {
        if self.cursor.get() >= self.end.get() && !self.begin_chunk(recorder) {
            return None;
        }
        let now = clock::ticks();
        if now.wrapping_sub(self.cold.base.get()) >= MAX_TICKS {
            // A long time passed, or the clock stepped back.
            self.store(WORD, code::REBASE);
            self.store(SECOND, now | PAYLOAD);
            self.cold.base.set(now);
            if self.cursor.get() >= self.end.get() && !self.begin_chunk(recorder) {
                return None;
            }
        }
        self.store(WORD, now.saturating_sub(self.cold.base.get()) << CODE_BITS | code);
        self.last.set(now);
        Some(now)
    }

    /// Stores a whole word. There must be room for it: the cursor was below the end before the event.
    #[inline]
    fn store(&self, before: u32, word: u64) {
        let cursor = self.cursor.get();
        // SAFETY: from below the end on there are `LAST_ITEMS` items in the chunk that this thread
        // owns, enough for the two words of an event; the mapping is never undone.
        unsafe {
            // What goes before is stored last: where it is, the halves are.
            (*cursor.add(1)).store(word as u32, Relaxed);
            (*cursor.add(2)).store((word >> 32) as u32, Relaxed);
            (*cursor).store(before, Release);
            self.cursor.set(cursor.add(WORD_ITEMS));
        }
    }

    /// A region was entered: gives the guard's token.
    #[inline(always)]
    fn deepen(&self) -> u64 {
        let token = self.token.get() + 1;
        self.token.set(token);
        token
    }

    /// Runs `work` with this process's recorder and the lane opened; `None` when there is no
    /// recorder, or when a cold path of this thread is what called us (an allocator with regions).
    fn in_cold_path<T>(&self, work: impl FnOnce(&'static Recorder) -> Option<T>) -> Option<T> {
        if self.cold.busy.replace(true) {
            return None;
        }
        let recorder = session::recorder();
        if let Some(recorder) = recorder {
            self.open(recorder);
        }
        let result = recorder.and_then(work);
        self.cold.busy.set(false);
        result
    }

    /// Opens the lane in `recorder` unless it is open there.
    fn open(&self, recorder: &'static Recorder) {
        let cold = &self.cold;
        let known = cold.recorder.get().is_some_and(|before| std::ptr::eq(before, recorder));
        if !known {
            cold.recorder.set(Some(recorder));
            cold.sink.set(Some(recorder.open_lane(&thread_name())));
            recorder.on_thread_end();
        }
    }

    /// Goes on in an empty chunk.
    fn begin_chunk(&self, recorder: &'static Recorder) -> bool {
        let cold = &self.cold;
        #[cfg(feature = "tracing")]
        self.spans.forget_newest_end();
        let sink = cold.sink.get().expect("an open lane has a sink");
        let Some(id) = recorder.next_chunk(sink, cold.chunk.take()) else {
            self.cursor.set(std::ptr::null());
            self.end.set(std::ptr::null());
            return false;
        };
        // A thread that has ended opens its lane again when a late destructor has a region.
        recorder.on_thread_end();
        let chunk = recorder.chunk(id);
        let (now, sequence) = (clock::ticks(), cold.next_sequence.get());
        cold.next_sequence.set(sequence + 1);
        chunk.begin(sink.lane, sequence, u64::from(self.frames()), now);
        self.cursor.set(&raw const chunk.items[0]);
        self.end.set(&raw const chunk.items[CHUNK_ITEMS - LAST_ITEMS]);
        cold.base.set(now);
        self.last.set(now);
        self.limit.set(if clock::is_counter() { MAX_DELTA } else { 0 });
        cold.chunk.set(Some(id));
        true
    }

    /// [`Lane::push_two`] on whatever clock, making room as need be.
    fn push_pair(&self, recorder: &'static Recorder, code: u64, payload: u64) -> Option<u64> {
        let ticks = self.push_cold(recorder, code);
        if ticks.is_some() {
            self.store(SECOND, payload | PAYLOAD);
        }
        ticks
    }

    /// Regions and polls that are open on the thread.
    fn frames(&self) -> u32 {
        self.below.get() + depth_of(self.token.get())
    }

    /// Where the next event goes.
    fn position(&self) -> u64 {
        let (Some(sink), false) = (self.cold.sink.get(), self.cursor.get().is_null()) else { return 0 };
        // No event before a position is taken away any more.
        #[cfg(feature = "tracing")]
        self.spans.forget_newest_end();
        let begin = self.end.get().addr() - (CHUNK_ITEMS - LAST_ITEMS) * size_of::<AtomicU32>();
        let items = (self.cursor.get().addr() - begin) / size_of::<AtomicU32>();
        // The number is that of the next chunk.
        let sequence = self.cold.next_sequence.get() - 1;
        position(sink.lane, sequence, items).unwrap_or(0)
    }

    /// Says where what is entered here was started, and gives what was said before.
    fn set_started_at(&self, position: u64) -> u64 {
        let _ = self.push_two(code::LINKED, position);
        self.started_at.replace(position)
    }

    /// Gives the chunk back and marks the end of the lane.
    fn end_thread(&self) {
        let cold = &self.cold;
        let Some(recorder) = cold.recorder.get() else { return };
        if cold.busy.replace(true) {
            return;
        }
        let _ = self.push_pair(recorder, code::LANE_END, os::thread_cpu_ns());
        if let Some(id) = cold.chunk.take() {
            recorder.release_chunk(id);
        }
        if !cold.ended.replace(true) {
            recorder.close_lane();
        }
        self.cursor.set(std::ptr::null());
        self.end.set(std::ptr::null());
        cold.epochs.take();
        cold.late.take();
        #[cfg(feature = "tracing")]
        self.spans.clear();
        cold.busy.set(false);
    }

    /// Forgets the recording of the process that this one was forked from: its guards close
    /// nothing here.
    fn forget(&self) {
        self.cursor.set(std::ptr::null());
        self.end.set(std::ptr::null());
        self.cold.recorder.set(None);
        self.cold.sink.set(None);
        self.cold.chunk.set(None);
        self.cold.next_sequence.set(0);
        self.cold.busy.set(false);
        self.cold.epochs.borrow_mut().clear();
        self.cold.late.borrow_mut().clear();
        self.cold.has_late.set(false);
        #[cfg(feature = "tracing")]
        self.spans.clear();
        self.below.set(0);
        self.started_at.set(0);
        self.context.set(0);
        self.begin_epoch(0);
    }
}

/// Says that the innermost call of the calling thread moved a message, without a look at the clock.
#[cfg(feature = "mpi")]
pub(crate) fn note_message(kind: MessageKind, word: u64) {
    with_lane(|lane| {
        let has_room = lane.cursor.get() < lane.end.get();
        if has_room || lane.in_cold_path(|recorder| lane.begin_chunk(recorder).then_some(())).is_some() {
            lane.store(pack::MESSAGE + ((kind as u32) << SHORT_BITS), word);
        }
    });
}

/// Says more of the innermost call of the calling thread, in an event of two words.
#[cfg(feature = "mpi")]
pub(crate) fn note(code: u64, payload: u64) {
    let _ = with_lane(|lane| lane.push_two(code, payload));
}

/// The position of the calling thread, if a region or a poll is open there, or where it was started;
/// else 0.
#[inline]
pub(crate) fn here() -> u64 {
    if STATE.load(Relaxed) != ON {
        return 0;
    }
    with_lane(|lane| if lane.frames() == 0 { lane.started_at.get() } else { lane.position() })
}

/// Runs `work` as started at a position.
pub(crate) fn started_at<T>(position: u64, work: impl FnOnce() -> T) -> T {
    if position == 0 || STATE.load(Relaxed) != ON {
        return work();
    }
    struct Back(u64);
    impl Drop for Back {
        fn drop(&mut self) {
            with_lane(|lane| lane.set_started_at(self.0));
        }
    }
    let _back = Back(with_lane(|lane| lane.set_started_at(position)));
    work()
}

/// Called by the system when a thread ends on which a lane was opened.
pub(crate) unsafe extern "C" fn on_thread_end(_: *mut libc::c_void) {
    with_lane(Lane::end_thread);
}

/// Has the calling thread, the only one of a forked child, begin afresh.
pub(crate) fn forget_parent() {
    with_lane(Lane::forget);
}

/// Records `work` as not to be recorded on this thread: what it calls takes no part.
pub(crate) fn unrecorded<T>(work: impl FnOnce() -> T) -> T {
    with_lane(|lane| {
        let before = lane.cold.busy.replace(true);
        let cursor = lane.cursor.replace(std::ptr::null());
        let end = lane.end.replace(std::ptr::null());
        let result = work();
        lane.cursor.set(cursor);
        lane.end.set(end);
        lane.cold.busy.set(before);
        result
    })
}

/// Runs `work` with the events of this thread going to `items`, and none of them recorded. They need
/// room for one item more.
pub(crate) fn with_items_in(items: &[AtomicU32], work: impl FnOnce()) {
    with_lane(|lane| {
        let [first, .., last] = items else { return };
        let busy = lane.cold.busy.replace(true);
        let (cursor, end) = (lane.cursor.replace(first), lane.end.replace(last));
        // Nobody reads the items, so that a pause between two of them is no matter.
        let (before, limit) = (lane.last.replace(clock::counter()), lane.limit.replace(u64::MAX));
        work();
        lane.cursor.set(cursor);
        lane.end.set(end);
        lane.last.set(before);
        lane.limit.set(limit);
        lane.cold.busy.set(busy);
    })
}

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}
