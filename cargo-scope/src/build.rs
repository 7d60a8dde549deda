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

mod line;
mod messages;
mod options;
mod target;
mod triple;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, bail};
use cargo_metadata::{Artifact, Metadata, MetadataCommand};

use self::line::Line;
pub use self::options::CargoOptions;
pub use self::target::{RunTarget, TestTargets};
use self::target::{Selection, unique_names};

/// The cargo to use: what cargo itself, or the user, put into `CARGO`.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").filter(|path| !path.is_empty()).unwrap_or_else(|| "cargo".into()))
}

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
    let metadata = match read_metadata(options)? {
        Ok(metadata) => metadata,
        Err(status) => return Ok(Outcome::Failed(status)),
    };
    let (command, selection) = match task {
        Task::Run(target) => match target::select(target, &metadata) {
            Some(selected) => (build_command(options, target, &selected), run_selection(target)),
            None => return Ok(Outcome::NoProgram),
        },
        Task::Test(targets, name) | Task::Bench(targets, name) => {
            let selection = test_selection(task, targets, name, &metadata)?;
            (no_run_command(options, task, &selection), selection)
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
    let target_directory = target_directory(options, &metadata)?;
    let names = unique_names(&programs, &metadata);
    let programs: Vec<Program> = programs.into_iter().zip(names).map(program).collect();
    let triple = triple::of_build(options, task, &metadata, &target_directory, &programs);
    let runtimes = artifacts.iter().filter_map(runtime).collect();
    Ok(Outcome::Built(Built { programs, target_directory, runtimes, triple, selection }))
}

fn build_command(options: &CargoOptions, target: &RunTarget, selected: &Selection) -> Command {
    let mut line = Line::default();
    options.add_all(&mut line);
    match selected {
        Selection::AsGiven => target.add(&mut line),
        Selection::Bin(name) => {
            line.many("--package", &target.package).many("--bin", [name]);
        }
    }
    let mut command = cargo();
    command.arg("build").args(line.0);
    command
}

fn run_selection(target: &RunTarget) -> Line {
    let mut line = Line::default();
    target.add(&mut line);
    line
}

/// Documentation tests are left out: they are no programs of the package.
fn test_selection(
    task: Task<'_>,
    targets: &TestTargets,
    name: Option<&str>,
    metadata: &Metadata,
) -> anyhow::Result<Line> {
    let mut line = Line::default();
    let Some(name) = name else {
        targets.add(&mut line);
        line.flag("--tests", matches!(task, Task::Test(..)) && !targets.any());
        return Ok(line);
    };
    match targets.with_name(name, metadata) {
        Ok(targets) => targets.add(&mut line),
        Err(names) => bail!(
            "no target is called `{name}` (there are: {}); a filter for the names of tests goes after `--`, \
             as in `cargo scope {} -- {name}`",
            names.join(", "),
            task.verb()
        ),
    }
    Ok(line)
}

fn no_run_command(options: &CargoOptions, task: Task<'_>, selection: &Line) -> Command {
    let mut line = Line::default();
    options.add_all(&mut line);
    let mut command = cargo();
    command.arg(task.verb()).arg("--no-run").args(line.0).args(&selection.0);
    command
}

/// The command that runs what [`build`] has built, without the program's arguments: those come
/// after a `--`. With `settings`, each a `KEY=VALUE`, cargo's configuration is changed for it.
pub fn run_command(options: &CargoOptions, task: Task<'_>, built: &Built, settings: &[OsString]) -> Command {
    let mut line = Line::default();
    options.add_all(&mut line);
    line.many("--config", settings).many("--message-format", &options.message_format);
    let mut command = cargo();
    command.arg(task.verb()).args(line.0).args(&built.selection.0);
    // Cargo has said it all while building. Its tests would take the option for themselves.
    if matches!(task, Task::Run(_)) && !options.quiet && options.verbose == 0 {
        command.arg("--quiet");
    }
    command
}

/// `cargo run` as the user has asked for it, for what it says where no target could be chosen.
pub fn plain_run_command(options: &CargoOptions, target: &RunTarget) -> Command {
    let mut line = Line::default();
    options.add_all(&mut line);
    line.many("--message-format", &options.message_format);
    target.add(&mut line);
    let mut command = cargo();
    command.arg("run").args(line.0);
    command
}

/// Whether cargo would take these settings besides those of the project.
///
/// # Errors
/// When cargo cannot be started.
pub fn accepts(options: &CargoOptions, settings: &[OsString]) -> anyhow::Result<bool> {
    let mut line = Line::default();
    options.add_workspace(&mut line);
    line.many("--config", settings);
    let mut command = metadata_command(line);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command.status().with_context(|| cannot_start(&command))?.success())
}

/// The target directory of the workspace around the working directory.
///
/// # Errors
/// When there is none, or cargo cannot be started; cargo has then said why.
pub fn workspace_target_directory() -> anyhow::Result<PathBuf> {
    match read_metadata(&CargoOptions::default())? {
        Ok(metadata) => Ok(metadata.target_directory.into_std_path_buf()),
        Err(status) => bail!("`cargo metadata` ended with {status}"),
    }
}

/// The workspace, without dependencies; the status where cargo refuses, having said why.
fn read_metadata(options: &CargoOptions) -> anyhow::Result<Result<Metadata, ExitStatus>> {
    let mut line = Line::default();
    options.add_workspace(&mut line);
    let mut command = metadata_command(line);
    command.stderr(Stdio::inherit());
    let output = command.output().with_context(|| cannot_start(&command))?;
    if !output.status.success() {
        return Ok(Err(output.status));
    }
    let text = String::from_utf8(output.stdout).context("`cargo metadata` gave no UTF-8")?;
    Ok(Ok(MetadataCommand::parse(text).context("failed to understand the answer of `cargo metadata`")?))
}

fn metadata_command(line: Line) -> Command {
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--format-version=1"]).args(line.0).stdin(Stdio::null());
    command
}

fn cannot_start(command: &Command) -> String {
    let program = command.get_program().display();
    format!("failed to start `{program}`: install cargo, or set CARGO to its path")
}

/// `--target-dir` comes first, as with cargo, whose metadata knows the other ways to set it.
fn target_directory(options: &CargoOptions, metadata: &Metadata) -> anyhow::Result<PathBuf> {
    match &options.target_dir {
        Some(dir) => std::path::absolute(dir).with_context(|| format!("failed to use `{}`", dir.display())),
        None => Ok(metadata.target_directory.clone().into_std_path_buf()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_reach_cargo_as_given() {
        let mut options = CargoOptions {
            verbose: 2,
            profile: Some("bench-like".into()),
            target_dir: Some("a folder".into()),
            ..CargoOptions::default()
        };
        options.features.features = vec!["a,b".into(), "c".into()];
        let target = RunTarget { bin: vec![String::new()], ..RunTarget::default() };
        let words = |command: Command| command.get_args().map(|word| word.to_owned()).collect::<Vec<_>>();
        let expected = [
            "run",
            "--verbose",
            "--verbose",
            "--features=a,b",
            "--features=c",
            "--profile=bench-like",
            "--target-dir=a folder",
            "--bin",
        ];
        assert_eq!(words(plain_run_command(&options, &target)), expected);
        let selected = Selection::Bin("main".into());
        assert_eq!(
            words(build_command(&options, &RunTarget::default(), &selected)).last().unwrap(),
            "--bin=main"
        );
    }
}
