//! The lock and the atomic of the hand-over of chunks: loom's where that is tested.

#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic::AtomicU8};

#[cfg(all(loom, test))]
pub(crate) use loom::sync::{Mutex, MutexGuard, atomic::AtomicU8};
