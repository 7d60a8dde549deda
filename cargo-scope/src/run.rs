//! `cargo scope run`: build, run, collect, write, summarise.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::build::{self, Built, CargoOptions, Outcome};
use crate::cli::RunOptions;
use crate::collect::RunInfo;
use crate::outputs::OutputFolder;
use crate::program::{self, Ending};
use crate::recordings::{self, Collected};
use crate::{results, say};

/// Runs the program and writes its profile; gives the ending that ours has to be.
///
/// # Errors
/// When the program could not be started. Once it ran, problems are told on stderr and the
/// ending is the program's, or status 1 where the program succeeded and its profile did not.
pub fn run(options: &RunOptions) -> anyhow::Result<Ending> {
    let built = match build::build(&options.cargo)? {
        Outcome::Built(built) => *built,
        Outcome::Failed(status) => return Ok(status.into()),
        Outcome::NoSingleTarget => return run_without_profile(options),
    };
    let folder = output_folder(options.output.as_deref(), &built)?;
    let ending = match run_recorded(options, &built, &folder) {
        Ok(ending) => ending,
        Err(error) => {
            folder.discard();
            return Err(error);
        }
    };
    let written = write_profile(options, &built, folder, ending);
    Ok(match written {
        Ok(complete) => ending.or_failure(!complete),
        Err(error) => {
            say::error(&error);
            ending.or_failure(true)
        }
    })
}

/// Leaves it to cargo to say what is wrong with the choice of target. Should it find a program
/// after all, it runs.
fn run_without_profile(options: &RunOptions) -> anyhow::Result<Ending> {
    let mut command = build::run_command(&options.cargo, &options.args, false);
    let ending = program::run(&mut command).with_context(|| cannot_run(&command))?;
    if ending == Ending::Status(0) {
        say::note(format_args!(
            "no profile: cannot tell which program cargo ran; name it with --bin or --example"
        ));
    }
    Ok(ending)
}

fn output_folder(output: Option<&Path>, built: &Built) -> anyhow::Result<OutputFolder> {
    Ok(match output {
        Some(folder) => OutputFolder::at(folder)?,
        None => OutputFolder::numbered(&built.target_directory.join("scope").join(&built.name))?,
    })
}

fn run_recorded(options: &RunOptions, built: &Built, folder: &OutputFolder) -> anyhow::Result<Ending> {
    // With -v cargo writes it, for a program that is fresh.
    if !options.cargo.quiet && options.cargo.verbose == 0 {
        announce(built, &options.args);
    }
    let mut command = build::run_command(&options.cargo, &options.args, true);
    command.env("SCOPE_OUTPUT", folder.recordings());
    program::run(&mut command).with_context(|| cannot_run(&command))
}

fn cannot_run(command: &Command) -> String {
    format!("failed to run `{}`", command.get_program().display())
}

/// The line that cargo writes before a program starts.
fn announce(built: &Built, args: &[impl AsRef<OsStr>]) {
    let here = std::env::current_dir().unwrap_or_default();
    let program = built.executable.strip_prefix(here).unwrap_or(&built.executable);
    let words: Vec<String> = [program.as_os_str()]
        .into_iter()
        .chain(args.iter().map(AsRef::as_ref))
        .map(|word| quoted(&word.to_string_lossy()))
        .collect();
    say::status("Running", format_args!("`{}`", words.join(" ")));
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Makes the outputs. True when all that was recorded is in them.
fn write_profile(
    options: &RunOptions,
    built: &Built,
    folder: OutputFolder,
    ending: Ending,
) -> anyhow::Result<bool> {
    let found = recordings::find(folder.recordings())
        .with_context(|| format!("failed to read the folder `{}`", folder.recordings().display()))?;
    if found.chosen.is_empty() {
        say::note(format_args!("{}", why_nothing(built, ending)));
        folder.discard();
        return Ok(true);
    }
    let Collected { profile, notes, incomplete } =
        recordings::read(&found, &run_info(&options.cargo, built), Some(ending))
            .with_context(|| kept(&folder))?;
    notes.iter().for_each(|note| say::note(format_args!("{note}")));
    if profile.rows.is_empty() && incomplete {
        say::note(format_args!("no profile: nothing in the recordings could be read; {}", kept(&folder)));
        return Ok(false);
    }
    if profile.rows.is_empty() {
        // The program began a recording, so it gets its files; they show that nothing ran.
        say::note(format_args!("{}", why_nothing(built, ending)));
    }
    let written = results::write(&profile, &built.name, &folder).with_context(|| kept(&folder))?;
    if !options.cargo.quiet {
        results::summarise(&written)?;
    }
    if incomplete {
        say::note(format_args!("{}", kept(&folder)));
    } else {
        folder.remove_recordings()?;
    }
    Ok(true)
}

fn kept(folder: &OutputFolder) -> String {
    format!("the recordings are kept in `{}`", folder.recordings().display())
}

/// Why there is no profile, and what to do about it.
fn why_nothing(built: &Built, ending: Ending) -> String {
    let name = &built.name;
    if built.runtimes.is_empty() {
        return format!(
            "no profile: `{name}` does not depend on scope-runtime; add it with `cargo add scope-runtime` \
             and mark functions with `#[scope]`"
        );
    }
    if built.runtimes.iter().all(|runtime| runtime.off) {
        return format!(
            "no profile: scope-runtime was built with its feature `off`; build `{name}` without it"
        );
    }
    let how = match ending {
        Ending::Status(0) => String::new(),
        _ => format!(" ({ending})"),
    };
    format!(
        "nothing to show: no region ran in `{name}`{how}; mark functions that are called with `#[scope]`, \
         or parts of them with `region!`"
    )
}

fn run_info(options: &CargoOptions, built: &Built) -> RunInfo {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let split = |list: &String| list.split([',', ' ']).map(str::to_string).collect::<Vec<_>>();
    RunInfo {
        label: Some(built.name.clone()),
        build_profile: Some(options.profile_name().to_string()),
        rustc_version: first_line(Command::new(rustc).arg("--version")),
        features: options.features.iter().flat_map(split).filter(|name| !name.is_empty()).collect(),
        command_line: std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect(),
        git_commit: first_line(
            Command::new("git").current_dir(&built.package_root).args(["rev-parse", "HEAD"]),
        ),
        omit_arguments: false,
    }
}

/// First line of what a command prints; `None` when there is no such command or it fails.
fn first_line(command: &mut Command) -> Option<String> {
    let output = command.stdin(std::process::Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next()?;
    output.status.success().then(|| line.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted("target/debug/a-b"), "target/debug/a-b");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("two words"), "'two words'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
