//! `cargo scope test` and `cargo scope bench`: several programs, each with a profile of its own.
//!
//! Cargo runs them one after the other, as it does without us, and all record to one folder; the
//! recordings are sorted by program afterwards.

use std::path::Path;

use scope_runtime::recording::Recording;

use crate::build::{self, Built, Outcome, Program, Task};
use crate::cli::TestOptions;
use crate::outputs::OutputFolder;
use crate::program::{Ending, Ran, Recipient};
use crate::record::{self, Start};
use crate::recordings::{self, OfProgram};
use crate::report::{self, Share};
use crate::units::counted;
use crate::{results, say};

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
        Outcome::NoProgram => {
            say::note(format_args!("no profile: none of the targets is a program that cargo would run"));
            return Ok(Ending::Status(0));
        }
    };
    report::note_versions(&built);
    let common = common_folder(options, &built)?;
    let ending = match run_recorded(options, task, &start, &built, &common) {
        Ok(Ran::Ended(ending)) => ending,
        Ok(Ran::Abandoned(ending)) => {
            report::note_abandoned(&common);
            return Ok(ending);
        }
        Err(error) => {
            common.discard();
            return Err(error);
        }
    };
    let share = write_profiles(options, task, &built, common, ending);
    Ok(report::with_outputs(ending, share))
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

fn run_recorded(
    options: &TestOptions,
    task: Task<'_>,
    start: &Start,
    built: &Built,
    common: &OutputFolder,
) -> anyhow::Result<Ran> {
    let mut command = start.command(&options.cargo, task, built, common.recordings())?;
    record::run(command.arg("--").args(&options.args), Recipient::CargoAndPrograms)
}

/// Makes the outputs of each program.
fn write_profiles(
    options: &TestOptions,
    task: Task<'_>,
    built: &Built,
    common: OutputFolder,
    ending: Ending,
) -> anyhow::Result<Share> {
    let found = recordings::find(common.recordings())?;
    let (mut infos, mut share) = (Vec::new(), Share::All);
    for path in found.all() {
        match Recording::open(&path) {
            Ok(recording) => infos.push((path, recording.info().clone())),
            Err(error) => {
                say::note(format_args!("{error}"));
                share = Share::None;
            }
        }
    }
    let executables: Vec<&Path> = built.programs.iter().map(|program| program.executable.as_path()).collect();
    let (sorted, foreign) = recordings::by_program(infos, &executables);
    let (mut silent, mut failed) = (Vec::new(), None);
    for (program, recorded) in built.programs.iter().zip(sorted) {
        if recorded.chosen.is_empty() {
            silent.push(program);
            continue;
        }
        match write_profile(options, task, built, program, recorded, ending) {
            Ok(of_program) => share = share.min(of_program),
            // The other programs' may be written all the same.
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    if let Some(error) = failed {
        return Err(error.context(report::kept(&common)));
    }
    report::note_failures(found.failures);
    if silent.len() == built.programs.len() && found.failures == 0 {
        say::note(format_args!("{}", report::why_nothing(built, &silent, ending)));
    }
    if !foreign.is_empty() {
        let count = counted(foreign.len() as u64, "recording is", "recordings are");
        say::note(format_args!("{count} of other programs that these have started"));
        share = share.min(Share::Part);
    }
    report::remove_or_keep(&common, share)?;
    common.discard();
    Ok(if found.failures > 0 { Share::None } else { share })
}

/// Makes the outputs of one program.
fn write_profile(
    options: &TestOptions,
    task: Task<'_>,
    built: &Built,
    program: &Program,
    recorded: OfProgram,
    ending: Ending,
) -> anyhow::Result<Share> {
    let info = report::run_info(&options.cargo, &options.profile, task, built, program);
    let folder = report::output_folder(&options.profile, built, program)?;
    let share = results::profile_in(&folder)
        .and_then(|into| recordings::merge(&recorded.chosen, &recorded.others, &info, Some(ending), &into))
        .and_then(|collected| {
            report::write(collected, &program.name, &folder, &options.profile, options.cargo.quiet)
        });
    match share {
        // Its own is empty: the recordings are in the common folder.
        Ok(_) => folder.remove_recordings()?,
        Err(_) => {
            folder.discard();
            if !options.cargo.quiet {
                results::summarise_recordings(&program.name, &recorded.chosen);
            }
        }
    }
    share
}
