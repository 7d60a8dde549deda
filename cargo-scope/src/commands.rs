//! The subcommands that start from files: `collect`, `inspect`, `export`.

mod inspect;

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};

pub use self::inspect::inspect;
use crate::cli::{CollectOptions, ExportKind, ExportOptions, SelectionOptions};
use crate::collect::RunInfo;
use crate::export::{self, LeftOut, ProfOptions, Ranks, Run, Selection, View};
use crate::flame::FlameOptions;
use crate::hdf5;
use crate::merged::MergedProfile;
use crate::outputs::OutputFolder;
use crate::recordings::Found;
use crate::results::{self, FLAME_FILE, PROF_FILE, PROFILE_FILE, Written};
use crate::{build, outputs, recordings, say, shell};

/// Makes the outputs from recordings, which stay.
///
/// # Errors
/// When there are no recordings, nothing in them can be read, or the outputs cannot be written.
pub fn collect(options: &CollectOptions) -> anyhow::Result<()> {
    let from = &options.recordings;
    if outputs::is_in_use(from) && options.output.is_none() {
        let folder = from.display();
        bail!("the run in `{folder}` is still going on; give `-o DIR` for a profile of what it did so far");
    }
    let found = recorded_in(from)?;
    if found.chosen.is_empty() {
        bail!(
            "no recording (`rank<N>.scope`) in `{}`; give the folder that SCOPE_OUTPUT named, \
             or that the program said it recorded to",
            from.display()
        );
    }
    let folder = OutputFolder::at(options.output.as_ref().unwrap_or(from))?;
    let written = collect_into(&folder, options, &found);
    // Only ours, which is empty now: the recordings were made elsewhere.
    folder.remove_recordings()?;
    match written {
        Ok(written) => results::summarise(&written),
        Err(error) => {
            folder.discard();
            Err(error)
        }
    }
}

fn collect_into(folder: &OutputFolder, options: &CollectOptions, found: &Found) -> anyhow::Result<Written> {
    let info = RunInfo::by_hand(options.private);
    let into = results::profile_in(folder)?;
    let collected = recordings::merge(&found.chosen, &found.others, &info, None, &into)?;
    let versions = recordings::other_versions(collected.versions.iter().map(String::as_str));
    versions.iter().chain(&collected.notes).for_each(|note| say::note(format_args!("{note}")));
    ensure!(
        !collected.profile.rows.is_empty(),
        "no call in the recordings of `{}`",
        options.recordings.display()
    );
    let name = program_name(&collected.profile).unwrap_or_else(|| "profile".into());
    results::write(collected.profile, collected.file, &name, folder, &Ranks::All)
}

/// Stem of the program's file name.
fn program_name(profile: &MergedProfile) -> Option<String> {
    match profile.metadata_value("program")? {
        crate::merged::MetadataValue::Text(path) => {
            Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned())
        }
        _ => None,
    }
}

/// Writes files of one kind from one or more profiles.
///
/// # Errors
/// When a profile cannot be read or does not fit the selection, or a file cannot be written.
pub fn export(options: &ExportOptions) -> anyhow::Result<()> {
    let paths = if options.profiles.is_empty() { vec![latest_profile()?] } else { options.profiles.clone() };
    let count = paths.len();
    if !options.label.is_empty() && options.label.len() != count {
        bail!("{} labels for {count} profiles: give --label once for each", options.label.len());
    }
    let opened = paths.iter().map(|path| open(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let runs: Vec<Run> = opened
        .iter()
        .enumerate()
        .map(|(index, (path, profile))| {
            let given = options.label.get(index).cloned();
            Run { label: given.unwrap_or_else(|| label(path, profile)), profile }
        })
        .collect();
    // Not beside the profile: a part of it must not take the place of a run's own outputs.
    let folder = options.output.clone().unwrap_or_default();
    if !folder.as_os_str().is_empty() {
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("failed to make the folder `{}`", folder.display()))?;
    }
    let mut left_out = LeftOut::default();
    let files = export_runs(options, &runs, &folder, &mut left_out).map_err(|error| match error {
        export::Error::Run { run, source, .. } => in_profile(&paths[run], (*source).into()),
        other => other.into(),
    })?;
    for file in files {
        say::status("Wrote", format_args!("{}", file.display()));
    }
    left_out.lines().for_each(|line| say::note(format_args!("{line}")));
    Ok(())
}

fn export_runs(
    options: &ExportOptions,
    runs: &[Run],
    folder: &Path,
    left_out: &mut LeftOut,
) -> Result<Vec<PathBuf>, export::Error> {
    let selection = selection(&options.selection);
    let files = match options.kind {
        ExportKind::Prof => {
            let how = ProfOptions { root: options.root.clone(), call_paths: !options.no_call_paths };
            export::export_prof(runs, &folder.join(PROF_FILE), &selection, &how, left_out)?
        }
        ExportKind::Flame => {
            let how = flame_options(options);
            let path = folder.join(FLAME_FILE);
            let mut files = export::export_flame(runs, &path, &selection, &how, left_out)?;
            if runs.iter().any(|run| run.profile.ranks() > 1) {
                // The same as from the others.
                let again = &mut LeftOut::default();
                files.extend(export::export_merged_flame(runs, &path, &selection, &how, again)?);
            }
            files
        }
    };
    Ok(files)
}

fn flame_options(options: &ExportOptions) -> FlameOptions {
    FlameOptions {
        root: options.root.clone(),
        call_paths: !options.no_call_paths,
        width: options.width,
        fixed_width: options.fixed_width,
        threshold_percent: options.threshold,
        no_javascript: options.no_javascript,
        ..FlameOptions::default()
    }
}

fn selection(options: &SelectionOptions) -> Selection {
    Selection {
        ranks: options.ranks.clone(),
        include: options.include.clone(),
        exclude: options.exclude.clone(),
        view: match (options.linked, options.wall, options.by_lane) {
            (true, ..) => View::Linked,
            (_, true, false) => View::Wall,
            (_, true, true) => View::WallByLane,
            _ => View::Busy,
        },
    }
}

/// Says which profile it is that something does not fit, where the error does not.
fn in_profile(path: &Path, error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<export::Error>() {
        Ok(error) if error.names_its_subject() => error.into(),
        Ok(error) => anyhow!("`{}`: {error}", path.display()),
        Err(other) => other,
    }
}

/// The profile of the latest run of the cargo project that the user stands in.
fn latest_profile() -> anyhow::Result<PathBuf> {
    let scope = build::workspace_target_directory()
        .context("no PROFILE was given, and there is no cargo project here to take the latest run of")?
        .join("scope");
    let path = outputs::newest_profile(&scope).with_context(|| {
        format!(
            "no run in `{}`: run the program by `cargo scope run`, or name a profile that was written to \
             another folder",
            scope.display()
        )
    })?;
    say::status("Reading", format_args!("{}", path.display()));
    Ok(path)
}

/// Opens a profile file, or the one in a folder. Its calls stay there until they are needed.
fn open(path: &Path) -> anyhow::Result<(PathBuf, MergedProfile)> {
    if path.is_file() && path.extension().is_some_and(|extension| extension == "scope") {
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        bail!("`{}` is a recording; {}", path.display(), collecting(folder));
    }
    let path = if path.is_dir() { profile_in(path)? } else { path.to_path_buf() };
    let profile = hdf5::read_totals(&path)?;
    Ok((path, profile))
}

/// The profile in a folder; where there are only recordings, the error says what makes one of them.
fn profile_in(folder: &Path) -> anyhow::Result<PathBuf> {
    let path = folder.join(PROFILE_FILE);
    if path.exists() {
        return Ok(path);
    }
    let is_recorded = recorded_in(folder).is_ok_and(|found| !found.chosen.is_empty());
    ensure!(is_recorded, "no `{PROFILE_FILE}` in `{}`", folder.display());
    bail!("no profile in `{}`; {}", folder.display(), collecting(folder))
}

/// The recordings in a folder that was recorded to, or in that of a run.
fn recorded_in(folder: &Path) -> anyhow::Result<Found> {
    let (found, below) = (recordings::find(folder)?, folder.join(outputs::RECORDINGS));
    if found.chosen.is_empty() && below.is_dir() { recordings::find(&below) } else { Ok(found) }
}

/// What makes a profile of the recordings in a folder.
fn collecting(folder: &Path) -> String {
    let word = shell::word(&folder.to_string_lossy());
    format!("`cargo scope collect {word}` makes a profile of the recordings there")
}

fn label(path: &Path, profile: &MergedProfile) -> String {
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    results::label(profile).map_or_else(stem, str::to_string)
}
