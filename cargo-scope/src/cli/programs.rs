//! Options of the commands that run programs: `run`, `test`, `bench`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::build::{CargoOptions, RunTarget, TestTargets};
use crate::export::Ranks;
use crate::outputs::KEPT_RUNS;

/// How to run, and what to write of it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Profile Options")]
pub struct ProfileOptions {
    /// Write the outputs to DIR [default: TARGET_DIR/scope/NAME/NUMBER, and `latest` beside it]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Keep the numbered folders of the last N runs, and recordings that no profile was made of
    #[arg(long, value_name = "N", default_value_t = KEPT_RUNS, conflicts_with = "output",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub keep: u64,
    /// Keep exact totals per call path, but no timeline
    #[arg(long)]
    pub totals_only: bool,
    /// Ranks that get a `.prof` and a flame graph, and count in the summary: `0,2-4` or `all`
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub ranks: Ranks,
    /// Leave arguments, command line and text of the source out of profile.h5
    #[arg(long)]
    pub private: bool,
    /// Start this many ranks by mpirun, mpiexec or srun, whichever is found first
    #[arg(short = 'n', value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..))]
    pub rank_count: Option<u32>,
    /// Start the program by this command, in the place of a runner that cargo is configured with
    #[arg(long, value_name = "CMD")]
    pub launcher: Option<String>,
}

/// Options of `run`.
#[derive(Debug, Args)]
#[command(after_help = "Everything after `--` goes to the program as it is.")]
pub struct RunOptions {
    /// What to build.
    #[command(flatten)]
    pub target: RunTarget,
    /// How to build it.
    #[command(flatten)]
    pub cargo: CargoOptions,
    /// How to run it.
    #[command(flatten)]
    pub profile: ProfileOptions,
    /// Arguments of the program
    #[arg(trailing_var_arg = true, value_name = "ARGS", help_heading = "Arguments")]
    pub args: Vec<OsString>,
}

/// Options of `test` and `bench`.
#[derive(Debug, Args)]
#[command(
    after_help = "Everything after `--` goes to the programs as it is, such as a filter for the names of \
                        tests. Documentation tests are left out."
)]
pub struct TestOptions {
    /// Name of the targets to run, of whatever kind [default: what cargo would run]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// What to build.
    #[command(flatten)]
    pub targets: TestTargets,
    /// How to build it.
    #[command(flatten)]
    pub cargo: CargoOptions,
    /// How to run it.
    #[command(flatten)]
    pub profile: ProfileOptions,
    /// Arguments of the programs
    #[arg(last = true, value_name = "ARGS", help_heading = "Arguments")]
    pub args: Vec<OsString>,
}
