//! Hints to the processor's cache.

/// Bytes that come into the cache together.
const LINE: usize = 64;

/// Asks for memory that will be read soon, where the processor has an instruction for it.
#[inline]
pub(crate) fn prefetch<T>(values: &[T]) {
    values.iter().step_by((LINE / size_of::<T>()).max(1)).for_each(prefetch_line);
}

/// Asks for the line of the cache in which a value begins.
#[inline(always)]
pub(crate) fn prefetch_line<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint about an address that is valid; nothing is read or written.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
