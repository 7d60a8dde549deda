//! Any bytes as a recording: it is read, or refused with an error, and what is read can be merged.
//!
//! Under `cargo fuzz` checksums count as right, so that what lies behind them is reached.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use cargo_scope::collect::{self, RunInfo};
use libfuzzer_sys::fuzz_target;
use scope_runtime::profile::LaneId;
use scope_runtime::recording::Recording;

/// In memory where there is such a place.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    folder.join(format!("scope-fuzz-{}", std::process::id()))
});

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*FILE, bytes).expect("there is room for a small file");
    if let Ok(recording) = Recording::open(&FILE) {
        for lane in 0..recording.profile().lanes.len() as u32 {
            recording.calls(LaneId(lane));
        }
        let _ = collect::merge(&[(FILE.as_path(), recording)], &RunInfo::default());
    }
});
