//! `.prof` files next to those that scope-profiler exports from the same profile.
//!
//! Needs `SCOPE_TEST_PYTHON`, the path of a Python that has scope-profiler 0.7.5. Without the
//! variable these tests say that they were left out.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cargo_scope::export::{LeftOut, ProfOptions, Ranks, Run, Selection, export_prof};
use cargo_scope::hdf5;
use cargo_scope::merged::{Events, MergedProfile, MetadataValue, Row, ThreadRow};

/// The Python to test with; `None`, and a line that says so, when there is none.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("SCOPE_TEST_PYTHON").map(PathBuf::from);
    if python.is_none() {
        eprintln!("left out: SCOPE_TEST_PYTHON is not set");
    }
    python
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
}

fn run(python: &Path, arguments: &[&str]) -> Output {
    Command::new(python).args(arguments).output().unwrap()
}

/// Exports `file` with both and compares what comes out; gives the number of ranks compared.
fn compare(python: &Path, file: &Path, selection: &Selection, call_paths: bool) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let theirs = folder.path().join("theirs");
    let mut arguments = vec!["-m", "scope_profiler", "export", "prof", file.to_str().unwrap()];
    let profile = hdf5::read(file).unwrap();
    let all: Vec<_> = (0..profile.ranks().max(1)).map(|rank| rank.to_string()).collect();
    arguments.extend(["-o", theirs.to_str().unwrap(), "--ranks"]);
    arguments.extend(all.iter().map(String::as_str));
    for (option, patterns) in [("--include", &selection.include), ("--exclude", &selection.exclude)] {
        if !patterns.is_empty() {
            arguments.push(option);
            arguments.extend(patterns.iter().map(String::as_str));
        }
    }
    if !call_paths {
        arguments.push("--no-call-paths");
    }
    let output = run(python, &arguments);
    assert!(output.status.success(), "{file:?}: {}", String::from_utf8_lossy(&output.stderr));
    let runs = [Run { label: "ours".into(), profile: &profile }];
    let options = ProfOptions { call_paths, ..ProfOptions::default() };
    let ours = export_prof(
        &runs,
        &folder.path().join("ours/profile.prof"),
        selection,
        &options,
        &mut LeftOut::default(),
    )
    .unwrap();
    let mut compared = 0;
    for ours in ours {
        let theirs = theirs.join(ours.file_name().unwrap());
        // Theirs leaves out a rank without calls.
        if theirs.exists() {
            let script = data("compare_prof.py");
            let files = [&script, &ours, &theirs].map(|path| path.to_str().unwrap());
            let output = run(python, &files);
            let failure = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{file:?}, call paths {call_paths}: {failure}");
            compared += 1;
        }
    }
    compared
}

#[test]
fn files_of_the_python_package_give_the_same_prof() {
    let Some(python) = python() else { return };
    let names = [
        "bare",
        "big_endian",
        "fixed_strings",
        "full",
        "gzip",
        "holes",
        "latest",
        "lzf",
        "plain",
        "schema_1",
        "schema_2",
        "tasks",
        "threads",
        "unsigned",
    ];
    let mut compared = 0;
    for name in names {
        let file = data(&format!("{name}.h5"));
        let count = compare(&python, &file, &Selection::default(), true);
        assert!(count > 0, "{name}");
        compared += count;
    }
    assert!(compared >= names.len());
}

#[test]
fn our_files_give_the_same_prof() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (seed, ranks, lanes) in [(1, 1, 1), (2, 1, 8), (3, 3, 2)] {
        let file = folder.path().join(format!("profile{seed}.h5"));
        hdf5::write(&forest(seed, ranks, lanes), &file).unwrap();
        let filtered =
            Selection { include: vec!["r".into()], exclude: vec!["r[13]".into()], ..Selection::default() };
        for selection in [Selection::default(), filtered] {
            assert_eq!(compare(&python, &file, &selection, true), ranks as usize);
            // Theirs takes overlapping calls on different lanes for recursion.
            if lanes == 1 {
                assert_eq!(compare(&python, &file, &selection, false), ranks as usize);
            }
        }
    }
}

#[test]
fn a_profile_without_calls_gives_a_prof_that_loads() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let runs = [Run { label: "nothing".into(), profile: &MergedProfile::default() }];
    let selection = Selection { ranks: Ranks::List(vec![0]), ..Selection::default() };
    let files = export_prof(
        &runs,
        &folder.path().join("p.prof"),
        &selection,
        &ProfOptions::default(),
        &mut LeftOut::default(),
    )
    .unwrap();
    let script = "import pstats, sys; print(pstats.Stats(sys.argv[1]).stats)";
    let output = run(&python, &["-c", script, files[0].to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.trim(), "{('~', 0, '<nothing rank 0>'): (1, 1, 0.0, 0.0, {})}");
}

/// Random call trees of six regions on every lane of every rank, no two events at one time.
fn forest(seed: u64, ranks: u32, lanes: i64) -> MergedProfile {
    let mut state = seed;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut profile = MergedProfile {
        metadata: vec![("mpi_size".into(), MetadataValue::Integer(ranks.into()))],
        names: (0..6).map(|region| format!("r{region}")).collect(),
        threads: Some(Vec::new()),
        events: Events {
            call_ids: Some(Vec::new()),
            parent_ids: Some(Vec::new()),
            thread_ids: Some(Vec::new()),
            ..Events::default()
        },
        ..MergedProfile::default()
    };
    for rank in 0..ranks {
        let mut calls = Vec::new();
        for lane in 0..lanes {
            grow(&mut calls, lane, &mut random);
            let name = format!("lane {lane}");
            profile.threads.as_mut().unwrap().push(ThreadRow {
                rank,
                index: lane,
                name,
                ..ThreadRow::default()
            });
        }
        for region in 0..6 {
            let first = profile.events.start_ns.len();
            for (id, call) in calls.iter().enumerate().filter(|(_, call)| call.region == region) {
                let events = &mut profile.events;
                events.start_ns.push(call.start_ns);
                events.duration_ns.push(call.end_ns - call.start_ns);
                events.call_ids.as_mut().unwrap().push(id as i64);
                events.parent_ids.as_mut().unwrap().push(call.parent.map_or(-1, |parent| parent as i64));
                events.thread_ids.as_mut().unwrap().push(call.lane);
            }
            let events = first..profile.events.start_ns.len();
            let (source_file, source_line) = ("src/main.rs".into(), 10 + i64::from(region));
            profile.rows.push(Row { region, rank, source_file, source_line, events, ..Row::default() });
        }
    }
    profile
}

struct Call {
    region: u32,
    lane: i64,
    parent: Option<usize>,
    start_ns: i64,
    end_ns: i64,
}

/// Adds 300 calls of one lane in order of entry.
fn grow(calls: &mut Vec<Call>, lane: i64, random: &mut impl FnMut(u64) -> u64) {
    let mut now_ns = 1_000_000_000_000 + random(1000) as i64;
    let mut open: Vec<usize> = Vec::new();
    for _ in 0..300 {
        while !open.is_empty() && random(3) == 0 {
            now_ns += 1 + random(5000) as i64;
            calls[open.pop().unwrap()].end_ns = now_ns;
        }
        now_ns += 1 + random(5000) as i64;
        let region = random(6) as u32;
        calls.push(Call { region, lane, parent: open.last().copied(), start_ns: now_ns, end_ns: 0 });
        if open.len() < 8 {
            open.push(calls.len() - 1);
        } else {
            now_ns += 1 + random(5000) as i64;
            calls.last_mut().unwrap().end_ns = now_ns;
        }
    }
    while let Some(call) = open.pop() {
        now_ns += 1 + random(5000) as i64;
        calls[call].end_ns = now_ns;
    }
}
