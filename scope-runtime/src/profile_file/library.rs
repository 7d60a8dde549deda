//! What a writer of profiles needs of an HDF5 library.

use std::io;
use std::ops::Range;
use std::path::Path;

use super::layout::STATISTICS_SIZE;
use crate::merged::MetadataValue;

/// Entries per chunk of a compressed column: 256 KiB of integers, a quarter of the cache that
/// the C library gives a dataset by default.
pub const CHUNK: usize = 32_768;
/// The lowest level at which the deflate of rust-hdf5 looks for matches instead of guessing: a third
/// less space than level 1 for a quarter more time, and less than other zlibs at level 4.
pub const DEFLATE_LEVEL: u8 = 2;

/// A file in the making. Errors are what the library says, in words; dropping the value leaves a file that
/// is no good, without a word.
pub trait Library: Sized {
    /// A group of the file.
    type Group;
    /// A column that is written chunk by chunk.
    type Column;

    /// Begins a file in the place of the one at `path`, without a lock on it: the name is the caller's
    /// alone, and some file systems have no locks.
    ///
    /// # Errors
    /// When it cannot be created.
    fn create(path: &Path) -> io::Result<Self>;

    /// The group that the others are in.
    ///
    /// # Errors
    /// When it is not to be had.
    fn root(&self) -> Result<Self::Group, String>;

    /// Adds a group to the root; `in_order` says that its attributes are shown in the order in which they
    /// come.
    ///
    /// # Errors
    /// When it cannot be written.
    fn group(&self, name: &str, in_order: bool) -> Result<Self::Group, String>;

    /// Adds an attribute to a group: variable UTF-8 strings, or numbers of eight bytes.
    ///
    /// # Errors
    /// When it cannot be written.
    fn attribute(group: &Self::Group, name: &str, value: &MetadataValue) -> Result<(), String>;

    /// Writes a contiguous column.
    ///
    /// # Errors
    /// When it cannot be written.
    fn numbers(group: &Self::Group, name: &str, values: Numbers<'_>) -> Result<(), String>;

    /// Writes variable UTF-8 strings, none of which has a NUL.
    ///
    /// # Errors
    /// When they cannot be written.
    fn texts(group: &Self::Group, name: &str, texts: &[&str]) -> Result<(), String>;

    /// Writes values of the compound type that has the [`STATISTICS_MEMBERS`](super::layout::STATISTICS_MEMBERS).
    ///
    /// # Errors
    /// When they cannot be written.
    fn statistics(group: &Self::Group, name: &str, values: &[[u8; STATISTICS_SIZE]]) -> Result<(), String>;

    /// Begins a column in chunks of [`CHUNK`] entries with shuffle and deflate of [`DEFLATE_LEVEL`], of
    /// the type that `kind` has.
    ///
    /// # Errors
    /// When it cannot be written.
    fn column(group: &Self::Group, name: &str, kind: Numbers<'_>) -> Result<Self::Column, String>;

    /// How many chunks are best written at a time.
    fn chunks_at_a_time() -> usize;

    /// Writes chunks of `columns`, in any order.
    ///
    /// # Errors
    /// When one cannot be written: its column, and why.
    fn write(columns: &mut [Self::Column], chunks: &[ColumnChunk<'_>]) -> Result<(), (usize, String)>;

    /// Ends a column of `len` entries, all chunks of which were written.
    ///
    /// # Errors
    /// When it cannot be written.
    fn end(column: Self::Column, len: usize) -> Result<(), String>;

    /// Ends the file.
    ///
    /// # Errors
    /// When something could not be written.
    fn close(self) -> Result<(), String>;
}

/// A chunk of one of several columns.
#[derive(Clone, Copy, Debug)]
pub struct ColumnChunk<'a> {
    /// Which column.
    pub column: usize,
    /// Which of its chunks.
    pub chunk: usize,
    /// [`CHUNK`] values; fewer in the last chunk of a column.
    pub values: Numbers<'a>,
}

/// Integers of one of the types that columns have.
#[derive(Clone, Copy, Debug)]
pub enum Numbers<'a> {
    /// Of one byte.
    I8(&'a [i8]),
    /// Of four bytes, unsigned.
    U32(&'a [u32]),
    /// Of eight bytes.
    I64(&'a [i64]),
    /// Of eight bytes, unsigned.
    U64(&'a [u64]),
}

impl Numbers<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Numbers::I8(values) => values.len(),
            Numbers::U32(values) => values.len(),
            Numbers::I64(values) => values.len(),
            Numbers::U64(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of each.
    pub fn value_bytes(&self) -> usize {
        match self {
            Numbers::I8(_) => 1,
            Numbers::U32(_) => 4,
            Numbers::I64(_) | Numbers::U64(_) => 8,
        }
    }

    /// Writes those in `range`, little-endian, to the begin of `bytes`.
    pub fn put(&self, range: Range<usize>, bytes: &mut [u8]) {
        match self {
            Numbers::I8(values) => put(&values[range], i8::to_le_bytes, bytes),
            Numbers::U32(values) => put(&values[range], u32::to_le_bytes, bytes),
            Numbers::I64(values) => put(&values[range], i64::to_le_bytes, bytes),
            Numbers::U64(values) => put(&values[range], u64::to_le_bytes, bytes),
        }
    }
}

fn put<T: Copy, const N: usize>(values: &[T], to_bytes: fn(T) -> [u8; N], bytes: &mut [u8]) {
    let places = bytes.as_chunks_mut().0;
    places.iter_mut().zip(values).for_each(|(place, value)| *place = to_bytes(*value));
}

/// An integer that columns are made of.
pub trait Number: Copy {
    /// Values with their type.
    fn numbers(values: &[Self]) -> Numbers<'_>;
}

macro_rules! number {
    ($($kind:ty => $variant:ident),*) => {$(
        impl Number for $kind {
            fn numbers(values: &[$kind]) -> Numbers<'_> {
                Numbers::$variant(values)
            }
        }
    )*};
}
number!(i8 => I8, u32 => U32, i64 => I64, u64 => U64);
