//! Programs that begin and end MPI in their own ways.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::Command;

use scope_runtime::profile::{MessageKind, Profile};
use tests::mpi::{self, calls, paths};
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
fn code_in_other_languages_in_a_program_is_recorded() {
    mpi::with_each(|mpi| {
        for program in ["c_object", "c_library", "fortran_library"] {
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

#[test]
fn settings_that_make_no_sense_are_named_and_the_job_goes_on() {
    mpi::with_each(|mpi| {
        for (setting, says) in [
            ("SCOPE_MPI_CALLS", "calls of MPI are not recorded"),
            ("SCOPE_MPI_COMBINE", "ranks do not put their totals together"),
            ("SCOPE_MPI_TIMEOUT", "give a number of seconds; waiting 10 s"),
        ] {
            let job = mpi.record(2, "orders", &["ends-before-the-last-region"], &[(setting, "perhaps")]);
            let job = job.expect_success();
            let lines = job.stderr.lines().filter(|line| line.contains(&format!("{setting} is `perhaps`")));
            assert_eq!(lines.filter(|line| line.contains(says)).count(), 2, "{}", job.stderr);
            assert!(job.recordings(2).iter().all(|recording| calls(recording.profile())["solve"] == 1));
        }
    });
}

/// A job of two programs by the launcher's colon; the arguments of the second one follow.
fn with_another(command: &mut Command, ranks: &str, program: &[&OsStr]) {
    command.args([":", "-n", ranks]).args(program);
}

#[test]
fn a_rank_that_does_not_record_is_not_waited_for() {
    mpi::with_each(|mpi| {
        let program = mpi.program("orders");
        let order = "ends-before-the-last-region";
        let mut command = mpi.job(2, &program, &[order]);
        let unset = ["env", "-u", "SCOPE_OUTPUT"].map(OsStr::new);
        with_another(&mut command, "1", &[&unset[..], &[program.as_os_str(), order.as_ref()]].concat());
        let job = mpi.start(&mut command, "not-recording").expect_success();
        assert_eq!((&*job.stdout, &*job.stderr), (&*"the sum is 3\n".repeat(3), ""));
        assert_eq!(std::fs::read_dir(&job.folder).unwrap().count(), 2);
        assert!((0..2).all(|rank| calls(job.recording(rank).profile())["solve > MPI_Allreduce"] == 1));
    });
}

/// MPICH does not tell its programs that there are others, so there the user has to.
#[test]
fn a_program_without_the_runtime_may_be_in_the_job() {
    mpi::with_each(|mpi| {
        let plain = mpi.compile("plain-beside", &[], &["c/plain.c", "c/ring.c"]);
        let mut command = mpi.job(1, &mpi.program("c_object"), &[] as &[&str]);
        with_another(&mut command, "2", &[plain.as_os_str()]);
        if mpi.family == "mpich" {
            command.env("SCOPE_MPI_COMBINE", "0");
        }
        let job = mpi.start(&mut command, "two-programs").expect_success();
        assert_eq!((&*job.stdout, &*job.stderr), (&*"the sum is 3\n".repeat(3), ""));
        assert_eq!(calls(job.recording(0).profile())["around > MPI_Send"], 1);
    });
}

/// Without the variable that turns recording on, the functions in front of the library's do nothing.
#[test]
fn without_recording_a_job_leaves_nothing_and_says_nothing() {
    mpi::with_each(|mpi| {
        let folder = mpi.empty_folder("plainly");
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

/// As by a launcher of another MPI: its ranks have numbers of their own, and each is alone.
#[test]
fn a_launcher_of_another_mpi_is_noticed() {
    mpi::with_each(|mpi| {
        let variables = match mpi.family.as_str() {
            "mpich" => ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
            _ => ["PMI_RANK", "PMI_SIZE"],
        };
        for (rank, says) in [("0", 1), ("2", 0)] {
            let mut command = Command::new(mpi.program("orders"));
            subcommand::without_traces_of_the_test(&mut command);
            command.arg("ends-before-the-last-region").env(variables[0], rank).env(variables[1], "3");
            let job = mpi.start(&mut command, &format!("other-launcher-{rank}")).expect_success();
            let line = "the launcher started 3 ranks, but MPI knows of one only";
            assert_eq!(job.stderr.matches(line).count(), says, "{}", job.stderr);
        }
    });
}
