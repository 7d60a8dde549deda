//! Any bytes as a profile file: it is read, or refused with an error, and what is read can be exported,
//! looked at, and written again.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use cargo_scope::export::{self, By, LeftOut, ProfOptions, Run, Selection};
use cargo_scope::summary::{Layout, Summary};
use cargo_scope::{hdf5, messages, results};
use libfuzzer_sys::fuzz_target;

/// In memory where there is such a place.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    folder.join(format!("scope-fuzz-profile-{}.h5", std::process::id()))
});

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("there is room for a small file");
    let Ok(profile) = hdf5::read(&FILE) else { return };
    let selection = Selection::default();
    let runs = [Run { label: String::new(), profile: &profile }];
    let _ = export::to_pstats(&runs, &selection, &ProfOptions::default());
    let none = &mut LeftOut::default();
    let _ = results::summary("", &profile, &selection, none).map(|summary| summary.render(&Layout::default()));
    if let Ok((paths, statistics)) = export::statistics(&profile, &selection, By::Region, none) {
        let summary = Summary { statistics: Some(statistics), ..Summary::of_merged("", &profile, paths) };
        summary.render(&Layout::default());
    }
    let ranks = export::selected_ranks(&profile, &selection).unwrap_or_default();
    messages::report(&profile, &ranks);
    hdf5::write(&profile, &FILE).expect("what was read is sound");
});
