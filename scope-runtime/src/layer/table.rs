//! The spans that are not closed, by id: found by every thread without a lock.
//!
//! A subscriber gives an id to one span at a time, and hands it to other threads after the span was
//! made. So nobody looks for an id while it is put in or taken out, and a slot is claimed by its id.

use std::collections::HashMap;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex};

use crate::lane::Span;
use crate::lock;

/// Slots in a bucket; the ids of one fill a cache line.
const SLOTS: usize = 8;
const BUCKET_BITS: u32 = 10;
/// Maps for what finds its bucket full.
const MAPS: usize = 16;

#[derive(Debug)]
pub(super) struct SpanTable {
    buckets: Box<[Bucket]>,
    /// Spans in `overflow`.
    overflowing: AtomicUsize,
    overflow: [Mutex<HashMap<u64, Arc<Span>>>; MAPS],
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Bucket {
    /// 0 where the slot is free.
    ids: [AtomicU64; SLOTS],
    spans: [Span; SLOTS],
}

impl Default for SpanTable {
    fn default() -> SpanTable {
        SpanTable {
            buckets: (0..1 << BUCKET_BITS).map(|_| Bucket::default()).collect(),
            overflowing: AtomicUsize::new(0),
            overflow: Default::default(),
        }
    }
}

impl Bucket {
    /// The slot in which an id is.
    #[inline]
    fn find(&self, id: u64) -> Option<usize> {
        (0..SLOTS).find(|&slot| self.ids[slot].load(Acquire) == id)
    }

    /// Takes the first slot that is free. A span of the same id whose close went unseen is replaced, or
    /// found no more.
    #[inline]
    fn claim(&self, id: u64) -> Option<usize> {
        (0..SLOTS).find(|&slot| {
            let before = self.ids[slot].load(Relaxed);
            before == id || before == 0 && self.ids[slot].compare_exchange(0, id, Acquire, Relaxed).is_ok()
        })
    }
}

impl SpanTable {
    /// The registry's ids are a place in a slab of the thread that made the span, that thread's number
    /// from bit 38, and above bit 51 how often the place was used. The last is left out, so that a place
    /// has one bucket, which stays in the cache; ids of another make are as right here.
    fn bucket(&self, id: u64) -> &Bucket {
        let (place, thread) = (id, id >> 38 & 0x1FFF);
        &self.buckets[(place.wrapping_add(thread * 61) % (1 << BUCKET_BITS)) as usize]
    }

    fn map(&self, id: u64) -> &Mutex<HashMap<u64, Arc<Span>>> {
        &self.overflow[id as usize % MAPS]
    }

    /// Puts a new span in.
    pub(super) fn insert(&self, id: u64, code: u32) {
        let bucket = self.bucket(id);
        match bucket.claim(id) {
            Some(slot) => bucket.spans[slot].reset(code),
            None => {
                let span = Span::default();
                span.reset(code);
                if lock(self.map(id)).insert(id, Arc::new(span)).is_none() {
                    self.overflowing.fetch_add(1, Relaxed);
                }
            }
        }
    }

    /// Calls `work` with a span, unless it is not known here.
    #[inline]
    pub(super) fn with(&self, id: u64, work: impl FnOnce(&Span)) {
        let bucket = self.bucket(id);
        if let Some(slot) = bucket.find(id) {
            work(&bucket.spans[slot]);
        } else if self.overflowing.load(Relaxed) > 0 {
            let span = lock(self.map(id)).get(&id).cloned();
            if let Some(span) = span {
                work(&span);
            }
        }
    }

    /// Closes a span and takes it out.
    pub(super) fn remove(&self, id: u64) {
        let bucket = self.bucket(id);
        if let Some(slot) = bucket.find(id) {
            bucket.spans[slot].close();
            bucket.ids[slot].store(0, Release);
        } else if self.overflowing.load(Relaxed) > 0
            && let Some(span) = lock(self.map(id)).remove(&id)
        {
            self.overflowing.fetch_sub(1, Relaxed);
            span.close();
        }
    }
}
