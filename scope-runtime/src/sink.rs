//! Where the events of a lane go when their chunk is full: into the file, or into totals.
//!
//! Chunks of one lane are taken in the order of their sequence numbers. Whoever has a full chunk in
//! hand may put it in; who finds another one at work here does something else instead of waiting.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::fold::Fold;
use crate::format::Chunk;
use crate::hand_over::{InTurn, Turn};
use crate::replay::SessionEdge;

/// The sink of one lane.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) lane: u32,
    folding: AtomicBool,
    state: InTurn<SinkState>,
}

#[derive(Debug, Default)]
pub(crate) struct SinkState {
    /// Boxed, since most lanes have none.
    fold: Option<Box<Fold>>,
}

/// What every thread that ends leaves behind is small.
const _: () = assert!(size_of::<Sink>() <= 64);

impl Sink {
    pub(crate) fn new(lane: u32) -> Sink {
        Sink { lane, folding: AtomicBool::new(false), state: InTurn::new(SinkState::default()) }
    }

    /// Whether the lane keeps totals only, from here on and for good.
    pub(crate) fn is_folding(&self) -> bool {
        self.folding.load(Relaxed)
    }

    /// The state, when it is this chunk's turn and nobody else is at work.
    pub(crate) fn try_turn(&self, chunk: &Chunk) -> Option<Turn<'_, SinkState>> {
        self.state.try_turn(chunk.sequence.load(Relaxed))
    }

    pub(crate) fn lock(&self) -> Turn<'_, SinkState> {
        self.state.lock()
    }

    /// Puts a chunk in: into the totals if the lane keeps those only, else by `write`; where that
    /// says that it cannot be, totals are kept from this chunk on. Gives the number of calls that
    /// went into the totals.
    pub(crate) fn put(
        &self,
        state: &mut Turn<'_, SinkState>,
        chunk: &Chunk,
        edges: &Mutex<Vec<SessionEdge>>,
        write: impl FnOnce() -> bool,
    ) -> u64 {
        state.done();
        if state.fold.is_none() && write() {
            return 0;
        }
        let fold = state.fold.get_or_insert_with(|| {
            self.folding.store(true, Relaxed);
            let edges = crate::lock(edges);
            let number = chunk.sequence.load(Relaxed);
            Box::new(Fold::new(number, chunk.depth.load(Relaxed), chunk.base.load(Relaxed), &edges))
        });
        let before = fold.calls();
        fold.chunk(chunk.words());
        fold.calls() - before
    }
}

impl SinkState {
    pub(crate) fn fold(&mut self) -> Option<&mut Fold> {
        self.fold.as_deref_mut()
    }
}
