//! `cargo scope inspect`: metadata and statistics of profiles, as tables or as JSON.

use std::collections::BTreeMap;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use terminal_size::terminal_size_of;

use super::{in_profile, label, latest_profile, open, selection};
use crate::cli::InspectOptions;
use crate::cost::RegionCost;
use crate::export::{self, By, CallStatistics, LeftOut, Selection};
use crate::merged::{MergedProfile, MetadataValue};
use crate::messages;
use crate::results;
use crate::say;
use crate::summary::{Column, Layout, Summary};
use crate::units::duration;

/// Prints what is in profiles to stdout, one after the other.
///
/// # Errors
/// When a profile cannot be read or does not fit the selection, or nothing can be printed.
pub fn inspect(options: &InspectOptions) -> anyhow::Result<()> {
    let paths = if options.profiles.is_empty() { vec![latest_profile()?] } else { options.profiles.clone() };
    let printed = if options.json { print_json(options, &paths)? } else { print_tables(options, &paths)? };
    match printed {
        // Whoever reads has seen enough, as with `| head`.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("failed to print the summary"),
    }
}

fn print_tables(options: &InspectOptions, paths: &[PathBuf]) -> anyhow::Result<std::io::Result<()>> {
    let selection = selection(&options.selection);
    let mut out = anstream::stdout().lock();
    for (index, path) in paths.iter().enumerate() {
        let (path, profile) = open(path)?;
        let text = text(options, &path, &profile, &selection).map_err(|error| in_profile(&path, error))?;
        let gap = if index > 0 { "\n" } else { "" };
        if let Err(error) = out.write_all(format!("{gap}{text}").as_bytes()) {
            return Ok(Err(error));
        }
    }
    Ok(out.flush())
}

/// What is shown of a profile.
fn text(
    options: &InspectOptions,
    path: &Path,
    profile: &MergedProfile,
    selection: &Selection,
) -> anyhow::Result<String> {
    if options.mpi {
        return Ok(messages::report(profile, &export::selected_ranks(profile, selection)?));
    }
    if options.cost {
        return cost_report(path, profile, selection);
    }
    let summary = summary(options, path, profile, selection)?;
    let of_ranks = !is_flat(options, profile) && results::compares_ranks(&summary);
    let most_rows = Layout::default().max_rows;
    let width = terminal_size_of(std::io::stdout()).map(|(width, _)| width.0);
    let layout = Layout { color: true, of_ranks, width, ..layout(options, profile, most_rows) };
    Ok(summary.render(&layout))
}

fn cost_report(path: &Path, profile: &MergedProfile, selection: &Selection) -> anyhow::Result<String> {
    let Some(cost) = RegionCost::of(profile) else {
        bail!("`{}` does not say what a region cost: record it again with `cargo scope run`", path.display());
    };
    let mut left_out = LeftOut::default();
    let paths = export::named_paths(profile, selection, &mut left_out)?;
    say::left_out(path, &left_out);
    Ok(cost.report(profile, &paths))
}

/// What the totals of a region tell. Its inclusive time is not among it: they count each level of a
/// recursion.
const OF_REGIONS: [Column; 6] =
    [Column::Calls, Column::Total, Column::SelfTime, Column::Mean, Column::Min, Column::Max];

/// Whether the sums tell all that is asked for.
fn is_of_sums(options: &InspectOptions) -> bool {
    let is_usual = options.columns.iter().flatten().all(|column| column.is_usual())
        && options.sort.is_none_or(|order| order.is_usual());
    options.mpi || options.cost || is_usual && !options.flat && !options.json
}

/// Whether there is a row per region, not per call path.
fn is_flat(options: &InspectOptions, profile: &MergedProfile) -> bool {
    options.flat || profile.has_regions_only()
}

/// The table of a profile. Single calls are looked at only where something is asked that the sums do
/// not tell.
fn summary(
    options: &InspectOptions,
    path: &Path,
    profile: &MergedProfile,
    selection: &Selection,
) -> anyhow::Result<Summary> {
    let mut left_out = LeftOut::default();
    let title = label(path, profile);
    let mut summary = if is_of_sums(options) && !is_flat(options, profile) {
        results::summary(&title, profile, selection, &mut left_out)?
    } else {
        let by = if is_flat(options, profile) { By::Region } else { By::Path };
        let ranks = export::selected_ranks(profile, selection)?;
        results::summary_with(
            &title,
            profile,
            &ranks,
            export::statistics(profile, selection, by, &mut left_out)?,
        )
    };
    say::left_out(path, &left_out);
    summary.metadata = metadata(profile);
    if profile.has_regions_only() {
        summary.metadata.push(("call paths".into(), "none: the file has totals per region only".into()));
    }
    if options.profiles.len() > 1 {
        summary.metadata.insert(0, ("file".into(), path.display().to_string()));
    }
    Ok(summary)
}

fn layout(options: &InspectOptions, profile: &MergedProfile, most_rows: usize) -> Layout {
    let usual = Layout::default();
    let of_regions = || profile.has_regions_only().then(|| OF_REGIONS.to_vec());
    // Who chooses rows wants them, however little time is in them.
    let chosen = options.top.is_some() || options.sort.is_some();
    Layout {
        max_rows: options.top.map_or(most_rows, |rows| rows as usize),
        least_part: if chosen { 0.0 } else { usual.least_part },
        head: if is_flat(options, profile) { "region" } else { usual.head },
        columns: options.columns.clone().or_else(of_regions),
        order: options.sort,
        ..usual
    }
}

/// The metadata as lines; the two ends of the run, which are on the recording clock, as one.
fn metadata(profile: &MergedProfile) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let ends = profile.metadata_integer("start_time_ns").zip(profile.metadata_integer("finalize_time_ns"));
    for (key, value) in &profile.metadata {
        let text = match value {
            MetadataValue::Text(text) => text.clone(),
            MetadataValue::Integer(number) => number.to_string(),
            MetadataValue::Float(number) => number.to_string(),
            MetadataValue::List(texts) => texts.join(", "),
        };
        match (key.as_str(), ends) {
            // The second is on the recording clock, which says nothing to a reader.
            ("label" | "unsealed_ranks_cut_ns", _) | ("start_time_ns", Some(_)) => (),
            ("unsealed_ranks", _) => lines.push(("ranks not ended".into(), text)),
            ("timeline_end_ns", Some(_)) => {
                lines.extend(export::timeline_end(profile).map(|after| {
                    ("timeline".into(), format!("ends after {after}; counts and times are complete"))
                }));
            }
            ("finalize_time_ns", Some((start_ns, end_ns))) => {
                lines.push(("recorded".into(), duration(end_ns.saturating_sub(start_ns))));
            }
            _ => lines.push((key.clone(), text)),
        }
    }
    lines
}

fn print_json(options: &InspectOptions, paths: &[PathBuf]) -> anyhow::Result<std::io::Result<()>> {
    let selection = selection(&options.selection);
    let mut profiles = Vec::new();
    for path in paths {
        let (path, profile) = open(path)?;
        let summary =
            summary(options, &path, &profile, &selection).map_err(|error| in_profile(&path, error))?;
        let metadata: Map<String, Value> =
            profile.metadata.iter().map(|(key, value)| (key.clone(), json_value(value))).collect();
        let rows = if is_flat(options, &profile) { "regions" } else { "call_paths" };
        let all = Layout { max_depth: usize::MAX, least_part: 0.0, ..layout(options, &profile, usize::MAX) };
        let ranks = export::selected_ranks(&profile, &selection)?;
        let mut object: BTreeMap<_, _> = messages::json(&profile, &ranks)
            .into_iter()
            .map(|(key, rows)| (key, Part::Value(rows)))
            .collect();
        object.extend([
            ("file", Part::Value(json!(path.to_string_lossy()))),
            ("label", Part::Value(json!(summary.title))),
            ("ranks", Part::Value(json!(profile.ranks()))),
            ("metadata", Part::Value(Value::Object(metadata))),
            (
                rows,
                Part::Rows {
                    summary: Box::new(summary),
                    layout: all,
                    regions_only: profile.has_regions_only(),
                    wall: options.selection.wall,
                },
            ),
        ]);
        profiles.push(object);
    }
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = serde_json::to_writer_pretty(&mut out, &profiles).map_err(std::io::Error::from);
    Ok(written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()))
}

/// What is at a key of a profile.
enum Part {
    Value(Value),
    /// Made as they are written: all names of all paths can be more than fits into memory.
    Rows {
        summary: Box<Summary>,
        layout: Layout,
        regions_only: bool,
        wall: bool,
    },
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Part::Value(value) => value.serialize(serializer),
            Part::Rows { summary, layout, regions_only, wall } => {
                serializer.collect_seq(json_rows(summary, layout, *regions_only, *wall))
            }
        }
    }
}

fn json_value(value: &MetadataValue) -> Value {
    match value {
        MetadataValue::Text(text) => json!(text),
        MetadataValue::Integer(number) => json!(number),
        MetadataValue::Float(number) => json!(number),
        MetadataValue::List(texts) => json!(texts),
    }
}

/// The rows as the table has them, parents before children. Times in ns; null for what is not known.
fn json_rows(
    summary: &Summary,
    layout: &Layout,
    regions_only: bool,
    wall: bool,
) -> impl Iterator<Item = Value> {
    let nodes = summary.paths.paths.nodes();
    let row = move |(path, of): (scope_runtime::totals::PathId, CallStatistics)| {
        let mut names = Vec::new();
        let mut next = Some(path);
        while let Some(path) = next {
            let node = &nodes[path.0 as usize];
            names.push(summary.paths.name(node.region));
            next = node.parent;
        }
        names.reverse();
        let spread = of.spread.as_ref();
        json!({
            "path": names,
            "calls": of.calls,
            "open_calls": of.open,
            "cancelled_calls": (!regions_only && !wall).then_some(nodes[path.0 as usize].cancelled),
            "ranks": of.ranks,
            "inclusive_ns": (!regions_only).then_some(of.inclusive_ns),
            "busy_ns": (!regions_only).then_some(of.busy_ns),
            "total_ns": of.total_ns,
            "self_ns": of.self_ns,
            "mean_ns": of.mean_ns(),
            "min_ns": (of.calls > 0).then_some(of.min_ns),
            "max_ns": (of.calls > 0).then_some(of.max_ns),
            "rank_min_ns": of.rank_min_ns,
            "rank_max_ns": of.rank_max_ns,
            "imbalance_percent": of.imbalance_percent,
            "first_ns": spread.map(|spread| spread.first_ns),
            "last_ns": spread.map(|spread| spread.last_ns),
            "std_ns": spread.map(|spread| spread.std_ns),
            "p50_ns": spread.map(|spread| spread.p50_ns),
            "p95_ns": spread.map(|spread| spread.p95_ns),
            "p99_ns": spread.map(|spread| spread.p99_ns),
            "coverage_ns": spread.map(|spread| spread.coverage_ns),
        })
    };
    summary.shown(layout).into_iter().map(row)
}
