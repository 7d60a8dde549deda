//! The command line: subcommands, options and their help.
//!
//! `cargo scope run` starts us as `cargo-scope scope run`; a person may type `cargo-scope run`.
//! Both are parsed by [`Cli::from_command_line`].

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::build::CargoOptions;
use crate::export::Ranks;

/// What `--version` adds: the versions that have to fit together.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\nscope-runtime: ",
    env!("CARGO_PKG_VERSION"),
    "\nprofile.h5: schema 3 of scope-profiler"
);

/// Run a program and see exactly where its time went
#[derive(Debug, Parser)]
#[command(
    name = "cargo-scope",
    bin_name = "cargo scope",
    version,
    long_version = LONG_VERSION,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "See `cargo scope help COMMAND` for more on one command."
)]
pub struct Cli {
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
    /// Make the outputs from recordings that are there already
    Collect(CollectOptions),
    /// Print the summary of a profile
    Inspect(InspectOptions),
    /// Write other formats from a profile
    Export(ExportOptions),
}

/// Options of `run`.
#[derive(Debug, Args)]
#[command(after_help = "Everything after `--` goes to the program as it is.")]
pub struct RunOptions {
    /// What to build and how.
    #[command(flatten)]
    pub cargo: CargoOptions,
    /// Write the outputs to DIR [default: TARGET_DIR/scope/NAME/NUMBER, and `latest` beside it]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Keep exact totals per call path, but no timeline
    #[arg(long)]
    pub totals_only: bool,
    /// Arguments of the program
    #[arg(trailing_var_arg = true, value_name = "ARGS")]
    pub args: Vec<OsString>,
}

/// Options of `collect`.
#[derive(Debug, Args)]
pub struct CollectOptions {
    /// Folder with the recordings (`rank0.scope`, ...)
    #[arg(value_name = "DIR")]
    pub recordings: PathBuf,
    /// Write the outputs to DIR [default: the folder of the recordings]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Options of `inspect`.
#[derive(Debug, Args)]
pub struct InspectOptions {
    /// Profile (`profile.h5`, or a folder with one), of cargo-scope or scope-profiler
    #[arg(value_name = "PROFILE")]
    pub profile: PathBuf,
    /// What to show.
    #[command(flatten)]
    pub selection: SelectionOptions,
}

/// Options of `export`.
#[derive(Debug, Args)]
pub struct ExportOptions {
    /// What to write
    #[arg(value_enum, value_name = "KIND")]
    pub kind: ExportKind,
    /// Profiles (`profile.h5`, or a folder with one), of cargo-scope or scope-profiler
    #[arg(value_name = "PROFILE", required = true)]
    pub profiles: Vec<PathBuf>,
    /// Write the files to DIR [default: the folder of the profile]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// What to write of it.
    #[command(flatten)]
    pub selection: SelectionOptions,
    /// One entry per region instead of one per call path (prof)
    #[arg(long)]
    pub no_call_paths: bool,
    /// Name of the root entry; `<LABEL rank N>` unless given (prof)
    #[arg(long, value_name = "TEXT")]
    pub root: Option<String>,
    /// Label in titles, root entries and file names, once for each PROFILE [default: the label in
    /// the profile, else the stem of its name]
    #[arg(long, value_name = "TEXT")]
    pub label: Vec<String>,
    /// Width of the picture in pixels (flame)
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(100..=100_000))]
    pub width: Option<u32>,
    /// Leave out frames narrower than this share of the whole, in percent (flame)
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "0.1")]
    pub threshold: f64,
    /// Keep the width of the picture where the window is wider or narrower (flame)
    #[arg(long)]
    pub fixed_width: bool,
    /// Write a picture without search and zoom (flame)
    #[arg(long)]
    pub no_javascript: bool,
}

/// What `export` can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportKind {
    /// `profile_rank<N>.prof`, for snakeviz and pstats
    Prof,
    /// `flamegraph_rank<N>.svg`, and `flamegraph.svg` of all ranks
    Flame,
}

/// Which ranks and regions count.
#[derive(Clone, Debug, Default, Args)]
pub struct SelectionOptions {
    /// Ranks to take: numbers and ranges such as `0,2-4`, or `all`
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub ranks: Ranks,
    /// Take only regions that match this regular expression at the start of their name
    #[arg(long, value_name = "REGEX")]
    pub include: Vec<String>,
    /// Leave out regions that match this regular expression at the start of their name
    #[arg(long, value_name = "REGEX")]
    pub exclude: Vec<String>,
    /// Count the time of async regions from begin to end, not only while they are polled
    #[arg(long)]
    pub wall: bool,
    /// With --wall, nest calls by their lane alone, as scope-profiler does
    #[arg(long, requires = "wall")]
    pub by_lane: bool,
    /// Put tasks and linked work below the region that started them
    #[arg(long, conflicts_with = "wall")]
    pub linked: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err(format!("`{text}` is no percentage; give a number from 0 to 100")),
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
    }

    #[test]
    fn thresholds_are_percentages() {
        assert_eq!(percent("0.5%"), Ok(0.5));
        assert!(percent("-1").is_err() && percent("nan").is_err() && percent("101").is_err());
    }
}
