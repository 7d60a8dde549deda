//! What a run leaves: the profile, everything that is made from it, and the summary.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::export::{self, ProfOptions, Ranks, Run, Selection};
use crate::flame::FlameOptions;
use crate::hdf5;
use crate::merged::{MergedProfile, MetadataValue};
use crate::outputs::OutputFolder;
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
    /// The profile as read back from its file, so that what is shown is what the file says.
    pub profile: MergedProfile,
    /// The ranks that have files and count in the summary.
    pub ranks: Ranks,
    /// The files, in order of their names.
    pub files: Vec<PathBuf>,
}

/// Writes `profile` and the exports of these ranks to `folder`, all or none.
///
/// # Errors
/// When a file cannot be written, or the profile cannot be read back. Files of an earlier run
/// then stay.
pub fn write(
    profile: &MergedProfile,
    label: &str,
    folder: &OutputFolder,
    ranks: &Ranks,
) -> anyhow::Result<Written> {
    let staging = folder.staging()?;
    let path = staging.join(PROFILE_FILE);
    hdf5::write(profile, &path)?;
    let profile = hdf5::read(&path).context("failed to read back the profile just written")?;
    let (selection, flame) = (of_ranks(ranks), FlameOptions::default());
    let runs = [Run { label: label.to_string(), profile: &profile }];
    export::export_prof(&runs, &staging.join(PROF_FILE), &selection, &ProfOptions::default())?;
    export::export_flame(&runs, &staging.join(FLAME_FILE), &selection, &flame)?;
    if profile.ranks() > 1 {
        export::export_merged_flame(&runs, &staging.join(FLAME_FILE), &selection, &flame)?;
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
    let mut summary = summary(&written.label, &written.profile, &of_ranks(&written.ranks))?;
    summary.files = written.files.iter().map(|file| output_file(file)).collect();
    // A closed stderr is no reason to fail.
    let _ = print(&summary, &mut anstream::stderr().lock());
    Ok(())
}

/// The summary of a part of a profile.
///
/// # Errors
/// When the selection does not fit the profile, or its calls do not nest.
pub fn summary(title: &str, profile: &MergedProfile, selection: &Selection) -> anyhow::Result<Summary> {
    let paths = export::named_paths(profile, selection)?;
    Ok(Summary::of_merged(title, profile, paths))
}

/// Writes a summary, coloured; `out` takes the colours away where nobody sees them.
///
/// # Errors
/// When `out` fails.
pub fn print(summary: &Summary, out: &mut impl std::io::Write) -> std::io::Result<()> {
    let layout = Layout { color: true, ..Layout::default() };
    out.write_all(summary.render(&layout).as_bytes())?;
    out.flush()
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
