//! The hot path: entering and leaving regions on the calling thread.
//!
//! Each thread has a cursor into a chunk that it alone writes to. Entering reads the clock and
//! stores one word, leaving does the same; whatever does not fit that (the first region of a
//! thread, a full chunk, a guard that is not the innermost) takes a cold path.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::Release};

use crate::clock;
use crate::format::{CHUNK_WORDS, CODE_BITS, MAX_TICKS, PAYLOAD, code};
use crate::os;
use crate::pool::ChunkId;
use crate::recorder::Recorder;
use crate::region::{self, Site};
use crate::session;
use crate::sink::Sink;

/// Whether regions are recorded; read first on every entry.
pub(crate) static STATE: AtomicU8 = AtomicU8::new(STARTING);
/// Regions are not recorded.
pub(crate) const OFF: u8 = 0;
/// Nothing was decided yet: the first region asks the environment.
pub(crate) const STARTING: u8 = 1;
/// Regions are recorded.
pub(crate) const ON: u8 = 2;

/// What a thread knows about its own recording. No destructor, so that access is a plain load
/// and stays possible while the thread's other locals are destroyed.
struct Lane {
    /// Next word to write; equal to `end` when there is no room or no chunk.
    cursor: Cell<*const AtomicU64>,
    /// The last word of the chunk: always left for the second word of a two-word event.
    end: Cell<*const AtomicU64>,
    /// Ticks that words are relative to.
    base: Cell<u64>,
    /// Ticks since the base from here on take the cold path: [`MAX_TICKS`], or 0 where the clock is
    /// not the processor's counter.
    limit: Cell<u64>,
    /// Upper half: epoch; lower half: number of open regions.
    token: Cell<u64>,
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
    next_sequence: Cell<u64>,
    /// Which guards of earlier epochs still count; emptied by hand when the thread ends.
    epochs: ManuallyDrop<RefCell<Vec<Epoch>>>,
}

thread_local! {
    static LANE: Lane = const {
        Lane {
            cursor: Cell::new(std::ptr::null()),
            end: Cell::new(std::ptr::null()),
            base: Cell::new(0),
            limit: Cell::new(0),
            token: Cell::new(0),
            cold: ColdLane {
                busy: Cell::new(false),
                recorder: Cell::new(None),
                sink: Cell::new(None),
                ended: Cell::new(false),
                chunk: Cell::new(None),
                next_sequence: Cell::new(0),
                epochs: ManuallyDrop::new(RefCell::new(Vec::new())),
            },
        }
    };
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
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        if self.token != 0 {
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
    if STATE.load(Relaxed) == OFF {
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
    if STATE.load(Relaxed) == OFF {
        return Guard::new(0);
    }
    LANE.with(|lane| {
        let code = site.code();
        if code != 0 && lane.push(code) {
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
    LANE.with(|lane| {
        let token = lane.in_cold_path(|recorder| {
            let code = code_of_region();
            lane.push_cold(recorder, code).then(|| lane.deepen())
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
    LANE.with(|lane| {
        if lane.token.get() != token || !lane.push(code::LEAVE) {
            return leave_cold(token);
        }
        lane.token.set(token - 1);
    });
}

#[cold]
#[inline(never)]
fn leave_cold(token: u64) {
    LANE.with(|lane| {
        lane.in_cold_path(|recorder| {
            let depth = depth_of(token);
            if !lane.is_open(token) {
                return None;
            }
            if depth == depth_of(lane.token.get()) {
                if lane.push_cold(recorder, code::LEAVE) {
                    lane.token.set(lane.token.get() - 1);
                }
            } else {
                lane.push_pair(recorder, code::CLOSE_TO, u64::from(depth - 1));
                lane.begin_epoch(depth - 1);
            }
            Some(token)
        });
    });
}

fn depth_of(token: u64) -> u32 {
    token as u32
}

fn epoch_of(token: u64) -> u32 {
    (token >> 32) as u32
}

/// Since when guards above `floor` are of another epoch.
///
/// When a guard that is not the innermost is dropped, the guards inside it have lost their
/// regions but still exist. A new epoch begins, so that their tokens equal none given out later.
#[derive(Clone, Copy)]
struct Epoch {
    number: u32,
    floor: u32,
}

impl Lane {
    /// Stores an event that happens now, if there is room and the clock is the counter.
    #[inline(always)]
    fn push(&self, code: u64) -> bool {
        let cursor = self.cursor.get();
        if cursor == self.end.get() {
            return false;
        }
        let ticks = clock::counter().wrapping_sub(self.base.get());
        if ticks >= self.limit.get() {
            return false;
        }
        self.store(ticks << CODE_BITS | code);
        true
    }

    /// Stores an event that happens now on whatever clock, making room as need be.
    #[cold]
    fn push_cold(&self, recorder: &'static Recorder, code: u64) -> bool {
        if self.cursor.get() == self.end.get() && !self.begin_chunk(recorder) {
            return false;
        }
        let now = clock::ticks();
        if now.wrapping_sub(self.base.get()) >= MAX_TICKS {
            // A long time passed, or the clock stepped back.
            self.store(code::REBASE);
            self.store_payload(now);
            self.base.set(now);
            if self.cursor.get() == self.end.get() && !self.begin_chunk(recorder) {
                return false;
            }
        }
        self.store(now.saturating_sub(self.base.get()) << CODE_BITS | code);
        true
    }

    /// Stores a word. There must be room: the cursor is not at the end.
    #[inline(always)]
    fn store(&self, word: u64) {
        let cursor = self.cursor.get();
        debug_assert!(cursor != self.end.get());
        // SAFETY: as the cursor is not at the end, it points to a word of the chunk that this thread
        // owns; the mapping is never undone.
        unsafe {
            (*cursor).store(word, Release);
            self.cursor.set(cursor.add(1));
        }
    }

    /// Stores the second word of an event, a number below 2^63.
    fn store_payload(&self, payload: u64) {
        let cursor = self.cursor.get();
        // SAFETY: the first word lay before `end`, so this one is in the chunk: `end` is its last.
        unsafe {
            (*cursor).store(payload | PAYLOAD, Release);
            // The last word of the chunk may be used up; the cursor then stays at the end.
            self.cursor.set(if cursor == self.end.get() { cursor } else { cursor.add(1) });
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
    fn in_cold_path(&self, work: impl FnOnce(&'static Recorder) -> Option<u64>) -> Option<u64> {
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
        chunk.begin(sink.lane, sequence, u64::from(depth_of(self.token.get())), now);
        self.cursor.set(&raw const chunk.words[0]);
        self.end.set(&raw const chunk.words[CHUNK_WORDS - 1]);
        self.base.set(now);
        self.limit.set(if clock::is_counter() { MAX_TICKS } else { 0 });
        cold.chunk.set(Some(id));
        true
    }

    /// Stores an event of two words, the first with the time, the second a number below 2^63.
    fn push_pair(&self, recorder: &'static Recorder, code: u64, payload: u64) {
        if self.push_cold(recorder, code) {
            self.store_payload(payload);
        }
    }

    /// Whether the guard with this token still has its region.
    fn is_open(&self, token: u64) -> bool {
        let epochs = self.cold.epochs.borrow();
        let later = epochs.iter().find(|epoch| epoch.number > epoch_of(token));
        let floor = later.map_or(u32::MAX, |epoch| epoch.floor);
        depth_of(token) <= floor.min(depth_of(self.token.get()))
    }

    /// Begins an epoch with `depth` open regions.
    fn begin_epoch(&self, depth: u32) {
        let number = epoch_of(self.token.get()).wrapping_add(1);
        let mut epochs = self.cold.epochs.borrow_mut();
        // A lower floor says all that a higher one said.
        let higher = epochs.iter().position(|epoch| epoch.floor >= depth).unwrap_or(epochs.len());
        epochs.truncate(higher);
        epochs.push(Epoch { number, floor: depth });
        self.token.set(u64::from(number) << 32 | u64::from(depth));
    }

    /// Gives the chunk back and marks the end of the lane.
    fn end_thread(&self) {
        let cold = &self.cold;
        let Some(recorder) = cold.recorder.get() else { return };
        if cold.busy.replace(true) {
            return;
        }
        self.push_pair(recorder, code::LANE_END, os::thread_cpu_ns());
        if let Some(id) = cold.chunk.take() {
            recorder.release_chunk(id);
        }
        if !cold.ended.replace(true) {
            recorder.close_lane();
        }
        self.cursor.set(std::ptr::null());
        self.end.set(std::ptr::null());
        cold.epochs.take();
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
        self.begin_epoch(0);
    }
}

/// Called by the system when a thread ends on which a lane was opened.
pub(crate) unsafe extern "C" fn on_thread_end(_: *mut libc::c_void) {
    LANE.with(Lane::end_thread);
}

/// Has the calling thread, the only one of a forked child, begin afresh.
pub(crate) fn forget_parent() {
    LANE.with(Lane::forget);
}

/// Records `work` as not to be recorded on this thread: what it calls takes no part.
pub(crate) fn unrecorded<T>(work: impl FnOnce() -> T) -> T {
    LANE.with(|lane| {
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

/// Runs `work` with the events of this thread going to `words`, and none of them recorded. They need
/// room for one word more.
pub(crate) fn with_words_in(words: &[AtomicU64], work: impl FnOnce()) {
    LANE.with(|lane| {
        let [first, .., last] = words else { return };
        let busy = lane.cold.busy.replace(true);
        let (cursor, end) = (lane.cursor.replace(first), lane.end.replace(last));
        let (base, limit) = (lane.base.replace(clock::counter()), lane.limit.replace(MAX_TICKS));
        work();
        lane.cursor.set(cursor);
        lane.end.set(end);
        lane.base.set(base);
        lane.limit.set(limit);
        lane.cold.busy.set(busy);
    })
}

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}
