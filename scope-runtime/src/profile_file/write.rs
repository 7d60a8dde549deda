//! Writing the profile file.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::Error;
use super::check::{Mistake, check, check_columns, check_index};
use super::columns::{DURATION, EventColumns, FIRST_OPTIONAL, Failure, START_DELTA};
use super::layout::*;
use super::library::{CHUNK, ColumnChunk, Library, Number};
use super::placing::{Placing, has_column};
use super::publish::Temporary;
use crate::merged::{Events, MergedProfile, MetadataValue, Row, Statistics};

/// Bytes of events from which on their columns are compressed.
const COMPRESS_FROM_BYTES: usize = 1 << 20;
/// Columns of at most this many bytes stay as they are, as in files of the reference.
const PLAIN_BYTES: usize = 64 << 10;
/// Stands for a NUL in texts: for every reader in C a text ends there.
const VISIBLE_NUL: &str = "\u{2400}";

/// Writes `profile` to `path`, by renaming a complete temporary sibling.
///
/// Names that no row refers to are left out. Event columns are compressed from 1 MiB on.
///
/// # Errors
/// When the profile contradicts itself or the file cannot be written. A previous file at `path`
/// then stays as it was, and nothing is left beside it.
pub fn write<L: Library>(profile: &MergedProfile, path: &Path) -> Result<(), Error> {
    check(profile).map_err(|mistake| Error::inconsistent(path, mistake))?;
    let mut writer = ProfileWriter::<L>::create(path)?;
    writer.append(&profile.rows, &profile.events)?;
    writer.finish(profile)
}

/// A profile file whose events come in pieces, so that they are never in memory all at once.
pub struct ProfileWriter<L: Library> {
    /// Final place of the file.
    path: PathBuf,
    temporary: Temporary,
    file: L,
    /// The columns of events in the order of the file, those that any piece has.
    columns: EventColumns<L>,
    statistics: StatisticsOfRows,
}

impl<L: Library> ProfileWriter<L> {
    /// Begins a file that is to be at `path`; until it is finished it is a temporary sibling.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(path: &Path) -> Result<ProfileWriter<L>, Error> {
        let temporary = Temporary::beside(path).map_err(|e| Error::io(path, "create", e))?;
        let file = L::create(temporary.path()).map_err(|e| Error::io(path, "create", e))?;
        let columns = EventColumns::new();
        Ok(ProfileWriter { path: path.to_path_buf(), temporary, file, columns, statistics: HashMap::new() })
    }

    /// Appends calls and looks at those of `rows`, whose runs count from the first call of the file on.
    /// A column that only some pieces have says of the calls of others that it is not known.
    ///
    /// # Errors
    /// When the columns or runs do not fit together, or cannot be written.
    pub fn append(&mut self, rows: &[Row], events: &Events) -> Result<(), Error> {
        check_columns(events).map_err(|mistake| Error::inconsistent(&self.path, mistake))?;
        let (first, calls) = (self.columns.len(), events.duration_ns.len());
        let mut runs = Vec::with_capacity(rows.len());
        for row in rows {
            let local = |at: usize| at.checked_sub(first).filter(|&at| at <= calls);
            let run = local(row.events.start).zip(local(row.events.end)).filter(|(start, end)| start <= end);
            let Some((start, end)) = run else {
                let cause = format!("has a row of calls {} to {}", row.events.start, row.events.end);
                let mistake = Mistake { object: format!("{INDEX}/event_counts"), cause };
                return Err(Error::inconsistent(&self.path, mistake));
            };
            self.note_statistics(row, events.statistics(start..end));
            runs.push(start..end);
        }
        self.reserve(calls, |column| column.is_needed_by(events))?;
        let start_delta = start_deltas(&runs, &events.start_ns);
        let optional = self.columns.optional().map(|(_, column)| ((column.get)(events), column.unknown));
        let optional: Vec<_> = optional.collect();
        let appended = self.columns.append(first, calls, |column, call| match column {
            START_DELTA => start_delta(call),
            DURATION => events.duration_ns[call],
            _ => {
                let (values, unknown) = optional[column - FIRST_OPTIONAL];
                values.map_or(unknown, |values| values[call])
            }
        });
        appended.map_err(failed(&self.path))
    }

    /// Makes room for the calls of one more rank, those of these runs, which then are told in any order;
    /// `has_tasks` says whether any are of tasks.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn place(&mut self, runs: &[Range<usize>], has_tasks: bool) -> Result<Placing<'_, L>, Error> {
        let (first, calls) = (self.columns.len(), runs.last().map_or(0, |run| run.end));
        self.reserve(calls, |column| has_column(column.name, has_tasks))?;
        Ok(Placing::new(&mut self.columns, &self.path, first, runs, has_tasks))
    }

    /// Notes the statistics of a row.
    pub(crate) fn note_statistics(&mut self, row: &Row, statistics: Statistics) {
        self.statistics.insert((row.rank, row.region), statistics);
    }

    /// Makes room for calls that have these optional columns.
    fn reserve(&mut self, calls: usize, has_column: impl Fn(&EventColumn) -> bool) -> Result<(), Error> {
        let failed = failed(&self.path);
        for column in OPTIONAL_EVENTS.iter().filter(|column| has_column(column)) {
            self.columns.add(column).map_err(&failed)?;
        }
        self.columns.reserve(calls);
        if is_compressed(self.columns.count(), self.columns.len()) {
            self.columns.compress(&self.file).map_err(&failed)?;
        }
        Ok(())
    }

    /// Writes all but the events of `profile`, and puts the file in its place.
    ///
    /// # Errors
    /// When the profile contradicts itself or the calls that were appended, or the file cannot be
    /// written. A previous file in its place then stays as it was, and nothing is left beside it.
    pub fn finish(self, profile: &MergedProfile) -> Result<(), Error> {
        let ProfileWriter { path, temporary, file, columns, statistics } = self;
        let path = path.as_path();
        let compress = is_compressed(columns.count(), columns.len());
        let writer = Writer { path, file: &file, compress, statistics: &statistics };
        writer.write_profile(profile, columns.len())?;
        if profile.aggregates.is_none() {
            columns.finish(&file).map_err(failed(path))?;
        }
        file.close().map_err(|cause| Error::write(path, "the end", cause))?;
        temporary.publish(path).map_err(|e| Error::rename(path, e))
    }
}

/// Makes an error of what could not be written to the file that is to be at `path`.
pub(super) fn failed(path: &Path) -> impl Fn(Failure) -> Error {
    move |(object, cause)| Error::write(path, &object, cause)
}

/// Statistics of calls by rank and region.
pub(super) type StatisticsOfRows = HashMap<(u32, u32), Statistics>;

/// Whether columns are compressed in a file with so many columns of so many calls.
pub(super) fn is_compressed(columns: usize, calls: usize) -> bool {
    calls * columns * size_of::<i64>() >= COMPRESS_FROM_BYTES
}

pub(super) struct Writer<'a, L: Library> {
    /// Final place of the file, for messages.
    pub(super) path: &'a Path,
    pub(super) file: &'a L,
    pub(super) compress: bool,
    pub(super) statistics: &'a StatisticsOfRows,
}

/// A group with its name, for messages.
pub(super) struct Group<'n, L: Library> {
    name: &'n str,
    pub(super) group: L::Group,
}

impl<L: Library> Writer<'_, L> {
    /// Writes all but the events, of which there are those of `calls` calls.
    pub(super) fn write_profile(&self, profile: &MergedProfile, calls: usize) -> Result<(), Error> {
        check_index(profile, calls).map_err(|mistake| Error::inconsistent(self.path, mistake))?;
        let (names, rows) = used_regions(profile);
        let layout = if profile.aggregates.is_some() { AGGREGATE } else { COLUMNAR };
        let version = [
            (SCHEMA_ATTRIBUTE.into(), MetadataValue::Integer(SCHEMA)),
            (LAYOUT_ATTRIBUTE.into(), MetadataValue::Text(layout.into())),
        ];
        let root = Group { name: "", group: self.file.root().map_err(self.failed("the root"))? };
        self.write_attributes(&root, &version)?;
        // The metadata is shown in the order in which it was collected.
        let metadata = self.file.group(METADATA, true).map_err(self.failed(METADATA))?;
        self.write_attributes(&Group { name: METADATA, group: metadata }, &profile.metadata)?;
        self.write_names(&names)?;
        let index = self.group(INDEX)?;
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
        self.write_group(PATHS, PATH_TABLE, profile.paths.as_deref())?;
        self.write_group(THREADS, THREAD_TABLE, profile.threads.as_deref())?;
        self.write_group(TASKS, TASK_TABLE, profile.tasks.as_deref())?;
        self.write_group(ASYNC_CALLS, ASYNC_TABLE, profile.async_calls.as_deref())?;
        self.write_group(POLLS, POLL_TABLE, profile.polls.as_deref())?;
        self.write_group(LINKS, LINK_TABLE, profile.links.as_deref())?;
        self.write_group(LINKED_PATHS, PATH_TABLE, profile.linked_paths.as_deref())?;
        self.write_group(MESSAGES, MESSAGE_TABLE, profile.messages.as_deref())?;
        self.write_group(WAITS, WAIT_TABLE, profile.waits.as_deref())?;
        self.write_group(CLOCKS, CLOCK_TABLE, profile.clocks.as_deref())
    }

    pub(super) fn group<'n>(&self, name: &'n str) -> Result<Group<'n, L>, Error> {
        let group = self.file.group(name, false).map_err(self.failed(name))?;
        Ok(Group { name, group })
    }

    fn write_attributes(
        &self,
        group: &Group<'_, L>,
        attributes: &[(String, MetadataValue)],
    ) -> Result<(), Error> {
        for (name, value) in attributes {
            L::attribute(&group.group, name, &without_nul(value)).map_err(self.failed_in(group, name))?;
        }
        Ok(())
    }

    fn write_names(&self, names: &[&str]) -> Result<(), Error> {
        let regions = self.group(REGIONS)?;
        if !names.iter().any(|name| name.contains('\0')) {
            return self.write_texts(&regions, NAMES, names);
        }
        let visible = distinct_without_nul(names);
        let visible: Vec<&str> = visible.iter().map(|name| &**name).collect();
        self.write_texts(&regions, NAMES, &visible)?;
        let exact: Vec<String> =
            names.iter().map(|&name| serde_json::Value::from(name).to_string()).collect();
        let exact: Vec<&str> = exact.iter().map(String::as_str).collect();
        self.write_texts(&self.group(OWN)?, EXACT_NAMES, &exact)
    }

    /// Writes rows to a group of their own, where the profile has such rows.
    fn write_group<T>(&self, name: &str, columns: &[Column<T>], rows: Option<&[T]>) -> Result<(), Error> {
        rows.map_or(Ok(()), |rows| self.write_table(&self.group(name)?, columns, rows))
    }

    fn write_table<T>(&self, group: &Group<'_, L>, columns: &[Column<T>], rows: &[T]) -> Result<(), Error> {
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

    fn write_statistics(&self, group: &Group<'_, L>, profile: &MergedProfile) -> Result<(), Error> {
        let of_row = |row: &Row| {
            let statistics = self.statistics.get(&(row.rank, row.region)).copied().unwrap_or_default();
            statistics_bytes(&statistics)
        };
        let values: Vec<_> = profile.rows.iter().map(of_row).collect();
        L::statistics(&group.group, STATISTICS, &values).map_err(self.failed_in(group, STATISTICS))
    }

    fn write_texts(&self, group: &Group<'_, L>, name: &str, texts: &[&str]) -> Result<(), Error> {
        let visible: Vec<Cow<'_, str>> = texts.iter().map(|text| visible(text)).collect();
        let visible: Vec<&str> = visible.iter().map(|text| &**text).collect();
        L::texts(&group.group, name, &visible).map_err(self.failed_in(group, name))
    }

    /// Writes a numeric column, compressed when it is large.
    fn write_numbers<T: Number>(
        &self,
        group: &Group<'_, L>,
        name: &str,
        values: impl ExactSizeIterator<Item = T>,
    ) -> Result<(), Error> {
        let written = if self.compress && values.len() * size_of::<T>() > PLAIN_BYTES {
            write_compressed::<L, T>(&group.group, name, values)
        } else {
            L::numbers(&group.group, name, T::numbers(&values.collect::<Vec<T>>()))
        };
        written.map_err(self.failed_in(group, name))
    }

    fn failed(&self, object: &str) -> impl Fn(String) -> Error {
        move |cause| Error::write(self.path, object, cause)
    }

    fn failed_in(&self, group: &Group<'_, L>, dataset: &str) -> impl Fn(String) -> Error {
        let object = format!("{}/{dataset}", group.name);
        move |cause| Error::write(self.path, &object, cause)
    }
}

/// Writes as many chunks at a time as the library likes, so that a column is never in memory a second
/// time.
fn write_compressed<L: Library, T: Number>(
    group: &L::Group,
    name: &str,
    mut values: impl ExactSizeIterator<Item = T>,
) -> Result<(), String> {
    let len = values.len();
    let mut column = [L::column(group, name, T::numbers(&[]))?];
    let mut batch = Vec::with_capacity(CHUNK * L::chunks_at_a_time());
    let mut first = 0;
    while values.len() > 0 {
        batch.clear();
        batch.extend(values.by_ref().take(batch.capacity()));
        let chunk = |(chunk, values)| ColumnChunk { column: 0, chunk, values: T::numbers(values) };
        let chunks: Vec<_> = (first..).zip(batch.chunks(CHUNK)).map(chunk).collect();
        L::write(&mut column, &chunks).map_err(|(_, cause)| cause)?;
        first += chunks.len();
    }
    let [column] = column;
    L::end(column, len)
}

/// The starts as the file has them: per run the first one as it is, then differences.
pub(super) fn start_deltas(runs: &[Range<usize>], starts: &[i64]) -> impl Fn(usize) -> i64 {
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

fn statistics_bytes(statistics: &Statistics) -> [u8; STATISTICS_SIZE] {
    let mut bytes = [0; STATISTICS_SIZE];
    let places = bytes.as_chunks_mut().0.iter_mut();
    places.zip(STATISTICS_MEMBERS).for_each(|(place, (_, member))| *place = member.bytes(statistics));
    bytes
}

/// A text with signs in place of NUL characters.
fn visible(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', VISIBLE_NUL)) } else { Cow::Borrowed(text) }
}

fn without_nul(value: &MetadataValue) -> MetadataValue {
    match value {
        MetadataValue::Text(text) => MetadataValue::Text(visible(text).into_owned()),
        MetadataValue::List(texts) => {
            MetadataValue::List(texts.iter().map(|text| visible(text).into_owned()).collect())
        }
        MetadataValue::Integer(_) | MetadataValue::Float(_) => value.clone(),
    }
}

/// Names with signs in place of NUL characters, still distinct.
fn distinct_without_nul<'a>(names: &[&'a str]) -> Vec<Cow<'a, str>> {
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
