//! Builds the programs that `cargo run`, `cargo test` or `cargo bench` would run, through cargo, and
//! gives the command that runs them, through cargo.
//!
//! Two steps. First cargo only builds (`cargo build`, `cargo test --no-run`), with JSON messages and
//! without `SCOPE_OUTPUT` in the environment (a build script may have regions too): it shows
//! cargo's messages and progress, and its answer tells which programs there are, where they were
//! built, and whether scope-runtime is linked into them. Then cargo runs them with the user's own
//! options and finds everything fresh; `cargo run` replaces itself by the program. So the choice of
//! the target, runners, `[env]`, library paths, working directory, arguments and status (a signal
//! too) are cargo's own, not an imitation.
//!
//! `cargo run` alone would not do: it mixes its JSON messages into the program's stdout, and a
//! failed build looks like a failed program. The first step alone would not either: what cargo
//! adds to a program's environment cannot be asked for, nor can the runner on a stable toolchain.

mod commands;
mod features;
mod line;
mod messages;
mod options;
mod target;
mod triple;
mod workspace;

use std::path::PathBuf;
use std::process::ExitStatus;

use cargo_metadata::Artifact;

pub use self::commands::{cargo, plain_run_command, run_command};
use self::line::Line;
pub use self::options::CargoOptions;
use self::target::unique_names;
pub use self::target::{RunTarget, TestTargets};
pub use self::workspace::{accepts, workspace_target_directory};
use crate::say;

/// What to build and to run.
#[derive(Clone, Copy, Debug)]
pub enum Task<'a> {
    /// The one program of `cargo run`.
    Run(&'a RunTarget),
    /// The programs of `cargo test`; with a name, those of the targets called so.
    Test(&'a TestTargets, Option<&'a str>),
    /// The programs of `cargo bench`, in the same way.
    Bench(&'a TestTargets, Option<&'a str>),
}

impl Task<'_> {
    /// The subcommand of cargo.
    fn verb(self) -> &'static str {
        match self {
            Task::Run(_) => "run",
            Task::Test(..) => "test",
            Task::Bench(..) => "bench",
        }
    }

    /// Name of the build profile, as cargo calls it.
    pub fn profile_name(self, options: &CargoOptions) -> &str {
        match (&options.profile, self) {
            (Some(name), _) => name,
            (None, _) if options.release => "release",
            (None, Task::Run(_)) => "dev",
            (None, _) => self.verb(),
        }
    }
}

/// What came of building.
#[derive(Debug)]
pub enum Outcome {
    /// The programs are there.
    Built(Built),
    /// Cargo failed, and said why.
    Failed(ExitStatus),
    /// For `cargo run` no target, or several: cargo has the words for it. Else none.
    NoProgram,
}

/// Programs that were built.
#[derive(Debug)]
pub struct Built {
    /// The programs, in the order of cargo's messages, at least one; for `cargo run` exactly one.
    pub programs: Vec<Program>,
    /// Target directory of the build.
    pub target_directory: PathBuf,
    /// Root folder of the workspace, from which names of source files count.
    pub workspace_root: PathBuf,
    /// The scope-runtime crates that were built for them.
    pub runtimes: Vec<Runtime>,
    /// The triple of the platform they were built for; `None` when it is the host's.
    pub triple: Option<String>,
    /// How to select in the second step what was selected in the first.
    selection: Line,
}

/// A program that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name of the target, such as the binary's; made unique among the programs of a build.
    pub name: String,
    /// Path of the program, from cargo's message.
    pub executable: PathBuf,
    /// Root folder of the package.
    pub package_root: PathBuf,
}

/// A scope-runtime that takes part in a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Its version; empty when cargo's package id does not say it.
    pub version: String,
    /// Whether it was built with the feature `off`, which removes all recording.
    pub off: bool,
}

/// Builds what the task names, as cargo itself does before it runs it.
///
/// # Errors
/// When cargo cannot be started, does not speak JSON as expected, or has no target of the name.
pub fn build(options: &CargoOptions, task: Task<'_>) -> anyhow::Result<Outcome> {
    let metadata = match workspace::read(options)? {
        Ok(metadata) => metadata,
        Err(status) => return Ok(Outcome::Failed(status)),
    };
    let (command, selection) = match task {
        Task::Run(target) => match target::select(target, &metadata) {
            Some(selected) => {
                let features = features::missing(target, &options.features, &metadata);
                if !features.is_empty() && !options.quiet {
                    say::status("Features", format_args!("{} (required by the target)", features.join(", ")));
                }
                let command = commands::build(options, target, &features, &selected);
                (command, commands::run_selection(target, &features))
            }
            None => return Ok(Outcome::NoProgram),
        },
        Task::Test(targets, name) | Task::Bench(targets, name) => {
            let selection = commands::test_selection(task, targets, name, &metadata)?;
            (commands::build_tests(options, task, &selection), selection)
        }
    };
    let (status, artifacts) = messages::follow(command, options)?;
    if !status.success() {
        return Ok(Outcome::Failed(status));
    }
    let is_run = matches!(task, Task::Run(_));
    // Cargo also builds binaries and examples that tests may start; those are not tests.
    let runs = |artifact: &&Artifact| artifact.executable.is_some() && (is_run || artifact.profile.test);
    let programs: Vec<&Artifact> = artifacts.iter().filter(runs).collect();
    if programs.is_empty() || is_run && programs.len() != 1 {
        return Ok(Outcome::NoProgram);
    }
    let target_directory = workspace::target_directory(options, &metadata)?;
    let names = unique_names(&programs, &metadata);
    let programs: Vec<Program> = programs.into_iter().zip(names).map(program).collect();
    let triple = triple::of_build(options, task, &metadata, &target_directory, &programs);
    let runtimes = artifacts.iter().filter_map(runtime).collect();
    let workspace_root = metadata.workspace_root.into_std_path_buf();
    Ok(Outcome::Built(Built { programs, target_directory, workspace_root, runtimes, triple, selection }))
}

fn program((artifact, name): (&Artifact, String)) -> Program {
    let manifest = artifact.manifest_path.clone().into_std_path_buf();
    Program {
        name,
        executable: artifact.executable.clone().unwrap_or_default().into_std_path_buf(),
        package_root: manifest.parent().unwrap_or(&manifest).to_path_buf(),
    }
}

/// Is it scope-runtime? By the name of its library, which a renamed dependency keeps.
fn runtime(artifact: &Artifact) -> Option<Runtime> {
    if artifact.target.name.replace('-', "_") != "scope_runtime" {
        return None;
    }
    let id = &artifact.package_id.repr;
    let version = id.rsplit(['#', '@']).next().filter(|text| text.starts_with(|c: char| c.is_ascii_digit()));
    Some(Runtime {
        version: version.unwrap_or_default().to_string(),
        off: artifact.features.iter().any(|feature| feature == "off"),
    })
}
