//! What a user's program gets with scope-runtime: few crates, none of which needs a C compiler or
//! a C library.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use tests::{subcommand, tools};

/// Runs a cargo command of the workspace that looks nothing up.
fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = subcommand::cargo();
    cargo.args(arguments).args(["--locked", "--offline"]).current_dir(subcommand::workspace());
    cargo
}

/// Names and versions in the default tree, those of proc macros included.
fn tree() -> BTreeSet<(String, String)> {
    let options = ["tree", "-p", "scope-runtime", "-e", "normal", "--prefix", "none"];
    let lines = tools::succeed(&mut cargo(&options));
    let crates = lines.lines().map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next().expect("a line starts with a name");
        let version = words.next().and_then(|word| word.strip_prefix('v')).expect("then the version");
        (name.to_string(), version.to_string())
    });
    crates.collect()
}

/// The platform that tests are built for.
fn host() -> String {
    let versions = tools::succeed(Command::new("rustc").arg("-vV"));
    let host = versions.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("rustc names its host").to_string()
}

#[test]
fn the_default_tree_of_the_runtime_is_small_and_needs_no_c() {
    let tree = tree();
    assert!(tree.contains(&("scope-runtime".into(), env!("CARGO_PKG_VERSION").into())), "{tree:?}");
    assert!(tree.len() < 15, "{} crates: {tree:?}", tree.len());
    // Of other platforms' crates the sources are not there.
    let options = ["metadata", "--format-version", "1", "--filter-platform", &host()];
    let metadata = tools::succeed(&mut cargo(&options));
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    for (name, version) in &tree {
        assert!(!name.ends_with("-sys"), "{name}");
        let is_it = |package: &&Value| package["name"] == **name && package["version"] == **version;
        let package = packages.iter().find(is_it).unwrap_or_else(|| panic!("{name} {version}"));
        assert!(package["links"].is_null(), "{name} links {}", package["links"]);
        for dependency in package["dependencies"].as_array().unwrap() {
            let builds = dependency["kind"] == "build" && dependency["optional"] == false;
            let compilers = ["cc", "cmake", "bindgen", "pkg-config", "vcpkg"];
            let compiler = compilers.iter().any(|compiler| dependency["name"] == **compiler);
            assert!(!(builds && compiler), "{name} builds with {}", dependency["name"]);
        }
    }
}
