//! Writing by the system's HDF5 library, through hdf5-metno.

use std::io;
use std::path::Path;

#[cfg(feature = "mpio")]
use hdf5::dataset::{AllocTime, FillTime};
use hdf5::filters::deflate_available;
use hdf5::plist::file_create::AttrCreationOrder;
use hdf5::types::{CompoundField, CompoundType, StringError, TypeDescriptor, VarLenUnicode};
use hdf5::{Dataset, Group, H5Type};

use super::layout::{Member, STATISTICS_MEMBERS, STATISTICS_SIZE};
use super::library::{CHUNK, ColumnChunk, DEFLATE_LEVEL, Library, Numbers};
use crate::merged::MetadataValue;

/// A file of the system's library. It stays locked while it is written, where the file system has locks.
pub struct SystemHdf5(hdf5::File);

impl Library for SystemHdf5 {
    type Group = Group;
    type Column = Column;

    fn create(path: &Path) -> io::Result<SystemHdf5> {
        hdf5::File::create(path).map(SystemHdf5).map_err(|error| io::Error::other(cause(error)))
    }

    fn root(&self) -> Result<Group, String> {
        self.0.group("/").map_err(cause)
    }

    fn group(&self, name: &str, in_order: bool) -> Result<Group, String> {
        let order = if in_order { AttrCreationOrder::Indexed } else { AttrCreationOrder::Untracked };
        let builder = self.0.create_group_builder().with_gcpl(|group| group.attr_creation_order(order));
        builder.create(name).map_err(cause)
    }

    fn attribute(group: &Group, name: &str, value: &MetadataValue) -> Result<(), String> {
        match value {
            MetadataValue::Text(text) => scalar(group, name, &text.parse::<VarLenUnicode>().map_err(nul)?),
            MetadataValue::Integer(number) => scalar(group, name, number),
            MetadataValue::Float(number) => scalar(group, name, number),
            MetadataValue::List(texts) => {
                let texts = variable(texts)?;
                group.new_attr_builder().with_data(&texts).create(name).map(drop).map_err(cause)
            }
        }
    }

    fn numbers(group: &Group, name: &str, values: Numbers<'_>) -> Result<(), String> {
        match values {
            Numbers::I8(values) => contiguous(group, name, values),
            Numbers::U32(values) => contiguous(group, name, values),
            Numbers::I64(values) => contiguous(group, name, values),
            Numbers::U64(values) => contiguous(group, name, values),
        }
    }

    fn texts(group: &Group, name: &str, texts: &[&str]) -> Result<(), String> {
        contiguous(group, name, &variable(texts)?)
    }

    fn statistics(group: &Group, name: &str, values: &[[u8; STATISTICS_SIZE]]) -> Result<(), String> {
        let values: Vec<Statistics> = values.iter().map(|bytes| Statistics(*bytes)).collect();
        contiguous(group, name, &values)
    }

    fn column(group: &Group, name: &str, kind: Numbers<'_>) -> Result<Column, String> {
        let dataset = match kind {
            Numbers::I8(_) => chunked::<i8>(group, name),
            Numbers::U32(_) => chunked::<u32>(group, name),
            Numbers::I64(_) => chunked::<i64>(group, name),
            Numbers::U64(_) => chunked::<u64>(group, name),
        };
        Ok(Column { dataset: dataset.map_err(cause)?, len: 0 })
    }

    fn chunks_at_a_time() -> usize {
        1
    }

    fn write(columns: &mut [Column], chunks: &[ColumnChunk<'_>]) -> Result<(), (usize, String)> {
        for &ColumnChunk { column, chunk, values } in chunks {
            let to = &mut columns[column];
            match values {
                Numbers::I8(values) => to.write(chunk, values),
                Numbers::U32(values) => to.write(chunk, values),
                Numbers::I64(values) => to.write(chunk, values),
                Numbers::U64(values) => to.write(chunk, values),
            }
            .map_err(|error| (column, cause(error)))?;
        }
        Ok(())
    }

    fn end(_: Column, _: usize) -> Result<(), String> {
        Ok(())
    }

    fn close(self) -> Result<(), String> {
        self.0.close().map_err(cause)
    }
}

#[cfg(feature = "mpio")]
impl SystemHdf5 {
    /// Adds a contiguous column of `len` integers of eight bytes, whose values are for others to write.
    ///
    /// # Errors
    /// When there is no room for it.
    pub(super) fn reserve(group: &Group, name: &str, len: usize) -> Result<(), String> {
        let builder = group.new_dataset_builder().no_chunk().empty::<i64>().shape(len);
        let builder = builder.alloc_time(Some(AllocTime::Early)).fill_time(FillTime::Never);
        builder.create(name).map(drop).map_err(cause)
    }
}

/// A dataset in chunks, as long as what was written.
pub struct Column {
    dataset: Dataset,
    len: usize,
}

impl Column {
    fn write<T: H5Type>(&mut self, chunk: usize, values: &[T]) -> hdf5::Result<()> {
        let (begin, end) = (chunk * CHUNK, chunk * CHUNK + values.len());
        if end > self.len {
            self.dataset.resize(end)?;
            self.len = end;
        }
        self.dataset.write_slice(values, begin..end)
    }
}

/// The bytes of a value of `summary_statistics`.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Statistics([u8; STATISTICS_SIZE]);

// SAFETY: the type is as long as the one described, whose members are numbers of eight bytes, for which any
// bytes are a value. It has no pointers, and HDF5 takes values from any address.
unsafe impl H5Type for Statistics {
    fn type_descriptor() -> TypeDescriptor {
        let fields = STATISTICS_MEMBERS.iter().enumerate().map(|(index, (name, member))| {
            let kind = match member {
                Member::Signed(_) => i64::type_descriptor(),
                Member::Unsigned(_) => u64::type_descriptor(),
                Member::Float(_) => f64::type_descriptor(),
            };
            CompoundField::new(name, kind, 8 * index, index)
        });
        TypeDescriptor::Compound(CompoundType { fields: fields.collect(), size: STATISTICS_SIZE })
    }
}

fn scalar<T: H5Type>(group: &Group, name: &str, value: &T) -> Result<(), String> {
    let attribute = group.new_attr::<T>().create(name).map_err(cause)?;
    attribute.write_scalar(value).map_err(cause)
}

/// Writes a dataset that is not in chunks.
fn contiguous<T: H5Type>(group: &Group, name: &str, values: &[T]) -> Result<(), String> {
    let builder = group.new_dataset_builder().no_chunk().empty::<T>().shape(values.len());
    let dataset = builder.create(name).map_err(cause)?;
    if values.is_empty() { Ok(()) } else { dataset.write_raw(values).map_err(cause) }
}

/// Begins a dataset in chunks. A library that was built without deflate leaves it out.
fn chunked<T: H5Type>(group: &Group, name: &str) -> hdf5::Result<Dataset> {
    let builder = group.new_dataset_builder().chunk(CHUNK);
    let builder = if deflate_available() { builder.shuffle().deflate(DEFLATE_LEVEL) } else { builder };
    builder.empty::<T>().shape(0..).create(name)
}

fn variable(texts: &[impl AsRef<str>]) -> Result<Vec<VarLenUnicode>, String> {
    texts.iter().map(|text| text.as_ref().parse().map_err(nul)).collect()
}

fn nul(_: StringError) -> String {
    "it has a text with a NUL".into()
}

/// What the library says, in a line: in those that follow it goes into detail.
pub(super) fn cause(error: hdf5::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_string()
}
