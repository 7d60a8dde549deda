//! Writing one numeric column: as it is when small, in compressed chunks when large.

use rayon::prelude::*;
use rust_hdf5::format::FormatResult;
use rust_hdf5::format::messages::filter::apply_filters;
use rust_hdf5::{FilterPipeline, H5Group, H5Type, Hdf5Error};

/// Entries per chunk of a compressed column: 256 KiB of integers, a quarter of the cache that
/// the C library gives a dataset by default.
const CHUNK: usize = 32_768;
/// The lowest level at which the deflate at hand looks for matches instead of guessing: a third
/// less space than level 1 for a quarter more time, and less than other zlibs at level 4.
const DEFLATE_LEVEL: u32 = 2;
/// Columns of at most this many bytes stay as they are, as in files of the reference.
const PLAIN_BYTES: usize = 64 << 10;

/// An integer that columns are made of.
pub(super) trait Number: H5Type + Send + Sync {
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
    let chunk = CHUNK.min(len);
    let chunk_bytes = chunk * T::element_size();
    let pipeline = FilterPipeline::shuffle_deflate(T::element_size() as u32, DEFLATE_LEVEL);
    let dataset = group.new_dataset::<T>().shape([len]).chunk(&[chunk]).filter_pipeline(pipeline.clone());
    let dataset = dataset.create(name)?;
    let mut batch = vec![Vec::with_capacity(chunk_bytes); rayon::current_num_threads()];
    let mut written = 0;
    while values.len() > 0 {
        for bytes in &mut batch {
            bytes.clear();
            values.by_ref().take(chunk).for_each(|value| value.put(bytes));
        }
        let full = batch.iter_mut().filter(|bytes| !bytes.is_empty());
        // The last chunk is stored whole; what is behind the end of the dataset is never read.
        full.for_each(|bytes| bytes.resize(chunk_bytes, 0));
        let packed: FormatResult<Vec<Vec<u8>>> = batch
            .par_iter()
            .filter(|bytes| !bytes.is_empty())
            .map(|bytes| apply_filters(&pipeline, bytes))
            .collect();
        for bytes in packed? {
            dataset.write_chunk_raw(written, &bytes, NO_FILTER_LEFT_OUT)?;
            written += 1;
        }
    }
    Ok(())
}

const NO_FILTER_LEFT_OUT: u32 = 0;
