//! The recorder of a process: one recording, its pool of chunks, and the thread that drains it.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::clock::{self, ClockPair};
use crate::cost;
#[cfg(feature = "mpi")]
use crate::environment::Place;
use crate::environment::Settings;
use crate::format::{BlockHead, Chunk, Fields, kind};
use crate::hand_over::Turn;
use crate::lane;
use crate::lock;
use crate::os::{self, ThreadEnd};
use crate::pool::{CHUNKS_PER_THREAD, ChunkId, Pool};
use crate::replay::SessionEdge;
use crate::sink::{Sink, SinkState};
use crate::writer::Writer;

/// Time between two signs of life.
const BEAT: Duration = Duration::from_millis(100);
/// Signs of life between two copies of the totals in the file.
const BEATS_PER_TOTALS: u32 = 10;
/// A copy is made at most every so many times as long as one takes: those of very many threads are large.
const TOTALS_REST: u32 = 20;
/// Room for totals that is reserved from the start, for the case that the disk is full later.
const TOTALS_RESERVE: usize = 256 * 1024;

pub(crate) struct Recorder {
    writer: Writer,
    pool: Pool,
    settings: Settings,
    thread_end: ThreadEnd,
    /// One per lane; the index is the lane's number.
    sinks: Mutex<Vec<&'static Sink>>,
    live_lanes: AtomicUsize,
    /// Ends and begins of sessions so far.
    edges: Mutex<Vec<SessionEdge>>,
    /// Blocks that could not be appended, one after the other.
    not_appended: Mutex<Vec<u8>>,
    event_bytes: AtomicU64,
    totals_written: AtomicU64,
    /// Held while full chunks are emptied to make room.
    draining: Mutex<()>,
    /// Whether somebody waits for that to end, to settle.
    settling: AtomicBool,
    drainer: OnceLock<Thread>,
    /// Whether the process ends, and no sign of life is to make what is open last longer.
    exiting: AtomicBool,
    /// Set by the first failure to write, which is reported; the others are only counted.
    failed: AtomicBool,
}

impl Recorder {
    /// Creates the recording in `folder` and starts the thread that drains it.
    ///
    /// # Errors
    /// When the file cannot be made; nothing is left behind then.
    pub(crate) fn start(folder: &Path, settings: Settings) -> io::Result<&'static Recorder> {
        let clock = clock::detect();
        let thread_end = ThreadEnd::new(lane::on_thread_end)?;
        let writer = Writer::create(folder, settings.place, clock)?;
        let made = writer.prepare_totals(TOTALS_RESERVE).and_then(|()| Pool::new(&writer));
        let pool = made.inspect_err(|_| {
            let _ = std::fs::remove_file(writer.path());
        })?;
        let recorder = Recorder {
            writer,
            pool,
            settings,
            thread_end,
            sinks: Mutex::default(),
            live_lanes: AtomicUsize::new(0),
            edges: Mutex::default(),
            not_appended: Mutex::default(),
            event_bytes: AtomicU64::new(0),
            totals_written: AtomicU64::new(0),
            draining: Mutex::default(),
            settling: AtomicBool::new(false),
            drainer: OnceLock::new(),
            exiting: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        };
        recorder.write_start();
        // Threads keep using it until they end, and nobody can know when the last one has.
        let recorder: &'static Recorder = Box::leak(Box::new(recorder));
        let spawned = os::with_signals_blocked(|| {
            std::thread::Builder::new().name("scope-drain".into()).spawn(|| recorder.drain_for_ever())
        });
        // Without the thread every lane empties its own full chunks: slower, but complete.
        if let Ok(handle) = spawned {
            let _ = recorder.drainer.set(handle.thread().clone());
        }
        Ok(recorder)
    }

    fn write_start(&self) {
        let header = self.writer.header();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        header.wall_start_ns.store(since_epoch.as_nanos() as u64, Relaxed);
        let first = ClockPair::now();
        header.first_pair[0].store(first.ticks, Relaxed);
        header.first_pair[1].store(first.ns.cast_unsigned(), Relaxed);
        let args: Vec<_> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let fields = Fields::default().text(env!("CARGO_PKG_VERSION")).u32(args.len() as u32);
        let fields = args.iter().fold(fields, |fields, arg| fields.text(arg));
        let fields = fields.text(&os::host_name());
        self.append(kind::INFO, 0, &fields.0);
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Appends a block that tells of something rare: a region, a lane, the end of a session. What
    /// cannot be appended goes with the totals, for which there is room.
    pub(crate) fn append(&self, kind: u32, subject: u32, payload: &[u8]) {
        if let Err(error) = self.writer.append(kind, subject, 0, &[payload]) {
            self.report(&error);
            let head = BlockHead::of(kind, subject, 0, &[payload]);
            lock(&self.not_appended).extend([&head.to_bytes(), payload].concat());
        }
    }

    fn report(&self, error: &io::Error) {
        if !self.failed.swap(true, Relaxed) {
            let path = self.writer.path().display();
            crate::report(format_args!(
                "failed to write `{path}`: {error}; from here on totals only are kept"
            ));
        }
    }

    /// Begins a lane for the calling thread.
    pub(crate) fn open_lane(&self, thread_name: &str) -> &'static Sink {
        let sink = {
            let mut sinks = lock(&self.sinks);
            let sink: &'static Sink = Box::leak(Box::new(Sink::new(sinks.len() as u32)));
            sinks.push(sink);
            sink
        };
        self.live_lanes.fetch_add(1, Relaxed);
        let fields = Fields::default().u64(clock::ticks()).u64(os::thread_id()).text(thread_name);
        self.append(kind::LANE, sink.lane, &fields.0);
        sink
    }

    /// Has the calling thread's lane ended with the thread.
    pub(crate) fn on_thread_end(&self) {
        self.thread_end.arm();
    }

    pub(crate) fn chunk(&self, id: ChunkId) -> &'static Chunk {
        self.pool.chunk(id)
    }

    /// An empty chunk for a lane whose chunk `full`, if it had one, has no more room.
    ///
    /// The thread does not wait for the drainer: where no chunk is free it empties one itself. Only
    /// where each chunk that could be emptied is in the hands of another thread just now, it lets that
    /// one go first: more chunks would only be filled as well. `None` when it had none, there is no
    /// room for a new one, and all are in use by threads.
    pub(crate) fn next_chunk(&self, sink: &'static Sink, full: Option<ChunkId>) -> Option<ChunkId> {
        // Adding up is quick, and spread over the threads that way.
        if let Some(full) = full.filter(|&full| sink.is_folding() && self.empty_own(full)) {
            return Some(full);
        }
        loop {
            let next = self.pool.take_free().or_else(|| self.grow_within_share());
            let next = next.or_else(|| self.pool.take_full(|id, state| self.empty(id, state)));
            if let Some(next) = next {
                if let Some(full) = full {
                    self.hand_over(full);
                }
                self.pool.assign(next, sink);
                return Some(next);
            }
            match full {
                Some(full) if self.empty_own(full) => return Some(full),
                None if self.pool.all_owned() => return None,
                _ => std::thread::yield_now(),
            }
        }
    }

    /// Leaves a full chunk to the drainer, which looks for such every now and then; woken when there
    /// are many.
    fn hand_over(&self, full: ChunkId) {
        if self.pool.hand_over(full) {
            self.wake_drainer();
        }
    }

    /// A new chunk, where the live threads do not have their share of chunks yet.
    fn grow_within_share(&self) -> Option<ChunkId> {
        let share = CHUNKS_PER_THREAD * self.live_lanes.load(Relaxed);
        let room = share.saturating_sub(self.pool.len());
        (room >= CHUNKS_PER_THREAD).then(|| self.pool.take_grown(&self.writer, room))?
    }

    /// Empties a chunk of the caller's, unless an earlier one of the lane is still at work.
    fn empty_own(&self, id: ChunkId) -> bool {
        let turn = self.pool.sink(id).try_turn(self.pool.chunk(id));
        turn.map(|mut state| self.empty(id, &mut state)).is_some()
    }

    /// Where the process stands in its job, as its launcher said.
    #[cfg(feature = "mpi")]
    pub(crate) fn place(&self) -> Place {
        self.settings.place
    }

    /// Takes back the chunk of a lane that ends.
    pub(crate) fn release_chunk(&self, id: ChunkId) {
        self.pool.hand_over(id);
        self.wake_drainer();
    }

    /// Counts a lane whose thread ends.
    pub(crate) fn close_lane(&self) {
        self.live_lanes.fetch_sub(1, Relaxed);
    }

    /// Puts the events of a chunk where they belong and clears it. The caller owns or claimed it, and
    /// it is its turn.
    fn empty(&self, id: ChunkId, state: &mut Turn<'_, SinkState>) {
        let (chunk, sink) = (self.pool.chunk(id), self.pool.sink(id));
        let write = || {
            let within = self.event_bytes.load(Relaxed) < self.settings.event_limit;
            within
                && match chunk.write_out(&self.writer) {
                    Ok(size) => {
                        self.event_bytes.fetch_add(size, Relaxed);
                        true
                    }
                    Err(error) => {
                        self.report(&error);
                        false
                    }
                }
        };
        let folded = sink.put(state, chunk, &self.edges, write);
        self.writer.add_folded(folded);
        chunk.clear();
    }

    /// Empties the chunks that are full, but no more than there are now: other threads may fill them as
    /// fast. What is left over stays in the pool and is not lost. The caller holds `draining`.
    fn drain(&self) {
        let mut left = self.pool.len();
        // A chunk whose turn it is not waits for one that another thread empties just now.
        for _ in 0..1_000 {
            while left > 0
                && !self.settling.load(Relaxed)
                && let Some(id) = self.pool.take_full(|id, state| self.empty(id, state))
            {
                self.pool.give_back(id);
                left -= 1;
            }
            if left == 0 || self.settling.load(Relaxed) || !self.pool.has_full() {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Empties what is full by now and copies the totals that come of it into the file.
    pub(crate) fn settle(&self) {
        // The drainer makes way, and has no chunk half done then.
        self.settling.store(true, Relaxed);
        let _one_at_a_time = lock(&self.draining);
        self.settling.store(false, Relaxed);
        self.drain();
        self.write_totals();
    }

    /// Notes that a session ends now, or that a later one begins.
    pub(crate) fn add_edge(&self, begins: bool) {
        let edge = SessionEdge { ticks: clock::ticks(), begins };
        let kind = if begins { kind::SESSION_BEGIN } else { kind::SESSION_END };
        self.append(kind, 0, &Fields::default().u64(edge.ticks).0);
        lock(&self.edges).push(edge);
        for sink in lock(&self.sinks).iter().filter(|sink| sink.is_folding()) {
            if let Some(fold) = sink.lock().fold() {
                fold.add_edge(edge);
            }
        }
    }

    /// Copies the totals that are kept in place of events into the file.
    fn write_totals(&self) {
        // First, so that of two that do so the later one has the newer totals.
        let not_appended = lock(&self.not_appended);
        let mut count = 0;
        let mut payload = Fields::default();
        for sink in lock(&self.sinks).iter().filter(|sink| sink.is_folding()) {
            if let Some(fold) = sink.lock().fold() {
                count += 1;
                let fold = fold.to_fields();
                payload = payload.u32(sink.lane).u32(fold.0.len() as u32);
                payload.0.extend(fold.0);
            }
        }
        if count == 0 && not_appended.is_empty() {
            return;
        }
        let number = self.totals_written.fetch_add(1, Relaxed) + 1;
        let head = Fields::default().u32(count).0;
        if let Err(error) =
            self.writer.write_totals(number, &[head.as_slice(), &payload.0, &not_appended].concat())
        {
            self.report(&error);
        }
    }

    /// The process is about to end.
    pub(crate) fn stop_beats(&self) {
        self.exiting.store(true, Relaxed);
    }

    pub(crate) fn wake_drainer(&self) {
        if let Some(thread) = self.drainer.get() {
            thread.unpark();
        }
    }

    fn drain_for_ever(&self) {
        os::signals_stay_blocked();
        lane::unrecorded(|| {
            self.writer.set_region_cost(cost::region_ps());
            let (mut beats, mut next_totals) = (0_u32, Instant::now());
            loop {
                if !self.settling.load(Relaxed) {
                    let _one_at_a_time = lock(&self.draining);
                    self.drain();
                }
                if lane::STATE.load(Relaxed) == lane::ON {
                    if !self.exiting.load(Relaxed) {
                        self.writer.beat(ClockPair::now());
                    }
                    beats = beats.wrapping_add(1);
                    let begin = Instant::now();
                    if beats.is_multiple_of(BEATS_PER_TOTALS) && begin >= next_totals {
                        self.write_totals();
                        next_totals = Instant::now() + begin.elapsed() * TOTALS_REST;
                    }
                    std::thread::park_timeout(BEAT);
                } else {
                    self.write_totals();
                    // Somebody who resumes wakes us; chunks of ending threads do too.
                    std::thread::park();
                }
            }
        })
    }
}
