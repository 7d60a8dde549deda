//! What is recorded of every kind of message.

use std::collections::{BTreeMap, BTreeSet};

use scope_runtime::profile::{MessageKind, Profile};
use scope_runtime::recording::Recording;
use tests::mpi::{self, Mpi, calls, paths};

const RANKS: usize = 4;

/// Ranks, function, what became of the messages and their peer: number, bytes in all, of the smallest and of
/// the largest. Peers may be `next` and `before` in the ring of ranks, `beside` (0 and 1, 2 and 3), `across`
/// (0 and 2, 1 and 3), `self`, or none. `4r` bytes are 4 on rank 0 and 16 on rank 3.
const EXPECTED: &[(&str, &str)] = &[
    (
        "sends",
        "0 Send sent 1: 2 28 8 20
         0 Ssend sent 1: 1 12
         0 Bsend sent 1: 1 16
         0 Recv received 1: 1 0
         0 Rsend sent 1: 1 4",
    ),
    (
        "receives",
        "1 Recv received 0: 4 56 8 20
         1 Send sent 0: 1 0
         1 Wait received 0: 1 4",
    ),
    (
        "any_source",
        "1-3 Send sent 0: 1 4r
         0 Recv received 1: 1 8
         0 Recv received 2: 1 12
         0 Recv received 3: 1 16",
    ),
    (
        "ring",
        "0-2 Sendrecv sent next: 2 16 4 12
         3 Sendrecv sent 0: 1 12
         1-3 Sendrecv received before: 2 16 4 12
         0 Sendrecv received 3: 1 12
         0-3 Sendrecv_replace sent next: 1 8
         0-3 Sendrecv_replace received before: 1 8",
    ),
    ("probed_sends", "0 Send sent 1: 5 100 12 28"),
    (
        "probes",
        "1 Recv received 0: 2 28 12 16
         1 Mrecv received 0: 2 48 20 28
         1 Wait received 0: 1 24",
    ),
    (
        "types",
        "0-3 Isend sent next: 1 12
         0-3 Recv received before: 1 12",
    ),
    (
        "errors",
        "0-3 Isend sent next: 3 36 4 16
         0-3 Wait received before: 1 4",
    ),
    ("wait", "0 Isend sent 1: 6 48 4 12\n1 Wait received 0: 6 48 4 12"),
    ("waitall", "0 Isend sent 1: 6 48 4 12\n1 Waitall received 0: 6 48 4 12"),
    ("waitany", "0 Isend sent 1: 6 48 4 12\n1 Waitany received 0: 6 48 4 12"),
    ("waitsome", "0 Isend sent 1: 6 48 4 12\n1 Waitsome received 0: 6 48 4 12"),
    ("test", "0 Isend sent 1: 6 48 4 12\n1 Test received 0: 6 48 4 12"),
    ("testall", "0 Isend sent 1: 6 48 4 12\n1 Testall received 0: 6 48 4 12"),
    ("testany", "0 Isend sent 1: 6 48 4 12\n1 Testany received 0: 6 48 4 12"),
    ("testsome", "0 Isend sent 1: 6 48 4 12\n1 Testsome received 0: 6 48 4 12"),
    (
        "four_kinds",
        "0 Isend sent 1: 1 4
         0 Ibsend sent 1: 1 8
         0 Issend sent 1: 1 12
         0 Irsend sent 1: 1 16
         0 Recv received 1: 1 0",
    ),
    (
        "four_receives",
        "1 Waitall received 0: 4 40 4 16
         1 Send sent 0: 1 0",
    ),
    (
        "persistent_sends",
        "2 Startall sent 3: 8 80 4 16
         2 Start sent 3: 1 4
         2 Recv received 3: 2 0",
    ),
    (
        "persistent_receives",
        "3 Waitall received 2: 8 80 4 16
         3 Test received 2: 1 4
         3 Send sent 2: 2 0",
    ),
    (
        "cancelled",
        "0-3 Send sent next: 1 12
         0-3 Wait received before: 1 12",
    ),
    (
        "freed",
        "0 Isend sent 1: 1 4
         0 Send sent 1: 1 8
         1 Recv received 0: 1 8",
    ),
    (
        "broadcast",
        "0-3 Bcast collective 1: 1 20
         0-3 Ibcast collective 1: 1 20",
    ),
    (
        "reductions",
        "0-3 Reduce collective 1: 1 12
         0-3 Ireduce collective 1: 1 12
         0-3 Allreduce collective -: 1 8
         0-3 Iallreduce collective -: 1 8
         0-3 Scan collective -: 1 4
         0-3 Iscan collective -: 1 4
         0-3 Exscan collective -: 1 4
         0-3 Iexscan collective -: 1 4",
    ),
    (
        "reductions_in_place",
        "0-3 Reduce collective 1: 1 12
         0-3 Allreduce collective -: 1 8
         0-3 Iallreduce collective -: 1 8",
    ),
    (
        "gather",
        "0-3 Gather collective 1: 1 8
         0-3 Igather collective 1: 1 8
         0-3 Gatherv collective 1: 1 4r
         0-3 Igatherv collective 1: 1 4r",
    ),
    (
        "gather_in_place",
        "0-3 Gather collective 1: 1 8
         0-3 Gatherv collective 1: 1 4r",
    ),
    (
        "scatter",
        "0-3 Scatter collective 1: 1 8
         0-3 Iscatter collective 1: 1 8
         0-3 Scatterv collective 1: 1 4r
         0-3 Iscatterv collective 1: 1 4r",
    ),
    (
        "scatter_in_place",
        "0-3 Scatter collective 1: 1 8
         0-3 Scatterv collective 1: 1 4r",
    ),
    (
        "gather_for_all",
        "0-3 Allgather collective -: 1 8
         0-3 Iallgather collective -: 1 8
         0-3 Allgatherv collective -: 1 4r
         0-3 Iallgatherv collective -: 1 4r",
    ),
    (
        "gather_for_all_in_place",
        "0-3 Allgather collective -: 1 8
         0-3 Iallgather collective -: 1 8
         0-3 Allgatherv collective -: 1 4r
         0-3 Iallgatherv collective -: 1 4r",
    ),
    (
        "all_to_all",
        "0-3 Alltoall collective -: 1 32
         0-3 Ialltoall collective -: 1 32
         0-3 Alltoallv collective -: 1 40
         0-3 Ialltoallv collective -: 1 40
         0-3 Alltoallw collective -: 1 40
         0-3 Ialltoallw collective -: 1 40",
    ),
    (
        "all_to_all_in_place",
        "0-3 Alltoall collective -: 1 32
         0-3 Ialltoall collective -: 1 32
         0-3 Alltoallv collective -: 1 32
         0-3 Alltoallw collective -: 1 32",
    ),
    (
        "reduce_and_scatter",
        "0-3 Reduce_scatter collective -: 1 40
         0-3 Ireduce_scatter collective -: 1 40
         0-3 Reduce_scatter_block collective -: 1 32
         0-3 Ireduce_scatter_block collective -: 1 32",
    ),
    (
        "on_one_rank",
        "0-3 Allreduce collective -: 1 8
         0-3 Bcast collective self: 1 8",
    ),
    (
        "halves",
        "0-1 Send sent across: 2 16 4 12
         2-3 Send sent across: 1 4
         2-3 Recv received across: 1 12
         0-3 Wait received across: 1 4
         0 Bcast collective 2: 1 8
         1 Bcast collective 3: 1 8
         2-3 Bcast collective self: 1 8",
    ),
    (
        "connected",
        "0-3 Send sent beside: 1 8
         0-3 Wait received beside: 1 8
         0-3 Bcast collective 2: 1 4",
    ),
    (
        "turned_round",
        "3 Ssend sent 1: 1 4
         1 Recv received 3: 1 4
         1-3 Bcast collective 2: 1 4",
    ),
    (
        "neighbours",
        "0-3 Neighbor_allgather collective -: 1 12
         0-3 Neighbor_alltoall collective -: 2 16 0 16
         0-3 Ineighbor_alltoall collective -: 1 8
         0-3 Neighbor_alltoallv collective -: 1 12
         0-3 Sendrecv_replace sent beside: 1 4
         0-3 Sendrecv_replace received beside: 1 4",
    ),
    (
        "memory",
        "0-3 Put sent next: 2 20 8 12
         0-3 Get received next: 1 12
         0-3 Accumulate sent next: 1 4
         0-3 Fetch_and_op sent next: 1 4
         0-3 Fetch_and_op received next: 1 4
         0-3 Compare_and_swap sent next: 1 4
         0-3 Compare_and_swap received next: 1 4
         0-3 Get_accumulate sent next: 1 8
         0-3 Get_accumulate received next: 1 8
         0-3 Rget received next: 1 4",
    ),
    ("memory_of_a_half", "0 Put sent 2: 1 4\n2 Put sent 0: 1 4"),
    (
        "file_of_all",
        "0-3 File_write_at_all written -: 1 16
         0-3 File_read_at read -: 2 48 16 32
         0-3 File_iwrite_at written -: 1 8",
    ),
];

/// Messages of one function, kind and peer, as text.
type Lines = BTreeSet<String>;

fn expected(rank: usize) -> Lines {
    let all = EXPECTED.iter().flat_map(|(scenario, lines)| lines.lines().map(move |line| (scenario, line)));
    all.filter_map(|(scenario, line)| {
        let (messages, sizes) = line.split_once(": ").unwrap();
        let mut words = messages.split_whitespace();
        let mut word = || words.next().unwrap();
        let (ranks, function, kind, peer) = (word(), word(), word(), word());
        let (first, last) = ranks.split_once('-').unwrap_or((ranks, ranks));
        let is_meant = (first.parse().unwrap()..=last.parse().unwrap()).contains(&rank);
        let peer = match peer {
            "next" => (rank + 1) % RANKS,
            "before" => (rank + RANKS - 1) % RANKS,
            "beside" => rank ^ 1,
            "across" => rank ^ 2,
            "self" => rank,
            other => other.parse().unwrap_or(usize::MAX),
        };
        is_meant.then(|| line_of(&format!("{scenario} > MPI_{function}"), kind, peer, numbers(sizes, rank)))
    })
    .collect()
}

/// Number of messages, their bytes, and those of the smallest and the largest; of one they are the same.
fn numbers(text: &str, rank: usize) -> [u64; 4] {
    let text = text.replace("4r", &(4 * (rank + 1)).to_string());
    let numbers: Vec<u64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    match numbers[..] {
        [messages, bytes] => [messages, bytes, bytes, bytes],
        _ => numbers.try_into().unwrap(),
    }
}

fn line_of(path: &str, kind: &str, peer: usize, [messages, bytes, least, most]: [u64; 4]) -> String {
    let peer = if peer == usize::MAX { "nobody".into() } else { format!("rank {peer}") };
    format!("{path}: {messages} {kind}, {peer}, {bytes} bytes, {least} to {most}")
}

fn found(profile: &Profile) -> Lines {
    let paths = paths(profile);
    let line = |messages: &scope_runtime::profile::Messages| {
        let kind = match messages.kind {
            MessageKind::Sent => "sent",
            MessageKind::Received => "received",
            MessageKind::Collective => "collective",
            MessageKind::Written => "written",
            MessageKind::Read => "read",
        };
        let sizes = messages.sizes;
        let numbers = [sizes.messages, sizes.bytes, sizes.min_bytes, sizes.max_bytes];
        let peer = messages.peer.map_or(usize::MAX, |peer| peer as usize);
        line_of(&paths[messages.path.0 as usize], kind, peer, numbers)
    };
    profile.messages.iter().map(line).collect()
}

/// Runs the program; gives the recordings, and what it says it has called on each rank.
fn run(mpi: &Mpi, settings: &[(&str, &str)]) -> (Vec<Recording>, Vec<BTreeMap<String, u64>>) {
    let file = mpi.empty_folder("data");
    let job = mpi.record(RANKS, "messages", &[&file], settings).expect_success();
    let mut counted = vec![BTreeMap::new(); RANKS];
    for line in job.stdout.lines() {
        let (rank, counts) = line.strip_prefix("rank ").unwrap().split_once(": ").unwrap();
        let (calls, function) = counts.split_once(' ').unwrap();
        counted[rank.parse::<usize>().unwrap()].insert(function.into(), calls.parse().unwrap());
    }
    (job.recordings(RANKS), counted)
}

/// Number of calls by region, of those of MPI.
fn calls_of_mpi(profile: &Profile) -> BTreeMap<String, u64> {
    let mut by_region = BTreeMap::new();
    for (path, calls) in calls(profile) {
        let region = path.rsplit(" > ").next().unwrap();
        if region.starts_with("MPI_") {
            *by_region.entry(region.into()).or_default() += calls;
        }
    }
    by_region
}

fn check(mpi: &Mpi, settings: &[(&str, &str)]) {
    let (recordings, counted) = run(mpi, settings);
    for (rank, recording) in recordings.iter().enumerate() {
        let (expected, found) = (expected(rank), found(recording.profile()));
        let missing: Vec<_> = expected.difference(&found).collect();
        let surplus: Vec<_> = found.difference(&expected).collect();
        assert!(missing.is_empty() && surplus.is_empty(), "rank {rank}: not {surplus:#?}, but {missing:#?}");
        assert_eq!(calls_of_mpi(recording.profile()), counted[rank], "rank {rank}");
    }
}

#[test]
fn every_kind_of_message_is_counted_with_its_size_and_peer() {
    mpi::with_each(|mpi| check(mpi, &[]));
}

#[test]
fn messages_are_counted_where_no_events_are_kept() {
    mpi::with_each(|mpi| check(mpi, &[("SCOPE_TOTALS_ONLY", "1")]));
}

#[test]
fn calls_of_mpi_may_be_left_out() {
    mpi::with_each(|mpi| {
        let (recordings, _) = run(mpi, &[("SCOPE_MPI_CALLS", "0")]);
        for recording in recordings {
            let profile = recording.profile();
            assert!(profile.messages.is_empty() && profile.collectives.is_empty());
            assert!(calls_of_mpi(profile).is_empty());
            assert_eq!(calls(profile)["broadcast"], 1);
        }
    });
}

/// Collective calls have the same numbers on all ranks of a communicator, and different ones on different ones.
#[test]
fn collective_calls_of_ranks_belong_together() {
    mpi::with_each(|mpi| {
        let (recordings, _) = run(mpi, &[]);
        let mut calls: BTreeMap<(u32, u32), Vec<(usize, String)>> = BTreeMap::new();
        for (rank, recording) in recordings.iter().enumerate() {
            let profile = recording.profile();
            let paths = paths(profile);
            for call in &profile.collectives {
                assert!(call.start_ns <= call.end_ns);
                let path = paths[call.path.0 as usize].clone();
                calls.entry((call.communicator, call.number)).or_default().push((rank, path));
            }
        }
        let mut in_halves = BTreeSet::new();
        for (call, by_rank) in &calls {
            let (ranks, paths): (Vec<usize>, BTreeSet<&str>) =
                by_rank.iter().map(|(rank, path)| (*rank, path.as_str())).unzip();
            assert_eq!(paths.len(), 1, "{call:?}: {by_rank:?}");
            match *paths.first().unwrap() {
                path if path.starts_with("halves > ") => _ = in_halves.insert(ranks),
                "paused > MPI_Barrier" => assert_eq!(ranks, [1, 2, 3]),
                path if path.starts_with("turned_round > ") => assert_eq!(ranks, [1, 2, 3]),
                _ => assert_eq!(ranks, [0, 1, 2, 3], "{call:?}: {by_rank:?}"),
            }
        }
        assert_eq!(in_halves, BTreeSet::from([vec![0, 2], vec![1, 3]]));
    });
}
