//! The examples, run as their readers run them, and their profiles looked at from all sides.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tests::call_tree::check_inclusive_times;
use tests::outputs::Run;
use tests::package::empty_folder;
use tests::{subcommand, tools};

/// `cargo scope run --release --example EXAMPLE`, with its outputs in a folder called `name`.
#[track_caller]
fn run(name: &str, example: &str, arguments: &[&str]) -> Run {
    let folder = empty_folder(name);
    let mut command = subcommand::cargo_with_scope();
    command.args(["scope", "run", "--release", "--example", example, "-o"]).arg(&folder);
    command.arg("--").args(arguments).current_dir(subcommand::workspace());
    Run::start(&mut command, folder).expect_status(0)
}

fn heat(name: &str) -> Run {
    let picture = empty_folder(&format!("{name}.pgm"));
    let picture = picture.to_str().unwrap();
    let size = ["--size", "60", "--steps", "10", "--threads", "4"];
    run(name, "heat", &[&size[..], &["--counts", "--picture", picture]].concat())
}

/// Searches the source of this workspace, which is there for sure.
fn search(name: &str) -> Run {
    let sources = subcommand::workspace().join("scope-runtime");
    run(name, "search", &["--counts", "--lines", "--threads", "3", r"fn \w+", sources.to_str().unwrap()])
}

/// What the program printed: lines `calls <number> <region>`.
fn printed_counts(run: &Run) -> BTreeMap<&str, usize> {
    let lines = run.stdout.lines().filter_map(|line| line.strip_prefix("calls "));
    let counts = lines.filter_map(|line| line.split_once(' '));
    counts.map(|(number, region)| (region, number.parse().unwrap())).collect()
}

/// Counts as the program itself does, and times that add up, for every region and path.
#[track_caller]
fn check_numbers(run: &Run) {
    let calls = run.check_outputs();
    let printed = printed_counts(run);
    assert!(printed.len() > 4, "{}", run.stdout);
    assert_eq!(calls.counts(), printed);
    check_inclusive_times(&calls.paths());
}

#[test]
fn heat_has_the_counts_of_the_program_and_times_that_add_up() {
    check_numbers(&heat("heat-numbers"));
}

#[test]
fn search_has_the_counts_of_the_program_and_times_that_add_up() {
    check_numbers(&search("search-numbers"));
}

#[test]
fn twenty_runs_of_heat_have_the_same_counts() {
    let arguments = ["--size", "24", "--steps", "5", "--threads", "8", "--counts"];
    let first = run("heat-again", "heat", &arguments);
    let counts: BTreeMap<String, usize> =
        first.calls().counts().into_iter().map(|(name, calls)| (name.to_string(), calls)).collect();
    for _ in 1..20 {
        let next = run("heat-again", "heat", &arguments);
        let calls = next.calls();
        assert_eq!(calls.counts(), printed_counts(&next));
        assert!(calls.counts().into_iter().eq(counts.iter().map(|(name, calls)| (name.as_str(), *calls))));
    }
}

/// Runs a command of scope-profiler.
fn scope_profiler(python: &Path, arguments: &[&str], file: &Path) -> String {
    tools::succeed(Command::new(python).args(["-m", "scope_profiler"]).args(arguments).arg(file))
}

/// scope-profiler makes the same `.prof` of our `profile.h5` as we did.
fn check_prof_against_scope_profiler(run: &Run) {
    let Some(python) = tools::python() else { return };
    let folder = run.folder.join("scope-profiler");
    scope_profiler(&python, &["export", "prof", "-o", folder.to_str().unwrap()], &run.profile_file());
    let theirs = folder.join("profile_rank0.prof");
    let said = tools::run_python(&python, "compare_prof.py", &[&run.prof_file(), &theirs]);
    assert!(said.trim().parse::<usize>().is_ok_and(|entries| entries > 1), "{said}");
}

#[test]
fn heat_has_the_prof_that_scope_profiler_makes() {
    check_prof_against_scope_profiler(&heat("heat-prof"));
}

#[test]
fn search_has_the_prof_that_scope_profiler_makes() {
    check_prof_against_scope_profiler(&search("search-prof"));
}

/// scope-profiler's commands, `h5dump` and h5py open the file; the last two read every dataset.
fn check_file_with_other_readers(run: &Run) {
    if let Some(python) = tools::python() {
        let file = run.profile_file();
        let inspected = scope_profiler(&python, &["inspect"], &file);
        assert!(run.calls().counts().keys().all(|name| inspected.contains(name)), "{inspected}");
        let report = run.folder.join("report.html");
        scope_profiler(&python, &["report", "-o", report.to_str().unwrap()], &file);
        assert!(report.exists());
        let folder = run.folder.join("json");
        scope_profiler(&python, &["export", "json", "-o", folder.to_str().unwrap()], &file);
        let json = std::fs::read(folder.join("profile.json")).unwrap();
        let json: Value = serde_json::from_slice(&json).unwrap();
        let regions = json["regions"].as_array().unwrap().iter();
        let counts: BTreeMap<&str, usize> = regions
            .map(|region| {
                (region["name"].as_str().unwrap(), region["start_times_ns"].as_array().unwrap().len())
            })
            .collect();
        assert_eq!(counts, run.calls().counts());
        let dump = tools::run_python(&python, "dump_with_h5py.py", &[&file]);
        let dump: Value = serde_json::from_str(&dump).unwrap();
        let durations = dump["events/durations"][1].as_array().unwrap();
        assert_eq!(durations.len(), run.profile().events.duration_ns.len());
    }
    if let Some(h5dump) = tools::h5dump() {
        let dump = tools::succeed(Command::new(h5dump).arg(run.profile_file()));
        assert!(dump.contains("DATASET \"durations\""));
    }
}

#[test]
fn heat_is_read_by_other_readers() {
    check_file_with_other_readers(&heat("heat-readers"));
}

#[test]
fn search_is_read_by_other_readers() {
    check_file_with_other_readers(&search("search-readers"));
}
