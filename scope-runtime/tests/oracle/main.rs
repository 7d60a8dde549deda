//! Recorded answers of scope-profiler 0.7.5: calls in, every array, split, path and profile out.
//!
//! The vectors are those of the folder that `SCOPE_ORACLE_DIR` names, else `tests/oracle` of the
//! repository, whose README describes them.

mod check;
mod sha256;
mod vector;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn default_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/oracle")
}

/// All vectors of a folder in order of name.
fn vectors(folder: &Path) -> Vec<(String, Value)> {
    let files = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    assert!(!paths.is_empty(), "{} has no vector", folder.display());
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let value = serde_json::from_slice(&fs::read(&path).unwrap());
        (name.clone(), value.unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    paths.into_iter().map(read).collect()
}

/// What is wrong, one line per vector.
fn failures(vectors: &[(String, Value)]) -> Vec<String> {
    let failure =
        |(name, vector): &(String, Value)| check::check(vector).err().map(|what| format!("{name}: {what}"));
    vectors.iter().filter_map(failure).collect()
}

#[test]
fn every_vector_holds() {
    let folder = std::env::var_os("SCOPE_ORACLE_DIR").map_or_else(default_folder, PathBuf::from);
    let vectors = vectors(&folder);
    let failures = failures(&vectors);
    println!("{} vectors", vectors.len());
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
#[should_panic(expected = "has no vector")]
fn a_folder_without_vectors_fails() {
    vectors(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").as_path());
}

/// Adds one to the number at `path` of the vector `name`; the test must notice and name it.
fn changed(name: &str, path: &str) {
    let mut vectors = vectors(&default_folder());
    // The neighbours stand for all others, which would take a minute.
    vectors.retain(|(other, _)| other.starts_with("h03") || other.starts_with("h04"));
    let (_, vector) = vectors.iter_mut().find(|(other, _)| other == name).expect("the vector");
    let number = vector.pointer_mut(path).expect("the number");
    *number = match number.as_i64() {
        Some(int) => (int + 1).into(),
        None => f64::from_bits(number.as_f64().expect("a number").to_bits() + 1).into(),
    };
    let failures = failures(&vectors);
    assert_eq!(failures.len(), 1, "{path}: {failures:?}");
    assert!(failures[0].starts_with(name), "{path}: {failures:?}");
}

#[test]
fn one_wrong_number_is_noticed() {
    for path in [
        "/expected/calls/exclusive_ns/0",
        "/expected/calls/depth/1",
        "/expected/split_by_lane/0/parent/0",
        "/expected/pstats/paths/stats/0/tt",
        "/expected/pstats/names_root/stats/0/callers/0/1/3",
        "/regions/0/ends/0",
    ] {
        changed("h039_two_threads_same_region", path);
    }
}

#[test]
fn digests_are_those_of_the_standard() {
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sha256::sha256(b"abc"), abc);
}
