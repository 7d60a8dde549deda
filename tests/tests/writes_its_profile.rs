//! A program with the feature `hdf5` writes its profile itself, equal to what `cargo scope collect` makes of
//! its recording. Needs the system's HDF5 library, so it is left out where Python is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use cargo_scope::hdf5;
use cargo_scope::merged::MergedProfile;
use tests::package::{Package, empty_folder};
use tests::{subcommand, tools};

/// What other times of looking make different: recording goes on to the very end.
const MAY_DIFFER: &[&str] = &["metadata@finalize_time_ns"];

fn package() -> &'static Package {
    static PACKAGE: OnceLock<Package> = OnceLock::new();
    PACKAGE.get_or_init(|| {
        let source = fs::read_to_string(tools::in_tests("programs/writes_its_profile.rs")).unwrap();
        Package::with_features("writes-its-profile", &source, &["hdf5"], &[])
    })
}

/// Runs the program as `how` says, with variables, recording to the folder that is given back.
fn run(how: &str, variables: &[(&str, &str)]) -> (PathBuf, Output) {
    let folder = empty_folder(&format!("writes-its-profile-{how}{}", variables.len()));
    let output = start(&folder, how, variables);
    (folder, output)
}

fn start(folder: &Path, how: &str, variables: &[(&str, &str)]) -> Output {
    let package = package();
    let mut program = Command::new(package.build());
    subcommand::without_traces_of_the_test(&mut program);
    program.arg(how).current_dir(package.folder()).env("SCOPE_OUTPUT", folder);
    tools::output(program.envs(variables.iter().copied()))
}

#[track_caller]
fn expect(output: &Output, status: i32, stderr: &str) {
    assert_eq!(String::from_utf8_lossy(&output.stderr), stderr);
    assert_eq!(output.status.code(), Some(status));
}

/// Names of the files, in order.
fn files(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What `cargo scope collect` makes of the recording alone, from where the program ran.
fn collected(folder: &Path) -> PathBuf {
    let elsewhere = empty_folder(&format!("{}-collected", folder.file_name().unwrap().to_str().unwrap()));
    fs::create_dir_all(&elsewhere).unwrap();
    fs::copy(folder.join("rank0.scope"), elsewhere.join("rank0.scope")).unwrap();
    tools::succeed(package().cargo_scope_itself(&["scope", "collect"]).arg(&elsewhere));
    elsewhere.join("profile.h5")
}

fn calls(profile: &MergedProfile, region: &str) -> u64 {
    let paths = profile.paths.iter().flatten();
    paths.filter(|path| profile.names[path.region as usize] == region).map(|path| path.calls).sum()
}

#[test]
fn both_libraries_write_the_same_file() {
    let Some(python) = tools::python() else { return };
    for variables in [&[][..], &[("SCOPE_TOTALS_ONLY", "1")]] {
        let (folder, output) = run("", variables);
        expect(&output, 0, "");
        assert_eq!(files(&folder), ["profile.h5", "rank0.scope"]);
        let (own, pure) = (folder.join("profile.h5"), collected(&folder));
        let mut compare = Command::new(&python);
        compare.arg(tools::in_tests("data/compare_with_h5py.py")).args([&own, &pure]).args(MAY_DIFFER);
        let compared = tools::succeed(&mut compare);
        let count = compared.strip_suffix(" compared\n").and_then(|count| count.parse::<usize>().ok());
        assert!(count.is_some_and(|count| count > 60), "{compared}");
        let read = |path: &Path| MergedProfile { metadata: Vec::new(), ..hdf5::read(path).unwrap() };
        assert!(read(&own) == read(&pure), "{variables:?}");
        assert_eq!(calls(&read(&own), "step"), 80_003);
        tools::succeed(Command::new(tools::h5dump().unwrap()).arg(&own));
        tools::succeed(Command::new(&python).args(["-m", "scope_profiler", "inspect"]).arg(&own));
    }
}

#[test]
fn the_profile_is_there_however_the_program_comes_to_its_end() {
    if tools::python().is_none() {
        return;
    }
    for (how, status) in [("init", 0), ("finalize", 0), ("status", 3), ("nested", 0), ("busy", 0)] {
        let (folder, output) = run(how, &[]);
        expect(&output, status, "");
        let profile = hdf5::read(&folder.join("profile.h5")).unwrap();
        let steps = calls(&profile, "step");
        match how {
            "busy" => assert!(steps > 80_003, "{steps}"),
            _ => assert_eq!(steps, 80_003, "{how}"),
        }
    }
}

#[test]
fn a_further_process_replaces_no_profile() {
    if tools::python().is_none() {
        return;
    }
    let (folder, output) = run("fork", &[]);
    expect(&output, 0, "");
    let names = files(&folder);
    assert_eq!(names.len(), 3, "{names:?}");
    let first = fs::read(folder.join("profile.h5")).unwrap();
    expect(&start(&folder, "", &[]), 0, "");
    assert!(fs::read(folder.join("profile.h5")).unwrap() == first);
    let names = files(&folder);
    let further = names.iter().find(|name| name.starts_with("profile.") && name.as_str() != "profile.h5");
    let profile = hdf5::read(&folder.join(further.unwrap())).unwrap();
    assert_eq!(calls(&profile, "step"), 80_003);
}

#[test]
fn what_the_program_writes_by_hdf5_is_written() {
    let Some(h5dump) = tools::python().and(tools::h5dump()) else { return };
    for how in ["hdf5-before", "hdf5-after"] {
        let own = package().folder().join("own.h5");
        let _ = fs::remove_file(&own);
        let (folder, output) = run(how, &[]);
        expect(&output, 0, "");
        assert_eq!(calls(&hdf5::read(&folder.join("profile.h5")).unwrap(), "step"), 80_003);
        assert!(tools::succeed(Command::new(&h5dump).arg(&own)).contains("GROUP \"results\""));
    }
}

#[test]
fn a_rank_of_several_writes_no_profile_nor_who_is_told_so_or_lost_its_recording() {
    if tools::python().is_none() {
        return;
    }
    let ranks = [("PMI_RANK", "0"), ("PMI_SIZE", "2")];
    for variables in [&ranks[..], &[("SCOPE_HDF5", "0")]] {
        let (folder, output) = run("", variables);
        expect(&output, 0, "");
        assert_eq!(files(&folder), ["rank0.scope"]);
    }
    let (folder, output) = run("removed", &[]);
    expect(&output, 0, "");
    assert!(!folder.exists());
    let run = package().run(&["status"]).expect_status(3);
    assert_eq!(calls(&run.profile(), "step"), 80_003);
    assert!(!run.stderr.contains("further process"), "{}", run.stderr);
}

#[test]
fn arguments_and_source_are_left_out_where_that_is_wanted() {
    if tools::python().is_none() {
        return;
    }
    for (private, is_there) in [("0", true), ("1", false)] {
        let folder = empty_folder("writes-its-profile-private");
        expect(&start(&folder, "status", &[("SCOPE_PRIVATE", private)]), 3, "");
        let profile = hdf5::read(&folder.join("profile.h5")).unwrap();
        assert_eq!(profile.metadata_value("arguments").is_some(), is_there);
        assert_eq!(profile.rows.iter().any(|row| row.source_text.contains("fn step() {}")), is_there);
    }
}

#[test]
fn a_profile_that_cannot_be_written_changes_nothing_else() {
    if tools::python().is_none() {
        return;
    }
    let folder = empty_folder("writes-its-profile-fails");
    fs::create_dir_all(folder.join("profile.h5/taken")).unwrap();
    let output = start(&folder, "status", &[]);
    assert_eq!(output.status.code(), Some(3));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let says = format!("scope: failed to rename a finished file to `{}", folder.join("profile.h5").display());
    assert!(stderr.starts_with(&says) && stderr.lines().count() == 1, "{stderr}");
    assert_eq!(files(&folder), ["profile.h5", "rank0.scope"]);
    fs::remove_dir_all(folder.join("profile.h5")).unwrap();
    assert_eq!(calls(&hdf5::read(&collected(&folder)).unwrap(), "step"), 80_003);
}

#[test]
fn a_file_size_limit_ends_no_program() {
    if tools::python().is_none() {
        return;
    }
    let (folder, output) = run("limit", &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{}: {stderr}", output.status);
    assert!(
        stderr.contains("profile.h5`") && stderr.lines().all(|line| line.starts_with("scope: ")),
        "{stderr}"
    );
    assert_eq!(files(&folder), ["rank0.scope"]);
    assert_eq!(calls(&hdf5::read(&collected(&folder)).unwrap(), "step"), 80_003);
}
