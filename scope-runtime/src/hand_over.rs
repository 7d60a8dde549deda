//! Who may use a chunk, and whose turn it is: how threads hand chunks to each other.
//!
//! ```text
//! free -> owned by a thread -> full -> claimed by whoever empties it -> owned by that one -> free
//!                               ^---------- claimed, but not its turn
//! ```
//!
//! Input comes from `pool.rs`, which has a state for each chunk, and `sink.rs`, which has a turn for each
//! lane. What a thread wrote to a chunk is seen by the next one that may use it.

use std::ops::{Deref, DerefMut};
use std::sync::TryLockError;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::sync::{AtomicU8, Mutex, MutexGuard};

const FREE: u8 = 0;
const OWNED: u8 = 1;
const FULL: u8 = 2;
const CLAIMED: u8 = 3;

/// The state of one chunk.
pub(crate) struct State(AtomicU8);

impl State {
    pub(crate) fn free() -> State {
        State(AtomicU8::new(FREE))
    }

    /// Makes a free chunk the caller's.
    pub(crate) fn take_free(&self) -> bool {
        self.change(FREE, OWNED)
    }

    /// Makes a full chunk the caller's if `empty` succeeds, which it is called for only then.
    pub(crate) fn take_full(&self, empty: impl FnOnce() -> bool) -> bool {
        if !self.change(FULL, CLAIMED) {
            return false;
        }
        let emptied = empty();
        self.0.store(if emptied { OWNED } else { FULL }, Release);
        emptied
    }

    /// The owner hands its chunk over to be emptied.
    pub(crate) fn hand_over(&self) {
        self.0.store(FULL, Release);
    }

    /// The owner has no use for its chunk, which is empty.
    pub(crate) fn give_back(&self) {
        self.0.store(FREE, Release);
    }

    /// Whether the chunk waits to be emptied, or somebody is about it.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self.0.load(Acquire), FULL | CLAIMED)
    }

    pub(crate) fn is_owned(&self) -> bool {
        self.0.load(Relaxed) == OWNED
    }

    fn change(&self, from: u8, to: u8) -> bool {
        // To read first spares the others the cache line of a state that does not fit.
        self.0.load(Relaxed) == from && self.0.compare_exchange(from, to, AcqRel, Relaxed).is_ok()
    }
}

/// What the chunks of a lane are put into, one after the other in the order of their numbers.
#[derive(Debug)]
pub(crate) struct InTurn<T>(Mutex<Numbered<T>>);

#[derive(Debug)]
struct Numbered<T> {
    next: u64,
    value: T,
}

/// The right to use the value, until it is dropped.
pub(crate) struct Turn<'a, T>(MutexGuard<'a, Numbered<T>>);

impl<T> InTurn<T> {
    pub(crate) fn new(value: T) -> InTurn<T> {
        InTurn(Mutex::new(Numbered { next: 0, value }))
    }

    /// The value, when it is this number's turn and nobody else is at work. Who does not use it up by
    /// [`Turn::done`] leaves the turn where it is.
    pub(crate) fn try_turn(&self, number: u64) -> Option<Turn<'_, T>> {
        let numbered = match self.0.try_lock() {
            Ok(numbered) => numbered,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        (numbered.next == number).then_some(Turn(numbered))
    }

    /// The value, between two turns.
    pub(crate) fn lock(&self) -> Turn<'_, T> {
        #[cfg(not(all(loom, test)))]
        let numbered = crate::lock(&self.0);
        #[cfg(all(loom, test))]
        let numbered = self.0.lock().unwrap();
        Turn(numbered)
    }
}

impl<T> Turn<'_, T> {
    /// It is the next number's turn.
    pub(crate) fn done(&mut self) {
        self.0.next += 1;
    }
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.value
    }
}

/// `RUSTFLAGS="--cfg loom" cargo test -p scope-runtime --lib hand_over` tries all interleavings.
#[cfg(all(loom, test))]
mod tests {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// Chunks that hold one number each, and the lane that they are put into. loom reports an access
    /// to a number that is not ordered after the one before it.
    struct Pool {
        chunks: [(State, UnsafeCell<u64>); 2],
        lane: InTurn<Vec<u64>>,
    }

    impl Pool {
        fn new() -> Arc<Pool> {
            let chunk = || (State::free(), UnsafeCell::new(0));
            Arc::new(Pool { chunks: [chunk(), chunk()], lane: InTurn::new(Vec::new()) })
        }

        fn fill(&self, chunk: usize, number: u64) {
            // SAFETY: the caller owns the chunk.
            self.chunks[chunk].1.with_mut(|content| unsafe { *content = number });
        }

        fn empty(&self, chunk: usize) -> bool {
            // SAFETY: the caller owns or claimed the chunk.
            let number = self.chunks[chunk].1.with(|content| unsafe { *content });
            let Some(mut lane) = self.lane.try_turn(number) else { return false };
            lane.push(number);
            lane.done();
            self.fill(chunk, u64::MAX);
            true
        }

        fn take_free(&self) -> Option<usize> {
            (0..2).find(|&chunk| self.chunks[chunk].0.take_free())
        }

        fn take_full(&self) -> Option<usize> {
            (0..2).find(|&chunk| self.chunks[chunk].0.take_full(|| self.empty(chunk)))
        }

        /// Fills chunks with the numbers below `count`, as a thread that makes events does.
        fn record(&self, count: u64) {
            let mut full: Option<usize> = None;
            for number in 0..count {
                let chunk = loop {
                    if let Some(next) = self.take_free().or_else(|| self.take_full()) {
                        full.inspect(|&full| self.chunks[full].0.hand_over());
                        break next;
                    }
                    match full {
                        Some(full) if self.empty(full) => break full,
                        _ => thread::yield_now(),
                    }
                };
                self.fill(chunk, number);
                full = Some(chunk);
            }
            full.inspect(|&full| self.chunks[full].0.hand_over());
        }

        /// Empties what is full, once.
        fn drain(&self) {
            if let Some(chunk) = self.take_full() {
                self.chunks[chunk].0.give_back();
            }
        }
    }

    #[test]
    fn chunks_arrive_whole_and_in_order_whoever_empties_them() {
        loom::model(|| {
            let pool = Pool::new();
            let drainer = {
                let pool = pool.clone();
                thread::spawn(move || (0..2).for_each(|_| pool.drain()))
            };
            pool.record(4);
            drainer.join().unwrap();
            while pool.chunks.iter().any(|(state, _)| state.is_full()) {
                pool.drain();
            }
            assert_eq!(*pool.lane.lock(), [0, 1, 2, 3]);
        });
    }

    #[test]
    fn a_free_chunk_has_one_taker() {
        loom::model(|| {
            let pool = Pool::new();
            let take = |pool: &Arc<Pool>| {
                let pool = pool.clone();
                thread::spawn(move || {
                    let chunk = pool.take_free().unwrap();
                    pool.fill(chunk, 0);
                    assert!(pool.chunks[chunk].0.is_owned());
                })
            };
            let threads = [take(&pool), take(&pool)];
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(pool.take_free().is_none());
        });
    }
}
