//! What a run leaves: the profile, everything that is made from it, and the summary.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use scope_runtime::recording::Recording;
use terminal_size::terminal_size_of;

use crate::export::{self, CallStatistics, LeftOut, ProfOptions, Ranks, Run, Selection};
use crate::flame::FlameOptions;
use crate::hdf5::ProfileWriter;
use crate::imbalance;
use crate::merged::{MergedProfile, MetadataValue};
use crate::outputs::OutputFolder;
use crate::paths::NamedPaths;
use crate::say;
use crate::summary::{Layout, OutputFile, Summary};

/// Name of the profile in an output folder.
pub const PROFILE_FILE: &str = "profile.h5";
/// From which the names `profile_rank<N>.prof` are made.
pub const PROF_FILE: &str = "profile.prof";
/// From which the names `flamegraph_rank<N>.svg` are made.
pub const FLAME_FILE: &str = "flamegraph.svg";

/// Files of a run, and the profile that they show.
#[derive(Debug)]
pub struct Written {
    /// Name of the run.
    pub label: String,
    /// The profile without its events.
    pub profile: MergedProfile,
    /// The ranks that have files and count in the summary.
    pub ranks: Ranks,
    /// The files, in order of their names.
    pub files: Vec<PathBuf>,
}

/// Where the profile of a run is made that goes to `folder` with its exports.
///
/// # Errors
/// When there is no room for it.
pub fn profile_in(folder: &OutputFolder) -> anyhow::Result<PathBuf> {
    Ok(folder.staging()?.join(PROFILE_FILE))
}

/// Finishes `file`, which was begun where [`profile_in`] says, and writes the exports of these ranks
/// beside it, all or none. They are made from the totals, so that no events are needed for them.
///
/// # Errors
/// When a file cannot be written. Files of an earlier run then stay.
pub fn write(
    mut profile: MergedProfile,
    file: ProfileWriter,
    label: &str,
    folder: &OutputFolder,
    ranks: &Ranks,
) -> anyhow::Result<Written> {
    file.finish(&profile)?;
    // The events are in the file, and nowhere else.
    profile.rows.iter_mut().for_each(|row| row.events = 0..0);
    let staging = folder.staging()?;
    let (selection, flame) = (of_ranks(ranks), FlameOptions::default());
    let runs = [Run { label: label.to_string(), profile: &profile }];
    // Totals have all lanes.
    let none = &mut LeftOut::default();
    export::export_prof(&runs, &staging.join(PROF_FILE), &selection, &ProfOptions::default(), none)?;
    export::export_flame(&runs, &staging.join(FLAME_FILE), &selection, &flame, none)?;
    if profile.ranks() > 1 {
        export::export_merged_flame(&runs, &staging.join(FLAME_FILE), &selection, &flame, none)?;
    }
    let files = folder.publish()?;
    Ok(Written { label: label.to_string(), profile, ranks: ranks.clone(), files })
}

fn of_ranks(ranks: &Ranks) -> Selection {
    Selection { ranks: ranks.clone(), ..Selection::default() }
}

/// Prints the summary to stderr, with the files that were written.
///
/// # Errors
/// When the calls of the profile do not nest.
pub fn summarise(written: &Written) -> anyhow::Result<()> {
    let (selection, none) = (of_ranks(&written.ranks), &mut LeftOut::default());
    let mut summary = summary(&written.label, &written.profile, &selection, none)?;
    summary.files = written.files.iter().map(|file| output_file(file)).collect();
    print(&summary);
    Ok(())
}

/// Prints the summary of recordings that no files can be made of, one per rank, as far as they can be read.
pub fn summarise_recordings(label: &str, paths: &[PathBuf]) {
    let mut read = 0;
    // One after the other, so that no more than one rank is in memory.
    let profiles = paths.iter().filter_map(|path| match Recording::open(path) {
        Ok(recording) => {
            read += 1;
            Some(recording.profile().clone())
        }
        Err(error) => {
            say::note(format_args!("{error}"));
            None
        }
    });
    let summary = Summary::of_profiles(label, profiles);
    if read > 0 {
        print(&summary);
    }
}

/// The summary of a part of a profile. `left_out` gets what is missing.
///
/// # Errors
/// When the selection does not fit the profile, or its calls do not nest.
pub fn summary(
    title: &str,
    profile: &MergedProfile,
    selection: &Selection,
    left_out: &mut LeftOut,
) -> anyhow::Result<Summary> {
    let ranks = export::selected_ranks(profile, selection)?;
    if ranks.len() < 2 {
        return Ok(Summary::of_merged(title, profile, export::named_paths(profile, selection, left_out)?));
    }
    Ok(summary_with(title, profile, &ranks, export::rank_statistics(profile, selection, left_out)?))
}

/// The summary of these ranks with the statistics of each path or region.
pub fn summary_with(
    title: &str,
    profile: &MergedProfile,
    ranks: &[u32],
    (paths, statistics): (NamedPaths, Vec<CallStatistics>),
) -> Summary {
    let shown: HashSet<&str> = paths.paths.nodes().iter().map(|node| paths.name(node.region)).collect();
    let imbalance = imbalance::notes(profile, ranks, |region| shown.contains(region));
    Summary { statistics: Some(statistics), imbalance, ..Summary::of_merged(title, profile, paths) }
}

/// Whether a summary is of several ranks, so that its table compares them.
pub fn compares_ranks(summary: &Summary) -> bool {
    summary.statistics.iter().flatten().any(|statistics| statistics.ranks > 1)
}

/// Prints a summary to stderr. That it is closed is no reason to fail.
fn print(summary: &Summary) {
    let layout = Layout {
        color: true,
        of_ranks: compares_ranks(summary),
        width: terminal_size_of(std::io::stderr()).map(|(width, _)| width.0),
        ..Layout::default()
    };
    let _ = anstream::stderr().lock().write_all(summary.render(&layout).as_bytes());
}

/// What a profile calls itself, if it does.
pub fn label(profile: &MergedProfile) -> Option<&str> {
    match profile.metadata_value("label") {
        Some(MetadataValue::Text(label)) if !label.is_empty() => Some(label),
        _ => None,
    }
}

fn output_file(path: &Path) -> OutputFile {
    let here = std::env::current_dir().unwrap_or_default();
    let short = path.strip_prefix(here).unwrap_or(path).to_path_buf();
    match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("prof") => OutputFile::prof(short),
        Some("svg") => OutputFile::svg(short),
        _ => OutputFile::hdf5(short),
    }
}
