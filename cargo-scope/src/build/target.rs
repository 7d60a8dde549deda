//! Which target `cargo run` runs, so that no other one is built.

use cargo_metadata::{Artifact, Metadata, Package};

use super::CargoOptions;

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
pub(super) fn select(options: &CargoOptions, metadata: &Metadata) -> Option<Selection> {
    if !options.bin.is_empty() || !options.example.is_empty() {
        return Some(Selection::AsGiven);
    }
    let packages = packages(options, metadata);
    let default_runs: Vec<&String> = packages.iter().filter_map(|p| p.default_run.as_ref()).collect();
    match default_runs[..] {
        [name] => Some(Selection::Bin(name.clone())),
        // With one binary there is nothing to choose, and `cargo run` then builds all that
        // `cargo build` does: a member that fails to build must fail here, not after the build.
        [] if packages.iter().flat_map(|package| bins(package)).count() == 1 => Some(Selection::AsGiven),
        _ => None,
    }
}

/// The packages that cargo takes targets from: `--package`, else the default members as seen from
/// the manifest that cargo finds.
fn packages<'a>(options: &CargoOptions, metadata: &'a Metadata) -> Vec<&'a Package> {
    match &options.package {
        Some(spec) => metadata.workspace_packages().into_iter().filter(|p| fits(spec, p)).collect(),
        None if metadata.workspace_default_members.is_available() => metadata.workspace_default_packages(),
        // Cargo before 1.71 does not say.
        None => metadata.workspace_packages(),
    }
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

/// The one program among what was built.
pub(super) fn single_program(artifacts: &[Artifact]) -> Option<&Artifact> {
    let mut programs = artifacts.iter().filter(|artifact| artifact.executable.is_some());
    let first = programs.next()?;
    programs.next().is_none().then_some(first)
}
