//! The end of a run: from its recordings to files, summary and what there is to say.

use std::process::{Command, Stdio};

use anyhow::Context;

use crate::build::{Built, CargoOptions, Program, Task};
use crate::cli::ProfileOptions;
use crate::collect::RunInfo;
use crate::outputs::OutputFolder;
use crate::program::Ending;
use crate::recordings::{self, Collected};
use crate::units::counted;
use crate::{results, say, shell};

/// Says where the runtime that was built is of another version than we are, before it runs.
pub fn note_versions(built: &Built) {
    let versions = built.runtimes.iter().map(|runtime| runtime.version.as_str());
    if let Some(line) = recordings::other_versions(versions.filter(|version| !version.is_empty())) {
        say::note(format_args!("{line}"));
    }
}

/// How much of what was recorded is in the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Share {
    /// There are none: nothing could be read.
    None,
    /// Something may be missing that the recordings hold.
    Part,
    /// All of it.
    All,
}

/// Writes the outputs of one program to `folder`.
///
/// # Errors
/// When a file cannot be written; those of an earlier run then stay.
pub fn write(
    collected: Collected,
    name: &str,
    folder: &OutputFolder,
    options: &ProfileOptions,
    quiet: bool,
) -> anyhow::Result<Share> {
    let Collected { profile, file, notes, incomplete, .. } = collected;
    notes.iter().for_each(|note| say::note(format_args!("{note}")));
    if profile.rows.is_empty() && incomplete {
        drop(file);
        folder.unstage();
        say::note(format_args!("no profile of `{name}`: nothing in its recordings could be read"));
        return Ok(Share::None);
    }
    let ranks = options.ranks.present(profile.ranks());
    if ranks != options.ranks {
        let count = profile.ranks();
        say::note(format_args!(
            "--ranks {} names ranks that were not there ({count} in all); taking {ranks}",
            options.ranks
        ));
    }
    let written = results::write(profile, file, name, folder, &ranks)?;
    if !quiet && let Err(error) = results::summarise(&written) {
        // The files are there and complete; only the table is not.
        say::error(&error.context("failed to make the summary; the files are complete"));
    }
    Ok(if incomplete { Share::Part } else { Share::All })
}

/// Removes recordings that are in the outputs; says where they are if not.
///
/// # Errors
/// When they cannot be removed.
pub fn remove_or_keep(folder: &OutputFolder, share: Share) -> anyhow::Result<()> {
    if share == Share::All {
        return Ok(folder.remove_recordings()?);
    }
    say::note(format_args!("{}", kept(folder)));
    Ok(())
}

/// The ending that ours has to be: success only if there are outputs.
pub fn with_outputs(ending: Ending, share: anyhow::Result<Share>) -> Ending {
    match share {
        Ok(share) => ending.or_failure(share == Share::None),
        Err(error) => {
            say::error(&error);
            ending.or_failure(true)
        }
    }
}

/// Says that programs could not record; they have said why.
pub fn note_failures(failures: u64) {
    if failures > 0 {
        let processes = counted(failures, "process", "processes");
        say::note(format_args!("{processes} could not be recorded, for the reason above"));
    }
}

/// Why there is no profile of these programs, and what to do about it.
pub fn why_nothing(built: &Built, programs: &[&Program], ending: Ending) -> String {
    let names: Vec<String> = programs.iter().map(|program| format!("`{}`", program.name)).collect();
    let names = names.join(", ");
    if built.runtimes.is_empty() {
        let depend = if programs.len() == 1 { "does not depend" } else { "do not depend" };
        return format!(
            "no profile: {names} {depend} on scope-runtime; add it with `cargo scope init` and mark functions \
             with `#[scope]`"
        );
    }
    if built.runtimes.iter().all(|runtime| runtime.off) {
        return format!(
            "no profile: scope-runtime was built with its feature `off`; build {names} without it"
        );
    }
    match ending {
        Ending::Status(0) => format!(
            "nothing to show: no region of {names} was recorded; if nothing above says why, mark functions that are \
             called with `#[scope]`, or parts of them with `region!`"
        ),
        _ => format!("nothing to show: no region of {names} was recorded ({ending})"),
    }
}

/// What is known about the run of a program.
pub fn run_info(
    options: &CargoOptions,
    profile: &ProfileOptions,
    task: Task<'_>,
    built: &Built,
    program: &Program,
) -> RunInfo {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let split = |list: &String| list.split([',', ' ']).map(str::to_string).collect::<Vec<_>>();
    RunInfo {
        label: Some(program.name.clone()),
        build_profile: Some(task.profile_name(options).to_string()),
        rustc_version: first_line(Command::new(rustc).arg("--version")),
        features: options.features.features.iter().flat_map(split).filter(|name| !name.is_empty()).collect(),
        command_line: std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect(),
        git_commit: first_line(
            Command::new("git").current_dir(&program.package_root).args(["rev-parse", "HEAD"]),
        ),
        source_roots: vec![built.workspace_root.clone()],
        ends_at: None,
        private: profile.private,
    }
}

/// First line of what a command prints; `None` when there is no such command or it fails.
fn first_line(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next()?;
    output.status.success().then(|| line.to_string())
}

/// Where the recordings are that a profile could not be made of, or not completely, and what makes one.
pub fn kept(folder: &OutputFolder) -> String {
    let recordings = folder.recordings().to_string_lossy();
    let word = shell::word(&recordings);
    format!(
        "the recordings are kept in `{recordings}`; `cargo scope collect {word} -o DIR` makes a profile of them"
    )
}

/// Says where the recordings are of a program that the user has not waited for.
pub fn note_abandoned(folder: &OutputFolder) {
    let recordings = folder.recordings().to_string_lossy();
    let recordings = shell::word(&recordings);
    say::note(format_args!(
        "not waiting for the program to end; when it has, `cargo scope collect {recordings}` makes its profile"
    ));
}

/// The folder for the outputs of one program.
///
/// # Errors
/// When it cannot be made.
pub fn output_folder(
    options: &ProfileOptions,
    built: &Built,
    program: &Program,
) -> anyhow::Result<OutputFolder> {
    let folder = match &options.output {
        Some(folder) if built.programs.len() == 1 => OutputFolder::at(folder),
        Some(folder) => OutputFolder::at(&folder.join(&program.name)),
        None => {
            let series = built.target_directory.join("scope").join(&program.name);
            OutputFolder::numbered(&series, options.keep)
        }
    };
    folder.with_context(|| format!("nothing was run of `{}`", program.name))
}
