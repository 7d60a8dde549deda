//! What cargo takes targets from: the options that select them, and the rule of `cargo run`.

use std::collections::BTreeSet;

use cargo_metadata::{Artifact, Metadata, Package, Target};
use clap::Args;
use clap_cargo::Workspace;

use super::line::Line;

/// Options of `run` that select the program.
#[derive(Clone, Debug, Default, Args)]
pub struct RunTarget {
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
}

/// Options of `test` and `bench` that select the programs.
#[derive(Clone, Debug, Default, Args)]
pub struct TestTargets {
    /// Packages to take targets from.
    #[command(flatten, next_help_heading = "Package Selection")]
    pub workspace: Workspace,
    /// Test only this package's library
    #[arg(long, help_heading = "Target Selection")]
    pub lib: bool,
    /// Test all binaries
    #[arg(long, help_heading = "Target Selection")]
    pub bins: bool,
    /// Test only the specified binary
    #[arg(long, value_name = "NAME", help_heading = "Target Selection")]
    pub bin: Vec<String>,
    /// Test all examples
    #[arg(long, help_heading = "Target Selection")]
    pub examples: bool,
    /// Test only the specified example
    #[arg(long, value_name = "NAME", help_heading = "Target Selection")]
    pub example: Vec<String>,
    /// Test all targets that have `test = true` set
    #[arg(long, help_heading = "Target Selection")]
    pub tests: bool,
    /// Test only the specified test target
    #[arg(long, value_name = "NAME", help_heading = "Target Selection")]
    pub test: Vec<String>,
    /// Test all targets that have `bench = true` set
    #[arg(long, help_heading = "Target Selection")]
    pub benches: bool,
    /// Test only the specified bench target
    #[arg(long, value_name = "NAME", help_heading = "Target Selection")]
    pub bench: Vec<String>,
    /// Test all targets (does not include doctests)
    #[arg(long, help_heading = "Target Selection")]
    pub all_targets: bool,
    /// Run all tests regardless of failure
    #[arg(long, help_heading = None)]
    pub no_fail_fast: bool,
}

impl RunTarget {
    pub(super) fn add(&self, line: &mut Line) {
        line.many("--package", &self.package);
        line.many_or_bare("--bin", &self.bin).many_or_bare("--example", &self.example);
    }
}

impl TestTargets {
    pub(super) fn add(&self, line: &mut Line) {
        let Workspace { package, workspace, all, exclude, .. } = &self.workspace;
        line.many("--package", package).flag("--workspace", *workspace || *all).many("--exclude", exclude);
        line.flag("--lib", self.lib).flag("--bins", self.bins).many("--bin", &self.bin);
        line.flag("--examples", self.examples).many("--example", &self.example);
        line.flag("--tests", self.tests).many("--test", &self.test);
        line.flag("--benches", self.benches).many("--bench", &self.bench);
        line.flag("--all-targets", self.all_targets).flag("--no-fail-fast", self.no_fail_fast);
    }

    /// Whether the options say which kinds of targets to take.
    pub(super) fn any(&self) -> bool {
        let named = [&self.bin, &self.example, &self.test, &self.bench].iter().any(|names| !names.is_empty());
        let kinds = [self.lib, self.bins, self.examples, self.tests, self.benches, self.all_targets];
        named || kinds.contains(&true)
    }

    /// The same, with every target called `name` selected; lists the names there are when none is.
    pub(super) fn with_name(&self, name: &str, metadata: &Metadata) -> Result<TestTargets, Vec<String>> {
        let packages = self.packages(metadata);
        let targets: Vec<&Target> = packages.iter().flat_map(|package| &package.targets).collect();
        let mut selected = self.clone();
        let mut is_there = false;
        for target in targets.iter().filter(|target| target.name == name && !target.is_custom_build()) {
            is_there = true;
            let list = match () {
                () if target.is_test() => &mut selected.test,
                () if target.is_bench() => &mut selected.bench,
                () if target.is_bin() => &mut selected.bin,
                () if target.is_example() => &mut selected.example,
                () => {
                    selected.lib = true;
                    continue;
                }
            };
            list.push(name.to_string());
        }
        if is_there {
            return Ok(selected);
        }
        let runnable = targets.iter().filter(|target| !target.is_custom_build());
        Err(runnable.map(|target| target.name.clone()).collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn packages<'a>(&self, metadata: &'a Metadata) -> Vec<&'a Package> {
        if self.workspace.workspace || self.workspace.all {
            return metadata.workspace_packages();
        }
        packages(&self.workspace.package, metadata)
    }
}

/// How to select the program's target in `cargo build`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// By the options that were given.
    AsGiven,
    /// By this name, the `default-run`.
    Bin(String),
}

/// Selects one target, by the rule of `cargo run`: what the options name, else the `default-run`
/// of the packages in question, else their only binary. `None` where that is not one target.
pub(super) fn select(target: &RunTarget, metadata: &Metadata) -> Option<Selection> {
    if !target.bin.is_empty() || !target.example.is_empty() {
        return Some(Selection::AsGiven);
    }
    let packages = packages(target.package.as_slice(), metadata);
    let default_runs: Vec<&String> = packages.iter().filter_map(|p| p.default_run.as_ref()).collect();
    match default_runs[..] {
        [name] => Some(Selection::Bin(name.clone())),
        // With one binary there is nothing to choose, and `cargo run` then builds all that
        // `cargo build` does: a member that fails to build must fail here, not after the build.
        [] if packages.iter().flat_map(|package| bins(package)).count() == 1 => Some(Selection::AsGiven),
        _ => None,
    }
}

/// The packages that cargo takes targets from: those that `specs` name, else the default members
/// as seen from the manifest that cargo finds.
pub(super) fn packages<'a>(specs: &[String], metadata: &'a Metadata) -> Vec<&'a Package> {
    if !specs.is_empty() {
        let named = |package: &&Package| specs.iter().any(|spec| fits(spec, package));
        return metadata.workspace_packages().into_iter().filter(named).collect();
    }
    if metadata.workspace_default_members.is_available() {
        return metadata.workspace_default_packages();
    }
    // Cargo before 1.71 does not say.
    metadata.workspace_packages()
}

/// Whether a package id specification means `package`: its name, with or without a version, or a
/// URL as in its full id.
fn fits(spec: &str, package: &Package) -> bool {
    let name = package.name.as_str();
    let (spec_name, spec_version) = spec.split_once(['@', ':']).unwrap_or((spec, ""));
    let version = package.version.to_string();
    let versions_fit = spec_version.is_empty()
        || version == spec_version
        || version.strip_prefix(spec_version).is_some_and(|rest| rest.starts_with('.'));
    (spec_name == name && versions_fit) || (spec.contains("://") && package.id.repr.contains(spec))
}

fn bins(package: &Package) -> impl Iterator<Item = &String> {
    package.targets.iter().filter(|target| target.is_bin()).map(|target| &target.name)
}

/// A name for each of these programs under which its profile is kept: that of its target where no
/// other one has it, else with its kind, and with its package where that is not enough.
pub(super) fn unique_names(artifacts: &[&Artifact], metadata: &Metadata) -> Vec<String> {
    let plain = |artifact: &Artifact| artifact.target.name.clone();
    let with_kind = |artifact: &Artifact| {
        let kind = artifact.target.kind.first().map_or_else(String::new, ToString::to_string);
        format!("{}-{kind}", artifact.target.name)
    };
    let with_package = |artifact: &Artifact| {
        let package = metadata.packages.iter().find(|package| package.id == artifact.package_id);
        format!("{}-{}", package.map_or("package", |package| package.name.as_str()), with_kind(artifact))
    };
    let count = |name: &dyn Fn(&Artifact) -> String, artifact: &Artifact| {
        artifacts.iter().filter(|other| name(other) == name(artifact)).count()
    };
    let name = |artifact: &&Artifact| match () {
        () if count(&plain, artifact) == 1 => plain(artifact),
        () if count(&with_kind, artifact) == 1 => with_kind(artifact),
        () => with_package(artifact),
    };
    artifacts.iter().map(name).collect()
}
