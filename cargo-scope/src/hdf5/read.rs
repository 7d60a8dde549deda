//! Reading the profile file.

use std::path::Path;

use super::Error;
use super::check::{check, check_index, check_lengths};
use super::layout::*;
use super::schema1;
use super::source::Source;
use crate::merged::{Events, EventsFile, MergedProfile, MetadataValue, Row};
use crate::told_apart::told_apart;

/// Reads the profile file at `path`: schemas 1 to 3, columnar and aggregate, of any writer.
///
/// Names without a row are left out, so that [`MergedProfile::names`] holds what was recorded.
///
/// # Errors
/// When the file cannot be opened, is no profile, is damaged or truncated, is of an unknown
/// version, or uses a filter that is not built in.
pub fn read(path: &Path) -> Result<MergedProfile, Error> {
    read_profile(&Source::open(path)?, true)
}

/// As [`read`], the file of which [`read_totals`] has read all but the calls.
///
/// # Errors
/// Also when another file is there now.
pub fn read_again(file: &EventsFile) -> Result<MergedProfile, Error> {
    let source = Source::open(&file.path)?;
    source.check_is(file)?;
    read_profile(&source, true)
}

/// The same without the calls, which are read where they are when they are needed: takes memory for regions
/// and paths only, however many calls there are. Files of schema 1 are read as a whole.
///
/// # Errors
/// As for [`read`].
pub fn read_totals(path: &Path) -> Result<MergedProfile, Error> {
    read_profile(&Source::open(path)?, false)
}

fn read_profile(source: &Source, with_calls: bool) -> Result<MergedProfile, Error> {
    let root = source.attributes(&[])?.unwrap_or_default();
    let version = schema_version(source, &root)?;
    let metadata = source.attributes(&[METADATA])?.unwrap_or_default();
    let mut profile = if version == 1 {
        schema1::read(source)?
    } else {
        let aggregate = aggregate_layout(source, &root)?;
        read_shared_columns(source, aggregate, with_calls)?
    };
    profile.metadata = metadata;
    let checked = match profile.events_in {
        Some(_) => {
            let columns = lengths(source)?;
            let calls = columns[0].1;
            check_lengths(calls, columns).and_then(|()| check_index(&profile, calls))
        }
        None => check(&profile),
    };
    checked.map_err(|mistake| source.damaged(&mistake.object, format!("it {}", mistake.cause)))?;
    if profile.aggregates.is_none() && profile.events_in.is_none() {
        sum_start_deltas(source, &mut profile)?;
    }
    profile.drop_unused_names();
    Ok(profile)
}

/// Version of the file; files of the first version do not say it.
fn schema_version(source: &Source, root: &[(String, MetadataValue)]) -> Result<i64, Error> {
    let found = root.iter().find(|(name, _)| name == SCHEMA_ATTRIBUTE).map(|(_, value)| value);
    match found {
        None => Ok(1),
        Some(&MetadataValue::Integer(version)) if (1..=SCHEMA).contains(&version) => Ok(version),
        Some(other) => Err(unknown(source, SCHEMA_ATTRIBUTE, other, "1 to 3")),
    }
}

/// Whether the file holds totals in place of events.
fn aggregate_layout(source: &Source, root: &[(String, MetadataValue)]) -> Result<bool, Error> {
    match root.iter().find(|(name, _)| name == LAYOUT_ATTRIBUTE).map(|(_, value)| value) {
        None => Ok(false),
        Some(MetadataValue::Text(layout)) if layout == COLUMNAR => Ok(false),
        Some(MetadataValue::Text(layout)) if layout == AGGREGATE => Ok(true),
        Some(other) => Err(unknown(source, LAYOUT_ATTRIBUTE, other, "columnar and aggregate")),
    }
}

fn unknown(source: &Source, attribute: &'static str, value: &MetadataValue, known: &'static str) -> Error {
    let found = match value {
        MetadataValue::Text(text) => format!("`{text}`"),
        MetadataValue::Integer(number) => number.to_string(),
        MetadataValue::Float(number) => format!("{number:?}"),
        MetadataValue::List(texts) => format!("{texts:?}"),
    };
    Error::UnknownVersion { path: source.path().to_path_buf(), attribute, found, known }
}

/// Reads a file of schema 2 or 3, whose ranks share the columns. Starts are still as stored.
fn read_shared_columns(source: &Source, aggregate: bool, with_calls: bool) -> Result<MergedProfile, Error> {
    // What is of one name is added up, and different regions are not one. Names that are no UTF-8 may look alike, too.
    let names = told_apart(read_names(source)?, |name, number| format!("{name} #{number}"));
    let mut profile = MergedProfile { names, ..MergedProfile::default() };
    source.table(INDEX, ROW_IDENTITY, &mut profile.rows)?;
    if aggregate {
        let mut totals = Vec::new();
        source.table(INDEX, ROW_AGGREGATE, &mut totals)?;
        profile.aggregates = Some(totals);
        read_aggregate_source(source, &mut profile.rows)?;
    } else {
        source.table(INDEX, ROW_SOURCE, &mut profile.rows)?;
        source.table(INDEX, ROW_RUN, &mut profile.rows)?;
        if source.has_dataset(&format!("{INDEX}/{EXCLUSIVE_TOTALS}"))? {
            source.table(INDEX, ROW_OPTIONAL, &mut profile.rows)?;
        }
        if with_calls {
            profile.events = read_events(source)?;
        } else {
            profile.events_in = Some(source.stamp().clone());
        }
    }
    profile.paths = read_group(source, PATHS, PATH_TABLE)?;
    profile.threads = read_group(source, THREADS, THREAD_TABLE)?;
    profile.tasks = read_group(source, TASKS, TASK_TABLE)?;
    profile.async_calls = read_group(source, ASYNC_CALLS, ASYNC_TABLE)?;
    profile.polls = read_group(source, POLLS, POLL_TABLE)?;
    profile.links = read_group(source, LINKS, LINK_TABLE)?;
    profile.linked_paths = read_group(source, LINKED_PATHS, PATH_TABLE)?;
    profile.messages = read_group(source, MESSAGES, MESSAGE_TABLE)?;
    profile.waits = read_group(source, WAITS, WAIT_TABLE)?;
    profile.clocks = read_group(source, CLOCKS, CLOCK_TABLE)?;
    Ok(profile)
}

/// The rows of a group that not every file has.
fn read_group<T: Clone + Default>(
    source: &Source,
    group: &str,
    columns: &[Column<T>],
) -> Result<Option<Vec<T>>, Error> {
    let mut is_there = false;
    for column in columns {
        is_there = is_there || source.has_dataset(&format!("{group}/{}", column.name))?;
    }
    if !is_there {
        return Ok(None);
    }
    let mut rows = Vec::new();
    source.table(group, columns, &mut rows)?;
    Ok(Some(rows))
}

fn read_names(source: &Source) -> Result<Vec<String>, Error> {
    let exact = format!("{OWN}/{EXACT_NAMES}");
    if source.has_dataset(&exact)? {
        let names = source.texts(&exact)?.into_iter().map(|name| serde_json::from_str(&name));
        let names: Result<_, serde_json::Error> = names.collect();
        return names.map_err(|error| source.damaged(&exact, format!("it holds no JSON string: {error}")));
    }
    source.texts(&format!("{REGIONS}/{NAMES}"))
}

/// The aggregate layout of the reference leaves the source columns empty or out.
fn read_aggregate_source(source: &Source, rows: &mut Vec<Row>) -> Result<(), Error> {
    for column in ROW_SOURCE {
        let object = format!("{INDEX}/{}", column.name);
        if !source.has_dataset(&object)? || source.len(&object)? != rows.len() {
            rows.iter_mut().for_each(|row| row.source_line = NO_LINE);
            return Ok(());
        }
    }
    source.table(INDEX, ROW_SOURCE, rows)
}

/// Names and lengths of the columns of calls, all of which must be as long as the first.
fn lengths(source: &Source) -> Result<Vec<(&'static str, usize)>, Error> {
    let times = time_columns(source)?;
    let mut lengths = Vec::new();
    for name in times.into_iter().chain(OPTIONAL_EVENTS.iter().map(|column| column.name)) {
        let object = format!("{EVENTS}/{name}");
        if times.contains(&name) || source.has_dataset(&object)? {
            lengths.push((name, source.len(&object)?));
        }
    }
    Ok(lengths)
}

/// Reads the columns of all calls. With absolute columns the durations are computed here; the
/// differences of schema 3 need the rows, and are summed later.
fn read_events(source: &Source) -> Result<Events, Error> {
    let column = |name: &str| source.integers(&format!("{EVENTS}/{name}"));
    let [ends, starts] = time_columns(source)?;
    let (start_ns, mut duration_ns) = (column(starts)?, column(ends)?);
    if ends == END_TIMES {
        durations_of_ends(&mut duration_ns, &start_ns);
    }
    let mut events = Events { start_ns, duration_ns, ..Events::default() };
    for optional in OPTIONAL_EVENTS {
        if source.has_dataset(&format!("{EVENTS}/{}", optional.name))? {
            (optional.set)(&mut events, column(optional.name)?);
        }
    }
    Ok(events)
}

/// Makes durations of the ends of calls.
pub(super) fn durations_of_ends(ends: &mut [i64], starts: &[i64]) {
    ends.iter_mut().zip(starts).for_each(|(end, start)| *end = end.wrapping_sub(*start));
}

/// The columns of ends, or durations, and of starts.
pub(super) fn time_columns(source: &Source) -> Result<[&'static str; 2], Error> {
    Ok(if is_delta_encoded(source)? { [DURATIONS, START_DELTAS] } else { [END_TIMES, START_TIMES] })
}

/// Whether starts are differences is a matter of which column is there, not of the version.
fn is_delta_encoded(source: &Source) -> Result<bool, Error> {
    source.has_dataset(&format!("{EVENTS}/{START_DELTAS}"))
}

/// Turns the differences of each row into absolute starts, in place.
fn sum_start_deltas(source: &Source, profile: &mut MergedProfile) -> Result<(), Error> {
    if !is_delta_encoded(source)? {
        return Ok(());
    }
    for row in &profile.rows {
        profile.events.start_ns[row.events.clone()].iter_mut().fold(0i64, |sum, delta| {
            *delta = sum.wrapping_add(*delta);
            *delta
        });
    }
    Ok(())
}
