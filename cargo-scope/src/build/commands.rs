//! What cargo is asked to do, in words: to build, and to run what was built.

use std::ffi::OsString;
use std::process::Command;

use anyhow::bail;
use cargo_metadata::Metadata;

use super::line::Line;
use super::target::Selection;
use super::{Built, CargoOptions, RunTarget, Task, TestTargets};

/// The cargo to use: what cargo itself, or the user, put into `CARGO`.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").filter(|path| !path.is_empty()).unwrap_or_else(|| "cargo".into()))
}

pub(super) fn cannot_start(command: &Command) -> String {
    let program = command.get_program().display();
    format!("failed to start `{program}`: install cargo, or set CARGO to its path")
}

/// The first step of `cargo run`.
pub(super) fn build(
    options: &CargoOptions,
    target: &RunTarget,
    features: &[String],
    selected: &Selection,
) -> Command {
    let mut line = Line::default();
    options.add_all(&mut line);
    line.many("--features", features);
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

/// The options that select what `cargo run` runs, as they were given, and turn these features on.
pub(super) fn run_selection(target: &RunTarget, features: &[String]) -> Line {
    let mut line = Line::default();
    line.many("--features", features);
    target.add(&mut line);
    line
}

/// The options that select what `cargo test` or `cargo bench` runs. Documentation tests are left out:
/// they are no programs of the package.
pub(super) fn test_selection(
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

/// The first step of `cargo test` and `cargo bench`.
pub(super) fn build_tests(options: &CargoOptions, task: Task<'_>, selection: &Line) -> Command {
    let mut line = Line::default();
    options.add_all(&mut line);
    let mut command = cargo();
    command.arg(task.verb()).arg("--no-run").args(line.0).args(&selection.0);
    command
}

/// The command that runs what [`build`](super::build()) has built, without the program's
/// arguments: those come after a `--`. With `settings`, each a `KEY=VALUE`, cargo's configuration is
/// changed for it.
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
        options.features.features = vec!["a,b".into(), String::new()];
        let target = RunTarget { bin: vec![String::new()], ..RunTarget::default() };
        let words = |command: Command| command.get_args().map(|word| word.to_owned()).collect::<Vec<_>>();
        let expected = [
            "run",
            "--verbose",
            "--verbose",
            "--features=a,b",
            "--features=",
            "--profile=bench-like",
            "--target-dir=a folder",
            "--bin",
        ];
        assert_eq!(words(plain_run_command(&options, &target)), expected);
        let selected = Selection::Bin("main".into());
        assert_eq!(
            words(build(&options, &RunTarget::default(), &[], &selected)).last().unwrap(),
            "--bin=main"
        );
    }
}
