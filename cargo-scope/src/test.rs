//! `cargo scope test` and `cargo scope bench`: several programs, each with a profile of its own.
//!
//! Cargo runs them one after the other, as it does without us, and all record to one folder; the
//! recordings are sorted by program afterwards.

use std::path::Path;

use anyhow::Context;

use crate::build::{self, Built, Outcome, Program, Task};
use crate::cli::TestOptions;
use crate::outputs::OutputFolder;
use crate::program::{Ending, Ran, Recipient};
use crate::record::{self, Start};
use crate::recordings::{self, OfProgram, Opened};
use crate::{report, say};

/// `cargo scope test`; gives the ending that ours has to be.
///
/// # Errors
/// When nothing could be started. Once programs ran, problems are told on stderr and the ending is
/// cargo's, or status 1 where cargo succeeded and a profile did not.
pub fn test(options: &TestOptions) -> anyhow::Result<Ending> {
    run_all(options, Task::Test(&options.targets, options.name.as_deref()))
}

/// `cargo scope bench`; as [`test()`].
///
/// # Errors
/// As for [`test()`].
pub fn bench(options: &TestOptions) -> anyhow::Result<Ending> {
    run_all(options, Task::Bench(&options.targets, options.name.as_deref()))
}

fn run_all(options: &TestOptions, task: Task<'_>) -> anyhow::Result<Ending> {
    let start = Start::new(&options.profile)?;
    let built = match build::build(&options.cargo, task)? {
        Outcome::Built(built) => built,
        Outcome::Failed(status) => return Ok(status.into()),
        Outcome::NoSingleTarget => unreachable!("the rule of one target is that of `cargo run`"),
    };
    report::note_versions(&built);
    let common = common_folder(options, &built)?;
    let mut command = start.command(&options.cargo, task, &built, common.recordings())?;
    command.arg("--").args(&options.args);
    let ending = match record::run(&mut command, Recipient::CargoAndPrograms)? {
        Ran::Ended(ending) => ending,
        Ran::Abandoned(ending) => {
            report::note_abandoned(&common);
            return Ok(ending);
        }
    };
    let written = write_profiles(options, task, &built, common, ending);
    Ok(match written {
        Ok(complete) => ending.or_failure(!complete),
        Err(error) => {
            say::error(&error);
            ending.or_failure(true)
        }
    })
}

/// Where all programs record to.
fn common_folder(options: &TestOptions, built: &Built) -> anyhow::Result<OutputFolder> {
    let folder = match &options.profile.output {
        Some(folder) => folder.clone(),
        // No target has a name like this, so no series of runs has.
        None => built.target_directory.join("scope/.test-recordings"),
    };
    Ok(OutputFolder::at(&folder)?)
}

/// Makes the outputs of each program. True when all that was recorded is in them.
fn write_profiles(
    options: &TestOptions,
    task: Task<'_>,
    built: &Built,
    common: OutputFolder,
    ending: Ending,
) -> anyhow::Result<bool> {
    let found = recordings::find(common.recordings())
        .with_context(|| format!("failed to read the folder `{}`", common.recordings().display()))?;
    let Opened { recordings, unreadable } = recordings::open(&found.all());
    let executables: Vec<&Path> = built.programs.iter().map(|program| program.executable.as_path()).collect();
    let (sorted, foreign) = recordings::by_program(recordings, &executables);
    let mut keep = !unreadable.is_empty() || !foreign.is_empty();
    unreadable.iter().for_each(|line| say::note(format_args!("{line}")));
    let mut complete = unreadable.is_empty();
    let mut silent = Vec::new();
    for (program, recorded) in built.programs.iter().zip(sorted) {
        if recorded.opened.recordings.is_empty() {
            silent.push(program);
            continue;
        }
        let incomplete = write_profile(options, task, built, program, recorded, ending, &mut complete)
            .with_context(|| report::kept(&common))?;
        keep |= incomplete;
    }
    if silent.len() == built.programs.len() && !silent.is_empty() {
        say::note(format_args!("{}", report::why_nothing(built, &silent, ending)));
    }
    if !foreign.is_empty() {
        let count = crate::units::counted(foreign.len() as u64, "recording is", "recordings are");
        say::note(format_args!("{count} of other programs that the tests have started"));
    }
    if keep {
        say::note(format_args!("{}", report::kept(&common)));
    } else {
        common.remove_recordings()?;
        common.discard();
    }
    Ok(complete)
}

/// Makes the outputs of one program. True when something may be missing in them that its recordings
/// hold; `complete` becomes false when there are none.
fn write_profile(
    options: &TestOptions,
    task: Task<'_>,
    built: &Built,
    program: &Program,
    recorded: OfProgram,
    ending: Ending,
    complete: &mut bool,
) -> anyhow::Result<bool> {
    let info = report::run_info(&options.cargo, task, program);
    let collected = recordings::merge(recorded.opened, &recorded.others, &info, Some(ending))?;
    let incomplete = collected.incomplete;
    let folder = report::output_folder(&options.profile, built, program)?;
    let quiet = options.cargo.quiet;
    *complete &= report::write(collected, &program.name, &folder, &options.profile, quiet)?;
    // Its own is empty: the recordings are in the common folder.
    folder.remove_recordings()?;
    Ok(incomplete)
}
