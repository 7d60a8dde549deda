//! Whether a profile fits together: the rules that hold for writing one and for one just read.

use std::collections::HashSet;

use super::layout::{DURATIONS, EVENTS, INDEX, LINKED_PATHS, MESSAGES, OPTIONAL_EVENTS, PATHS};
use super::layout::{ROW_AGGREGATE, ROW_IDENTITY, START_DELTAS, WAITS};
use crate::merged::{Events, MAX_RANKS, MergedProfile, PathRow};

/// What does not fit, and the dataset that it would be in.
pub struct Mistake {
    pub object: String,
    pub cause: String,
}

fn mistake(group: &str, dataset: &str, cause: String) -> Result<(), Mistake> {
    Err(Mistake { object: format!("{group}/{dataset}"), cause })
}

/// Checks everything that the exporters rely on when they index one column by another.
pub fn check(profile: &MergedProfile) -> Result<(), Mistake> {
    check_columns(&profile.events)?;
    check_index(profile, profile.events.duration_ns.len())
}

/// The same for a profile whose events, `calls` of them, are elsewhere.
pub fn check_index(profile: &MergedProfile, calls: usize) -> Result<(), Mistake> {
    check_identity(profile)?;
    check_runs(profile, calls)?;
    check_paths(profile)?;
    let messages = profile.messages.iter().flatten().map(|row| (row.rank, row.path));
    check_users_of_paths(MESSAGES, profile, messages)?;
    let waits = profile.waits.iter().flatten().map(|row| (row.rank, row.path));
    check_users_of_paths(WAITS, profile, waits)?;
    match &profile.aggregates {
        Some(totals) if totals.len() != profile.rows.len() => mistake(
            INDEX,
            ROW_AGGREGATE[0].name,
            format!("has {} entries for {} rows", totals.len(), profile.rows.len()),
        ),
        _ => Ok(()),
    }
}

/// The columns of calls must be of one length.
pub fn check_columns(events: &Events) -> Result<(), Mistake> {
    let optional =
        OPTIONAL_EVENTS.iter().filter_map(|column| Some((column.name, (column.get)(events)?.len())));
    check_lengths(
        events.duration_ns.len(),
        [(START_DELTAS, events.start_ns.len())].into_iter().chain(optional),
    )
}

/// The same for columns of these names and lengths, which must be that of `calls` calls.
pub fn check_lengths<'a>(
    calls: usize,
    columns: impl IntoIterator<Item = (&'a str, usize)>,
) -> Result<(), Mistake> {
    match columns.into_iter().find(|(_, len)| *len != calls) {
        Some((name, len)) => {
            mistake(EVENTS, name, format!("has {len} entries where {DURATIONS} has {calls}"))
        }
        None => Ok(()),
    }
}

/// Region ids must name a region, and there is one row per rank, of those that a job can have, and region.
fn check_identity(profile: &MergedProfile) -> Result<(), Mistake> {
    let mut seen = HashSet::with_capacity(profile.rows.len());
    for (position, row) in profile.rows.iter().enumerate() {
        if row.region as usize >= profile.names.len() {
            let cause = format!("names region {} of {} in row {position}", row.region, profile.names.len());
            return mistake(INDEX, ROW_IDENTITY[0].name, cause);
        }
        if row.rank >= MAX_RANKS {
            let cause = format!("has rank {} in row {position}, and no job has so many", row.rank);
            return mistake(INDEX, ROW_IDENTITY[1].name, cause);
        }
        if !seen.insert((row.rank, row.region)) {
            let cause =
                format!("has region {} of rank {} twice, again in row {position}", row.region, row.rank);
            return mistake(INDEX, ROW_IDENTITY[0].name, cause);
        }
    }
    Ok(())
}

/// Paths must name a region that has a row, and come after the path they go on from, of one rank.
fn check_paths(profile: &MergedProfile) -> Result<(), Mistake> {
    let with_row: HashSet<_> = profile.rows.iter().map(|row| (row.rank, row.region)).collect();
    let tables = [(PATHS, &profile.paths), (LINKED_PATHS, &profile.linked_paths)];
    for (group, paths) in tables.into_iter().filter_map(|(group, paths)| Some((group, paths.as_ref()?))) {
        check_path_table(group, paths, &with_row)?;
    }
    Ok(())
}

/// Rows that belong to paths must name one of their rank.
fn check_users_of_paths(
    group: &'static str,
    profile: &MergedProfile,
    rows: impl Iterator<Item = (u32, u64)>,
) -> Result<(), Mistake> {
    let paths = profile.paths.as_deref().unwrap_or_default();
    for (position, (rank, path)) in rows.enumerate() {
        let named = usize::try_from(path).ok().and_then(|path| paths.get(path));
        if named.is_none_or(|path| path.rank != rank) {
            let cause = format!("has {path} in row {position}, which is no path of rank {rank}");
            return mistake(group, "paths", cause);
        }
    }
    Ok(())
}

fn check_path_table(
    group: &'static str,
    paths: &[PathRow],
    with_row: &HashSet<(u32, u32)>,
) -> Result<(), Mistake> {
    for (position, path) in paths.iter().enumerate() {
        if !with_row.contains(&(path.rank, path.region)) {
            let cause = format!("names region {} without a row, in path {position}", path.region);
            return mistake(group, "region_ids", cause);
        }
        let parent = usize::try_from(path.parent).ok();
        let is_sound = match parent {
            None => path.parent == -1,
            Some(parent) => parent < position && paths[parent].rank == path.rank,
        };
        if !is_sound {
            return mistake(group, "parents", format!("has {} for path {position}", path.parent));
        }
    }
    Ok(())
}

/// The rows' runs must lie inside the columns, and no call belongs to two rows.
fn check_runs(profile: &MergedProfile, calls: usize) -> Result<(), Mistake> {
    let mut runs: Vec<_> = profile.rows.iter().map(|row| (row.events.start, row.events.end)).collect();
    if let Some((start, end)) = runs.iter().find(|(start, end)| start > end || *end > calls) {
        return mistake(INDEX, "event_counts", format!("has a row of calls {start} to {end} of {calls}"));
    }
    runs.retain(|(start, end)| start < end);
    runs.sort_unstable();
    match runs.windows(2).find(|pair| pair[0].1 > pair[1].0) {
        Some(pair) => mistake(INDEX, "event_offsets", format!("has two rows that share call {}", pair[1].0)),
        None => Ok(()),
    }
}
