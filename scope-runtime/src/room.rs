//! Memory for columns with many rows.

/// From here on large pages are asked for.
const LARGE_BYTES: usize = 4 << 20;

/// An empty vector with room for `capacity` values, in large pages where there are such.
///
/// The system gives fresh memory a page at a time, when it is first written: for columns of 10^7
/// rows in pages of 4 KiB that takes as long as filling them.
pub(crate) fn room<T>(capacity: usize) -> Vec<T> {
    let mut values = Vec::with_capacity(capacity);
    ask_for_large_pages(values.spare_capacity_mut());
    values
}

#[cfg(target_os = "linux")]
fn ask_for_large_pages<T>(spare: &mut [std::mem::MaybeUninit<T>]) {
    const PAGE: usize = 4096;
    let bytes = size_of_val(spare);
    if bytes < LARGE_BYTES {
        return;
    }
    let start = spare.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(PAGE);
    // SAFETY: the pages lie inside the vector's own memory; the advice changes no byte and no access
    // to it. That it may be refused makes no difference.
    unsafe {
        let pages = start.add(skipped).cast();
        libc::madvise(pages, (bytes - skipped) / PAGE * PAGE, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages<T>(_: &mut [std::mem::MaybeUninit<T>]) {}
