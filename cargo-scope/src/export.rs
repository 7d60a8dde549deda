//! From profiles to `.prof` and SVG files: which ranks, which regions, which file names.
//!
//! Input are profiles as collected or read from a file, of this tool or of the Python package.

mod calls;
mod durations;
mod error;
mod files;
mod left_out;
mod ranks;
mod select;
mod statistics;
mod view;

use std::path::{Path, PathBuf};

use scope_runtime::pstats::{self, Entry, Key, Pstats, PstatsOptions};

pub use self::error::Error;
use self::files::{Names, write_file};
pub use self::left_out::LeftOut;
pub(crate) use self::left_out::timeline_end;
pub use self::ranks::Ranks;
pub(crate) use self::ranks::is_among;
use self::select::Selected;
pub use self::statistics::{By, CallStatistics, Spread, rank_statistics, statistics};
pub use self::view::View;
use crate::flame::{self, FlameOptions};
use crate::merged::MergedProfile;
use crate::paths::NamedPaths;

/// A profile and what it is called.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Label; the file's stem where the user gave none.
    pub label: String,
    /// The profile.
    pub profile: &'a MergedProfile,
}

/// Which part of a profile is exported.
///
/// What is not selected is as if it had not been recorded: the children of a hidden call hang
/// from the nearest call that is kept, whose own time takes over the hidden call's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Ranks.
    pub ranks: Ranks,
    /// Regular expressions, matched at the start of region names; empty keeps all.
    pub include: Vec<String>,
    /// Regular expressions, matched at the start of region names; they win over `include`.
    pub exclude: Vec<String>,
    /// Which time counts in programs with async regions.
    pub view: View,
}

/// How a `.prof` file is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfOptions {
    /// Name of the root entry; `None` takes `<LABEL rank N>`, and in programs with async regions
    /// `<LABEL rank N, busy time>` or what else counts.
    pub root: Option<String>,
    /// One entry per call path; else one per region.
    pub call_paths: bool,
}

impl Default for ProfOptions {
    fn default() -> ProfOptions {
        ProfOptions { root: None, call_paths: true }
    }
}

/// The `pstats` dict of one rank of one run.
#[derive(Clone, Debug)]
pub struct RankStats {
    /// Label of the run, unique among those given.
    pub label: String,
    /// MPI rank.
    pub rank: u32,
    /// The dict.
    pub stats: Pstats,
}

/// Writes `STEM[_SLUG]_rank<N>.prof` beside `path` for each rank of each run; gives the paths.
///
/// The slug, made from the label, is there with more than one run. Missing folders are made. A
/// rank without calls gets a file with the root entry alone, which `pstats` can load.
/// `left_out` gets what is missing.
///
/// # Errors
/// See [`Error`]; files written before the failing one stay.
pub fn export_prof(
    runs: &[Run<'_>],
    path: &Path,
    selection: &Selection,
    options: &ProfOptions,
    left_out: &mut LeftOut,
) -> Result<Vec<PathBuf>, Error> {
    let mut written = Vec::new();
    for_each_rank(runs, selection, left_out, |names, run, rank, selected| {
        let stats = rank_stats(selected, &names.labels[run], rank, options)?;
        let file = names.file(path, run, Some(rank), "prof");
        write_file(&file, |out| pstats::write_prof(&stats, out))?;
        written.push(file);
        Ok(())
    })?;
    Ok(written)
}

/// As [`export_prof`], in memory.
///
/// # Errors
/// See [`Error`].
pub fn to_pstats(
    runs: &[Run<'_>],
    selection: &Selection,
    options: &ProfOptions,
) -> Result<Vec<RankStats>, Error> {
    let mut all = Vec::new();
    for_each_rank(runs, selection, &mut LeftOut::default(), |names, run, rank, selected| {
        let label = names.labels[run].clone();
        let stats = rank_stats(selected, &label, rank, options)?;
        all.push(RankStats { label, rank, stats });
        Ok(())
    })?;
    Ok(all)
}

/// Writes `STEM[_SLUG]_rank<N>.svg` beside `path` for each rank of each run; gives the paths.
///
/// A rank without calls gets a picture that says so. `left_out` gets what is missing.
///
/// # Errors
/// See [`Error`]; files written before the failing one stay.
pub fn export_flame(
    runs: &[Run<'_>],
    path: &Path,
    selection: &Selection,
    options: &FlameOptions,
    left_out: &mut LeftOut,
) -> Result<Vec<PathBuf>, Error> {
    let mut written = Vec::new();
    for_each_rank(runs, selection, left_out, |names, run, rank, selected| {
        let label = &names.labels[run];
        let only_rank = runs[run].profile.ranks() <= 1;
        let title = if only_rank { label.clone() } else { format!("{label} rank {rank}") };
        let title = with_view(title, selected);
        let file = names.file(path, run, Some(rank), "svg");
        write_flame(&file, &selected.paths(rank)?, title, options)?;
        written.push(file);
        Ok(())
    })?;
    Ok(written)
}

/// Writes one flame graph of all selected ranks together, `STEM[_SLUG].svg`, for each run. `left_out` gets
/// what is missing.
///
/// # Errors
/// See [`Error`]; files written before the failing one stay.
pub fn export_merged_flame(
    runs: &[Run<'_>],
    path: &Path,
    selection: &Selection,
    options: &FlameOptions,
    left_out: &mut LeftOut,
) -> Result<Vec<PathBuf>, Error> {
    let names = Names::of(runs)?;
    let mut written = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let label = &names.labels[index];
        let in_run = |error: Error| error.in_run(index, label);
        let selected = Selected::with_paths(run.profile, selection).map_err(in_run)?;
        let paths = selected.all_paths().map_err(in_run)?;
        left_out.join(several(runs, label), selected.take_left_out());
        let ranks = selected.ranks.len();
        let title = if ranks == 1 { label.clone() } else { format!("{label}, {ranks} ranks together") };
        let title = with_view(title, &selected);
        let file = names.file(path, index, None, "svg");
        write_flame(&file, &paths, title, options)?;
        written.push(file);
    }
    Ok(written)
}

/// The call paths of the selected ranks and regions, added up; the regions as paths of one step where
/// the profile has totals of these only. `left_out` gets what is missing.
///
/// # Errors
/// When the selection does not fit the profile, or its calls cannot be read or are more than can be numbered.
pub fn named_paths(
    profile: &MergedProfile,
    selection: &Selection,
    left_out: &mut LeftOut,
) -> Result<NamedPaths, Error> {
    let selected = Selected::new(profile, selection)?;
    let paths = selected.all_paths()?;
    left_out.join(None, selected.take_left_out());
    Ok(paths)
}

/// The selected ranks, in ascending order.
///
/// # Errors
/// When the selection does not fit the profile.
pub fn selected_ranks(profile: &MergedProfile, selection: &Selection) -> Result<Vec<u32>, Error> {
    Ok(Selected::new(profile, selection)?.ranks)
}

/// Calls `export` for each selected rank of each run, with the run's index and its selection.
fn for_each_rank(
    runs: &[Run<'_>],
    selection: &Selection,
    left_out: &mut LeftOut,
    mut export: impl FnMut(&Names, usize, u32, &Selected<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let names = Names::of(runs)?;
    for (index, run) in runs.iter().enumerate() {
        let in_run = |error: Error| error.in_run(index, &names.labels[index]);
        let selected = Selected::with_paths(run.profile, selection).map_err(in_run)?;
        for &rank in &selected.ranks {
            export(&names, index, rank, &selected).map_err(in_run)?;
        }
        left_out.join(several(runs, &names.labels[index]), selected.take_left_out());
    }
    Ok(())
}

/// The label where there are several runs.
fn several<'a>(runs: &[Run<'_>], label: &'a str) -> Option<&'a str> {
    (runs.len() > 1).then_some(label)
}

fn rank_stats(
    selected: &Selected<'_>,
    label: &str,
    rank: u32,
    options: &ProfOptions,
) -> Result<Pstats, Error> {
    let default_root = || format!("<{}>", with_view(format!("{label} rank {rank}"), selected));
    let root = options.root.clone().unwrap_or_else(default_root);
    let (name, as_always) = (Some(root.as_str()), &PstatsOptions::default());
    let (paths, regions) = selected.sums(rank)?;
    let mut stats = pstats::pstats_from_paths(&paths, &regions, name, options.call_paths, as_always);
    if stats.is_empty() {
        // `pstats` refuses an empty dict.
        let key = Key {
            file: pstats::PSEUDO_FILENAME.into(),
            line: pstats::PSEUDO_LINENO,
            name: root.as_str().into(),
        };
        stats.insert(Entry { key, cc: 1, nc: 1, tt_s: 0.0, ct_s: 0.0, callers: Vec::new() });
    }
    Ok(stats)
}

/// `title` with what the times are, where that needs saying.
fn with_view(title: String, selected: &Selected<'_>) -> String {
    selected.view_name().map_or(title.clone(), |view| format!("{title}, {view}"))
}

fn write_flame(file: &Path, paths: &NamedPaths, title: String, options: &FlameOptions) -> Result<(), Error> {
    let by_region = if options.call_paths { "" } else { ", own time by region" };
    let title = options.title.clone().unwrap_or(title + by_region);
    let options = FlameOptions { title: Some(title), ..options.clone() };
    write_file(file, |out| flame::write_svg(paths, &options, out))
}

#[cfg(test)]
mod tests;
