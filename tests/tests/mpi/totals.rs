//! What the ranks put together when MPI ends is what comes out of their recordings afterwards.

use std::collections::BTreeMap;

use scope_runtime::job::JobTotals;
use scope_runtime::recording::Recording;
use tests::mpi;

/// Calls, open ones among them, and times of a path, as `tests/mpi/src/bin/totals.rs` prints them.
type Numbers = [i64; 8];

#[test]
fn totals_of_the_job_are_those_of_the_recordings_to_the_nanosecond() {
    mpi::with_each(|mpi| {
        for ranks in 1..=5 {
            let job = mpi.record(ranks, "totals", &[] as &[&str], &[]).expect_success();
            let mut lines = job.stdout.lines();
            assert_eq!(lines.next(), Some(&*format!("{ranks} ranks")), "{}", job.stderr);
            let printed: BTreeMap<String, Numbers> = lines.map(parse).collect();
            let recorded = sum(&job.recordings(ranks));
            check(&printed, &recorded);
            assert_eq!(printed.contains_key("main > solve > only_on_some > on rank 3 > work"), ranks > 3);
            assert!(!printed.contains_key("main > afterwards") && recorded.contains_key("main > afterwards"));
        }
    });
}

#[test]
fn ranks_put_nothing_together_and_show_nothing_where_that_is_not_wanted() {
    mpi::with_each(|mpi| {
        let run = |settings| mpi.record(2, "totals", &[] as &[&str], settings).expect_success();
        let job = run(&[("SCOPE_MPI_TABLE", "0")]);
        assert!(job.stdout.starts_with("2 ranks\n") && job.stderr.is_empty(), "{}", job.stderr);
        let job = run(&[("SCOPE_MPI_COMBINE", "0")]);
        assert_eq!((&*job.stdout, &*job.stderr), ("", ""));
        assert_eq!(sum(&job.recordings(2))["main > solve"][..3], [2, 2, 0]);
    });
}

/// Paths that were open when MPI ended, or entered afterwards, differ.
fn check(printed: &BTreeMap<String, Numbers>, recorded: &BTreeMap<String, Numbers>) {
    let later =
        ["main", "main > MPI_Finalize", "main > work", "main > afterwards", "main > afterwards > work"];
    let closed = |all: &BTreeMap<String, Numbers>| -> BTreeMap<String, Numbers> {
        let closed = all.iter().filter(|(path, _)| !later.contains(&path.as_str()));
        closed.map(|(path, numbers)| (path.clone(), *numbers)).collect()
    };
    assert_eq!(closed(printed), closed(recorded));
    assert!(closed(printed).values().all(|&[_, _, open, ..]| open == 0));
    for path in ["main", "main > MPI_Finalize"] {
        let [[ranks, calls, open, ns, ..], [_, _, open_later, ns_later, ..]] =
            [printed[path], recorded[path]];
        assert_eq!((calls, open, open_later), (ranks, ranks, 0), "{path}");
        assert!(ns < ns_later, "{path}: {ns} then {ns_later}");
    }
}

fn parse(line: &str) -> (String, Numbers) {
    let mut words = line.splitn(9, ' ');
    let numbers = std::array::from_fn(|_| words.next().unwrap().parse().unwrap());
    (words.next().unwrap().into(), numbers)
}

fn sum(recordings: &[Recording]) -> BTreeMap<String, Numbers> {
    let mut sum = JobTotals::default();
    recordings.iter().for_each(|recording| sum.add(&JobTotals::of_rank(recording.profile())));
    let mut names: Vec<String> = Vec::new();
    let mut numbers = BTreeMap::new();
    for path in sum.paths() {
        let above = path.parent.map(|parent| format!("{} > ", names[parent])).unwrap_or_default();
        names.push(above + &path.name);
        let counts = [i64::from(path.ranks), path.calls as i64, path.open as i64];
        let times = [path.inclusive_ns, path.self_ns, path.least_ns, path.most_ns];
        let all = [&counts[..], &times, &[i64::from(path.most_rank)]].concat();
        numbers.insert(names.last().unwrap().clone(), all.try_into().unwrap());
    }
    numbers
}
