//! The example with halo exchange: its result is that of one rank, and its calls are known in advance.

use std::collections::BTreeMap;

use scope_runtime::profile::{MessageKind, Profile};
use tests::mpi::{self, calls, paths};

const CELLS: u64 = 48;
const STEPS: u64 = 200;
const AGREEMENTS: u64 = STEPS / 10;
const OPTIONS: [&str; 6] = ["--cells", "48", "--steps", "200", "--still", "0"];

#[test]
fn the_heat_example_has_the_calls_that_steps_and_neighbours_say() {
    mpi::with_each(|mpi| {
        for ranks in 1..=4 {
            let bare = mpi::run(&mut mpi.job(ranks, &mpi.program("heat_mpi"), &OPTIONS)).expect_success();
            assert!(bare.stdout.contains("same as alone: true"), "{}", bare.stdout);
            let job = mpi.record(ranks, "heat_mpi", &OPTIONS, &[]).expect_success();
            assert_eq!(job.stdout, bare.stdout);
            assert!(job.stderr.contains(&format!("scope: {ranks} rank")), "{}", job.stderr);
            for (rank, recording) in job.recordings(ranks).iter().enumerate() {
                let profile = recording.profile();
                assert_eq!((profile.lost_calls, profile.open_calls), (0, 0));
                assert_eq!(
                    calls(profile),
                    expected_calls(rank as u64, ranks as u64),
                    "rank {rank} of {ranks}"
                );
                check_messages(profile, rank as u64, ranks as u64);
            }
        }
    });
}

fn neighbours(rank: u64, ranks: u64) -> Vec<u64> {
    let above = rank.checked_sub(1);
    above.into_iter().chain(Some(rank + 1).filter(|&below| below < ranks)).collect()
}

fn expected_calls(rank: u64, ranks: u64) -> BTreeMap<String, u64> {
    let neighbours = neighbours(rank, ranks).len() as u64;
    let mut calls = BTreeMap::from([("main", 1), ("main > MPI_Init_thread", 1), ("main > MPI_Finalize", 1)]);
    calls.extend([("main > Strip::new", 1), ("main > solve", 1), ("main > collect", 1)]);
    calls.extend([("main > solve > Strip::exchange", STEPS), ("main > solve > Strip::sweep", STEPS)]);
    calls
        .extend([("main > solve > agree", AGREEMENTS), ("main > solve > agree > MPI_Allreduce", AGREEMENTS)]);
    if neighbours > 0 {
        calls.insert("main > solve > Strip::exchange > MPI_Irecv", STEPS * neighbours);
        calls.insert("main > solve > Strip::exchange > MPI_Isend", STEPS * neighbours);
        calls.insert("main > solve > Strip::exchange > MPI_Wait", STEPS * neighbours * 2);
    }
    match rank {
        0 => {
            calls.extend([("main > solve_alone", 1), ("main > solve_alone > Strip::new", 1)]);
            calls.insert("main > solve_alone > Strip::sweep", STEPS);
            if ranks > 1 {
                calls.insert("main > collect > MPI_Mprobe", ranks - 1);
                calls.insert("main > collect > MPI_Mrecv", ranks - 1);
            }
        }
        _ => _ = calls.insert("main > collect > MPI_Send", 1),
    }
    calls.into_iter().map(|(path, calls)| (path.into(), calls)).collect()
}

/// Each row of the plate holds `f64`, and goes to each neighbour in each step.
fn check_messages(profile: &Profile, rank: u64, ranks: u64) {
    let paths = paths(profile);
    let row = 8 * CELLS;
    for (call, kind) in [("MPI_Isend", MessageKind::Sent), ("MPI_Wait", MessageKind::Received)] {
        let path = format!("main > solve > Strip::exchange > {call}");
        let messages = profile.messages.iter().filter(|messages| paths[messages.path.0 as usize] == path);
        let found: Vec<_> = messages
            .map(|messages| {
                assert_eq!(messages.kind, kind);
                let sizes = messages.sizes;
                let peer = messages.peer.expect("each has one");
                (u64::from(peer), sizes.messages, sizes.bytes, sizes.min_bytes, sizes.max_bytes)
            })
            .collect();
        let expected = neighbours(rank, ranks).into_iter().map(|peer| (peer, STEPS, STEPS * row, row, row));
        assert_eq!(found, expected.collect::<Vec<_>>(), "{path} on rank {rank} of {ranks}");
    }
}
