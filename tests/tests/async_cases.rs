//! Async programs on which tools of this kind have failed, and the example of tasks: run by
//! `cargo scope run`, and their profiles looked at.

use std::collections::BTreeMap;
use std::process::Command;

use cargo_scope::merged::MergedProfile;
use scope_runtime::pstats;
use tests::call_tree::CallTree;
use tests::outputs::{Run, integer};
use tests::package::{Package, empty_folder};
use tests::{subcommand, tools};

const TOKIO: &str = "tokio = { version = \"1\", features = [\"full\"] }";
const FUTURES: &str = "futures = \"0.3\"";
const MS: i64 = 1_000_000;

/// Runs the program of a case, without arguments.
#[track_caller]
fn run(case: &str) -> Run {
    Package::of_case(case, &[TOKIO, FUTURES]).run(&[]).expect_status(0)
}

/// About right: within 30 % or 5 ms, but a loaded machine may take longer.
#[track_caller]
fn assert_about(ns: i64, ms: i64) {
    assert!(ns >= ms * MS - 5 * MS && ns <= 40 * ms * MS, "{ns} ns is not about {ms} ms");
}

/// Cancelled and open calls, by the table that only our files have.
fn marked(profile: &MergedProfile) -> (usize, usize) {
    let rows = profile.async_calls.as_deref().unwrap_or_default();
    let count =
        |holds: fn(&cargo_scope::merged::AsyncRow) -> bool| rows.iter().filter(|row| holds(row)).count();
    (count(|row| row.cancelled != 0), count(|row| row.open != 0))
}

#[test]
fn async_01_a_guard_across_an_await_does_not_compile_in_a_spawned_task() {
    let package = Package::of_case("async-01", &[TOKIO]);
    let output = tools::output(&mut package.cargo(&["build", "--quiet"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert_eq!(said.matches("error: future cannot be sent between threads safely").count(), 1, "{said}");
    assert!(said.contains("has type `Guard` which is not `Send`"), "{said}");
    assert!(said.contains("await occurs here"), "{said}");
    assert!(!said.contains("fine()"), "{said}");
}

#[test]
fn async_02_joined_siblings() {
    let run = run("async-02");
    let calls = run.calls();
    assert_eq!(calls.counts(), BTreeMap::from([("round", 1), ("serve", 5)]));
    assert_eq!(calls.parents("serve"), [Some("round"); 5]);
    calls.named("serve").for_each(|call| assert_about(call.duration_ns(), 40));
    let round = calls.named("round").next().unwrap();
    assert_about(round.duration_ns(), 40);
    assert!(calls.named("serve").all(|call| round.start_ns <= call.start_ns && call.end_ns <= round.end_ns));
    let lanes: std::collections::BTreeSet<_> = calls.named("serve").map(|call| call.task).collect();
    assert_eq!(lanes.len(), 5, "overlapping calls have lanes of their own");
    assert!(run.profile().paths.unwrap().iter().all(|path| path.self_ns >= 0));
    assert!(run.stderr.contains("busy"), "{}", run.stderr);
}

#[test]
fn async_03_cancelled_half_way() {
    // On a machine with other work both timers can ring at once; then the program is another one.
    let as_meant = |run: &Run| run.calls().count("inner_step") == 3 && marked(&run.profile()) == (2, 0);
    let mut runs = (0..5).map(|_| run("async-03"));
    let run = runs.find(as_meant).expect("one of five runs goes as it is meant");
    let calls = run.calls();
    let counts = BTreeMap::from([
        ("after", 1),
        ("both", 1),
        ("cleanup", 1),
        ("fast", 1),
        ("inner_step", 3),
        ("slow", 1),
    ]);
    assert_eq!(calls.counts(), counts);
    assert_eq!(calls.parents("cleanup"), [Some("slow")]);
    assert_eq!(calls.parents("after"), [Some("both")]);
    assert_eq!(calls.parents("inner_step"), [Some("slow"); 3]);
    let (slow, after) = (calls.named("slow").next().unwrap(), calls.named("after").next().unwrap());
    assert_about(slow.duration_ns(), 25);
    assert!(slow.end_ns <= after.start_ns);
    assert_eq!(marked(&run.profile()), (2, 0), "`slow` and its third step");
}

#[test]
fn async_04_blocking_pool() {
    let run = run("async-04");
    let calls = run.calls();
    assert_eq!(calls.counts(), BTreeMap::from([("ask", 4), ("crunch", 4)]));
    assert_eq!(calls.parents("crunch"), [None; 4]);
    assert!(calls.named("crunch").all(|call| call.task < 0 && call.await_ns == 0));
    for ask in calls.named("ask") {
        assert_about(ask.duration_ns(), 30);
        assert!(ask.task >= 0 && ask.duration_ns() - ask.await_ns < 25 * MS, "{ask:?}");
    }
    let names: Vec<_> = run.profile().tasks.unwrap().into_iter().map(|task| task.name).collect();
    assert_eq!(names, ["ask 0", "ask 1", "ask 2", "ask 3"]);
}

#[test]
fn async_05_a_chain_of_twenty_compiles_in_a_spawned_task() {
    let run = Package::of_case("async-05", &[TOKIO]).run(&[]).expect_status(0);
    let calls = run.calls();
    assert_eq!(calls.counts().len(), 20);
    assert_eq!(calls.parents("f0"), [Some("f1")]);
    assert_eq!(calls.parents("f19"), [None]);
}

#[test]
fn macro_07_work_before_a_boxed_future() {
    let calls = run("macro-07").calls();
    assert_eq!(calls.counts(), BTreeMap::from([("prepare", 1)]));
}

#[test]
fn async_traits_runtimes_and_attributes_in_either_order_are_measured() {
    let source = r#"
#![deny(warnings)]
use scope_runtime::{ScopeFuture, scope};

#[async_trait::async_trait]
trait Serve: Sync {
    async fn serve(&self, n: u64) -> Result<u64, String>;
}

struct Server;

#[async_trait::async_trait]
impl Serve for Server {
    #[scope]
    async fn serve(&self, n: u64) -> Result<u64, String> {
        tokio::task::yield_now().await;
        if n == 3 { Err("three".into()) } else { Ok(n) }
    }
}

struct Outer;

#[scope]
#[async_trait::async_trait]
impl Serve for Outer {
    async fn serve(&self, n: u64) -> Result<u64, String> {
        Server.serve(n).await
    }
}

#[scope]
#[tokio::main(flavor = "current_thread")]
async fn on_tokio() {
    tokio::task::LocalSet::new()
        .run_until(async {
            tokio::task::spawn_local(held()).await.unwrap();
        })
        .await;
}

#[scope]
async fn held() {
    scope_runtime::region!("held over an await");
    tokio::task::yield_now().await;
    inside();
}

#[scope]
fn inside() {}

#[tokio::main(worker_threads = 2)]
#[scope]
async fn on_threads() {
    let server: std::sync::Arc<dyn Serve + Send> = std::sync::Arc::new(Outer);
    let tasks: Vec<_> = (0..10)
        .map(|n| {
            let server = server.clone();
            tokio::spawn(async move { server.serve(n).await }.in_region("spawned"))
        })
        .collect();
    for task in tasks {
        let _ = task.await.unwrap();
    }
    let aborted = tokio::spawn(std::future::pending::<()>().in_region("aborted"));
    tokio::task::yield_now().await;
    while aborted.abort_handle().is_finished() {}
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    aborted.abort();
    let _ = aborted.await;
    tokio::task::block_in_place(inside);
}

fn main() {
    on_tokio();
    on_threads();
    async_io::block_on(async {
        let executor = async_executor::Executor::new();
        executor.run(executor.spawn(held_by_nobody())).await;
    });
    futures::executor::block_on(futures::future::join_all((0..3).map(|_| held_by_nobody())));
}

#[scope]
async fn held_by_nobody() {
    futures::future::ready(()).await;
}
"#;
    let dependencies =
        [TOKIO, FUTURES, "async-trait = \"0.1\"", "async-executor = \"1\"", "async-io = \"2\""];
    let run = Package::new("async-forms", source, &dependencies).run(&[]).expect_status(0);
    let calls = run.calls();
    let counts = BTreeMap::from([
        ("Outer::serve", 10),
        ("Server::serve", 10),
        ("aborted", 1),
        ("held", 1),
        ("held over an await", 1),
        ("held_by_nobody", 4),
        ("inside", 2),
        ("on_threads", 1),
        ("on_tokio", 1),
        ("spawned", 10),
    ]);
    assert_eq!(calls.counts(), counts);
    assert_eq!(calls.parents("Server::serve"), [Some("Outer::serve"); 10]);
    assert_eq!(calls.parents("Outer::serve"), [Some("spawned"); 10]);
    assert_eq!(calls.parents("inside"), [Some("held over an await"), Some("on_threads")]);
    assert_eq!(calls.parents("held over an await"), [Some("held")]);
    assert_eq!(marked(&run.profile()), (1, 0), "the aborted task");
    assert_eq!(integer(&run.profile(), "lost_calls"), 0);
}

#[test]
fn with_the_feature_tasks_have_the_numbers_of_tokio() {
    let source = r#"
#[scope_runtime::scope]
async fn work() -> String {
    tokio::task::yield_now().await;
    tokio::task::id().to_string()
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    for _ in 0..3 {
        println!("{}", tokio::spawn(work()).await.unwrap());
    }
    // Not in a task.
    let _ = scope_runtime::ScopeFuture::in_region(async {}, "outside").await;
}
"#;
    let run = Package::with_features("async-task-ids", source, &["tokio"], &[TOKIO]);
    let run = run.run(&[]).expect_status(0);
    let mut expected: Vec<String> = run.stdout.lines().map(|id| format!("task {id}")).collect();
    expected.push("outside 3".into());
    let names: Vec<String> = run.profile().tasks.unwrap().into_iter().map(|task| task.name).collect();
    assert_eq!(names, expected);
}

/// `cargo scope run` of the example.
#[track_caller]
fn tasks(name: &str, arguments: &[&str]) -> Run {
    let folder = empty_folder(name);
    let mut command = subcommand::cargo_with_scope();
    command.args(["scope", "run", "--release", "--example", "tasks", "-o"]).arg(&folder);
    command.arg("--").args(arguments).current_dir(subcommand::workspace());
    Run::start(&mut command, folder).expect_status(0)
}

#[test]
fn the_example_of_tasks_has_the_counts_of_the_program() {
    let run = tasks("tasks", &["--pages", "60", "--at-once", "16", "--counts"]);
    let calls = run.calls();
    let printed = run.stdout.lines().filter_map(|line| line.strip_prefix("calls ")?.split_once(' '));
    let printed: BTreeMap<&str, usize> =
        printed.map(|(number, region)| (region, number.parse().unwrap())).collect();
    assert_eq!(calls.counts(), printed);
    let profile = run.profile();
    let (cancelled, open) = marked(&profile);
    assert_eq!((cancelled, open), (printed["fetch"] - printed["read"], 0));
    let paths = profile.paths.as_ref().unwrap();
    let busy: i64 = paths.iter().map(|path| path.self_ns).sum();
    let roots: i64 = paths.iter().filter(|path| path.parent < 0).map(|path| path.inclusive_ns).sum();
    assert_eq!(busy, roots, "inclusive is self and children");
    check_polls(&profile, &calls);
    check_links(&run, &profile);
}

/// The polls of a call add up to the time in which it did not wait.
#[track_caller]
fn check_polls(profile: &MergedProfile, calls: &CallTree) {
    let mut busy: BTreeMap<i64, (u64, i64)> = BTreeMap::new();
    for poll in profile.polls.as_ref().unwrap() {
        let (polls, busy_ns) = busy.entry(poll.call_id).or_default();
        *polls += 1;
        *busy_ns += poll.duration_ns;
    }
    for row in profile.async_calls.as_ref().unwrap() {
        let call = calls.get(row.call_id).unwrap();
        assert_eq!(busy[&row.call_id], (row.polls, call.duration_ns() - call.await_ns), "{call:?}");
    }
}

/// Tasks hang below the region that made them, and what the pool ran below what gave it the work.
#[track_caller]
fn check_links(run: &Run, profile: &MergedProfile) {
    let linked = run.folder.join("linked");
    let mut command = Command::new(subcommand::binary());
    command.args(["export", "prof", "--linked", "-o"]).arg(&linked).arg(run.profile_file());
    tools::succeed(&mut command);
    let file = std::fs::File::open(linked.join("profile_rank0.prof")).unwrap();
    let stats = pstats::load_prof(file).unwrap();
    let calls_of = |name: &str| stats.entries().iter().find(|entry| *entry.key.name == *name).map(|e| e.nc);
    assert_eq!(calls_of("read_all > read"), Some(60));
    assert_eq!(calls_of("read_all > read > store"), Some(60));
    assert_eq!(calls_of("read"), None);
    assert_eq!(profile.links.as_ref().unwrap().len(), 120);
}

/// By wall time and lane our `.prof` is the one that scope-profiler makes of the same file.
#[test]
fn tasks_have_the_prof_that_scope_profiler_makes_by_lane() {
    let Some(python) = tools::python() else { return };
    let run = tasks("tasks-by-lane", &["--pages", "40"]);
    let theirs = run.folder.join("theirs");
    let mut command = Command::new(&python);
    command.args(["-m", "scope_profiler", "export", "prof", "-o"]).arg(&theirs).arg(run.profile_file());
    tools::succeed(&mut command);
    let ours = run.folder.join("ours");
    let mut command = Command::new(subcommand::binary());
    command.args(["export", "prof", "--wall", "--by-lane", "-o"]).arg(&ours).arg(run.profile_file());
    tools::succeed(&mut command);
    let files = [&ours, &theirs].map(|folder| folder.join("profile_rank0.prof"));
    let said = tools::run_python(&python, "compare_prof.py", &[&files[0], &files[1]]);
    assert!(said.trim().parse::<usize>().is_ok_and(|entries| entries > 1), "{said}");
}

#[test]
fn totals_without_events_are_the_same() {
    let folder = empty_folder("tasks-totals");
    let mut command = subcommand::cargo_with_scope();
    command.args(["scope", "run", "--release", "--totals-only", "--example", "tasks", "-o"]).arg(&folder);
    command.args(["--", "--pages", "50", "--counts"]).current_dir(subcommand::workspace());
    let run = Run::start(&mut command, folder).expect_status(0);
    let profile = run.profile();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for path in profile.paths.as_ref().unwrap() {
        *counts.entry(&profile.names[path.region as usize]).or_default() += path.calls;
        assert!(path.self_ns >= 0 && path.wall_ns >= path.inclusive_ns, "{path:?}");
    }
    let printed = run.stdout.lines().filter_map(|line| line.strip_prefix("calls ")?.split_once(' '));
    let printed: BTreeMap<&str, u64> =
        printed.map(|(number, region)| (region, number.parse().unwrap())).collect();
    assert_eq!(counts, printed);
}

/// Tasks on eight workers, at the rate at which tokio takes them; the same counts each time.
#[test]
fn a_hundred_thousand_tasks_are_counted_twenty_times() {
    let source = r#"
use scope_runtime::scope;

#[scope]
async fn leaf(n: u64) -> u64 {
    if n.is_multiple_of(3) {
        tokio::task::yield_now().await;
    }
    n
}

#[scope]
async fn task(n: u64) -> u64 {
    leaf(n).await + leaf(n + 1).await
}

#[tokio::main(worker_threads = 8)]
async fn main() {
    let mut running = tokio::task::JoinSet::new();
    for n in 0..100_000 {
        running.spawn(task(n));
    }
    while running.join_next().await.is_some() {}
}
"#;
    let package = Package::new("async-stress", source, &[TOKIO]);
    let program = package.build();
    for _ in 0..20 {
        let folder = empty_folder("async-stress");
        tools::succeed(Command::new(&program).env("SCOPE_OUTPUT", &folder).env("SCOPE_TOTALS_ONLY", "0"));
        let recording = scope_runtime::recording::Recording::open(&folder.join("rank0.scope")).unwrap();
        let profile = recording.profile();
        let mut counts = BTreeMap::new();
        for node in profile.paths.nodes() {
            let region = profile.regions[node.region.0 as usize].name.as_str();
            counts.insert((region, node.parent.is_some()), node.calls);
            assert!(node.self_ns >= 0 && node.cancelled == 0 && node.open == 0, "{node:?}");
        }
        assert_eq!(counts, BTreeMap::from([(("leaf", true), 200_000), (("task", false), 100_000)]));
        assert_eq!((profile.lost_calls, profile.open_calls), (0, 0));
    }
}

#[test]
fn a_fork_inside_polls_leaves_each_process_its_own_calls() {
    let source = std::fs::read_to_string(tools::in_tests("programs/forks_in_polls.rs")).unwrap();
    let program = Package::new("forks-in-polls", &source, &["libc = \"0.2\""]).build();
    let folder = empty_folder("forks-in-polls-recordings");
    let mut command = Command::new(program);
    subcommand::without_traces_of_the_test(&mut command);
    tools::succeed(command.env("SCOPE_OUTPUT", &folder));
    let mut paths = Vec::new();
    for file in tests::outputs::files_below(&folder) {
        let recording = scope_runtime::recording::Recording::open(&file).unwrap();
        assert_eq!((recording.info().sealed, recording.info().damaged), (true, 0), "{}", file.display());
        let profile = recording.profile();
        let nodes = profile.paths.nodes();
        let name =
            |region: scope_runtime::profile::RegionId| profile.regions[region.0 as usize].name.as_str();
        let path = |node: &scope_runtime::totals::PathTotals| {
            let above = node.parent.map_or("", |parent| name(nodes[parent.0 as usize].region));
            format!("{above}/{} {}", name(node.region), node.calls)
        };
        paths.push(nodes.iter().map(path).collect::<Vec<_>>());
    }
    paths.sort();
    // What the child ends of its parent's calls is not its own; what it calls in them has nothing around it.
    let of_child = ["/in_child 1", "in_child/after 1", "/after 2"];
    let of_parent = ["/outer 1", "outer/inner 1", "inner/after 1", "outer/after 1"];
    assert_eq!(paths, [of_child.to_vec(), of_parent.to_vec()]);
}
