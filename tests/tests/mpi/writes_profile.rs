//! Jobs with the feature `mpio` write their profile themselves: that of `cargo scope collect`, or none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_scope::hdf5;
use cargo_scope::merged::{MergedProfile, MetadataValue};
use tests::mpi::{self, Job, Mpi};
use tests::outputs::Run;
use tests::tools;

use crate::cases::count;

const RANKS: usize = 4;

/// Runs the program, from where its source is looked for.
fn start(mpi: &Mpi, ranks: usize, arguments: &[&str], settings: &[(&str, &str)]) -> Job {
    let mut command = mpi.with_parallel_hdf5().job(ranks, &mpi.program("writes_profile"), arguments);
    command.current_dir(mpi::folder()).env("SCOPE_MPI_TABLE", "0").envs(settings.iter().copied());
    mpi.start(&mut command, &format!("{}-{ranks}{}", arguments.join("-"), settings.len()))
}

fn profile_file(job: &Job) -> PathBuf {
    job.folder.join("profile.h5")
}

/// Checks that there are the recordings of so many ranks, and besides them a profile or nothing.
#[track_caller]
fn expect_files(job: &Job, ranks: usize, has_profile: bool) {
    let files = fs::read_dir(&job.folder).unwrap();
    let mut names: Vec<_> =
        files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let profile = has_profile.then(|| "profile.h5".to_string());
    let recordings = (0..ranks).map(|rank| format!("rank{rank}.scope"));
    assert_eq!(names, profile.into_iter().chain(recordings).collect::<Vec<_>>(), "{}", job.stderr);
}

/// What `cargo scope collect` makes of the recordings alone.
fn collected(mpi: &Mpi, job: &Job) -> PathBuf {
    let name = job.folder.file_name().unwrap().to_str().unwrap();
    let folder = mpi.empty_folder(&format!("{name}-collected"));
    fs::create_dir_all(&folder).unwrap();
    for rank in 0..RANKS {
        let recording = format!("rank{rank}.scope");
        fs::copy(job.folder.join(&recording), folder.join(&recording)).unwrap();
    }
    tools::succeed(mpi.cargo_scope(&["collect"]).arg(&folder));
    folder.join("profile.h5")
}

/// Compares two files dataset by dataset, but for what may differ.
fn compare(python: &Path, files: [&Path; 2], may_differ: &[&str]) {
    let mut compare = Command::new(python);
    compare.arg(tools::in_tests("data/compare_with_h5py.py")).args(files).args(may_differ);
    let compared = tools::succeed(&mut compare);
    let count = compared.strip_suffix(" compared\n").and_then(|count| count.parse::<usize>().ok());
    assert!(count.is_some_and(|count| count > 60), "{compared}");
}

#[test]
fn the_ranks_write_what_would_be_made_of_their_recordings() {
    let Some(python) = tools::python() else { return };
    mpi::with_each(|mpi| {
        // Compressed are only files that `cargo scope` writes, if they are large.
        let few = ("100", &["metadata@ends_at"][..]);
        let many = ("100000", &["metadata@ends_at", "storage"][..]);
        // Without calls of MPI rank 3 has none at all.
        let settings =
            [&[][..], &[("SCOPE_MPI_CALLS", "0")], &[("SCOPE_TOTALS_ONLY", "1"), ("SCOPE_HDF5", "1")]];
        for ((steps, may_differ), settings) in
            [few, many].into_iter().flat_map(|of| settings.map(|to| (of, to)))
        {
            let job = start(mpi, RANKS, &["ended", steps], settings).expect_success();
            assert_eq!(job.stderr, "");
            expect_files(&job, RANKS, true);
            let (own, collected) = (profile_file(&job), collected(mpi, &job));
            compare(&python, [&own, &collected], may_differ);
            let read = |file: &Path| MergedProfile { metadata: Vec::new(), ..hdf5::read(file).unwrap() };
            assert!(read(&own) == read(&collected), "{steps} {settings:?}");
            tools::succeed(Command::new(tools::h5dump().unwrap()).arg(&own));
            let mut inspect = Command::new(&python);
            inspect.args(["-m", "scope_profiler", "inspect"]).arg(&own).args(["--ranks", "0-3"]);
            assert!(tools::succeed(&mut inspect).contains("4 rank(s)"));
        }
    });
}

#[test]
fn the_profile_ends_where_mpi_does_and_gives_way_to_the_complete_one() {
    mpi::with_each(|mpi| {
        let job = start(mpi, RANKS, &[], &[]).expect_success();
        expect_files(&job, RANKS, true);
        let profile = hdf5::read(&profile_file(&job)).unwrap();
        let ends_at = MetadataValue::Text("MPI_Finalize".into());
        assert_eq!(profile.metadata_value("ends_at"), Some(&ends_at));
        for (name, known) in [("unsealed_ranks", false), ("missing_ranks", false), ("open_regions", true)] {
            assert_eq!(profile.metadata_value(name).is_some(), known, "{name}");
        }
        for rank in 0..4 {
            let steps = [101, 54, 35, 0][rank as usize];
            let found = ["step", "afterwards", "MPI_Finalize"].map(|region| count(&profile, rank, region));
            assert_eq!(found, [steps, 0, 1], "rank {rank}");
        }
        tools::succeed(mpi.cargo_scope(&["collect"]).arg(&job.folder));
        let profile = hdf5::read(&profile_file(&job)).unwrap();
        assert_eq!((count(&profile, 3, "afterwards"), profile.metadata_value("ends_at")), (1, None));
    });
}

#[test]
fn one_rank_writes_its_profile_at_its_very_end_and_cargo_scope_run_by_itself() {
    mpi::with_each(|mpi| {
        let job = start(mpi, 1, &[], &[]).expect_success();
        expect_files(&job, 1, true);
        let profile = hdf5::read(&profile_file(&job)).unwrap();
        assert_eq!((count(&profile, 0, "afterwards"), profile.metadata_value("ends_at")), (1, None));
        let job = start(mpi, 2, &[], &[("SCOPE_HDF5", "0")]).expect_success();
        expect_files(&job, 2, false);
        let folder = mpi.empty_folder("run");
        let launcher = mpi.launcher();
        let options = [
            "run",
            "-n",
            "2",
            "--features",
            "mpio",
            "--bin",
            "writes_profile",
            "--launcher",
            &launcher,
            "-o",
        ];
        let run = Run::start(mpi.cargo_scope(&options).arg(&folder), folder).expect_status(0);
        assert_eq!(count(&run.profile(), 1, "afterwards"), 1);
    });
}

#[test]
fn the_program_has_hdf5_anew_after_mpi() {
    mpi::with_each(|mpi| {
        let job = start(mpi, RANKS, &["hdf5-after"], &[]).expect_success();
        expect_files(&job, RANKS, true);
        let magic = fs::read(job.folder.with_extension("h5")).unwrap();
        assert!(magic.starts_with(b"\x89HDF\r\n"));
    });
}

#[test]
fn a_file_that_cannot_be_written_is_told_in_one_line_and_left_out() {
    mpi::with_each(|mpi| {
        let steps = "100000";
        for (how, says) in [
            ("taken", "failed to rename a finished file to"),
            ("moved", "failed to create"),
            ("limit", "rank 2: failed to write events/"),
        ] {
            let job = start(mpi, RANKS, &[how, steps], &[]).expect_success();
            let lines: Vec<_> = job.stderr.lines().filter(|line| line.starts_with("scope: ")).collect();
            let [line] = lines[..] else { panic!("{how}: {}", job.stderr) };
            assert!(line.contains(says) && line.contains("profile.h5"), "{line}");
            assert!(line.contains("; `cargo scope collect "), "{line}");
            assert_eq!(job.stdout.lines().count(), RANKS, "{}", job.stdout);
            // As the program leaves the folder, but for what takes the place of the file.
            let moved = job.folder.with_extension("moved");
            let folder = if how == "moved" { moved } else { job.folder.clone() };
            let _ = fs::remove_dir(folder.join("profile.h5"));
            let job = Job { folder, ..job };
            expect_files(&job, RANKS, false);
            let profile = hdf5::read(&collected(mpi, &job)).unwrap();
            assert_eq!(count(&profile, 0, "step"), 100_002);
        }
    });
}

#[test]
fn all_ranks_write_or_none_does() {
    mpi::with_each(|mpi| {
        let job = start(mpi, RANKS, &["unwanted"], &[]).expect_success();
        assert_eq!(job.stderr, "");
        expect_files(&job, RANKS, false);
        let job = start(mpi, RANKS, &[], &[("SCOPE_HDF5", "perhaps")]).expect_success();
        assert_eq!(job.stderr.lines().count(), 1, "{}", job.stderr);
        assert!(job.stderr.contains("SCOPE_HDF5") && job.stderr.contains("perhaps"), "{}", job.stderr);
        expect_files(&job, RANKS, false);
    });
}

#[test]
fn without_all_ranks_there_is_no_profile_and_nobody_waits() {
    mpi::with_each(|mpi| {
        let mpi = mpi.with_parallel_hdf5();
        let job = mpi.record_as_bare(RANKS, "writes_profile", &["killed"], &[]);
        assert!(!job.status.success());
        expect_files(&job, RANKS, false);
        let job = start(mpi, RANKS, &["late"], &[("SCOPE_MPI_TIMEOUT", "1")]).expect_success();
        assert_eq!(job.stderr.lines().count(), 1, "{}", job.stderr);
        assert!(job.stderr.contains("not all ranks came to the end of MPI"), "{}", job.stderr);
        expect_files(&job, RANKS, false);
    });
}
