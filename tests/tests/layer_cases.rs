//! Programs with spans of `tracing` on which tools of this kind have failed, and the example of a
//! service: run by `cargo scope run`, and their profiles looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use scope_runtime::pstats;
use scope_runtime::recording::Recording;
use tests::outputs::Run;
use tests::package::{Package, empty_folder};
use tests::{subcommand, tools};

const TRACING: &str = "tracing = \"0.1\"";
const SUBSCRIBER: &str =
    "tracing-subscriber = { version = \"0.3\", default-features = false, features = [\"registry\"] }";
const TOKIO: &str = "tokio = { version = \"1\", default-features = false, features = [\"macros\", \"rt-multi-thread\", \"time\"] }";
const MS: i64 = 1_000_000;

fn package(case: &str) -> Package {
    Package::of_case_with(case, &["tracing"], &[TRACING, SUBSCRIBER])
}

/// Runs the program of a case, without arguments.
#[track_caller]
fn run(case: &str) -> Run {
    package(case).run(&[]).expect_status(0)
}

/// About right: within 5 ms, but a loaded machine may take longer.
#[track_caller]
fn assert_about(ns: i64, ms: i64) {
    assert!(ns >= ms * MS - 5 * MS && ns <= 40 * ms * MS, "{ns} ns is not about {ms} ms");
}

#[test]
fn layer_01_one_span_entered_twice() {
    let run = run("layer-01");
    let calls = run.calls();
    // Each thread has `belt` open while the other has: one of them goes on with the first call.
    assert_eq!(calls.counts(), BTreeMap::from([("belt", 2), ("leaf", 3)]));
    assert_eq!(calls.parents("leaf"), [Some("belt"); 3]);
    let profile = run.profile();
    let polls = profile.polls.unwrap();
    let in_parts: BTreeSet<i64> = polls.iter().map(|poll| poll.call_id).collect();
    assert_eq!(in_parts.len(), 1, "{polls:?}");
    let mut intervals: Vec<(i64, i64)> = polls.iter().map(|poll| (poll.thread, poll.duration_ns)).collect();
    let apart = calls.named("belt").filter(|call| call.await_ns == 0);
    intervals.extend(apart.map(|call| (call.thread, call.duration_ns())));
    intervals.sort_unstable();
    let [(main, on_main), (one, on_one), (other, on_other)] = intervals[..] else { panic!("{intervals:?}") };
    assert_eq!((main, BTreeSet::from([main, one, other]).len()), (0, 3));
    assert_about(on_main, 40);
    assert_about(on_one, 20);
    assert_about(on_other, 20);
}

#[test]
fn layer_02_parent_not_seen() {
    let run = run("layer-02");
    assert!(!run.stderr.contains("Span not found"), "{}", run.stderr);
    let calls = run.check_outputs();
    assert_eq!(calls.counts(), BTreeMap::from([("kept", 3), ("orphan", 1), ("top", 1)]));
    assert_eq!(calls.parents("kept"), [Some("top"); 3]);
    assert_eq!(calls.parents("orphan"), [None]);
}

#[test]
fn layer_03_global_subscriber_is_never_dropped() {
    let calls = run("layer-03").check_outputs();
    assert_eq!(calls.counts(), BTreeMap::from([("macro_side", 1), ("tick", 3)]));
    assert_eq!(calls.parents("tick"), [Some("macro_side"); 3]);
    // The same in fifty runs; without `cargo scope` around, which has no part in it.
    let program = package("layer-03").build();
    let folder = empty_folder("layer-03-again");
    for _ in 0..50 {
        tools::succeed(Command::new(&program).env("SCOPE_OUTPUT", &folder));
        let recording = Recording::open(&folder.join("rank0.scope")).unwrap();
        let profile = recording.profile();
        let name =
            |node: &scope_runtime::totals::PathTotals| profile.regions[node.region.0 as usize].name.as_str();
        let paths: Vec<_> =
            profile.paths.nodes().iter().map(|node| (name(node), node.calls, node.parent)).collect();
        assert_eq!(paths[0], ("macro_side", 1, None));
        assert_eq!((paths[1].0, paths[1].1, paths[1].2.map(|parent| parent.0)), ("tick", 3, Some(0)));
        assert_eq!((paths.len(), profile.open_calls, profile.lost_calls), (2, 0, 0));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// Many tasks on several workers, each in a span, with spans and regions inside.
const TASKS: &str = r#"
use std::time::Duration;
use scope_runtime::scope;
use tracing::{Instrument, info_span, instrument};
use tracing_subscriber::prelude::*;

#[instrument(skip_all)]
async fn fetch(number: u64) -> u64 {
    tokio::time::sleep(Duration::from_millis(number % 5)).await;
    check(number)
}

#[scope]
async fn parse(number: u64) -> u64 {
    tokio::task::yield_now().await;
    info_span!("tokens").in_scope(|| check(number))
}

#[scope]
fn check(number: u64) -> u64 {
    number + 1
}

#[tokio::main(worker_threads = 4)]
async fn main() {
    tracing_subscriber::registry().with(scope_runtime::layer()).init();
    let jobs: Vec<_> = (0..500)
        .map(|number| {
            let job = async move {
                let (one, two) = tokio::join!(fetch(number), fetch(number + 1));
                parse(one + two).await
            };
            tokio::spawn(job.instrument(info_span!("job")))
        })
        .collect();
    let mut sum = 0;
    for job in jobs {
        sum += job.await.unwrap();
    }
    assert_eq!(sum, 500 * 500 + 500 * 3);
}
"#;

#[test]
fn spans_of_tasks_that_move_between_workers_are_calls_with_true_parents() {
    let package = Package::with_features("layer-tasks", TASKS, &["tracing"], &[TRACING, SUBSCRIBER, TOKIO]);
    let run = package.run(&[]).expect_status(0);
    let calls = run.calls();
    let counts = [("check", 1_500), ("fetch", 1_000), ("job", 500), ("parse", 500), ("tokens", 500)];
    assert_eq!(calls.counts(), BTreeMap::from(counts));
    assert_eq!(calls.parents("job"), [None; 500]);
    assert_eq!(calls.parents("fetch"), [Some("job"); 1_000]);
    assert_eq!(calls.parents("parse"), [Some("job"); 500]);
    assert_eq!(calls.parents("tokens"), [Some("parse"); 500]);
    for call in ["job", "fetch", "parse"].into_iter().flat_map(|name| calls.named(name)) {
        assert!(call.task >= 0 && call.await_ns >= 0 && call.await_ns <= call.duration_ns(), "{call:?}");
    }
    let profile = run.profile();
    let threads: BTreeSet<i64> = profile.polls.unwrap().iter().map(|poll| poll.thread).collect();
    assert!(threads.len() > 1, "{threads:?}");
    for path in profile.paths.unwrap() {
        assert!(path.self_ns >= 0 && path.inclusive_ns <= path.wall_ns, "{path:?}");
    }
    assert!(profile.async_calls.unwrap().iter().all(|row| row.polls > 0 && row.open == 0));
}

#[test]
fn the_example_service_has_the_counts_of_its_clients_and_a_flame_graph() {
    let folder = empty_folder("service");
    let mut command = subcommand::cargo_with_scope();
    command.args(["scope", "run", "--release", "--example", "service", "-o"]).arg(&folder);
    command
        .args(["--", "--clients", "5", "--requests", "24", "--counts"])
        .current_dir(subcommand::workspace());
    let run = Run::start(&mut command, folder).expect_status(0);
    let lines = run.stdout.lines().filter_map(|line| line.strip_prefix("calls ")?.split_once(' '));
    let printed: BTreeMap<&str, usize> =
        lines.map(|(number, region)| (region, number.parse().unwrap())).collect();
    assert_eq!((printed["connection"], printed["answer"], printed["look_up"]), (5, 120, 90));
    let calls = run.calls();
    assert_eq!(calls.counts(), printed);
    assert_eq!(calls.parents("answer"), [Some("connection"); 120]);
    assert_eq!(calls.parents("look_up"), [Some("report"); 90]);
    assert_eq!(calls.parents("sieve"), [Some("primes"); 30]);
    let prof = std::fs::File::open(run.prof_file()).unwrap();
    let prof = pstats::load_prof(prof).unwrap();
    for path in ["connection > answer > primes > sieve", "connection > answer > report > look_up"] {
        assert!(prof.entries().iter().any(|entry| *entry.key.name == *path), "{path}");
    }
    let picture = run.flame_graph();
    assert!(["connection", "answer", "primes", "sieve", "render"].iter().all(|name| picture.contains(name)));
}
