//! The command line: subcommands and how they are parsed; `cli/` holds their options.
//!
//! `cargo scope run` starts us as `cargo-scope scope run`; a person may type `cargo-scope run`.
//! Both are parsed by [`Cli::from_command_line`].

mod files;
mod programs;
mod setup;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Parser, Subcommand};

pub use self::files::{CollectOptions, ExportKind, ExportOptions, InspectOptions, SelectionOptions};
pub use self::programs::{ProfileOptions, RunOptions, TestOptions};
pub use self::setup::{CompletionsOptions, EnvOptions, InitOptions, ManOptions};

/// What `--version` adds: the versions that have to fit together.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    let recording = scope_runtime::FORMAT_VERSION;
    format!(
        "{version}\nscope-runtime: {version}\nrecording (rank<N>.scope): format version {recording}\n\
         profile.h5: schema {} of scope-profiler",
        crate::hdf5::SCHEMA_VERSION
    )
});

/// Run a program and see exactly where its time went
#[derive(Debug, Parser)]
#[command(
    name = "cargo-scope",
    bin_name = "cargo scope",
    version,
    long_version = LONG_VERSION.as_str(),
    styles = clap_cargo::style::CLAP_STYLING,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "See `cargo scope help COMMAND` for more on one command."
)]
pub struct Cli {
    /// Change to DIRECTORY before doing anything
    #[arg(short = 'C', value_name = "DIRECTORY", global = true)]
    pub directory: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the arguments of this process; help, version and mistakes end it.
    pub fn from_command_line() -> Cli {
        Cli::parse_from(without_own_name(std::env::args_os()))
    }
}

/// Leaves out the name that cargo puts in front of a subcommand's arguments.
fn without_own_name(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    args.enumerate().filter(|(index, arg)| !(*index == 1 && arg == "scope")).map(|(_, arg)| arg)
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a program as `cargo run` does, run it and write its profile
    Run(RunOptions),
    /// Build and run test targets as `cargo test` does, and write a profile of each
    Test(TestOptions),
    /// Build and run bench targets as `cargo bench` does, and write a profile of each
    Bench(TestOptions),
    /// Make the outputs from recordings that are there already
    Collect(CollectOptions),
    /// Print the summary of a profile
    Inspect(InspectOptions),
    /// Write other formats from a profile
    Export(ExportOptions),
    /// Add scope-runtime to a package, and show what to write
    Init(InitOptions),
    /// Print shell lines that turn recording on for programs started by hand
    Env(EnvOptions),
    /// Print completions for a shell
    Completions(CompletionsOptions),
    /// Print the manual page, or write those of all commands to a folder
    Man(ManOptions),
}

impl Command {
    /// What the user wants coloured, if the command takes the option.
    pub fn color(&self) -> Option<&str> {
        match self {
            Command::Run(options) => options.cargo.color.as_deref(),
            Command::Test(options) | Command::Bench(options) => options.cargo.color.as_deref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn program_args(line: &[&str]) -> Vec<OsString> {
        let args = line.iter().map(OsString::from);
        match Cli::try_parse_from(without_own_name(args)).unwrap().command {
            Command::Run(options) => options.args,
            Command::Test(options) => options.args,
            other => panic!("not a run: {other:?}"),
        }
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn arguments_of_the_program_are_its_own() {
        assert_eq!(program_args(&["cargo-scope", "scope", "run", "--", "a", "b"]), ["a", "b"]);
        assert_eq!(program_args(&["cargo-scope", "run", "--", "scope", "run"]), ["scope", "run"]);
        assert_eq!(program_args(&["cargo-scope", "run", "-r", "--", "--release"]), ["--release"]);
        assert_eq!(program_args(&["cargo-scope", "run", "--", "--bin", "x", "-V"]), ["--bin", "x", "-V"]);
        assert_eq!(program_args(&["cargo-scope", "run", "--", "a", "--", "b", "--"]), ["a", "--", "b", "--"]);
        assert_eq!(program_args(&["cargo-scope", "run", "a", "-x", "--bin"]), ["a", "-x", "--bin"]);
        assert_eq!(program_args(&["cargo-scope", "run", "--bin", "b", "--", "", "*"]), ["", "*"]);
        assert_eq!(program_args(&["cargo-scope", "run", "-C", "x", "--", "-C", "y"]), ["-C", "y"]);
        assert_eq!(program_args(&["cargo-scope", "test", "it", "--", "slow", "-q"]), ["slow", "-q"]);
    }
}
