//! The chunks that threads write their newest events to, mapped from the recording's file.
//!
//! A chunk has one owner at a time: free -> owned by a thread -> full -> claimed by whoever
//! writes it out -> free. The states live outside the mapping; what recovery needs is in the
//! chunks themselves.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicUsize};

use crate::format::{CHUNK_BYTES, CHUNK_PAYLOAD, CHUNK_WORDS, Chunk, EVENTS_HEAD, MAX_SEGMENTS, PAGE, kind};
use crate::os;
use crate::writer::Writer;

/// Chunks in the first segment, and how many a live thread may have on average: 1 MiB.
pub(crate) const CHUNKS_PER_THREAD: usize = 16;

const FREE: u8 = 0;
const OWNED: u8 = 1;
const FULL: u8 = 2;
const CLAIMED: u8 = 3;

struct Segment {
    chunks: &'static [Chunk],
    states: Box<[AtomicU8]>,
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
}

impl Pool {
    /// A pool with its first segment.
    pub(crate) fn new(writer: &Writer) -> io::Result<Pool> {
        let segments = (0..MAX_SEGMENTS).map(|_| OnceLock::new()).collect();
        let pool = Pool { segments, promised: AtomicUsize::new(0), chunks: AtomicUsize::new(0) };
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

    fn state(&self, id: ChunkId) -> &AtomicU8 {
        &self.segment(id).states[id.index as usize]
    }

    /// Adds `chunks` chunks. Any number of threads may do so at once.
    ///
    /// # Errors
    /// When there is no room for them, on disk or in the header's list.
    pub(crate) fn grow(&self, writer: &Writer, chunks: usize) -> io::Result<()> {
        let slot = self.promised.fetch_add(1, Relaxed);
        if slot >= MAX_SEGMENTS {
            self.promised.store(MAX_SEGMENTS, Relaxed);
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let len = chunks * CHUNK_BYTES;
        let at = writer.allocate(len as u64, PAGE);
        os::reserve(writer.file(), at, len as u64)?;
        let address = os::map_shared(writer.file(), at, len)?;
        // SAFETY: `len` bytes are mapped there for good, zeroed by the reservation and page-aligned;
        // a chunk is made of atomics, for which any bytes are a value.
        let mapped = unsafe { std::slice::from_raw_parts(address.cast::<Chunk>(), chunks) };
        let entry = &writer.header().segments[slot];
        entry[0].store(at, Relaxed);
        entry[1].store(chunks as u64, Relaxed);
        writer.header().segment_count.fetch_max(slot as u32 + 1, Release);
        let states = (0..chunks).map(|_| AtomicU8::new(FREE)).collect();
        assert!(
            self.segments[slot].set(Segment { chunks: mapped, states }).is_ok(),
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

    fn take(&self, from: u8, to: u8) -> Option<ChunkId> {
        self.ids().find(|&id| self.state(id).compare_exchange(from, to, AcqRel, Relaxed).is_ok())
    }

    /// Makes a free chunk the caller's.
    pub(crate) fn take_free(&self) -> Option<ChunkId> {
        self.take(FREE, OWNED)
    }

    /// Takes a full chunk in order to write it out; the caller gives it back with
    /// [`Pool::give_back`] or keeps it with [`Pool::keep`].
    pub(crate) fn take_full(&self) -> Option<ChunkId> {
        self.take(FULL, CLAIMED)
    }

    /// The owner hands its chunk over to be written out.
    pub(crate) fn hand_over(&self, id: ChunkId) {
        self.state(id).store(FULL, Release);
    }

    /// Makes a claimed and cleared chunk the caller's.
    pub(crate) fn keep(&self, id: ChunkId) {
        self.state(id).store(OWNED, Release);
    }

    /// Makes a claimed and cleared chunk free.
    pub(crate) fn give_back(&self, id: ChunkId) {
        self.state(id).store(FREE, Release);
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

    /// Appends the events to the file as a block; only for who owns or claimed the chunk.
    pub(crate) fn write_out(&self, writer: &Writer) -> io::Result<()> {
        let words = self.words.iter().position(|word| word.load(Relaxed) == 0).unwrap_or(CHUNK_WORDS);
        if words == 0 {
            return Ok(());
        }
        // SAFETY: the bytes lie inside the chunk, and nobody writes to it now: the caller owns it.
        let payload = unsafe {
            let start = std::ptr::from_ref(self).cast::<u8>().add(CHUNK_PAYLOAD);
            std::slice::from_raw_parts(start, EVENTS_HEAD + words * 8)
        };
        let (lane, sequence) = (self.owner.load(Relaxed) - 1, self.sequence.load(Relaxed));
        writer.append(kind::EVENTS, lane, sequence, &[payload])
    }

    /// Number of calls that begin in this chunk.
    pub(crate) fn count_calls(&self) -> u64 {
        crate::replay::count_enters(self.words.iter().map(|word| word.load(Relaxed)).take_while(|&w| w != 0))
    }

    /// Empties the chunk; only for who owns or claimed it. The words go first: while the head is
    /// there they are still those of the block that was written.
    pub(crate) fn clear(&self) {
        for word in self.words.iter().take_while(|word| word.load(Relaxed) != 0) {
            word.store(0, Relaxed);
        }
        self.owner.store(0, Release);
    }
}
