//! Writing by rust-hdf5, which is Rust alone. Chunks are compressed on all cores.

use std::cell::RefCell;
use std::io;
use std::ops::Deref;
use std::path::Path;

use rayon::prelude::*;
use rust_hdf5::format::FormatResult;
use rust_hdf5::format::messages::filter::apply_filters;
use rust_hdf5::types::CompoundType;
use rust_hdf5::{DatatypeMessage, FilterPipeline, H5Dataset, H5File, H5Group, H5Type, Hdf5Error};
use scope_runtime::profile_file::{CHUNK, ColumnChunk, DEFLATE_LEVEL, Library, Numbers};

use super::layout::{Member, STATISTICS_MEMBERS, STATISTICS_SIZE};
use crate::merged::MetadataValue;

const NO_FILTER_LEFT_OUT: u32 = 0;

/// A file that is closed without a word where it is not finished: left to its own, it would report a
/// failure besides the one that is on its way.
pub struct RustHdf5(Option<H5File>);

impl Deref for RustHdf5 {
    type Target = H5File;

    fn deref(&self) -> &H5File {
        self.0.as_ref().expect("it is open until it is closed")
    }
}

impl Drop for RustHdf5 {
    fn drop(&mut self) {
        let _ = self.0.take().map(H5File::close_no_sync);
    }
}

impl Library for RustHdf5 {
    type Group = H5Group;
    type Column = Column;

    fn create(path: &Path) -> io::Result<RustHdf5> {
        let file = H5File::options().no_locking().create(path).map_err(|error| match error {
            Hdf5Error::Io(error) => error,
            other => io::Error::other(other),
        })?;
        Ok(RustHdf5(Some(file)))
    }

    fn root(&self) -> Result<H5Group, String> {
        Ok(self.root_group())
    }

    fn group(&self, name: &str, in_order: bool) -> Result<H5Group, String> {
        self.set_track_order(in_order).map_err(cause)?;
        self.create_group(name).map_err(cause)
    }

    fn attribute(group: &H5Group, name: &str, value: &MetadataValue) -> Result<(), String> {
        match value {
            MetadataValue::Text(text) => group.set_attr_string(name, text),
            MetadataValue::Integer(number) => group.set_attr_numeric(name, number),
            MetadataValue::Float(number) => group.set_attr_numeric(name, number),
            MetadataValue::List(texts) => group.set_attr_string_array(name, &borrowed(texts)),
        }
        .map_err(cause)
    }

    fn numbers(group: &H5Group, name: &str, values: Numbers<'_>) -> Result<(), String> {
        let mut bytes = vec![0; values.len() * values.value_bytes()];
        values.put(0..values.len(), &mut bytes);
        write_bytes(group, name, number_type(values), values.len(), &bytes)
    }

    fn texts(group: &H5Group, name: &str, texts: &[&str]) -> Result<(), String> {
        if texts.is_empty() {
            // The call for texts reserves a block of no bytes, which HDF5 2.0 takes for damage.
            return write_bytes(group, name, DatatypeMessage::vlen_string_utf8(), 0, &[]);
        }
        group.write_vlen_strings(name, texts).map(drop).map_err(cause)
    }

    fn statistics(group: &H5Group, name: &str, values: &[[u8; STATISTICS_SIZE]]) -> Result<(), String> {
        write_bytes(group, name, statistics_type().to_datatype(), values.len(), values.as_flattened())
    }

    fn column(group: &H5Group, name: &str, kind: Numbers<'_>) -> Result<Column, String> {
        let filters = FilterPipeline::shuffle_deflate(kind.value_bytes() as u32, DEFLATE_LEVEL.into());
        let dataset = group.new_dataset::<u8>().datatype(number_type(kind)).shape([0]).max_shape(&[None]);
        let dataset = dataset.chunk(&[CHUNK]).filter_pipeline(filters.clone()).create(name).map_err(cause)?;
        Ok(Column { dataset, packer: Packer { filters, uniform: None } })
    }

    fn chunks_at_a_time() -> usize {
        // With fewer, threads spend as long being woken; more would only take more memory.
        rayon::current_num_threads().clamp(8, 16)
    }

    fn write(columns: &mut [Column], chunks: &[ColumnChunk<'_>]) -> Result<(), (usize, String)> {
        let packers: Vec<&Packer> = columns.iter().map(|column| &column.packer).collect();
        let pack = |chunk: &ColumnChunk<'_>| {
            BYTES.with_borrow_mut(|bytes| packers[chunk.column].pack(chunk.values, bytes))
        };
        let packed: Vec<FormatResult<Packed>> = chunks.par_iter().map(pack).collect();
        let mut newest = Vec::new();
        for (&ColumnChunk { column, chunk, .. }, packed) in chunks.iter().zip(packed) {
            let written =
                packed.map_err(Hdf5Error::from).and_then(|packed| columns[column].put(chunk, packed));
            newest.extend(written.map_err(|error| (column, cause(error)))?.map(|uniform| (column, uniform)));
        }
        // Not before: what was found to be known was so then.
        newest.into_iter().for_each(|(column, uniform)| columns[column].packer.uniform = Some(uniform));
        Ok(())
    }

    fn end(column: Column, len: usize) -> Result<(), String> {
        column.dataset.extend(&[len]).map_err(cause)
    }

    fn close(mut self) -> Result<(), String> {
        self.0.take().map_or(Ok(()), H5File::close).map_err(cause)
    }
}

/// A compressed dataset, to which chunks are written until it is given its length.
pub struct Column {
    dataset: H5Dataset,
    packer: Packer,
}

/// Makes chunks as they lie in the file.
struct Packer {
    filters: FilterPipeline,
    uniform: Option<Uniform>,
}

/// A chunk of one value, compressed: a column may have many, as that of threads has.
struct Uniform {
    value: Vec<u8>,
    packed: Vec<u8>,
}

thread_local! {
    /// Room for the bytes of a chunk.
    static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A chunk on its way to the file.
enum Packed {
    /// The same as the one that is known.
    Known,
    /// Another one of one value.
    Uniform(Uniform),
    Other(Vec<u8>),
}

impl Column {
    /// Writes a chunk; gives it back where it is of one value that was not known.
    fn put(&self, chunk: usize, packed: Packed) -> Result<Option<Uniform>, Hdf5Error> {
        let known = self.packer.uniform.as_ref().map_or(&[][..], |known| &known.packed);
        let bytes = match &packed {
            Packed::Known => known,
            Packed::Uniform(uniform) => &uniform.packed,
            Packed::Other(bytes) => bytes,
        };
        self.dataset.write_chunk_raw(chunk, bytes, NO_FILTER_LEFT_OUT)?;
        Ok(match packed {
            Packed::Uniform(uniform) => Some(uniform),
            Packed::Known | Packed::Other(_) => None,
        })
    }
}

impl Packer {
    /// A chunk of these values. A short one is stored whole; what is behind the end of the dataset is never
    /// read. `bytes` is room that is used again.
    fn pack(&self, values: Numbers<'_>, bytes: &mut Vec<u8>) -> FormatResult<Packed> {
        let size = values.value_bytes();
        bytes.resize(CHUNK * size, 0);
        values.put(0..values.len(), bytes);
        bytes[values.len() * size..].fill(0);
        // All are the same where each is the same as the one before.
        if bytes[size..] != bytes[..bytes.len() - size] {
            return Ok(Packed::Other(apply_filters(&self.filters, bytes)?));
        }
        if self.uniform.as_ref().is_some_and(|known| known.value == bytes[..size]) {
            return Ok(Packed::Known);
        }
        let packed = apply_filters(&self.filters, bytes)?;
        Ok(Packed::Uniform(Uniform { value: bytes[..size].to_vec(), packed }))
    }
}

/// Writes a contiguous dataset.
fn write_bytes(
    group: &H5Group,
    name: &str,
    datatype: DatatypeMessage,
    len: usize,
    bytes: &[u8],
) -> Result<(), String> {
    let dataset = group.new_dataset::<u8>().datatype(datatype).shape([len]).create(name).map_err(cause)?;
    // An empty dataset has no room in the file that could be written to.
    if bytes.is_empty() { Ok(()) } else { dataset.write_raw_bytes(bytes).map_err(cause) }
}

fn number_type(kind: Numbers<'_>) -> DatatypeMessage {
    match kind {
        Numbers::I8(_) => i8::hdf5_type(),
        Numbers::U32(_) => u32::hdf5_type(),
        Numbers::I64(_) => i64::hdf5_type(),
        Numbers::U64(_) => u64::hdf5_type(),
    }
}

fn statistics_type() -> CompoundType {
    let members = STATISTICS_MEMBERS.iter().enumerate().map(|(position, (name, member))| {
        let datatype = match member {
            Member::Signed(_) => i64::hdf5_type(),
            Member::Unsigned(_) => u64::hdf5_type(),
            Member::Float(_) => f64::hdf5_type(),
        };
        (name.to_string(), datatype, 8 * position as u32)
    });
    CompoundType { members: members.collect(), total_size: STATISTICS_SIZE as u32 }
}

/// What the library says, without the layers that it went through.
fn cause(error: Hdf5Error) -> String {
    let text = error.to_string();
    text.trim_start_matches("hdf5-io error: ").trim_start_matches("I/O error: ").to_string()
}

fn borrowed(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}
