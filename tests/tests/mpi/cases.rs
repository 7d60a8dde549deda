//! Programs on which tools of this kind have failed; the head of each file in `tests/cases` says what must
//! hold.

use cargo_scope::merged::{MergedProfile, MetadataValue};
use tests::call_tree::CallTree;
use tests::mpi::{self, Job, Mpi, calls};
use tests::outputs::Run;
use tests::tools;

const NOTHING: &[&str] = &[];

/// The outputs of a job.
pub(crate) fn collect(mpi: &Mpi, job: &Job, name: &str) -> Run {
    let folder = mpi.empty_folder(name);
    let mut command = mpi.cargo_scope(&["collect", "-o"]);
    Run::start(command.arg(&folder).arg(&job.folder), folder)
}

/// Number of calls of a region on a rank.
pub(crate) fn count(profile: &MergedProfile, rank: u32, region: &str) -> usize {
    CallTree::of_rank(profile, rank).count(region)
}

#[test]
fn mpi_01_regions_after_mpi_ended() {
    mpi::with_each(|mpi| {
        let job = mpi.record(3, "mpi-01", NOTHING, &[]).expect_success();
        for wrong in ["MPI_FINALIZE", "after", "cannot aggregate", "panicked"] {
            assert!(!job.stderr.contains(wrong), "{}", job.stderr);
        }
        for recording in job.recordings(3) {
            let calls = calls(recording.profile());
            assert_eq!((calls["solve"], calls["report"]), (1, 1));
        }
        let run = collect(mpi, &job, "collected").expect_status(0);
        let profile = run.profile();
        for rank in 0..3 {
            assert_eq!((count(&profile, rank, "solve"), count(&profile, rank, "report")), (1, 1));
        }
        assert!(!profile.rows.iter().any(|row| row.rank > 2));
    });
}

#[test]
fn mpi_02_one_rank_leaves_early() {
    mpi::with_each(|mpi| {
        let job = mpi.record_as_bare(4, "mpi-02", NOTHING, &[]);
        assert!(!job.status.success(), "{}", job.stderr);
        assert!(job.stderr.contains("rank 1 gives up"), "{}", job.stderr);
        let recordings = job.recordings(4);
        // The others may have been killed before they made a step.
        assert_eq!(calls(recordings[1].profile())["step"], 1);
        job.wait_for_processes(&recordings);
        let run = collect(mpi, &job, "collected").expect_status(0);
        assert!(run.stderr.contains("did not end its recording"), "{}", run.stderr);
        // A rank of which there is nothing is missing in the file, and named.
        std::fs::remove_file(job.folder.join("rank2.scope")).unwrap();
        let run = collect(mpi, &job, "collected").expect_status(0);
        assert!(run.stderr.contains("no recording of rank `2` of 4"), "{}", run.stderr);
        let missing = MetadataValue::List(vec!["2".into()]);
        assert_eq!(run.profile().metadata_value("missing_ranks"), Some(&missing));
    });
}

#[test]
fn mpi_03_different_regions_per_rank() {
    mpi::with_each(|mpi| {
        for ranks in [4, 1] {
            let job = mpi.record(ranks, "mpi-03", NOTHING, &[]).expect_success();
            check_different_regions(mpi, &job, ranks);
        }
        let mut alone = std::process::Command::new(mpi.program("mpi-03"));
        tests::subcommand::without_traces_of_the_test(&mut alone);
        let job = mpi.start(&mut alone, "mpi-03-alone").expect_success();
        check_different_regions(mpi, &job, 1);
    });
}

fn check_different_regions(mpi: &Mpi, job: &Job, ranks: usize) {
    for (rank, recording) in job.recordings(ranks).iter().enumerate() {
        let calls = calls(recording.profile());
        let of = |region: &str| calls.get(region).copied();
        assert_eq!(of("common"), Some(rank as u64 + 1));
        assert_eq!(of("odd_only"), (rank % 2 == 1).then_some(rank as u64));
        assert_eq!(of("root_only"), (rank == 0).then_some(1));
    }
    // The table says over how many ranks a mean is taken.
    let row = |region: &str| job.stderr.lines().find_map(|line| line.strip_prefix(region)).map(first_two);
    assert_eq!(row("root_only"), Some(["1", "1"].map(String::from)), "{}", job.stderr);
    assert_eq!(row("odd_only"), (ranks == 4).then_some(["2", "4"].map(String::from)), "{}", job.stderr);
    let run = collect(mpi, job, "collected").expect_status(0);
    let profile = run.profile();
    let odd = profile.names.iter().position(|name| name == "odd_only");
    let rows = profile.rows.iter().filter(|row| Some(row.region as usize) == odd);
    assert_eq!(rows.map(|row| row.rank).collect::<Vec<_>>(), if ranks == 4 { vec![1, 3] } else { vec![] });
}

/// Number of ranks and of calls.
fn first_two(row: &str) -> [String; 2] {
    let mut words = row.split_whitespace().map(String::from);
    [words.next().unwrap(), words.next().unwrap()]
}

#[test]
fn cargo_scope_run_has_outputs_of_every_rank() {
    mpi::with_each(|mpi| {
        let folder = mpi.empty_folder("run");
        let launcher = mpi.launcher();
        let mut command =
            mpi.cargo_scope(&["run", "-n", "4", "--bin", "mpi-03", "--launcher", &launcher, "-o"]);
        let run = Run::start(command.arg(&folder), folder).expect_status(0);
        for rank in 0..4 {
            assert_eq!(count(&run.profile(), rank, "common"), rank as usize + 1);
            for file in [format!("profile_rank{rank}.prof"), format!("flamegraph_rank{rank}.svg")] {
                assert!(run.folder.join(&file).exists(), "{file}");
            }
        }
        tools::succeed(mpi.cargo_scope(&["inspect"]).arg(&run.folder));
    });
}
