//! Memory for columns with many rows.

use crate::os;

/// From here on large pages are asked for.
const LARGE_BYTES: usize = 4 << 20;

/// An empty vector with room for `capacity` values, in large pages where there are such.
pub(crate) fn room<T>(capacity: usize) -> Vec<T> {
    let mut values = Vec::with_capacity(capacity);
    let spare = values.spare_capacity_mut();
    if size_of_val(spare) >= LARGE_BYTES {
        os::ask_for_large_pages(spare);
    }
    values
}

/// `count` zeros in large pages where there are such. `T` is a number or a few: memory that is fresh from
/// the system is zero already, and nothing is written.
pub(crate) fn zeros<T: Copy + Default>(count: usize) -> Vec<T> {
    let mut values = vec![T::default(); count];
    if size_of_val(&*values) >= LARGE_BYTES {
        os::ask_for_large_pages(&mut values);
    }
    values
}
