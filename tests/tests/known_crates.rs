//! Ten well-known crates with the attribute on every function that can have it: they build, and their
//! own tests pass.
//!
//! The sources come from the registry, through cargo. The test prints how many functions have the
//! attribute, how many have not and why, and how many tests passed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tests::annotate::{Counts, annotate};
use tests::outputs::files_below;
use tests::package::{Package, write_if_changed};
use tests::{subcommand, tools};

/// Name, version, how many tests it has, all of which must pass, and what of its dependencies for development only
/// its benchmarks or optional features need.
const CRATES: [(&str, &str, usize, &[&str]); 10] = [
    ("aho-corasick", "1.1.5", 163, &["doc-comment"]),
    ("arrayvec", "0.7.8", 52, &["bencher", "serde_test"]),
    ("bytes", "1.12.2", 1080, &["serde_test"]),
    ("hashbrown", "0.17.2", 115, &["criterion", "serde_test", "rayon"]),
    ("httparse", "1.10.1", 363, &["criterion"]),
    ("indexmap", "2.14.2", 183, &["serde"]),
    ("num-traits", "0.2.19", 67, &[]),
    ("regex-syntax", "0.8.12", 149, &[]),
    ("semver", "1.0.28", 34, &[]),
    ("smallvec", "1.16.6", 63, &["bincode1"]),
];

/// Where cargo has the sources of the crates.
fn sources() -> BTreeMap<String, PathBuf> {
    let wanted: Vec<_> =
        CRATES.iter().map(|(name, version, ..)| format!("{name} = \"={version}\"")).collect();
    let wanted: Vec<_> = wanted.iter().map(String::as_str).collect();
    let package = Package::of_files("known-crates", "2024", &[("src/lib.rs", "")], &wanted);
    let metadata = tools::succeed(&mut package.cargo(&["metadata", "--format-version", "1"]));
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let is_wanted = |package: &&Value| {
        CRATES.iter().any(|(name, version, ..)| package["name"] == *name && package["version"] == *version)
    };
    let folder =
        |package: &Value| Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().into();
    packages
        .filter(is_wanted)
        .map(|package| (package["name"].as_str().unwrap().into(), folder(package)))
        .collect()
}

/// Copies a crate, with the attribute on the functions in `src`.
fn copy_annotated(from: &Path, to: &Path, unneeded: &[&str]) -> Counts {
    let mut counts = Counts::default();
    for file in files_below(from) {
        let below = file.strip_prefix(from).unwrap();
        let bytes = fs::read(&file).unwrap();
        let bytes = match std::str::from_utf8(&bytes) {
            Ok(manifest) if below == Path::new("Cargo.toml") => adapted(manifest, unneeded).into(),
            Ok(text) if below.starts_with("src") && below.extension().is_some_and(|end| end == "rs") => {
                let (text, of_file) = annotate(text, "#[::scope_runtime::scope]")
                    .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                counts.add(of_file);
                text.into()
            }
            _ => bytes,
        };
        write_if_changed(&to.join(below), &bytes);
    }
    counts
}

/// The manifest with scope-runtime, and without what the tests do not need.
fn adapted(manifest: &str, unneeded: &[&str]) -> String {
    let unneeded: Vec<_> = unneeded.iter().map(|name| format!("[dev-dependencies.{name}]")).collect();
    let mut kept = String::new();
    let mut is_kept = true;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_kept = !unneeded.iter().any(|name| line == name) && line != "[[bench]]";
        }
        if is_kept {
            kept += line;
            kept += "\n";
        }
    }
    format!(
        "{kept}\n[dependencies.scope-runtime]\npath = {:?}\n",
        subcommand::workspace().join("scope-runtime")
    )
}

/// Passed and failed tests, from the lines in which the test programs sum up.
fn passed_and_failed(printed: &str) -> (usize, usize) {
    let number = |line: &str, word: &str| {
        let before = line.split(word).next().unwrap();
        before.rsplit(' ').next().unwrap().parse::<usize>().unwrap()
    };
    let sums = printed.lines().filter(|line| line.starts_with("test result: "));
    sums.fold((0, 0), |(passed, failed), line| {
        (passed + number(line, " passed"), failed + number(line, " failed"))
    })
}

#[test]
fn well_known_crates_pass_their_own_tests_with_the_attribute_everywhere() {
    if !tools::registry() {
        return;
    }
    let sources = sources();
    assert_eq!(sources.len(), CRATES.len(), "{sources:?}");
    let members: Vec<_> = CRATES.iter().map(|(name, ..)| *name).collect();
    let mut all = Counts::default();
    let package = Package::of_members("annotated-crates", &members);
    for (name, version, _, unneeded) in CRATES {
        let counts = copy_annotated(&sources[name], &package.folder().join(name), unneeded);
        println!("{name} {version}: {} functions annotated", counts.annotated);
        assert!(counts.annotated > 20, "{counts:?}");
        all.add(counts);
    }
    println!("{} functions annotated in all", all.annotated);
    for (reason, count) in &all.left_out {
        println!("{count} left out: {reason}");
    }
    for (name, version, passes, _) in CRATES {
        let options = ["test", "--quiet", "--lib", "--tests", "--no-fail-fast", "-p", name];
        let printed = tools::succeed(&mut package.cargo(&options));
        let (passed, failed) = passed_and_failed(&printed);
        println!("{name} {version}: {passed} tests passed, {failed} failed");
        assert!(passed >= passes && failed == 0, "{printed}");
    }
}
