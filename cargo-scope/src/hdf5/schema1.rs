//! Files of schema 1: a group for each rank and region, `rank<N>/regions/<name>`.

use super::Error;
use super::layout::{END_TIMES, METADATA, NO_LINE, OPTIONAL_EVENTS, START_TIMES};
use super::source::Source;
use crate::merged::{MergedProfile, MetadataValue, Row};

/// Reads the regions of all ranks.
///
/// An optional column that only some regions have is filled up with -1 for the others.
pub(super) fn read(source: &Source) -> Result<MergedProfile, Error> {
    let mut profile = MergedProfile::default();
    for (rank, group) in rank_groups(source)? {
        let regions = format!("{group}/regions");
        if !source.has_group(&regions) {
            continue;
        }
        for name in source.group_names(&regions)? {
            read_region(source, &mut profile, rank, &group, &name)?;
        }
    }
    if profile.rows.is_empty() && !source.has_group(METADATA) {
        let object = "attribute `scope_profiler_schema` and no group `rank0/regions`".into();
        return Err(Error::NotAProfile { path: source.path().to_path_buf(), object });
    }
    Ok(profile)
}

/// Groups called `rank<N>`, by N.
fn rank_groups(source: &Source) -> Result<Vec<(u32, String)>, Error> {
    let names = source.group_names("")?.into_iter();
    let mut ranks: Vec<_> =
        names.filter_map(|name| Some((name.strip_prefix("rank")?.parse().ok()?, name))).collect();
    ranks.sort();
    Ok(ranks)
}

fn read_region(
    source: &Source,
    profile: &mut MergedProfile,
    rank: u32,
    group: &str,
    name: &str,
) -> Result<(), Error> {
    let object = format!("{group}/regions/{name}");
    let start_ns = source.integers(&format!("{object}/{START_TIMES}"))?;
    let end_ns = source.integers(&format!("{object}/{END_TIMES}"))?;
    if end_ns.len() != start_ns.len() {
        let cause = format!("it has {} entries where {START_TIMES} has {}", end_ns.len(), start_ns.len());
        return Err(source.damaged(&format!("{object}/{END_TIMES}"), cause));
    }
    let first = profile.events.start_ns.len();
    let last = first + start_ns.len();
    let durations = end_ns.iter().zip(&start_ns).map(|(end, start)| end.wrapping_sub(*start));
    profile.events.duration_ns.extend(durations);
    profile.events.start_ns.extend(start_ns);
    for column in OPTIONAL_EVENTS {
        let values = format!("{object}/{}", column.name);
        let values = if source.has_dataset(&values)? { Some(source.integers(&values)?) } else { None };
        let before = (column.get)(&profile.events);
        if values.is_none() && before.is_none() {
            continue;
        }
        let mut all = before.cloned().unwrap_or_else(|| vec![-1; first]);
        all.extend(values.unwrap_or_else(|| vec![-1; last - first]));
        (column.set)(&mut profile.events, all);
    }
    let attributes = source.attributes(&[group, "regions", name])?.unwrap_or_default();
    let row = Row { region: region_id(profile, name), rank, events: first..last, ..source_of(&attributes) };
    profile.rows.push(row);
    Ok(())
}

fn region_id(profile: &mut MergedProfile, name: &str) -> u32 {
    let known = profile.names.iter().position(|known| known == name);
    let id = known.unwrap_or_else(|| {
        profile.names.push(name.to_string());
        profile.names.len() - 1
    });
    id as u32
}

fn source_of(attributes: &[(String, MetadataValue)]) -> Row {
    let mut row = Row { source_line: NO_LINE, ..Row::default() };
    for (name, value) in attributes {
        match (name.as_str(), value) {
            ("source_file", MetadataValue::Text(text)) => row.source_file = text.clone(),
            ("source_text", MetadataValue::Text(text)) => row.source_text = text.clone(),
            ("source_lineno", MetadataValue::Integer(line)) => row.source_line = *line,
            ("tags", MetadataValue::List(tags)) => row.tags = tags.clone(),
            _ => (),
        }
    }
    row
}
