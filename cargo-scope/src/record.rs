//! Runs what was built with recording turned on, here or on several ranks.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::build::{self, Built, CargoOptions, Task};
use crate::cli::ProfileOptions;
use crate::launcher::Launcher;
use crate::program::{self, Ending, Ran, Recipient};

/// How programs are started.
#[derive(Debug)]
pub struct Start {
    launcher: Option<Launcher>,
    totals_only: bool,
}

impl Start {
    /// From what the user wants.
    ///
    /// # Errors
    /// When there is no launcher for several ranks, or the program could not read how it is to record.
    pub fn new(options: &ProfileOptions) -> anyhow::Result<Start> {
        scope_runtime::check_environment().map_err(anyhow::Error::msg)?;
        let launcher = Launcher::choose(options.launcher.as_deref(), options.rank_count)?;
        Ok(Start { launcher, totals_only: options.totals_only })
    }

    /// The words in front of a program; none where cargo starts it by itself.
    pub fn launcher(&self) -> &[String] {
        self.launcher.as_ref().map_or(&[], Launcher::words)
    }

    /// The command that runs what was built and records to the folder `recordings`; it takes the
    /// program's arguments after a `--`.
    ///
    /// # Errors
    /// When the launcher cannot be made the runner.
    pub fn command(
        &self,
        options: &CargoOptions,
        task: Task<'_>,
        built: &Built,
        recordings: &Path,
    ) -> anyhow::Result<Command> {
        let mut variables = vec![("SCOPE_OUTPUT", recordings.as_os_str())];
        // The table of all ranks is made here, from what they have recorded to their ends.
        variables.push(("SCOPE_MPI_TABLE", "0".as_ref()));
        // So is the profile, which knows how the program was built.
        variables.push(("SCOPE_HDF5", "0".as_ref()));
        variables.extend(self.totals_only.then_some(("SCOPE_TOTALS_ONLY", "1".as_ref())));
        let names = passed_on(variables.iter().map(|(name, _)| *name));
        let runner = match &self.launcher {
            Some(launcher) => Some(launcher.as_runner(options, built, &names)?),
            None => None,
        };
        let mut command = build::run_command(options, task, built, runner.as_slice());
        command.envs(variables);
        Ok(command)
    }
}

/// The variables that a recording depends on: those that we set, and those that the user has set.
fn passed_on<'a>(ours: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = ours.collect();
    for name in [
        "SCOPE_TOTALS_ONLY",
        "SCOPE_EVENT_LIMIT",
        "SCOPE_MPI",
        "SCOPE_MPI_CALLS",
        "SCOPE_MPI_COMBINE",
        "SCOPE_MPI_TIMEOUT",
    ] {
        if !names.contains(&name) && std::env::var_os(name).is_some() {
            names.push(name);
        }
    }
    names
}

/// Runs a command of cargo, to its end unless the user loses patience.
///
/// # Errors
/// When it cannot be started.
pub fn run(command: &mut Command, recipient: Recipient) -> anyhow::Result<Ran> {
    program::run(command, recipient)
        .with_context(|| format!("failed to run `{}`", command.get_program().display()))
}

/// The same for a command that records nothing.
///
/// # Errors
/// When it cannot be started.
pub fn run_unrecorded(command: &mut Command) -> anyhow::Result<Ending> {
    Ok(match run(command, Recipient::Program)? {
        Ran::Ended(ending) | Ran::Abandoned(ending) => ending,
    })
}
