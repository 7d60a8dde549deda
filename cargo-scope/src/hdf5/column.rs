//! Writing one numeric column: as it is when small, in compressed chunks when large.

use rayon::prelude::*;
use rust_hdf5::format::FormatResult;
use rust_hdf5::format::messages::filter::apply_filters;
use rust_hdf5::{FilterPipeline, H5Dataset, H5Group, H5Type, Hdf5Error};

/// Entries per chunk of a compressed column: 256 KiB of integers, a quarter of the cache that
/// the C library gives a dataset by default.
pub(super) const CHUNK: usize = 32_768;
/// The lowest level at which the deflate at hand looks for matches instead of guessing: a third
/// less space than level 1 for a quarter more time, and less than other zlibs at level 4.
const DEFLATE_LEVEL: u32 = 2;
/// Columns of at most this many bytes stay as they are, as in files of the reference.
const PLAIN_BYTES: usize = 64 << 10;

/// An integer that columns are made of.
pub(super) trait Number: H5Type + Copy + Send + Sync {
    fn put(self, bytes: &mut Vec<u8>);
}

macro_rules! number {
    ($($kind:ty)*) => {$(
        impl Number for $kind {
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
number!(i8 u32 i64 u64);

/// Writes `values` as the dataset `name`. Where `compress` is set, a large column gets shuffle
/// and deflate.
pub(super) fn write<T: Number>(
    group: &H5Group,
    name: &str,
    compress: bool,
    values: impl ExactSizeIterator<Item = T>,
) -> Result<(), Hdf5Error> {
    if compress && values.len() * T::element_size() > PLAIN_BYTES {
        write_compressed(group, name, values)
    } else {
        write_plain(group, name, values)
    }
}

fn write_plain<T: Number>(
    group: &H5Group,
    name: &str,
    values: impl ExactSizeIterator<Item = T>,
) -> Result<(), Hdf5Error> {
    let values: Vec<T> = values.collect();
    let dataset = group.new_dataset::<T>().shape([values.len()]).create(name)?;
    // An empty dataset has no room in the file that could be written to.
    if values.is_empty() { Ok(()) } else { dataset.write_raw(&values) }
}

/// Writes as many chunks at a time as there are threads to compress them, so that a column is
/// never in memory a second time.
fn write_compressed<T: Number>(
    group: &H5Group,
    name: &str,
    mut values: impl ExactSizeIterator<Item = T>,
) -> Result<(), Hdf5Error> {
    let len = values.len();
    let dataset = new_growing::<T>(group, name)?;
    let mut written = 0;
    let mut batch = Vec::with_capacity(CHUNK * rayon::current_num_threads());
    while values.len() > 0 {
        batch.clear();
        batch.extend(values.by_ref().take(batch.capacity()));
        let chunks: Vec<&[T]> = batch.chunks(CHUNK).collect();
        write_chunks(&dataset, written, &chunks)?;
        written += chunks.len();
    }
    dataset.extend(&[len])
}

/// A compressed dataset without entries, to which chunks can be written until it is given its length.
pub(super) fn new_growing<T: Number>(group: &H5Group, name: &str) -> Result<H5Dataset, Hdf5Error> {
    let dataset = group.new_dataset::<T>().shape([0]).max_shape(&[None]).chunk(&[CHUNK]);
    dataset.filter_pipeline(pipeline::<T>()).create(name)
}

fn pipeline<T: Number>() -> FilterPipeline {
    FilterPipeline::shuffle_deflate(T::element_size() as u32, DEFLATE_LEVEL)
}

/// Compresses chunks, all at a time, and writes them from chunk `first` on.
pub(super) fn write_chunks<T: Number>(
    dataset: &H5Dataset,
    first: usize,
    chunks: &[&[T]],
) -> Result<(), Hdf5Error> {
    let pipeline = pipeline::<T>();
    let pack = |values: &&[T]| {
        let mut bytes = Vec::with_capacity(CHUNK * T::element_size());
        values.iter().for_each(|value| value.put(&mut bytes));
        // The last chunk is stored whole; what is behind the end of the dataset is never read.
        bytes.resize(CHUNK * T::element_size(), 0);
        apply_filters(&pipeline, &bytes)
    };
    let packed: FormatResult<Vec<Vec<u8>>> = chunks.par_iter().map(pack).collect();
    for (chunk, bytes) in (first..).zip(packed?) {
        dataset.write_chunk_raw(chunk, &bytes, NO_FILTER_LEFT_OUT)?;
    }
    Ok(())
}

const NO_FILTER_LEFT_OUT: u32 = 0;
