//! Programs that begin and end MPI in their own ways.

use std::collections::BTreeMap;
use std::process::Command;

use scope_runtime::profile::{MessageKind, Profile};
use tests::mpi::{self, calls, paths};
use tests::package::empty_folder;
use tests::subcommand;

fn counts<const N: usize>(calls: [(&str, u64); N]) -> BTreeMap<String, u64> {
    calls.map(|(path, calls)| (path.into(), calls)).into()
}

#[test]
fn threads_that_send_at_the_same_time_lose_nothing() {
    mpi::with_each(|mpi| {
        let job = mpi.record(2, "threads", &[] as &[&str], &[]).expect_success();
        for (rank, recording) in job.recordings(2).iter().enumerate() {
            let profile = recording.profile();
            assert_eq!((profile.lost_calls, profile.open_calls), (0, 0));
            let calls = calls(profile);
            let rounds = ["exchange", "exchange > MPI_Send", "exchange > MPI_Irecv", "exchange > MPI_Wait"];
            assert_eq!(rounds.map(|path| calls[path]), [4, 4_000, 4_000, 2_000]);
            let other = 1 - rank as u32;
            let all = [1_000, 1_000 * (4 + 8 + 12 + 16), 4, 16];
            let half = [all[0] / 2, all[1] / 2, 4, 16].map(|number: u64| number);
            let expected = [
                ("exchange > MPI_Send", MessageKind::Sent, [4 * all[0], all[1], 4, 16]),
                ("exchange > MPI_Wait", MessageKind::Received, [4 * half[0], half[1], 4, 16]),
                ("exchange > MPI_Test", MessageKind::Received, [4 * half[0], half[1], 4, 16]),
            ];
            let expected =
                expected.map(|(path, kind, numbers)| (path.to_string(), kind, Some(other), numbers));
            let mut found = messages(profile);
            found.sort_by_key(|(path, ..)| expected.iter().position(|(expected, ..)| expected == path));
            assert_eq!(found, expected, "rank {rank}");
        }
    });
}

fn messages(profile: &Profile) -> Vec<(String, MessageKind, Option<u32>, [u64; 4])> {
    let paths = paths(profile);
    let messages = profile.messages.iter().map(|messages| {
        let sizes = messages.sizes;
        let numbers = [sizes.messages, sizes.bytes, sizes.min_bytes, sizes.max_bytes];
        (paths[messages.path.0 as usize].clone(), messages.kind, messages.peer, numbers)
    });
    messages.collect()
}

#[test]
fn c_code_in_a_program_is_recorded() {
    mpi::with_each(|mpi| {
        for program in ["c_object", "c_library"] {
            let job = mpi.record(3, program, &[] as &[&str], &[]).expect_success();
            assert_eq!(job.stdout, "the sum is 3\n".repeat(3));
            assert!(job.stderr.contains("scope: 3 ranks"), "{program}: {}", job.stderr);
            for recording in job.recordings(3) {
                let expected = counts([
                    ("MPI_Init", 1),
                    ("around", 1),
                    ("around > MPI_Recv", 1),
                    ("around > MPI_Send", 1),
                    ("around > MPI_Bcast", 1),
                    ("MPI_Finalize", 1),
                    ("afterwards", 1),
                ]);
                assert_eq!(calls(recording.profile()), expected, "{program}");
                assert_eq!(recording.profile().messages.len(), 3, "{program}");
            }
        }
    });
}

#[test]
fn mpi_may_begin_and_end_before_and_after_what_is_recorded() {
    let with_mpi = |later: &[(&str, u64)]| {
        let mut calls =
            counts([("MPI_Init_thread", 1), ("solve", 1), ("solve > MPI_Allreduce", 1), ("report", 1)]);
        calls.extend(later.iter().map(|&(path, calls)| (path.to_string(), calls)));
        calls
    };
    let ended = with_mpi(&[("MPI_Finalize", 1)]);
    let orders = [
        ("ends-before-the-last-region", true, ended.clone()),
        ("ends-after-the-last-region", true, ended.clone()),
        ("begins-before-the-session", true, ended),
        // Recording has ended when MPI does, but what is recorded is put together.
        ("ends-after-the-session", true, with_mpi(&[])),
        ("never", false, counts([("report", 1)])),
    ];
    mpi::with_each(|mpi| {
        for (order, comes_together, expected) in &orders {
            let job = mpi.record(2, "orders", &[order], &[]).expect_success();
            assert_eq!(job.stdout, format!("the sum is {}\n", u8::from(*order != "never")).repeat(2));
            assert_eq!(job.stderr.contains("scope: 2 ranks"), *comes_together, "{order}: {}", job.stderr);
            for recording in job.recordings(2) {
                assert_eq!(calls(recording.profile()), *expected, "{order}");
                assert!(recording.info().sealed, "{order}");
            }
        }
    });
}

/// Without the variable that turns recording on, the functions in front of the library's do nothing.
#[test]
fn without_recording_a_job_leaves_nothing_and_says_nothing() {
    mpi::with_each(|mpi| {
        let folder = empty_folder(&format!("mpi/{}-plainly", mpi.family));
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = mpi.job(2, &mpi.program("orders"), &["ends-after-the-last-region"]);
        let job = mpi::run(command.current_dir(&folder)).expect_success();
        assert_eq!((&*job.stdout, &*job.stderr), ("the sum is 1\nthe sum is 1\n", ""));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    });
}

#[test]
fn a_program_with_mpi_needs_no_launcher() {
    mpi::with_each(|mpi| {
        for order in ["never", "ends-before-the-last-region"] {
            let mut command = Command::new(mpi.program("orders"));
            subcommand::without_traces_of_the_test(&mut command);
            let job = mpi.start(command.arg(order), &format!("alone-{order}")).expect_success();
            assert_eq!(job.stdout, "the sum is 0\n");
            assert_eq!(calls(job.recordings(1)[0].profile())["report"], 1);
        }
    });
}
