//! However one of four ranks ends, no other waits for it because of the profiler, and every rank's calls are
//! kept: one row per ending, each a job of `tests/mpi/src/bin/endings.rs`.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use scope_runtime::recording::Recording;
use tests::mpi::{self, Job, Mpi, calls};

use crate::cases::{collect, count};

const RANKS: usize = 4;
const CALLS: u64 = 1_000;

struct Row {
    /// How one rank ends.
    way: &'static str,
    /// What the others do: wait in a barrier, or go on to `MPI_Finalize`.
    others: &'static str,
    /// That rank.
    leaves: usize,
    /// Whether it can end its recording.
    is_sealed: bool,
}

const fn row(way: &'static str, others: &'static str, leaves: usize, is_sealed: bool) -> Row {
    Row { way, others, leaves, is_sealed }
}

// Rank 2 is between rank 0 and rank 3 when totals are put together.
const ROWS: &[Row] = &[
    row("return", "finalize", 2, true),
    row("panic", "barrier", 2, true),
    row("panic", "finalize", 0, true),
    row("exit", "barrier", 2, true),
    row("exit", "finalize", 2, true),
    row("exit", "finalize", 0, true),
    row("exit-after-finalize", "finalize", 2, true),
    row("exit-after-finalize", "finalize", 0, true),
    row("abort", "barrier", 2, false),
    row("abort", "finalize", 3, false),
    row("sigkill", "barrier", 2, false),
    row("sigkill", "finalize", 0, false),
    row("sigsegv", "barrier", 0, false),
    row("sigsegv", "finalize", 2, false),
    row("mpi-abort", "barrier", 2, false),
    row("mpi-abort", "finalize", 0, false),
    row("exec", "barrier", 2, false),
    row("exec", "finalize", 2, false),
    row("fork", "finalize", 2, true),
];

#[test]
fn a_rank_that_ends_in_any_way_keeps_nobody_waiting_and_loses_nothing() {
    mpi::with_each(|mpi| {
        let mut failures = String::new();
        for row in ROWS {
            if let Err(problem) = catch_unwind(AssertUnwindSafe(|| row.check(mpi))) {
                let text = problem.downcast_ref::<String>().map_or("", String::as_str);
                let Row { way, others, leaves, .. } = row;
                write!(failures, "\n--- {way} of rank {leaves}, others {others}: {text}").unwrap();
            }
        }
        assert!(failures.is_empty(), "{failures}");
    });
}

impl Row {
    fn check(&self, mpi: &Mpi) {
        let arguments = [self.way.to_string(), self.others.into(), self.leaves.to_string()];
        let job = mpi.record_as_bare(RANKS, "endings", &arguments, &[("SCOPE_MPI_TIMEOUT", "2")]);
        let recordings: Vec<_> = (0..RANKS).map(|rank| job.recording(rank)).collect();
        for (rank, recording) in recordings.iter().enumerate() {
            let profile = recording.profile();
            assert_eq!(profile.lost_calls, 0, "rank {rank}");
            let calls = calls(profile);
            assert_eq!((calls["call"], calls["MPI_Init_thread"]), (CALLS, 1), "rank {rank}");
            assert_eq!(calls.get("leave").copied(), (rank == self.leaves).then_some(1), "rank {rank}");
        }
        assert_eq!(recordings[self.leaves].info().sealed, self.is_sealed);
        job.wait_for_processes(&recordings);
        self.check_merged(mpi, &job, &recordings);
    }

    /// The merged file has all ranks, and says which of them were cut.
    fn check_merged(&self, mpi: &Mpi, job: &Job, recordings: &[Recording]) {
        let run = collect(mpi, job, "collected").expect_status(0);
        for (rank, recording) in recordings.iter().enumerate() {
            let says = format!("rank {rank}: the program did not end its recording");
            assert_eq!(run.stderr.contains(&says), !recording.info().sealed, "{}", run.stderr);
        }
        let profile = run.profile();
        let calls = |rank: usize| count(&profile, rank as u32, "call");
        assert_eq!([0, 1, 2, 3].map(calls), [CALLS as usize; RANKS]);
        assert_eq!(profile.metadata_value("missing_ranks"), None);
    }
}

/// One rank comes to the end of MPI three seconds after the others, which wait for one second, or for thirty.
#[test]
fn a_rank_that_comes_late_to_the_end_is_not_waited_for() {
    mpi::with_each(|mpi| {
        let run = |late: &str, timeout: &str| {
            mpi.record(RANKS, "endings", &["late", "finalize", late], &[("SCOPE_MPI_TIMEOUT", timeout)])
                .expect_success()
        };
        for late in ["0", "2", "3"] {
            let job = run(late, "1");
            let lines =
                job.stderr.lines().filter(|line| line.contains("not all ranks came to the end of MPI"));
            assert_eq!(lines.count(), 1, "rank {late} is late: {}", job.stderr);
            assert!(!job.stderr.contains("scope: 4 ranks"), "{}", job.stderr);
            for recording in job.recordings(RANKS) {
                assert!(recording.info().sealed);
                assert_eq!(calls(recording.profile())["MPI_Finalize"], 1);
            }
        }
        let job = run("2", "30");
        assert!(job.stderr.contains("scope: 4 ranks"), "{}", job.stderr);
    });
}
