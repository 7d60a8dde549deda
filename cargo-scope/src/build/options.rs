//! Cargo's own options, taken apart for our help and put together again for cargo.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::target::Selection;

/// Options that `cargo run` has, with its names and meanings.
#[derive(Clone, Debug, Default, Args)]
pub struct CargoOptions {
    /// Use verbose output (-vv very verbose/build.rs output)
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    /// Do not print cargo log messages, nor the summary
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Override a configuration value
    #[arg(long, value_name = "KEY=VALUE|PATH")]
    pub config: Vec<OsString>,

    /// Package with the target to run
    #[arg(short, long, value_name = "SPEC", help_heading = "Package Selection")]
    pub package: Option<String>,

    /// Name of the bin target to run
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "",
          help_heading = "Target Selection")]
    pub bin: Vec<String>,
    /// Name of the example target to run
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "",
          help_heading = "Target Selection")]
    pub example: Vec<String>,

    /// Space or comma separated list of features to activate
    #[arg(short = 'F', long, value_name = "FEATURES", help_heading = "Feature Selection")]
    pub features: Vec<String>,
    /// Activate all available features
    #[arg(long, help_heading = "Feature Selection")]
    pub all_features: bool,
    /// Do not activate the `default` feature
    #[arg(long, help_heading = "Feature Selection")]
    pub no_default_features: bool,

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
    /// Name of the build profile, as cargo calls it.
    pub fn profile_name(&self) -> &str {
        match &self.profile {
            Some(name) => name,
            None if self.release => "release",
            None => "dev",
        }
    }

    /// For `cargo run`: everything, as it was given.
    pub(super) fn for_run(&self) -> Vec<OsString> {
        let mut line = self.common();
        line.many("--bin", &self.bin).many("--example", &self.example);
        line.0
    }

    /// For `cargo build` of the same program.
    pub(super) fn for_build(&self, selection: &Selection) -> Vec<OsString> {
        let mut line = self.common();
        match selection {
            Selection::AsGiven => line.many("--bin", &self.bin).many("--example", &self.example),
            Selection::Bin(name) => line.many("--bin", [name]),
        };
        line.0
    }

    /// For `cargo metadata`, which knows only what bears on the workspace.
    pub(super) fn for_metadata(&self) -> Vec<OsString> {
        let mut line = Line::default();
        self.add_workspace(&mut line);
        line.0
    }

    fn add_workspace(&self, line: &mut Line) {
        line.many("--config", &self.config).many("--manifest-path", &self.manifest_path);
        line.flag("--locked", self.locked).flag("--offline", self.offline).flag("--frozen", self.frozen);
    }

    fn common(&self) -> Line {
        let mut line = Line::default();
        self.add_workspace(&mut line);
        (0..self.verbose).for_each(|_| {
            line.flag("--verbose", true);
        });
        line.flag("--quiet", self.quiet).many("--package", &self.package);
        line.many("--features", &self.features).flag("--all-features", self.all_features);
        line.flag("--no-default-features", self.no_default_features);
        line.many("--jobs", &self.jobs).flag("--release", self.release).many("--profile", &self.profile);
        line.many("--target", &self.target).many("--target-dir", &self.target_dir);
        line
    }
}

/// A command line in the making.
#[derive(Default)]
struct Line(Vec<OsString>);

impl Line {
    fn flag(&mut self, name: &str, given: bool) -> &mut Line {
        self.0.extend(given.then(|| name.into()));
        self
    }

    /// `name=value` for each value, so that a value may begin with a dash; an empty value stands
    /// for an option given without one.
    fn many<V: Into<OsString>>(&mut self, name: &str, values: impl IntoIterator<Item = V>) -> &mut Line {
        for value in values {
            let value = value.into();
            let mut word = OsString::from(name);
            if !value.is_empty() {
                word.push("=");
                word.push(value);
            }
            self.0.push(word);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_reach_cargo_as_given() {
        let options = CargoOptions {
            verbose: 2,
            bin: vec![String::new()],
            features: vec!["a,b".into(), "c".into()],
            profile: Some("bench-like".into()),
            target_dir: Some("a folder".into()),
            ..CargoOptions::default()
        };
        let expected = [
            "--verbose",
            "--verbose",
            "--features=a,b",
            "--features=c",
            "--profile=bench-like",
            "--target-dir=a folder",
            "--bin",
        ];
        assert_eq!(options.for_run(), expected);
        assert_eq!(options.for_build(&Selection::Bin("main".into())).last().unwrap(), "--bin=main");
        assert!(options.for_metadata().is_empty());
    }
}
