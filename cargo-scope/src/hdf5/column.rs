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
pub(super) trait Number: H5Type + Copy + PartialEq + Send + Sync {
    /// Writes values to the begin of `bytes`.
    fn put(values: &[Self], bytes: &mut [u8]);
}

macro_rules! number {
    ($($kind:ty)*) => {$(
        impl Number for $kind {
            fn put(values: &[Self], bytes: &mut [u8]) {
                let places = bytes.as_chunks_mut().0;
                places.iter_mut().zip(values).for_each(|(place, value)| *place = value.to_le_bytes());
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
    let mut column = Chunked::create(group, name)?;
    let mut batch = Vec::with_capacity(CHUNK * rayon::current_num_threads());
    while values.len() > 0 {
        batch.clear();
        batch.extend(values.by_ref().take(batch.capacity()));
        column.write(&batch)?;
    }
    column.finish(len)
}

/// A compressed dataset, to which chunks are written until it is given its length.
pub(super) struct Chunked<T> {
    dataset: H5Dataset,
    written: usize,
    uniform: Option<Uniform<T>>,
}

/// A chunk of one value, compressed: a column may have many, as that of threads has.
struct Uniform<T> {
    value: T,
    packed: Vec<u8>,
}

impl<T: Number> Uniform<T> {
    fn is(&self, chunk: &[T]) -> bool {
        chunk.len() == CHUNK && chunk.iter().all(|value| *value == self.value)
    }
}

impl<T: Number> Chunked<T> {
    pub(super) fn create(group: &H5Group, name: &str) -> Result<Chunked<T>, Hdf5Error> {
        let dataset = group.new_dataset::<T>().shape([0]).max_shape(&[None]).chunk(&[CHUNK]);
        let dataset = dataset.filter_pipeline(pipeline::<T>()).create(name)?;
        Ok(Chunked { dataset, written: 0, uniform: None })
    }

    /// Compresses the next chunks, all at a time, and writes them. Only the last one of all may be short.
    pub(super) fn write(&mut self, values: &[T]) -> Result<(), Hdf5Error> {
        let known = self.uniform.as_ref();
        let is_known = |chunk: &[T]| known.is_some_and(|known| known.is(chunk));
        let pack = |chunk: &[T]| if is_known(chunk) { Ok(None) } else { pack(chunk).map(Some) };
        let packed: FormatResult<Vec<Option<Vec<u8>>>> = values.par_chunks(CHUNK).map(pack).collect();
        let mut packed = packed?;
        for bytes in &packed {
            let known = known.map(|known| &known.packed);
            if let Some(bytes) = bytes.as_ref().or(known) {
                self.dataset.write_chunk_raw(self.written, bytes, NO_FILTER_LEFT_OUT)?;
                self.written += 1;
            }
        }
        if let (Some(chunk), Some(packed)) = (values.chunks(CHUNK).next_back(), packed.pop().flatten()) {
            let last = Uniform { value: chunk[0], packed };
            if last.is(chunk) {
                self.uniform = Some(last);
            }
        }
        Ok(())
    }

    pub(super) fn finish(self, len: usize) -> Result<(), Hdf5Error> {
        self.dataset.extend(&[len])
    }
}

fn pipeline<T: Number>() -> FilterPipeline {
    FilterPipeline::shuffle_deflate(T::element_size() as u32, DEFLATE_LEVEL)
}

/// A chunk as it lies in the file. A short one is stored whole; what is behind the end of the dataset is
/// never read.
fn pack<T: Number>(chunk: &[T]) -> FormatResult<Vec<u8>> {
    let mut bytes = vec![0; CHUNK * T::element_size()];
    T::put(chunk, &mut bytes);
    apply_filters(&pipeline::<T>(), &bytes)
}

const NO_FILTER_LEFT_OUT: u32 = 0;
