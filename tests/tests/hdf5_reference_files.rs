//! The reader against files of scope-profiler: every number as that package reads it.
//!
//! `tests/data/make_reference_files.py` makes the files, and for each a JSON of what is in it.

use std::path::{Path, PathBuf};

use cargo_scope::hdf5;
use serde_json::{Value, json};

mod hdf5_as_json;
use hdf5_as_json::{check_regions, metadata, tasks, threads};

fn data_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "h5")).collect();
    files.sort();
    files
}

fn expected(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file.with_extension("json")).unwrap()).unwrap()
}

#[test]
fn every_file_of_the_reference_reads_as_the_reference_reads_it() {
    let files = data_files();
    assert!(files.len() >= 16, "{files:?}");
    for file in files {
        let profile = hdf5::read(&file).unwrap_or_else(|e| panic!("{e}"));
        let expected = expected(&file);
        assert_eq!(json!(profile.ranks()), expected["num_ranks"], "{file:?}");
        assert_eq!(metadata(&profile), expected["metadata"], "{file:?}");
        check_regions(&file, &profile, expected["regions"].as_array().unwrap());
        assert_eq!(threads(&profile), expected.get("threads").cloned(), "{file:?}");
        assert_eq!(tasks(&profile), expected.get("tasks").cloned(), "{file:?}");
    }
}

#[test]
fn what_was_read_comes_back_after_writing_it() {
    let folder = std::env::temp_dir().join(format!("scope-rewrite-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for file in data_files() {
        let profile = hdf5::read(&file).unwrap();
        let copy = folder.join(file.file_name().unwrap());
        hdf5::write(&profile, &copy).unwrap_or_else(|e| panic!("{e}"));
        let again = hdf5::read(&copy).unwrap();
        assert!(again == profile, "{file:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
