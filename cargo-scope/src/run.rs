//! `cargo scope run`: build, run, collect, write, summarise.

use std::ffi::OsStr;

use anyhow::Context;

use crate::build::{self, Built, Outcome, Program, Task};
use crate::cli::RunOptions;
use crate::outputs::OutputFolder;
use crate::program::{Ending, Ran, Recipient};
use crate::record::{self, Start};
use crate::recordings::{self, Found};
use crate::report::{self, Share};
use crate::{results, say, shell};

/// Runs the program and writes its profile; gives the ending that ours has to be.
///
/// # Errors
/// When the program could not be started. Once it ran, problems are told on stderr and the
/// ending is the program's, or status 1 where the program succeeded and its profile did not.
pub fn run(options: &RunOptions) -> anyhow::Result<Ending> {
    let start = Start::new(&options.profile)?;
    let built = match build::build(&options.cargo, Task::Run(&options.target))? {
        Outcome::Built(built) => built,
        Outcome::Failed(status) => return Ok(status.into()),
        Outcome::NoProgram => return run_without_profile(options),
    };
    let program = &built.programs[0];
    report::note_versions(&built);
    let folder = report::output_folder(&options.profile, &built, program)?;
    let ending = match run_recorded(options, &start, &built, &folder) {
        Ok(Ran::Ended(ending)) => ending,
        Ok(Ran::Abandoned(ending)) => {
            report::note_abandoned(&folder);
            return Ok(ending);
        }
        Err(error) => {
            folder.discard();
            return Err(error);
        }
    };
    let share = write_profile(options, &built, program, folder, ending);
    Ok(report::with_outputs(ending, share))
}

/// Leaves it to cargo to say what is wrong with the choice of target. Should it find a program
/// after all, it runs.
fn run_without_profile(options: &RunOptions) -> anyhow::Result<Ending> {
    let mut command = build::plain_run_command(&options.cargo, &options.target);
    let ending = record::run_unrecorded(command.arg("--").args(&options.args))?;
    if ending == Ending::Status(0) {
        say::note(format_args!(
            "no profile: cannot tell which program cargo ran; name it with --bin or --example"
        ));
    }
    Ok(ending)
}

fn run_recorded(
    options: &RunOptions,
    start: &Start,
    built: &Built,
    folder: &OutputFolder,
) -> anyhow::Result<Ran> {
    let mut command =
        start.command(&options.cargo, Task::Run(&options.target), built, folder.recordings())?;
    // With -v cargo writes it, for a program that is fresh.
    if !options.cargo.quiet && options.cargo.verbose == 0 {
        announce(start.launcher(), &built.programs[0], &options.args);
    }
    record::run(command.arg("--").args(&options.args), Recipient::Program)
}

/// The line that cargo writes before a program starts.
fn announce(launcher: &[String], program: &Program, args: &[impl AsRef<OsStr>]) {
    let here = std::env::current_dir().unwrap_or_default();
    let program = program.executable.strip_prefix(here).unwrap_or(&program.executable);
    let words = launcher.iter().map(AsRef::as_ref).chain([program.as_os_str()]);
    let words = words.chain(args.iter().map(AsRef::as_ref));
    let words: Vec<String> = words.map(|word: &OsStr| shell::word(&word.to_string_lossy())).collect();
    say::status("Running", format_args!("`{}`", words.join(" ")));
}

/// Makes the outputs.
fn write_profile(
    options: &RunOptions,
    built: &Built,
    program: &Program,
    folder: OutputFolder,
    ending: Ending,
) -> anyhow::Result<Share> {
    let found = recordings::find(folder.recordings())?;
    report::note_failures(found.failures);
    if found.chosen.is_empty() && found.failures > 0 {
        folder.remove_recordings()?;
        folder.discard();
        return Ok(Share::None);
    }
    if found.chosen.is_empty() {
        say::note(format_args!("{}", report::why_nothing(built, &[program], ending)));
        folder.discard();
        return Ok(Share::All);
    }
    let share = merge_and_write(options, built, program, &folder, &found, ending);
    if share.is_err() {
        // The recordings stay; there is nothing beside them.
        folder.unstage();
        if !options.cargo.quiet {
            results::summarise_recordings(&program.name, &found.chosen);
        }
    }
    let share = share.with_context(|| report::kept(&folder))?;
    report::remove_or_keep(&folder, share)?;
    Ok(if found.failures > 0 { Share::None } else { share })
}

fn merge_and_write(
    options: &RunOptions,
    built: &Built,
    program: &Program,
    folder: &OutputFolder,
    found: &Found,
    ending: Ending,
) -> anyhow::Result<Share> {
    let info = report::run_info(&options.cargo, &options.profile, Task::Run(&options.target), built, program);
    let into = results::profile_in(folder)?;
    let collected = recordings::merge(&found.chosen, &found.others, &info, Some(ending), &into)?;
    if collected.profile.rows.is_empty() && !collected.incomplete {
        // The program began a recording, so it gets its files; they show that nothing ran.
        say::note(format_args!("{}", report::why_nothing(built, &[program], ending)));
    }
    report::write(collected, &program.name, folder, &options.profile, options.cargo.quiet)
}
