//! What a user's program gets with scope-runtime: few crates, none of which needs a C compiler or
//! a C library.

use std::collections::BTreeSet;
use std::path::Path;
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

/// The text of a file in a packaged crate.
fn packaged(archive: &Path, file: &str) -> String {
    let stem = archive.file_stem().unwrap().to_str().unwrap();
    tools::succeed(Command::new("tar").args(["-xzOf"]).arg(archive).arg(format!("{stem}/{file}")))
}

#[test]
fn the_three_crates_can_be_packaged() {
    let target = subcommand::scratch().join("package");
    // They are built by the other tests; what may go wrong here is the manifest and the files.
    let mut command = cargo(&["package", "--no-verify", "--allow-dirty"]);
    command.arg("--target-dir").arg(&target);
    let crates = ["scope-macros", "scope-runtime", "cargo-scope"];
    crates.iter().for_each(|name| {
        command.args(["--package", name]);
    });
    tools::succeed(&mut command);
    for name in crates {
        let archive = target.join("package").join(format!("{name}-{}.crate", env!("CARGO_PKG_VERSION")));
        for (file, part) in [
            ("README.md", "# scope"),
            ("LICENSE-MIT", "Permission is hereby granted"),
            ("LICENSE-APACHE", "Apache License"),
            ("Cargo.toml", "description = "),
        ] {
            assert!(packaged(&archive, file).contains(part), "{file} of {name}");
        }
        let manifest = packaged(&archive, "Cargo.toml");
        let is_dependency = |table: &&str| table.lines().next().unwrap().contains("dependencies.");
        let tables = manifest.split("\n[").filter(is_dependency);
        for table in tables {
            assert!(table.contains("version = ") && !table.contains("path = "), "{name}: {table}");
        }
    }
}
