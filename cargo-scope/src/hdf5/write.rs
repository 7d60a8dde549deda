//! Writing the profile file.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use rust_hdf5::types::CompoundType;
use rust_hdf5::{DatatypeMessage, H5File, H5Group, H5Type, Hdf5Error};

use super::Error;
use super::check::{Mistake, check, check_columns, check_index};
use super::column::{self, Number};
use super::growing::Growing;
use super::layout::*;
use super::publish::Temporary;
use crate::merged::{Events, MergedProfile, MetadataValue, Row, Statistics};

/// Bytes of events from which on their columns are compressed.
const COMPRESS_FROM_BYTES: usize = 1 << 20;
/// Stands for a NUL in names as other readers see them.
const VISIBLE_NUL: &str = "\u{2400}";

/// Writes `profile` to `path`, by renaming a complete temporary sibling.
///
/// Names that no row refers to are left out. Event columns are compressed from 1 MiB on.
///
/// # Errors
/// When the profile contradicts itself or the file cannot be written. A previous file at `path`
/// then stays as it was, and nothing is left beside it.
///
/// # Examples
/// ```
/// use cargo_scope::hdf5;
/// use cargo_scope::merged::{MergedProfile, MetadataValue};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("profile.h5");
/// let label = ("label".to_string(), MetadataValue::Text("heat".into()));
/// hdf5::write(&MergedProfile { metadata: vec![label], ..MergedProfile::default() }, &path)?;
/// let profile = hdf5::read(&path)?;
/// assert_eq!(profile.metadata_value("label"), Some(&MetadataValue::Text("heat".into())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(profile: &MergedProfile, path: &Path) -> Result<(), Error> {
    check(profile).map_err(inconsistent(path))?;
    let mut writer = ProfileWriter::create(path)?;
    writer.append(&profile.rows, &profile.events)?;
    writer.finish(profile)
}

/// A profile file whose events come in pieces, so that they are never in memory all at once.
pub struct ProfileWriter {
    /// Final place of the file.
    path: PathBuf,
    temporary: Temporary,
    file: OpenFile,
    /// The columns of events in the order of the file, those that any piece has.
    columns: Vec<Growing>,
    /// Where they go, once they are so long that they are compressed.
    events: Option<H5Group>,
    calls: usize,
    /// By rank and region.
    statistics: HashMap<(u32, u32), Statistics>,
}

impl ProfileWriter {
    /// Begins a file that is to be at `path`; until it is finished it is a temporary sibling.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(path: &Path) -> Result<ProfileWriter, Error> {
        let temporary = Temporary::beside(path).map_err(|e| Error::io(path, "create", e))?;
        // The name is ours alone, so a lock protects nothing, and some file systems have none.
        let file = H5File::options()
            .no_locking()
            .create(temporary.path())
            .map_err(|e| Error::io(path, "create", io_error(e)))?;
        let columns = vec![Growing::new(START_DELTAS), Growing::new(DURATIONS)];
        Ok(ProfileWriter {
            path: path.to_path_buf(),
            temporary,
            file: OpenFile(Some(file)),
            columns,
            events: None,
            calls: 0,
            statistics: HashMap::new(),
        })
    }

    /// Appends calls and looks at those of `rows`, whose runs count from the first call of the file on.
    /// A column that only some pieces have says of the calls of others that it is not known.
    ///
    /// # Errors
    /// When the columns or runs do not fit together, or cannot be written.
    pub fn append(&mut self, rows: &[Row], events: &Events) -> Result<(), Error> {
        check_columns(events).map_err(inconsistent(&self.path))?;
        let calls = events.duration_ns.len();
        let mut runs = Vec::with_capacity(rows.len());
        for row in rows {
            let local = |at: usize| at.checked_sub(self.calls).filter(|&at| at <= calls);
            let run = local(row.events.start).zip(local(row.events.end)).filter(|(start, end)| start <= end);
            let Some((start, end)) = run else {
                let cause = format!("has a row of calls {} to {}", row.events.start, row.events.end);
                let mistake = Mistake { object: format!("{INDEX}/event_counts"), cause };
                return Err(inconsistent(&self.path)(mistake));
            };
            self.statistics.insert((row.rank, row.region), events.statistics(start..end));
            runs.push(start..end);
        }
        // Readers take task and waiting time together; zero is the schema's default.
        let needs = |column: &EventColumn| {
            (column.get)(events).is_some() || (column.name == AWAIT && events.task_ids.is_some())
        };
        for column in OPTIONAL_EVENTS.iter().filter(|column| needs(column)) {
            self.begin(column)?;
        }
        if (self.calls + calls) * self.columns.len() * size_of::<i64>() >= COMPRESS_FROM_BYTES {
            self.begin_compressing()?;
        }
        self.extend(START_DELTAS, calls, start_deltas(&runs, &events.start_ns))?;
        self.extend(DURATIONS, calls, |at| events.duration_ns[at])?;
        for column in OPTIONAL_EVENTS {
            match (column.get)(events) {
                Some(values) => self.extend(column.name, calls, |at| values[at])?,
                None => self.extend(column.name, calls, |_| column.unknown)?,
            }
        }
        self.calls += calls;
        Ok(())
    }

    /// Adds a column, which is not known of the calls so far.
    fn begin(&mut self, column: &EventColumn) -> Result<(), Error> {
        if self.columns.iter().any(|there| there.name() == column.name) {
            return Ok(());
        }
        self.columns.push(Growing::new(column.name));
        self.extend(column.name, self.calls, |_| column.unknown)
    }

    fn begin_compressing(&mut self) -> Result<(), Error> {
        if self.events.is_none() {
            self.events = Some(self.file.create_group(EVENTS).map_err(failed(&self.path, EVENTS))?);
        }
        Ok(())
    }

    /// Appends `len` values to a column, if there is such a one.
    fn extend(&mut self, name: &str, len: usize, value: impl Fn(usize) -> i64) -> Result<(), Error> {
        let Some(column) = self.columns.iter_mut().find(|column| column.name() == name) else {
            return Ok(());
        };
        let appended = column.append(self.events.as_ref(), len, value);
        appended.map_err(failed(&self.path, &format!("{EVENTS}/{name}")))
    }

    /// Writes all but the events of `profile`, and puts the file in its place.
    ///
    /// # Errors
    /// When the profile contradicts itself or the calls that were appended, or the file cannot be
    /// written. A previous file in its place then stays as it was, and nothing is left beside it.
    pub fn finish(self, profile: &MergedProfile) -> Result<(), Error> {
        let ProfileWriter { path, temporary, file, columns, events, calls, statistics } = self;
        let path = path.as_path();
        let writer = Writer { path, compress: events.is_some(), columns, events, statistics };
        let checked = check_index(profile, calls).map_err(inconsistent(path));
        let written = checked.and_then(|()| writer.write_profile(&file, profile));
        written?;
        file.close().map_err(failed(path, "the end"))?;
        temporary.publish(path).map_err(|e| Error::io(path, "rename a finished file to", e))
    }
}

/// A file that is closed without a word where it is not finished: left to its own, it would report a
/// failure besides the one that is on its way.
struct OpenFile(Option<H5File>);

impl OpenFile {
    fn close(mut self) -> Result<(), Hdf5Error> {
        self.0.take().map_or(Ok(()), H5File::close)
    }
}

impl Deref for OpenFile {
    type Target = H5File;

    fn deref(&self) -> &H5File {
        self.0.as_ref().expect("it is open until it is closed")
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let _ = self.0.take().map(H5File::close_no_sync);
    }
}

fn inconsistent(path: &Path) -> impl Fn(Mistake) -> Error + use<> {
    let path = path.to_path_buf();
    move |mistake| Error::Inconsistent { path: path.clone(), object: mistake.object, cause: mistake.cause }
}

fn failed(path: &Path, object: &str) -> impl Fn(Hdf5Error) -> Error + use<> {
    let (path, object) = (path.to_path_buf(), object.to_string());
    move |error| Error::Write { path: path.clone(), object: object.clone(), cause: cause(&error) }
}

fn io_error(error: Hdf5Error) -> std::io::Error {
    match error {
        Hdf5Error::Io(error) => error,
        other => std::io::Error::other(other),
    }
}

struct Writer<'a> {
    /// Final place of the file, for messages.
    path: &'a Path,
    compress: bool,
    columns: Vec<Growing>,
    events: Option<H5Group>,
    statistics: HashMap<(u32, u32), Statistics>,
}

impl Writer<'_> {
    fn write_profile(self, file: &H5File, profile: &MergedProfile) -> Result<(), Error> {
        let (names, rows) = used_regions(profile);
        let layout = if profile.aggregates.is_some() { AGGREGATE } else { COLUMNAR };
        file.set_attr_numeric(SCHEMA_ATTRIBUTE, &SCHEMA).map_err(self.failed(SCHEMA_ATTRIBUTE))?;
        file.set_attr_string(LAYOUT_ATTRIBUTE, layout).map_err(self.failed(LAYOUT_ATTRIBUTE))?;
        // The metadata is shown in the order in which it was collected.
        file.set_track_order(true).map_err(self.failed(METADATA))?;
        self.write_metadata(&self.group(file, METADATA)?, &profile.metadata)?;
        file.set_track_order(false).map_err(self.failed(METADATA))?;
        self.write_names(file, &names)?;
        let index = self.group(file, INDEX)?;
        self.write_table(&index, ROW_IDENTITY, &rows)?;
        self.write_table(&index, ROW_SOURCE, &rows)?;
        match &profile.aggregates {
            Some(totals) => self.write_table(&index, ROW_AGGREGATE, totals)?,
            None => {
                self.write_table(&index, ROW_RUN, &rows)?;
                self.write_table(&index, ROW_OPTIONAL, &rows)?;
                self.write_texts(&index, EVENT_METADATA, &vec![NO_EVENT_METADATA; rows.len()])?;
                self.write_statistics(&index, profile)?;
            }
        }
        self.write_group(file, PATHS, PATH_TABLE, profile.paths.as_deref())?;
        self.write_group(file, THREADS, THREAD_TABLE, profile.threads.as_deref())?;
        self.write_group(file, TASKS, TASK_TABLE, profile.tasks.as_deref())?;
        self.write_group(file, ASYNC_CALLS, ASYNC_TABLE, profile.async_calls.as_deref())?;
        self.write_group(file, POLLS, POLL_TABLE, profile.polls.as_deref())?;
        self.write_group(file, LINKS, LINK_TABLE, profile.links.as_deref())?;
        self.write_group(file, LINKED_PATHS, PATH_TABLE, profile.linked_paths.as_deref())?;
        self.write_group(file, MESSAGES, MESSAGE_TABLE, profile.messages.as_deref())?;
        self.write_group(file, WAITS, WAIT_TABLE, profile.waits.as_deref())?;
        self.write_group(file, CLOCKS, CLOCK_TABLE, profile.clocks.as_deref())?;
        if profile.aggregates.is_some() { Ok(()) } else { self.write_events(file) }
    }

    fn group(&self, file: &H5File, name: &str) -> Result<H5Group, Error> {
        file.create_group(name).map_err(self.failed(name))
    }

    fn write_metadata(&self, group: &H5Group, metadata: &[(String, MetadataValue)]) -> Result<(), Error> {
        for (key, value) in metadata {
            match value {
                MetadataValue::Text(text) => group.set_attr_string(key, text),
                MetadataValue::Integer(number) => group.set_attr_numeric(key, number),
                MetadataValue::Float(number) => group.set_attr_numeric(key, number),
                MetadataValue::List(texts) => group.set_attr_string_array(key, &borrowed(texts)),
            }
            .map_err(self.failed(&format!("{METADATA}/{key}")))?;
        }
        Ok(())
    }

    fn write_names(&self, file: &H5File, names: &[&str]) -> Result<(), Error> {
        let regions = self.group(file, REGIONS)?;
        if !names.iter().any(|name| name.contains('\0')) {
            return self.write_texts(&regions, NAMES, names);
        }
        let visible = without_nul(names);
        let visible: Vec<&str> = visible.iter().map(|name| &**name).collect();
        self.write_texts(&regions, NAMES, &visible)?;
        self.write_texts(&self.group(file, OWN)?, EXACT_NAMES, names)
    }

    /// Writes rows to a group of their own, where the profile has such rows.
    fn write_group<T>(
        &self,
        file: &H5File,
        name: &str,
        columns: &[Column<T>],
        rows: Option<&[T]>,
    ) -> Result<(), Error> {
        rows.map_or(Ok(()), |rows| self.write_table(&self.group(file, name)?, columns, rows))
    }

    fn write_table<T>(&self, group: &H5Group, columns: &[Column<T>], rows: &[T]) -> Result<(), Error> {
        for Column { name, field } in columns {
            match field {
                Field::U32(get, _) => self.write_numbers(group, name, rows.iter().map(get))?,
                Field::U64(get, _) => self.write_numbers(group, name, rows.iter().map(get))?,
                Field::I64(get, _) => self.write_numbers(group, name, rows.iter().map(get))?,
                Field::I8(get, _) => self.write_numbers(group, name, rows.iter().map(get))?,
                Field::Text(get, _) => {
                    let texts: Vec<Cow<'_, str>> = rows.iter().map(get).collect();
                    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
                    self.write_texts(group, name, &texts)?;
                }
            }
        }
        Ok(())
    }

    fn write_statistics(&self, group: &H5Group, profile: &MergedProfile) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(profile.rows.len() * STATISTICS_SIZE);
        for row in &profile.rows {
            let statistics = self.statistics.get(&(row.rank, row.region)).copied().unwrap_or_default();
            bytes.extend(STATISTICS_MEMBERS.iter().flat_map(|(_, member)| member.bytes(&statistics)));
        }
        group
            .new_dataset::<u8>()
            .datatype(statistics_type().to_datatype())
            .shape([profile.rows.len()])
            .create(STATISTICS)
            .and_then(|dataset| if bytes.is_empty() { Ok(()) } else { dataset.write_raw_bytes(&bytes) })
            .map_err(self.failed_in(group, STATISTICS))
    }

    fn write_events(self, file: &H5File) -> Result<(), Error> {
        let group = match self.events {
            Some(group) => group,
            None => self.group(file, EVENTS)?,
        };
        for column in self.columns {
            let object = format!("{EVENTS}/{}", column.name());
            column.finish(&group, self.compress).map_err(failed(self.path, &object))?;
        }
        Ok(())
    }

    fn write_texts(&self, group: &H5Group, name: &str, texts: &[&str]) -> Result<(), Error> {
        let written = if texts.is_empty() {
            // The call for texts reserves a block of no bytes, which HDF5 2.0 takes for damage.
            let strings = DatatypeMessage::vlen_string_utf8();
            group.new_dataset::<u8>().datatype(strings).shape([0]).create(name)
        } else {
            group.write_vlen_strings(name, texts)
        };
        written.map(drop).map_err(self.failed_in(group, name))
    }

    /// Writes a numeric column, compressed when it is large.
    fn write_numbers<T: Number>(
        &self,
        group: &H5Group,
        name: &str,
        values: impl ExactSizeIterator<Item = T>,
    ) -> Result<(), Error> {
        column::write(group, name, self.compress, values).map_err(self.failed_in(group, name))
    }

    fn failed(&self, object: &str) -> impl Fn(Hdf5Error) -> Error + use<> {
        failed(self.path, object)
    }

    fn failed_in(&self, group: &H5Group, dataset: &str) -> impl Fn(Hdf5Error) -> Error + use<> {
        self.failed(&format!("{}/{dataset}", group.name().trim_start_matches('/')))
    }
}

/// What the writer says, without the layers that it went through.
fn cause(error: &Hdf5Error) -> String {
    let text = error.to_string();
    text.trim_start_matches("hdf5-io error: ").trim_start_matches("I/O error: ").to_string()
}

/// The starts as the file has them: per run the first one as it is, then differences.
fn start_deltas(runs: &[Range<usize>], starts: &[i64]) -> impl Fn(usize) -> i64 {
    let mut absolute = vec![true; starts.len()];
    for run in runs {
        absolute[run.clone()].iter_mut().skip(1).for_each(|a| *a = false);
    }
    move |position| match absolute[position] {
        true => starts[position],
        false => starts[position].wrapping_sub(starts[position - 1]),
    }
}

/// The names that rows refer to, and the rows with their ids: the reference fails on a name
/// without a row.
fn used_regions(profile: &MergedProfile) -> (Vec<&str>, Cow<'_, [Row]>) {
    let ids = profile.ids_without_unused();
    let used = profile.names.iter().zip(&ids).filter(|(_, id)| id.is_some());
    let names: Vec<&str> = used.map(|(name, _)| name.as_str()).collect();
    if names.len() == profile.names.len() {
        return (names, Cow::Borrowed(&profile.rows));
    }
    let mut rows = profile.rows.clone();
    rows.iter_mut().for_each(|row| row.region = ids[row.region as usize].unwrap_or_default());
    (names, Cow::Owned(rows))
}

/// Names without the NUL characters at which every reader in C would end them, still distinct.
fn without_nul<'a>(names: &[&'a str]) -> Vec<Cow<'a, str>> {
    let mut taken: HashSet<Cow<'_, str>> = names.iter().map(|name| Cow::Borrowed(*name)).collect();
    let replaced = names.iter().map(|&name| {
        if !name.contains('\0') {
            return Cow::Borrowed(name);
        }
        let mut visible = name.replace('\0', VISIBLE_NUL);
        while !taken.insert(Cow::Owned(visible.clone())) {
            visible.push_str(VISIBLE_NUL);
        }
        Cow::Owned(visible)
    });
    replaced.collect()
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

fn borrowed(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}
