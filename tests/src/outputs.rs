//! What a run of `cargo scope` leaves behind, as values.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use cargo_scope::hdf5;
use cargo_scope::merged::{MergedProfile, MetadataValue};
use scope_runtime::pstats::{self, Entry};

use crate::call_tree::CallTree;
use crate::tools;

/// One run that has ended.
#[derive(Debug)]
pub struct Run {
    /// How `cargo scope` ended.
    pub status: ExitStatus,
    /// Standard output of program and tool.
    pub stdout: String,
    /// Standard error of cargo, program and tool.
    pub stderr: String,
    /// The folder given by `-o`.
    pub folder: PathBuf,
}

impl Run {
    /// Runs `command`, whose outputs go to `folder`.
    pub fn start(command: &mut Command, folder: PathBuf) -> Run {
        let output = tools::output(command);
        Run {
            status: output.status,
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            folder,
        }
    }

    /// The run, which must have ended with this status.
    ///
    /// # Panics
    /// With all that was printed, when the status is another one.
    #[track_caller]
    pub fn expect_status(self, code: i32) -> Run {
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        assert_eq!(self.status.code(), Some(code), "{}\n{stdout}\n{stderr}", self.status);
        self
    }

    /// `profile.h5` read back.
    #[track_caller]
    pub fn profile(&self) -> MergedProfile {
        hdf5::read(&self.profile_file()).unwrap_or_else(|error| panic!("{error}\n{}", self.stderr))
    }

    /// The calls of rank 0, with their invariants checked.
    #[track_caller]
    pub fn calls(&self) -> CallTree {
        CallTree::of_rank(&self.profile(), 0)
    }

    /// Path of `profile.h5`.
    pub fn profile_file(&self) -> PathBuf {
        self.folder.join("profile.h5")
    }

    /// Path of the `.prof` of rank 0.
    pub fn prof_file(&self) -> PathBuf {
        self.folder.join("profile_rank0.prof")
    }

    /// Path of the flame graph of rank 0.
    pub fn flame_graph_file(&self) -> PathBuf {
        self.folder.join("flamegraph_rank0.svg")
    }

    /// The flame graph of rank 0.
    #[track_caller]
    pub fn flame_graph(&self) -> String {
        std::fs::read_to_string(self.flame_graph_file()).unwrap()
    }

    /// Checks that the other outputs are whole and tell what `profile.h5` does: the `.prof` path by
    /// path, and the flame graph as far as a look at its text goes.
    #[track_caller]
    pub fn check_outputs(&self) -> CallTree {
        let calls = self.calls();
        check_prof(&calls, &self.prof_file());
        let svg = self.flame_graph();
        assert!(svg.contains("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        calls
    }
}

/// An integer of the metadata group.
#[track_caller]
pub fn integer(profile: &MergedProfile, key: &str) -> i64 {
    match profile.metadata_value(key) {
        Some(&MetadataValue::Integer(value)) => value,
        other => panic!("{key}: {other:?}"),
    }
}

/// Compares the `.prof` with the calls: the same paths, calls and times, below one root entry.
///
/// Names of the programs tested here have no ` > ` in them, which would be escaped.
#[track_caller]
fn check_prof(calls: &CallTree, prof: &Path) {
    let file = File::open(prof).unwrap_or_else(|error| panic!("{}: {error}", prof.display()));
    let prof = pstats::load_prof(file).unwrap_or_else(|error| panic!("{error}"));
    let (roots, entries): (Vec<_>, Vec<_>) =
        prof.entries().iter().partition(|entry| entry.callers.is_empty());
    let [root] = roots[..] else { panic!("{roots:?}") };
    assert!(root.key.name.starts_with('<') && root.key.name.ends_with(" rank 0>"), "{}", root.key.name);
    let paths = calls.paths();
    let names: BTreeSet<String> = paths.keys().map(|path| path.join(" > ")).collect();
    assert_eq!(entries.iter().map(|entry| entry.key.name.to_string()).collect::<BTreeSet<_>>(), names);
    assert_eq!(entries.len(), paths.len());
    let all_ns: i64 =
        paths.iter().filter(|(path, _)| path.len() == 1).map(|(_, sums)| sums.inclusive_ns).sum();
    assert_times(root, 0, all_ns);
    for (path, sums) in &paths {
        let label = path.join(" > ");
        let entry = entries.iter().find(|entry| *entry.key.name == *label).unwrap();
        assert_eq!((entry.cc, entry.nc), (sums.calls as i64, sums.calls as i64), "{label}");
        assert_times(entry, sums.self_ns, sums.inclusive_ns);
        let above = path[..path.len() - 1].join(" > ");
        let [(caller, _)] = &entry.callers[..] else { panic!("{:?}", entry.callers) };
        assert_eq!(*caller.name, *if above.is_empty() { &root.key.name } else { above.as_str() });
    }
}

/// Seconds of an entry against ns, to 12 digits.
#[track_caller]
fn assert_times(entry: &Entry, self_ns: i64, inclusive_ns: i64) {
    for (seconds, ns) in [(entry.tt_s, self_ns), (entry.ct_s, inclusive_ns)] {
        let expected = ns as f64 / 1e9;
        let same = (seconds - expected).abs() <= 1e-12 * expected.abs();
        assert!(same, "{}: {seconds} s, not {ns} ns", entry.key);
    }
}

/// Every file below `folder`.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}")) {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() { folders.push(entry.path()) } else { files.push(entry.path()) }
        }
    }
    files.sort();
    files
}
