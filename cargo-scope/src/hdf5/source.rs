//! Datasets and attributes of a file that may hold anything, as vectors and rows.

use std::cell::RefCell;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use rust_hdf5::format::messages::filter;
use rust_hdf5::{DatatypeMessage, H5Dataset, H5File, Hdf5Error, ReadNumeric, StorageLayout};

use super::Error;
use super::chunks::Chunks;
use super::headers::Headers;
use super::layout::{Column, Field};
use super::values;
use crate::merged::{EventsFile, MetadataValue};

/// Filters that can be undone here.
const FILTERS: [u16; 7] = [
    filter::FILTER_DEFLATE,
    filter::FILTER_SHUFFLE,
    filter::FILTER_FLETCHER32,
    filter::FILTER_SZIP,
    filter::FILTER_NBIT,
    filter::FILTER_SCALEOFFSET,
    filter::FILTER_LZF,
];
const INTEGERS: &str = "integers";
const TEXTS: &str = "texts";
/// No filter above makes less than one byte out of this many.
const LARGEST_RATIO: u64 = 1032;

/// A file opened for reading.
pub(super) struct Source<'a> {
    path: &'a Path,
    file: H5File,
    headers: RefCell<Headers>,
    /// Which file it is.
    stamp: EventsFile,
}

impl<'a> Source<'a> {
    pub(super) fn open(path: &'a Path) -> Result<Source<'a>, Error> {
        let stamp = stamp_of(path)?;
        // Whatever is wrong from here on is in the file.
        let for_headers = File::open(path).map_err(|source| Error::io(path, "open", source))?;
        let broken = |cause: String| Error::NotHdf5 { path: path.to_path_buf(), cause };
        // Published files do not change, so there is nothing to lock out, and some file systems
        // have no locks.
        let file = H5File::options().no_locking().open(path).map_err(|e| match e {
            Hdf5Error::Io(source) if source.kind() != std::io::ErrorKind::UnexpectedEof => {
                Error::io(path, "open", source)
            }
            other => broken(other.to_string()),
        })?;
        let headers = RefCell::new(Headers::new(for_headers).map_err(|e| broken(e.to_string()))?);
        let source = Source { path, file, headers, stamp };
        // It was opened more than once.
        source.check_is(&stamp_of(path)?)?;
        Ok(source)
    }

    pub(super) fn damaged(&self, object: &str, cause: impl ToString) -> Error {
        Error::damaged(self.path, object, cause)
    }

    pub(super) fn path(&self) -> &Path {
        self.path
    }

    /// Which file it is.
    pub(super) fn stamp(&self) -> &EventsFile {
        &self.stamp
    }

    /// An error unless it is this file.
    pub(super) fn check_is(&self, wanted: &EventsFile) -> Result<(), Error> {
        let replaced = || Error::Replaced { path: self.path.to_path_buf() };
        (self.stamp == *wanted).then_some(()).ok_or_else(replaced)
    }

    /// Names of the groups in the group at `path`.
    pub(super) fn group_names(&self, path: &str) -> Result<Vec<String>, Error> {
        let root = self.file.root_group();
        let group = if path.is_empty() { Ok(root) } else { root.group(path) };
        // Also groups of another place, to which there are links.
        let names = group.and_then(|group| group.link_names()).map_err(|e| self.damaged(path, e))?;
        let is_group = |name: &String| match path {
            "" => self.has_group(name),
            _ => self.has_group(&format!("{path}/{name}")),
        };
        Ok(names.into_iter().filter(is_group).collect())
    }

    pub(super) fn has_group(&self, path: &str) -> bool {
        self.file.root_group().group(path).is_ok()
    }

    pub(super) fn has_dataset(&self, object: &str) -> Result<bool, Error> {
        Ok(self.find(object)?.is_some())
    }

    /// Attributes of the group at `path`, from the root down; `None` when there is no such group.
    pub(super) fn attributes(&self, path: &[&str]) -> Result<Option<Vec<(String, MetadataValue)>>, Error> {
        let object = format!("the attributes of /{}", path.join("/"));
        let damaged = |cause: &dyn std::fmt::Display| Error::damaged(self.path, &object, cause);
        let Some(entries) = self.headers.borrow_mut().attributes(path).map_err(|e| damaged(&e))? else {
            return Ok(None);
        };
        let mut attributes = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(attribute) = entry.readable() else { continue };
            let value = values::value(attribute, &mut self.headers.borrow_mut()).map_err(|e| damaged(&e))?;
            attributes.extend(value.map(|value| (entry.name().to_string(), value)));
        }
        Ok(Some(attributes))
    }

    /// The dataset at `object`, or an error that every profile has one there.
    fn dataset(&self, object: &str) -> Result<H5Dataset, Error> {
        let missing = || Error::NotAProfile { path: self.path.to_path_buf(), object: object.to_string() };
        self.find(object)?.ok_or_else(missing)
    }

    fn find(&self, object: &str) -> Result<Option<H5Dataset>, Error> {
        match self.file.dataset(object) {
            Ok(dataset) => Ok(Some(dataset)),
            Err(Hdf5Error::NotFound(_) | Hdf5Error::DanglingLink { .. }) => Ok(None),
            Err(e) => Err(self.damaged(object, e)),
        }
    }

    /// Number of entries of a dataset, after checking that it is one-dimensional, can be decoded,
    /// and does not claim more than the file can hold.
    fn checked_len(&self, object: &str, dataset: &H5Dataset) -> Result<usize, Error> {
        let shape = dataset.shape();
        let [len] = shape[..] else {
            return Err(self.damaged(object, format!("it has {} dimensions where 1 is right", shape.len())));
        };
        let filters = dataset.filters().map_err(|e| self.damaged(object, e))?;
        if let Some(unknown) = filters.iter().find(|filter| !FILTERS.contains(&filter.id)) {
            return Err(self.unsupported(object, format!("it is compressed by {}", filter_name(unknown.id))));
        }
        let outside = dataset.external_files().is_ok_and(|files| !files.is_empty());
        if outside || dataset.storage_layout().is_ok_and(|layout| layout == StorageLayout::Virtual) {
            return Err(self.unsupported(object, "its data are in another file".into()));
        }
        let ratio = if filters.is_empty() { 1 } else { LARGEST_RATIO };
        let chunk = dataset.chunk_dims().unwrap_or_default().into_iter().fold(1, usize::saturating_mul);
        // A chunk is read as a whole, so it is bounded as the whole is.
        let claimed = (len.max(chunk) as u64).saturating_mul(dataset.element_size() as u64);
        if claimed > self.stamp.size.saturating_mul(ratio) {
            let cause =
                format!("it claims {claimed} bytes, more than the file of {} can hold", self.stamp.size);
            return Err(self.damaged(object, cause));
        }
        Ok(len)
    }

    fn unsupported(&self, object: &str, cause: String) -> Error {
        Error::Unsupported { path: self.path.to_path_buf(), object: object.to_string(), cause }
    }

    /// Number of entries of the dataset at `object`.
    pub(super) fn len(&self, object: &str) -> Result<usize, Error> {
        self.checked_len(object, &self.dataset(object)?)
    }

    /// A numeric dataset, from any integer type that holds its values.
    fn numbers<T: ReadNumeric>(&self, object: &str) -> Result<Vec<T>, Error> {
        let dataset = self.checked_dataset(object)?;
        self.chunks(object, &dataset)?;
        dataset.read_numeric_as().map_err(|e| self.damaged(object, e))
    }

    /// A dataset of 64-bit integers. Unsigned ones are taken bit by bit, since differences and
    /// the marks for unknown wrap around there.
    pub(super) fn integers(&self, object: &str) -> Result<Vec<i64>, Error> {
        let dataset = self.checked_dataset(object)?;
        self.chunks(object, &dataset)?;
        match dataset.datatype() {
            Ok(DatatypeMessage::FixedPoint { size: 8, signed: true, .. }) => dataset.read_raw::<i64>(),
            Ok(DatatypeMessage::FixedPoint { size: 8, signed: false, .. }) => {
                dataset.read_raw::<u64>().map(|values| values.into_iter().map(|value| value as i64).collect())
            }
            Ok(_) => dataset.read_numeric_as(),
            Err(e) => Err(e),
        }
        .map_err(|e| self.damaged(object, e))
    }

    /// The same for some entries of a dataset.
    pub(super) fn integers_of(
        &self,
        object: &str,
        dataset: &H5Dataset,
        entries: Range<usize>,
    ) -> Result<Vec<i64>, Error> {
        let (from, count) = ([entries.start], [entries.len()]);
        match dataset.datatype() {
            Ok(DatatypeMessage::FixedPoint { size: 8, signed: true, .. }) => {
                dataset.read_slice::<i64>(&from, &count)
            }
            Ok(DatatypeMessage::FixedPoint { size: 8, signed: false, .. }) => dataset
                .read_slice::<u64>(&from, &count)
                .map(|values| values.into_iter().map(|value| value as i64).collect()),
            Ok(_) => dataset.read_numeric_slice_as(&from, &count),
            Err(e) => Err(e),
        }
        .map_err(|e| self.damaged(object, e))
    }

    /// The dataset at `object`, of integers that can be read.
    pub(super) fn checked_dataset(&self, object: &str) -> Result<H5Dataset, Error> {
        let dataset = self.dataset(object)?;
        self.checked_len(object, &dataset)?;
        self.check_type(object, &dataset, INTEGERS)?;
        Ok(dataset)
    }

    /// An error for values that are of another kind than `wanted`, one of [`INTEGERS`] and [`TEXTS`].
    fn check_type(&self, object: &str, dataset: &H5Dataset, wanted: &'static str) -> Result<(), Error> {
        use DatatypeMessage as Type;
        let found = match dataset.datatype().map_err(|e| self.damaged(object, e))? {
            Type::FixedPoint { .. } | Type::Enum { .. } | Type::BitField { .. } => INTEGERS,
            Type::FixedString { .. } | Type::VarLenString { .. } => TEXTS,
            Type::FloatingPoint { .. } => "floating-point numbers",
            Type::Compound { .. } => "values of several members",
            _ => "values of another kind",
        };
        let (path, object) = (self.path.to_path_buf(), object.to_string());
        if found == wanted { Ok(()) } else { Err(Error::WrongType { path, object, found, wanted }) }
    }

    /// The chunks of the dataset at `object`; `None` where they are found by its library alone.
    ///
    /// # Errors
    /// Also when the tree of chunks is damaged.
    pub(super) fn chunks(&self, object: &str, dataset: &H5Dataset) -> Result<Option<Chunks>, Error> {
        let Some(&[len]) = dataset.chunk_dims().as_deref() else { return Ok(None) };
        let datatype = dataset.datatype().map_err(|e| self.damaged(object, e))?;
        let path: Vec<&str> = object.split('/').collect();
        let (headers, values) = (&mut *self.headers.borrow_mut(), dataset.total_elements());
        Chunks::find(headers, &path, &datatype, values, len).map_err(|e| self.damaged(object, e))
    }

    /// Reads a chunk of the dataset at `object` in place of what is in `values`.
    pub(super) fn read_chunk(
        &self,
        object: &str,
        chunks: &mut Chunks,
        number: usize,
        values: &mut Vec<i64>,
    ) -> Result<(), Error> {
        let read = chunks.read(&mut self.headers.borrow_mut(), number, values);
        read.map_err(|e| self.damaged(object, e))
    }

    /// A dataset of fixed or variable strings. What is no UTF-8 comes back with U+FFFD in it.
    pub(super) fn texts(&self, object: &str) -> Result<Vec<String>, Error> {
        let dataset = self.dataset(object)?;
        let len = self.checked_len(object, &dataset)?;
        self.check_type(object, &dataset, TEXTS)?;
        self.chunks(object, &dataset)?;
        let texts = dataset.read_strings_lossy().map_err(|e| self.damaged(object, e))?;
        if texts.len() != len {
            return Err(self.damaged(object, format!("it has {} of {len} strings", texts.len())));
        }
        Ok(texts)
    }

    /// Fills `rows` from the columns of `group`: all of one length, `rows.len()` unless that is 0.
    pub(super) fn table<T: Clone + Default>(
        &self,
        group: &str,
        columns: &[Column<T>],
        rows: &mut Vec<T>,
    ) -> Result<(), Error> {
        let object = |column: &Column<T>| format!("{group}/{}", column.name);
        // Lengths first: a row in memory takes more than an entry of a column, but not more
        // than one of each.
        for (position, column) in columns.iter().enumerate() {
            let len = self.len(&object(column))?;
            if position == 0 && rows.is_empty() {
                rows.resize(len, T::default());
            } else if len != rows.len() {
                let cause = format!("it has {len} entries where its neighbours have {}", rows.len());
                return Err(self.damaged(&object(column), cause));
            }
        }
        columns.iter().try_for_each(|column| self.column(&object(column), &column.field, rows))
    }

    fn column<T>(&self, object: &str, field: &Field<T>, rows: &mut [T]) -> Result<(), Error> {
        match field {
            Field::U32(_, set) => fill(rows, self.numbers(object)?, set),
            Field::U64(_, set) => fill(rows, self.numbers(object)?, set),
            Field::I64(_, set) => fill(rows, self.integers(object)?, set),
            Field::I8(_, set) => fill(rows, self.numbers(object)?, set),
            Field::Text(_, set) => {
                for (position, (row, text)) in rows.iter_mut().zip(self.texts(object)?).enumerate() {
                    let failed = |cause| self.damaged(object, format!("entry {position} {cause}"));
                    set(row, text).map_err(failed)?;
                }
            }
        }
        Ok(())
    }
}

/// The file that is at `path` now.
fn stamp_of(path: &Path) -> Result<EventsFile, Error> {
    let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, "open", e))?;
    if !metadata.is_file() && !metadata.is_dir() {
        let cause = "it is a pipe or a device, not a file that can be read anywhere";
        return Err(Error::io(path, "open", std::io::Error::other(cause)));
    }
    Ok(EventsFile::new(path, &metadata))
}

fn fill<T, V>(rows: &mut [T], values: Vec<V>, set: &fn(&mut T, V)) {
    rows.iter_mut().zip(values).for_each(|(row, value)| set(row, value));
}

fn filter_name(id: u16) -> String {
    match id {
        32015 => "zstd (filter 32015), which is not built in".into(),
        32004 => "lz4 (filter 32004), which is not built in".into(),
        32001 => "blosc (filter 32001), which is not built in".into(),
        other => format!("filter {other}, which is not known"),
    }
}
