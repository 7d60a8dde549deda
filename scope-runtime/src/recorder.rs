//! The recorder of a process: one recording, its pool of chunks, and the thread that drains it.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clock::{self, ClockPair};
use crate::environment::Place;
use crate::format::{Chunk, Fields, kind};
use crate::lane;
use crate::os::{self, ThreadEnd};
use crate::pool::{CHUNKS_PER_THREAD, ChunkId, Pool};
use crate::writer::Writer;

/// Time between two signs of life.
const BEAT: Duration = Duration::from_millis(100);

pub(crate) struct Recorder {
    writer: Writer,
    pool: Pool,
    thread_end: ThreadEnd,
    lanes: AtomicU32,
    live_lanes: AtomicUsize,
    /// Held while full chunks are written out, so that finalize knows when none is half done.
    /// Room for the packed words of a chunk.
    draining: Mutex<Vec<u32>>,
    drainer: OnceLock<Thread>,
    /// Set by the first failure to write, which is reported; the others are only counted.
    failed: AtomicBool,
}

impl Recorder {
    /// Creates the recording in `folder` and starts the thread that drains it.
    ///
    /// # Errors
    /// When the file cannot be made; nothing is left behind then.
    pub(crate) fn start(folder: &Path, place: Place) -> io::Result<&'static Recorder> {
        let clock = clock::detect();
        let writer = Writer::create(folder, place, clock)?;
        let pool = Pool::new(&writer).inspect_err(|_| {
            let _ = std::fs::remove_file(writer.path());
        })?;
        let recorder = Recorder {
            writer,
            pool,
            thread_end: ThreadEnd::new(lane::on_thread_end)?,
            lanes: AtomicU32::new(0),
            live_lanes: AtomicUsize::new(0),
            draining: Mutex::new(Vec::new()),
            drainer: OnceLock::new(),
            failed: AtomicBool::new(false),
        };
        recorder.write_start();
        // Threads keep using it until they end, and nobody can know when the last one has.
        let recorder: &'static Recorder = Box::leak(Box::new(recorder));
        let spawned = os::with_signals_blocked(|| {
            std::thread::Builder::new().name("scope-drain".into()).spawn(|| recorder.drain_for_ever())
        });
        // Without the thread every lane writes out its own full chunks: slower, but complete.
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
        self.append(kind::INFO, 0, 0, &[&fields.0]);
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Appends a block; the first failure is reported on stderr.
    pub(crate) fn append(&self, kind: u32, subject: u32, sequence: u64, parts: &[&[u8]]) {
        if let Err(error) = self.writer.append(kind, subject, sequence, parts) {
            self.report(&error);
        }
    }

    fn report(&self, error: &io::Error) {
        if !self.failed.swap(true, Relaxed) {
            let path = self.writer.path().display();
            crate::report(format_args!(
                "failed to write `{path}`: {error}; calls from here on may be missing"
            ));
        }
    }

    /// Begins a lane for the calling thread and gives its number.
    pub(crate) fn open_lane(&self, thread_name: &str) -> u32 {
        let number = self.lanes.fetch_add(1, Relaxed);
        self.live_lanes.fetch_add(1, Relaxed);
        let fields = Fields::default().u64(clock::ticks()).u64(os::thread_id()).text(thread_name);
        self.append(kind::LANE, number, 0, &[&fields.0]);
        number
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
    /// The thread does not wait for the drainer: where no chunk is free it writes one out itself.
    /// `None` when it had none and there is no room for a new one.
    pub(crate) fn next_chunk(&self, full: Option<ChunkId>) -> Option<ChunkId> {
        let share = CHUNKS_PER_THREAD * self.live_lanes.load(Relaxed);
        let next = self.pool.take_free().or_else(|| {
            let room = share.saturating_sub(self.pool.len());
            (room >= CHUNKS_PER_THREAD).then(|| self.pool.take_grown(&self.writer, room))?
        });
        match (next.or_else(|| self.empty_a_full_one()), full) {
            (Some(next), Some(full)) => {
                self.pool.hand_over(full);
                self.wake_drainer();
                Some(next)
            }
            (Some(next), None) => Some(next),
            (None, Some(full)) => {
                self.empty(full, &mut Vec::new());
                Some(full)
            }
            (None, None) => self.pool.take_grown(&self.writer, usize::MAX),
        }
    }

    fn empty_a_full_one(&self) -> Option<ChunkId> {
        let id = self.pool.take_full()?;
        self.empty(id, &mut Vec::new());
        self.pool.keep(id);
        Some(id)
    }

    /// Takes back the chunk of a lane that ends.
    pub(crate) fn release_chunk(&self, id: ChunkId) {
        self.live_lanes.fetch_sub(1, Relaxed);
        self.pool.hand_over(id);
        self.wake_drainer();
    }

    /// Writes the events of a chunk to the file and clears it. The caller owns or claimed it.
    fn empty(&self, id: ChunkId, items: &mut Vec<u32>) {
        let chunk = self.pool.chunk(id);
        if let Err(error) = chunk.write_out(&self.writer, items) {
            self.writer.add_lost(chunk.count_calls());
            self.report(&error);
        }
        chunk.clear();
    }

    /// Writes out all chunks that are full.
    pub(crate) fn drain(&self) {
        let mut items = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(id) = self.pool.take_full() {
            self.empty(id, &mut items);
            self.pool.give_back(id);
        }
    }

    pub(crate) fn wake_drainer(&self) {
        if let Some(thread) = self.drainer.get() {
            thread.unpark();
        }
    }

    fn drain_for_ever(&self) {
        lane::unrecorded(|| {
            loop {
                self.drain();
                if lane::STATE.load(Relaxed) == lane::ON {
                    self.writer.beat(ClockPair::now());
                    std::thread::park_timeout(BEAT);
                } else {
                    // Somebody who resumes wakes us; chunks of ending threads do too.
                    std::thread::park();
                }
            }
        })
    }
}
