//! The chunks that threads write their newest events to, mapped from the recording's file.
//!
//! A chunk has one owner at a time (`hand_over.rs`). The states live outside the mapping; what
//! recovery needs is in the chunks themselves.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};
use std::sync::{Mutex, OnceLock};

use crate::format::{CHUNK_BYTES, Chunk, MAX_SEGMENTS, PAGE, kind};
use crate::hand_over::{State, Turn};
use crate::os;
use crate::pack;
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
        os::reserve(writer.file(), at, len as u64).inspect_err(|_| writer.free(at, len as u64))?;
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
            self.state(id).take_full(|| {
                let turn = self.sink(id).try_turn(self.chunk(id));
                turn.map(|mut state| work(id, &mut state)).is_some()
            })
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

    /// The owner hands its chunk over to be written out.
    pub(crate) fn hand_over(&self, id: ChunkId) {
        self.state(id).hand_over();
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

    /// Appends the events to the file as a block; only for who owns or claimed the chunk. `items` is
    /// room that is used again from chunk to chunk.
    ///
    /// Gives the size of the payload.
    pub(crate) fn write_out(&self, writer: &Writer, items: &mut Vec<u32>) -> io::Result<u64> {
        items.clear();
        // The head of the payload is that of the chunk itself.
        for number in [self.depth.load(Relaxed), self.base.load(Relaxed)] {
            items.extend([number as u32, (number >> 32) as u32]);
        }
        let head = items.len();
        pack::pack(self.filled(), items);
        if items.len() == head {
            return Ok(0);
        }
        let (lane, sequence) = (self.owner.load(Relaxed) - 1, self.sequence.load(Relaxed));
        let payload = as_bytes(items);
        writer.append(kind::EVENTS, lane, sequence, &[payload])?;
        Ok(payload.len() as u64)
    }

    /// The words up to the first empty one.
    fn filled(&self) -> impl Iterator<Item = u64> + '_ {
        self.words.iter().map(|word| word.load(Relaxed)).take_while(|&word| word != 0)
    }

    /// Gives the events to `use_words`; only for who owns or claimed the chunk.
    pub(crate) fn with_words<T>(&self, use_words: impl FnOnce(&ChunkWords<'_>) -> T) -> T {
        let filled = self.filled().count();
        // SAFETY: an atomic has the layout of its number, and nobody writes to the chunk now: the
        // caller owns it.
        let words = unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast::<u64>(), filled) };
        let (sequence, depth) = (self.sequence.load(Relaxed), self.depth.load(Relaxed));
        use_words(&ChunkWords { sequence, depth, base: self.base.load(Relaxed), words })
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

/// The items as the file holds them.
fn as_bytes(items: &mut [u32]) -> &[u8] {
    for item in items.iter_mut() {
        *item = item.to_le();
    }
    // SAFETY: any four bytes of a number are bytes, and u8 needs no alignment.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }
}
