//! Hints to the processor's cache.

/// Bytes that come into the cache together.
const LINE: usize = 64;

/// Asks for memory that will be read soon, where the processor has an instruction for it.
///
/// Processors may ignore this where they do not know the page at hand: for values that lie anywhere,
/// reading them ahead is better.
#[inline]
pub(crate) fn prefetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for value in values.iter().step_by((LINE / size_of::<T>()).max(1)) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint about an address that is valid; nothing is read or written.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}
