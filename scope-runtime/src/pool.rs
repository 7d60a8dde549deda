//! The chunks that threads write their newest events to, mapped from the recording's file.
//!
//! A chunk has one owner at a time (`hand_over.rs`). The states live outside the mapping; what
//! recovery needs is in the chunks themselves.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};
use std::sync::{Mutex, OnceLock};

use crate::format::{CHUNK_BYTES, CHUNK_ITEMS, CHUNK_PAYLOAD, Chunk, EVENTS_HEAD, MAX_SEGMENTS, PAGE, kind};
use crate::hand_over::{State, Turn};
use crate::os;
use crate::pack::{WORD_ITEMS, Word, Words};
use crate::replay::ChunkWords;
use crate::sink::{Sink, SinkState};
use crate::writer::Writer;

/// Chunks in the first segment, and how many a live thread may have on average: 1 MiB.
pub(crate) const CHUNKS_PER_THREAD: usize = 16;

struct Segment {
    chunks: &'static [Chunk],
    states: Box<[State]>,
    /// The sink of the lane that owns each chunk.
    sinks: Box<[AtomicPtr<Sink>]>,
}

/// A place in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkId {
    segment: u32,
    index: u32,
}

pub(crate) struct Pool {
    segments: Box<[OnceLock<Segment>]>,
    /// Entries of `segments` that were promised to somebody; some may not be there yet.
    promised: AtomicUsize,
    chunks: AtomicUsize,
    /// Chunks that wait to be written out.
    full: AtomicUsize,
    /// Held while the pool grows, so that many threads that start at once do not each add a segment.
    growing: Mutex<()>,
}

impl Pool {
    /// A pool with its first segment.
    pub(crate) fn new(writer: &Writer) -> io::Result<Pool> {
        let segments = (0..MAX_SEGMENTS).map(|_| OnceLock::new()).collect();
        let pool = Pool {
            segments,
            promised: AtomicUsize::new(0),
            chunks: AtomicUsize::new(0),
            full: AtomicUsize::new(0),
            growing: Mutex::new(()),
        };
        pool.grow(writer, CHUNKS_PER_THREAD)?;
        Ok(pool)
    }

    /// Number of chunks there are.
    pub(crate) fn len(&self) -> usize {
        self.chunks.load(Relaxed)
    }

    pub(crate) fn chunk(&self, id: ChunkId) -> &'static Chunk {
        &self.segment(id).chunks[id.index as usize]
    }

    fn segment(&self, id: ChunkId) -> &Segment {
        self.segments[id.segment as usize].get().expect("an id is made from a segment that is there")
    }

    /// The sink of the lane that the chunk belongs to. Only for who owns or claimed it.
    pub(crate) fn sink(&self, id: ChunkId) -> &'static Sink {
        let sink = self.segment(id).sinks[id.index as usize].load(Relaxed);
        // SAFETY: an owned chunk has a sink, set by `assign`; sinks live as long as the process.
        unsafe { sink.as_ref() }.expect("a chunk in use has a sink")
    }

    /// Says to which lane a chunk belongs; only for its owner.
    pub(crate) fn assign(&self, id: ChunkId, sink: &'static Sink) {
        self.segment(id).sinks[id.index as usize].store(std::ptr::from_ref(sink).cast_mut(), Relaxed);
    }

    fn state(&self, id: ChunkId) -> &State {
        &self.segment(id).states[id.index as usize]
    }

    /// Grows the pool by a quarter, at least by the share of one thread and at most by `most`
    /// chunks, and takes one of the new chunks. Where another thread grows it just now, that must do.
    pub(crate) fn take_grown(&self, writer: &Writer, most: usize) -> Option<ChunkId> {
        let _one_at_a_time = crate::lock(&self.growing);
        self.take_free().or_else(|| {
            let chunks = (self.len() / 4).max(CHUNKS_PER_THREAD).min(most);
            self.grow(writer, chunks).ok()?;
            self.take_free()
        })
    }

    /// Adds `chunks` chunks.
    ///
    /// # Errors
    /// When there is no room for them, on disk or in the header's list.
    fn grow(&self, writer: &Writer, chunks: usize) -> io::Result<()> {
        let slot = self.promised.fetch_add(1, Relaxed);
        if slot >= MAX_SEGMENTS {
            self.promised.store(MAX_SEGMENTS, Relaxed);
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let len = chunks * CHUNK_BYTES;
        let at = writer.allocate(len as u64, PAGE);
        let reserved = writer.file().with(|file| os::reserve(file, at, len as u64));
        reserved.inspect_err(|_| writer.free(at, len as u64))?;
        let address = os::map_shared(writer.file(), at, len)?;
        // SAFETY: `len` bytes are mapped there for good, zeroed by the reservation and page-aligned;
        // a chunk is made of atomics, for which any bytes are a value.
        let mapped = unsafe { std::slice::from_raw_parts(address.cast::<Chunk>(), chunks) };
        let entry = &writer.header().segments[slot];
        entry[0].store(at, Relaxed);
        entry[1].store(chunks as u64, Relaxed);
        writer.header().segment_count.fetch_max(slot as u32 + 1, Release);
        let states = (0..chunks).map(|_| State::free()).collect();
        let sinks = (0..chunks).map(|_| AtomicPtr::default()).collect();
        assert!(
            self.segments[slot].set(Segment { chunks: mapped, states, sinks }).is_ok(),
            "a slot is promised once"
        );
        self.chunks.fetch_add(chunks, Relaxed);
        Ok(())
    }

    fn ids(&self) -> impl Iterator<Item = ChunkId> + '_ {
        let present = self.segments.iter().enumerate().take(self.promised.load(Acquire).min(MAX_SEGMENTS));
        present.filter_map(|(number, slot)| Some((number, slot.get()?))).flat_map(|(number, segment)| {
            (0..segment.states.len())
                .map(move |index| ChunkId { segment: number as u32, index: index as u32 })
        })
    }

    /// Makes a free chunk the caller's.
    pub(crate) fn take_free(&self) -> Option<ChunkId> {
        self.ids().find(|&id| self.state(id).take_free())
    }

    /// Takes a full chunk whose turn it is, gives it to `work` with its sink held, and makes it the
    /// caller's. `work` must leave it cleared.
    pub(crate) fn take_full(
        &self,
        mut work: impl FnMut(ChunkId, &mut Turn<'_, SinkState>),
    ) -> Option<ChunkId> {
        self.ids().find(|&id| {
            let taken = self.state(id).take_full(|| {
                let turn = self.sink(id).try_turn(self.chunk(id));
                turn.map(|mut state| work(id, &mut state)).is_some()
            });
            if taken {
                self.full.fetch_sub(1, Relaxed);
            }
            taken
        })
    }

    /// Whether a chunk waits to be emptied, or somebody is about it.
    pub(crate) fn has_full(&self) -> bool {
        self.ids().any(|id| self.state(id).is_full())
    }

    /// Whether each chunk is in use by a thread, so that waiting for one makes no sense.
    pub(crate) fn all_owned(&self) -> bool {
        self.ids().all(|id| self.state(id).is_owned())
    }

    /// The owner hands its chunk over to be written out. Says whether a quarter of all chunks wait
    /// by now: to be told of each one would cost more than to write it out.
    pub(crate) fn hand_over(&self, id: ChunkId) -> bool {
        let full = self.full.fetch_add(1, Relaxed) + 1;
        self.state(id).hand_over();
        full >= self.len() / 4
    }

    /// Makes a cleared chunk of the caller's free.
    pub(crate) fn give_back(&self, id: ChunkId) {
        self.state(id).give_back();
    }
}

impl Chunk {
    /// Begins a chunk; only for its owner, on a cleared one.
    pub(crate) fn begin(&self, lane: u32, sequence: u64, depth: u64, base: u64) {
        self.sequence.store(sequence, Relaxed);
        self.depth.store(depth, Relaxed);
        self.base.store(base, Relaxed);
        self.owner.store(lane + 1, Release);
    }

    /// Appends the events to the file as a block, just as they lie here; only for who owns or claimed
    /// the chunk. Gives the size of the payload.
    pub(crate) fn write_out(&self, writer: &Writer) -> io::Result<u64> {
        let filled = self.filled();
        if filled == 0 {
            return Ok(0);
        }
        let len = EVENTS_HEAD + size_of_val(&self.items[..filled]);
        let start = std::ptr::from_ref(self).cast::<u8>();
        // SAFETY: the bytes lie inside the chunk, all of them are initialised, and nobody writes to
        // them now: the caller owns it.
        let payload = unsafe { std::slice::from_raw_parts(start.add(CHUNK_PAYLOAD), len) };
        let (lane, sequence) = (self.owner.load(Relaxed) - 1, self.sequence.load(Relaxed));
        writer.append(kind::EVENTS, lane, sequence, &[payload])?;
        Ok(len as u64)
    }

    /// The number of items up to the last one that is not 0; a last word may end in a half that is.
    fn filled(&self) -> usize {
        let last = self.items.iter().rposition(|item| item.load(Relaxed) != 0);
        last.map_or(0, |last| (last + WORD_ITEMS).min(CHUNK_ITEMS))
    }

    /// The events; only for who owns or claimed the chunk.
    pub(crate) fn words(&self) -> ChunkWords<impl Iterator<Item = Word> + '_> {
        let (sequence, depth) = (self.sequence.load(Relaxed), self.depth.load(Relaxed));
        let words = Words::of(self.items.iter().map(|item| item.load(Relaxed)));
        ChunkWords { sequence, depth, base: self.base.load(Relaxed), words }
    }

    /// Empties the chunk; only for who owns or claimed it. The items go first: while the head is
    /// there they are still those of the block that was written.
    pub(crate) fn clear(&self) {
        let items = self.items.as_ptr().cast_mut();
        // SAFETY: the items lie inside the chunk, zeros are a value of atomics, which may be written
        // to through a shared reference, and nobody else accesses them now: the caller owns them.
        unsafe { items.write_bytes(0, self.filled()) };
        self.owner.store(0, Release);
    }
}
