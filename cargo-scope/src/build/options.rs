//! Cargo's own options, taken apart for our help and put together again for cargo.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args};
use clap_cargo::Features;

use super::line::Line;

/// The formats that cargo knows.
const MESSAGE_FORMATS: [&str; 6] = [
    "human",
    "short",
    "json",
    "json-diagnostic-short",
    "json-diagnostic-rendered-ansi",
    "json-render-diagnostics",
];

/// Options that `cargo run`, `cargo test` and `cargo bench` share, with cargo's names and meanings.
#[derive(Clone, Debug, Default, Args)]
pub struct CargoOptions {
    /// Use verbose output (-vv very verbose/build.rs output)
    #[arg(short, long, action = ArgAction::Count, help_heading = None)]
    pub verbose: u8,
    /// Do not print cargo log messages, nor the summary
    #[arg(short, long, conflicts_with = "verbose", help_heading = None)]
    pub quiet: bool,
    /// Coloring
    #[arg(long, value_name = "WHEN", value_parser = ["auto", "always", "never"], help_heading = None)]
    pub color: Option<String>,
    /// Override a configuration value
    #[arg(long, value_name = "KEY=VALUE|PATH", help_heading = None)]
    pub config: Vec<OsString>,
    /// Format of what the compiler says
    #[arg(long, value_name = "FMT", value_delimiter = ',', value_parser = MESSAGE_FORMATS,
          help_heading = None)]
    pub message_format: Vec<String>,

    /// Features of the packages that are built.
    #[command(flatten, next_help_heading = "Feature Selection")]
    pub features: Features,

    /// Number of parallel jobs, defaults to # of CPUs
    #[arg(short, long, value_name = "N", allow_hyphen_values = true, help_heading = "Compilation Options")]
    pub jobs: Option<String>,
    /// Build artifacts in release mode, with optimizations
    #[arg(short, long, conflicts_with = "profile", help_heading = "Compilation Options")]
    pub release: bool,
    /// Build artifacts with the specified profile
    #[arg(long, value_name = "PROFILE-NAME", help_heading = "Compilation Options")]
    pub profile: Option<String>,
    /// Build for the target triple
    #[arg(long, value_name = "TRIPLE", help_heading = "Compilation Options")]
    pub target: Option<OsString>,
    /// Directory for all generated artifacts
    #[arg(long, value_name = "DIRECTORY", help_heading = "Compilation Options")]
    pub target_dir: Option<PathBuf>,

    /// Path to Cargo.toml
    #[arg(long, value_name = "PATH", help_heading = "Manifest Options")]
    pub manifest_path: Option<PathBuf>,
    /// Ignore `rust-version` specification in packages
    #[arg(long, help_heading = "Manifest Options")]
    pub ignore_rust_version: bool,
    /// Assert that `Cargo.lock` will remain unchanged
    #[arg(long, help_heading = "Manifest Options")]
    pub locked: bool,
    /// Run without accessing the network
    #[arg(long, help_heading = "Manifest Options")]
    pub offline: bool,
    /// Equivalent to specifying both --locked and --offline
    #[arg(long, help_heading = "Manifest Options")]
    pub frozen: bool,
}

impl CargoOptions {
    /// What bears on the workspace: all that `cargo metadata` takes.
    pub(super) fn add_workspace(&self, line: &mut Line) {
        line.many("--config", &self.config).many("--manifest-path", &self.manifest_path);
        line.flag("--locked", self.locked).flag("--offline", self.offline).flag("--frozen", self.frozen);
        line.many("--color", &self.color);
    }

    /// All but the message format, which differs between building and running.
    pub(super) fn add_all(&self, line: &mut Line) {
        self.add_workspace(line);
        (0..self.verbose).for_each(|_| {
            line.flag("--verbose", true);
        });
        line.flag("--quiet", self.quiet);
        let Features { features, all_features, no_default_features, .. } = &self.features;
        line.many("--features", features).flag("--all-features", *all_features);
        line.flag("--no-default-features", *no_default_features);
        line.many("--jobs", &self.jobs).flag("--release", self.release).many("--profile", &self.profile);
        line.many("--target", &self.target).many("--target-dir", &self.target_dir);
        line.flag("--ignore-rust-version", self.ignore_rust_version);
    }

    /// Whether cargo is to write JSON to stdout.
    pub(super) fn wants_json(&self) -> bool {
        self.message_format.iter().any(|format| format.starts_with("json"))
    }
}
