//! However a program ends, its outputs hold every call that it finished: one row per ending, each a
//! process of `tests/programs/endings.rs` under `cargo scope run`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use cargo_scope::hdf5;
use cargo_scope::merged::{MergedProfile, MetadataValue};
use cargo_scope::program::Ending::{self, Signal, Status};
use scope_runtime::pstats;
use scope_runtime::recording::Recording;
use tests::outputs::{Run, files_below, integer};
use tests::package::{Package, empty_folder};
use tests::tools;

const THREADS: usize = 4;
const CALLS: u64 = 200_000;

struct Row {
    name: &'static str,
    /// How the program ends, and `cargo scope run` with it.
    ending: Ending,
    /// What stderr tells.
    says: &'static [&'static str],
    check: fn(&Package, &Row),
}

const fn row(
    name: &'static str,
    ending: Ending,
    says: &'static [&'static str],
    check: fn(&Package, &Row),
) -> Row {
    Row { name, ending, says, check }
}

/// What is told where the program could not end its recording.
const CUT: &[&str] = &["before it ended its recording", "finished calls were recovered", "`run`, `worker`"];
const NOT_ENDED: &[&str] = &["did not end its recording", "finished calls were recovered", "`run`, `worker`"];
const OPEN: &[&str] = &["5 calls were still open at the end, and cut there: `run`, `worker`"];

const ROWS: &[Row] = &[
    row("return", Status(0), &[], all_ended),
    row("error", Status(1), &["no such luck"], all_ended),
    row("panic-main", Status(101), &["on purpose"], all_ended),
    row("panic-thread", Status(0), &["on purpose"], all_ended),
    row("panic-abort", Signal(libc::SIGABRT), CUT, all_but_open),
    row("exit", Status(7), OPEN, all_but_open),
    row("abort", Signal(libc::SIGABRT), CUT, all_but_open),
    row("sigint", Signal(libc::SIGINT), CUT, as_counted),
    row("sigterm", Signal(libc::SIGTERM), CUT, as_counted),
    row("sigkill", Signal(libc::SIGKILL), CUT, as_counted),
    row("sigsegv", Signal(libc::SIGSEGV), CUT, all_but_open),
    row("stack-overflow", Signal(libc::SIGABRT), &["overflowed its stack", "`deeper`"], stack_overflow),
    row("memory-limit", Signal(libc::SIGABRT), CUT, all_but_open),
    row("oom-kill", Signal(libc::SIGKILL), CUT, oom_kill),
    row("threads-running", Status(0), &["still open at the end"], as_counted),
    row(
        "detached-thread",
        Status(0),
        &["1 call was still open at the end, and cut there: `detached`"],
        detached,
    ),
    row("thread-local", Status(0), &[], |program, row| with_others(program, row, "closing", 4)),
    row("at-exit", Status(0), &[], |program, row| with_others(program, row, "late", 2)),
    row("fork", Status(0), &["a further process"], with_child),
    row("starts-itself", Status(0), &["a further process"], with_child),
    row("starts-itself-first", Status(0), &["a further process", "rank0.scope"], with_child),
    row("descriptors-closed", Status(0), &[], all_ended),
    row("exec", Status(5), NOT_ENDED, all_but_open),
    row("file-size-limit", Status(0), &["File too large", "the timeline ends"], totals_only),
    row("disk-full", Status(0), &["No space left on device", "totals only"], disk_full),
    row(
        "not-writable",
        Status(0),
        &["failed to make a recording in", "this run is not recorded"],
        nothing_recorded,
    ),
    row("folder-removed", Status(0), &["was removed", "calls in it are lost"], folder_removed),
    row("two-at-once", Status(0), &[], two_at_once),
];

#[test]
fn every_finished_call_is_there_however_the_program_ends() {
    let source = fs::read_to_string(tools::in_tests("programs/endings.rs")).unwrap();
    let program = Package::new("endings", &source, &["libc = \"0.2\""]);
    let chosen = std::env::var("SCOPE_TEST_ENDING").ok();
    let rows = ROWS.iter().filter(|row| chosen.as_ref().is_none_or(|name| name == row.name));
    let rows = Mutex::new(rows);
    let failures = Mutex::new(String::new());
    let work = || {
        while let Some(row) = { rows.lock().unwrap().next() } {
            if let Err(problem) = catch_unwind(AssertUnwindSafe(|| (row.check)(&program, row))) {
                let text = problem.downcast_ref::<String>().map_or("", String::as_str);
                write!(failures.lock().unwrap(), "\n--- {}: {text}", row.name).unwrap();
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{failures}");
}

/// One row's process after its end.
struct Ran {
    run: Run,
    /// Calls that the program has counted, by thread, and the depth of its recursion.
    counted: Vec<u64>,
}

/// `cargo scope run` of a row's program, with its outputs in `folder`.
fn command(program: &Package, name: &str, folder: &Path, tally: &Path) -> Command {
    let mut command = program.cargo_scope(&["run", "-o"]);
    command.arg(folder);
    if name == "panic-abort" {
        let profile = ["profile.abort.inherits='dev'", "profile.abort.panic='abort'"];
        command.args(profile.iter().flat_map(|setting| ["--config", setting])).args(["--profile", "abort"]);
    }
    fs::write(tally, [0; 4096]).unwrap();
    command.args(["--", name]).env("ENDINGS_TALLY", tally);
    command
}

fn start(program: &Package, name: &str, folder: &Path, adapt: impl FnOnce(&mut Command)) -> Ran {
    let tally = empty_folder(&format!("endings-{name}.tally"));
    let mut command = command(program, name, folder, &tally);
    adapt(&mut command);
    let run = Run::start(&mut command, folder.to_path_buf());
    let bytes = fs::read(&tally).unwrap();
    let counted = bytes.as_chunks().0.iter().map(|count| u64::from_le_bytes(*count));
    Ran { run, counted: counted.take(THREADS + 1).collect() }
}

impl Row {
    fn folder(&self) -> PathBuf {
        empty_folder(&format!("endings-{}", self.name))
    }

    /// Runs the program, and checks its ending and what stderr tells.
    fn start(&self, program: &Package) -> Ran {
        self.start_in(program, &self.folder())
    }

    fn start_in(&self, program: &Package, folder: &Path) -> Ran {
        let ran = start(program, self.name, folder, |_| ());
        self.check_end(&ran.run, self.ending);
        ran
    }

    fn check_end(&self, run: &Run, ending: Ending) {
        assert_eq!(Ending::from(run.status), ending, "{}", run.stderr);
        for text in self.says {
            assert!(run.stderr.contains(text), "no `{text}` in\n{}", run.stderr);
        }
    }
}

/// Calls of each region.
type Counts<'a> = BTreeMap<&'a str, u64>;

/// The calls of the threads are all there, and `open` calls were cut; gives the others.
fn check_calls<'a>(ran: &Ran, profile: &'a MergedProfile, open: i64) -> Counts<'a> {
    let stderr = &ran.run.stderr;
    for (thread, calls) in calls_by_thread(profile) {
        assert_eq!(calls, CALLS, "{thread}\n{stderr}");
    }
    assert_eq!(integer(profile, "open_calls"), open, "{stderr}");
    check_whole(ran, profile)
}

/// Outputs agree with each other, nothing is lost, and what is open was cut last on its thread;
/// gives the calls besides those of the threads.
fn check_whole<'a>(ran: &Ran, profile: &'a MergedProfile) -> Counts<'a> {
    assert_eq!(integer(profile, "lost_calls"), 0, "{}", ran.run.stderr);
    assert_eq!(calls_by_thread(profile).len(), THREADS);
    let mut counts = counts(profile);
    let prof = fs::File::open(ran.run.prof_file()).unwrap();
    let prof = pstats::load_prof(prof).unwrap_or_else(|error| panic!("{error}"));
    let named = prof.entries().iter().find(|entry| &*entry.key.name == "worker > call").unwrap();
    assert_eq!(named.nc as u64, counts["call"]);
    assert!(ran.run.flame_graph().trim_end().ends_with("</svg>"));
    counts.remove("call");
    counts
}

fn counts(profile: &MergedProfile) -> Counts<'_> {
    let rows = profile.rows.iter();
    rows.map(|row| (profile.names[row.region as usize].as_str(), row.events.len() as u64)).collect()
}

/// Number of `call` on each thread, by its name.
fn calls_by_thread(profile: &MergedProfile) -> BTreeMap<String, u64> {
    let threads = profile.threads.as_ref().unwrap();
    let name = |index: i64| threads.iter().find(|thread| thread.index == index).unwrap().name.clone();
    let mut by_index = BTreeMap::new();
    let rows = profile.rows.iter().filter(|row| profile.names[row.region as usize] == "call");
    let ids = profile.events.thread_ids.as_ref().unwrap();
    rows.flat_map(|row| &ids[row.events.clone()]).for_each(|&id| *by_index.entry(id).or_default() += 1);
    by_index.into_iter().map(|(index, calls)| (name(index), calls)).collect()
}

fn all_ended(program: &Package, row: &Row) {
    let ran = row.start(program);
    let profile = ran.run.profile();
    assert_eq!(check_calls(&ran, &profile, 0), BTreeMap::from([("run", 1), ("worker", 4)]));
}

fn all_but_open(program: &Package, row: &Row) {
    check_all_but_open(&row.start(program));
}

fn check_all_but_open(ran: &Ran) {
    let profile = ran.run.profile();
    assert_eq!(check_calls(ran, &profile, 5), BTreeMap::from([("run", 1), ("worker", 4)]));
    check_cut(&profile, &["run", "worker"]);
}

/// The regions are named as open, and their calls end when recording did.
fn check_cut(profile: &MergedProfile, regions: &[&str]) {
    let named = regions.iter().map(|name| name.to_string()).collect();
    assert_eq!(profile.metadata_value("open_regions"), Some(&MetadataValue::List(named)));
    let events = &profile.events;
    let end = |event: usize| events.start_ns[event] + events.duration_ns[event];
    let last_ns = (0..events.start_ns.len()).map(end).max();
    for row in profile.rows.iter().filter(|row| regions.contains(&&*profile.names[row.region as usize])) {
        assert!(row.events.clone().all(|event| Some(end(event)) == last_ns));
    }
}

/// Killed while the threads make calls: each has finished what it has counted, or one more call.
fn as_counted(program: &Package, row: &Row) {
    let ran = row.start(program);
    let profile = ran.run.profile();
    let others = check_whole(&ran, &profile);
    for (thread, calls) in calls_by_thread(&profile) {
        let number: usize = thread.strip_prefix("worker ").unwrap().parse().unwrap();
        let counted = ran.counted[number];
        assert!(
            counted >= CALLS / 2 && (counted..=counted + 1).contains(&calls),
            "{thread}: {counted}, {calls}"
        );
    }
    assert_eq!(others, BTreeMap::from([("run", 1), ("worker", 4)]));
    let open = integer(&profile, "open_calls") as usize;
    // At the normal end of a program `run` is over when its threads are not.
    let least = if row.ending == Status(0) { THREADS } else { THREADS + 1 };
    assert!((least..=least + THREADS).contains(&open), "{open} open calls");
}

fn stack_overflow(program: &Package, row: &Row) {
    let ran = row.start(program);
    let profile = ran.run.profile();
    let entered = counts(&profile)["deeper"];
    let counted = ran.counted[THREADS];
    assert!((counted..=counted + 1).contains(&entered), "{counted}, {entered}");
    let others = check_calls(&ran, &profile, 5 + entered as i64);
    assert_eq!(others, BTreeMap::from([("deeper", entered), ("run", 1), ("worker", 4)]));
}

/// The kernel ends a process that needs more memory than its control group may have.
fn oom_kill(program: &Package, row: &Row) {
    let Some(group) = MemoryGroup::with_limit(256 << 20) else {
        eprintln!("left out: {} needs a control group that can be written to", row.name);
        return;
    };
    let ran = start(program, row.name, &row.folder(), |command| {
        command.env("ENDINGS_CGROUP", group.path.join("cgroup.procs"));
    });
    row.check_end(&ran.run, row.ending);
    check_all_but_open(&ran);
}

/// A control group of version 2 or 1, until the value is dropped.
struct MemoryGroup {
    path: PathBuf,
}

impl MemoryGroup {
    fn with_limit(bytes: u64) -> Option<MemoryGroup> {
        let name = format!("scope-endings-{}", std::process::id());
        let versions = [
            ("/sys/fs/cgroup", "memory.max", "memory.swap.max", 0),
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes),
        ];
        versions.into_iter().find_map(|(root, limit, limit_with_swap, with_swap)| {
            let path = Path::new(root).join(&name);
            fs::create_dir(&path).ok()?;
            let group = MemoryGroup { path };
            // The kernel makes the files of a group. Where there are none, this is a plain folder, and
            // nothing would keep the program from using up the memory of the machine.
            let set = |file: &str, value: u64| {
                let mut file = fs::File::options().write(true).open(group.path.join(file))?;
                file.write_all(value.to_string().as_bytes())
            };
            set(limit, bytes).ok()?;
            let _ = set(limit_with_swap, with_swap);
            Some(group)
        })
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

fn detached(program: &Package, row: &Row) {
    let ran = row.start(program);
    let profile = ran.run.profile();
    let expected = BTreeMap::from([("detached", 1), ("run", 1), ("worker", 4)]);
    assert_eq!(check_calls(&ran, &profile, 1), expected);
    check_cut(&profile, &["detached"]);
}

fn with_others(program: &Package, row: &Row, region: &str, calls: u64) {
    let ran = row.start(program);
    let profile = ran.run.profile();
    let expected = BTreeMap::from([(region, calls), ("run", 1), ("worker", 4)]);
    assert_eq!(check_calls(&ran, &profile, 0), expected);
}

/// A second process has a recording of its own, which is named and kept.
fn with_child(program: &Package, row: &Row) {
    let ran = row.start(program);
    let profile = ran.run.profile();
    let expected = BTreeMap::from([("in_parent", 1_000), ("run", 1), ("worker", 4)]);
    assert_eq!(check_calls(&ran, &profile, 0), expected);
    let mut others = files_below(&ran.run.folder);
    others.retain(|file| file.extension().is_some_and(|end| end == "scope"));
    let child_was_first = row.name == "starts-itself-first";
    others.retain(|file| file.ends_with("rank0.scope") == child_was_first);
    let [child] = &others[..] else { panic!("{others:?}") };
    assert!(ran.run.stderr.contains(child.file_name().unwrap().to_str().unwrap()), "{}", ran.run.stderr);
    let child = Recording::open(child).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<_> = child.profile().regions.iter().map(|region| region.name.as_str()).collect();
    let calls: Vec<_> = child.profile().paths.nodes().iter().map(|path| path.calls).collect();
    assert_eq!((names, calls, child.info().sealed), (vec!["in_child"], vec![1_000], true));
}

/// Totals of the calls that threads have finished, where no more events could be kept.
fn check_totals(profile: &MergedProfile) {
    assert_eq!(integer(profile, "lost_calls"), 0);
    assert_eq!(integer(profile, "open_calls"), 0);
    let paths = profile.paths.as_ref().expect("the timeline ends early");
    let totals: BTreeMap<_, _> =
        paths.iter().map(|path| (profile.names[path.region as usize].as_str(), path.calls)).collect();
    assert_eq!(totals, BTreeMap::from([("call", THREADS as u64 * CALLS), ("run", 1), ("worker", 4)]));
    let in_timeline = counts(profile)["call"];
    assert!((1..THREADS as u64 * CALLS).contains(&in_timeline), "{in_timeline} calls in the timeline");
}

fn totals_only(program: &Package, row: &Row) {
    let ran = row.start(program);
    check_totals(&ran.run.profile());
}

/// The disk is so full that outputs cannot be written either: those of the run before stay, and the
/// recording, which is kept, still has the totals.
fn disk_full(program: &Package, row: &Row) {
    let Some(disk) = SmallDisk::mount(row.folder()) else {
        eprintln!("left out: {} needs the right to mount a file system", row.name);
        return;
    };
    let folder = disk.path.join("out");
    let before = start(program, "few-calls", &folder, |_| ());
    assert_eq!(before.run.status.code(), Some(0), "{}", before.run.stderr);
    let present = files_below(&folder);
    let ran = start(program, "return", &folder, |_| ());
    // The program succeeded and its profile did not.
    row.check_end(&ran.run, Status(1));
    let stderr = &ran.run.stderr;
    assert!(stderr.contains("the recordings are kept in") && !stderr.contains("rust-hdf5"), "{stderr}");
    // What ran is told all the same.
    assert!(stderr.lines().any(|line| line.starts_with("call path")), "{stderr}");
    let mut left = files_below(&folder);
    left.retain(|file| file.parent() == Some(&folder));
    assert_eq!(left, present, "{stderr}");
    assert_eq!(counts(&before.run.profile()), BTreeMap::from([("in_child", 1_000)]));
    let elsewhere = empty_folder("endings-disk-full-elsewhere");
    let mut collect = program.cargo_scope(&["collect"]);
    tools::succeed(collect.arg(folder.join("recordings")).arg("-o").arg(&elsewhere));
    check_totals(&hdf5::read(&elsewhere.join("profile.h5")).unwrap());
}

/// A file system in memory, until the value is dropped.
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    fn mount(path: PathBuf) -> Option<SmallDisk> {
        fs::create_dir_all(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(&path);
        tools::output(&mut mount).status.success().then_some(SmallDisk { path })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.path).status();
    }
}

fn nothing_recorded(program: &Package, row: &Row) {
    let folder = row.folder();
    let before = start(program, "few-calls", &folder, |_| ());
    let ran = start(program, row.name, &folder, |_| ());
    row.check_end(&ran.run, row.ending.or_failure(true));
    assert_eq!(counts(&before.run.profile()), BTreeMap::from([("in_child", 1_000)]), "the run before stays");
}

fn folder_removed(program: &Package, row: &Row) {
    let folder = row.folder();
    let ran = start(program, row.name, &folder, |_| ());
    row.check_end(&ran.run, row.ending.or_failure(true));
    let calls = THREADS as u64 * CALLS + 5;
    let lost = format!("{calls} calls in it are lost");
    assert!(ran.run.stderr.contains(&lost), "{}", ran.run.stderr);
}

fn two_at_once(program: &Package, row: &Row) {
    let folder = row.folder();
    let runs = [1, 2].map(|number| {
        let tally = empty_folder(&format!("endings-{}-{number}.tally", row.name));
        let mut command = command(program, "return", &folder, &tally);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for run in runs {
        let output = run.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let run = Run { status: output.status, stdout: String::new(), stderr, folder: folder.clone() };
        row.check_end(&run, row.ending);
        assert!(run.stderr.contains("800,000"), "{}", run.stderr);
        let ran = Ran { run, counted: Vec::new() };
        let profile = ran.run.profile();
        assert_eq!(check_calls(&ran, &profile, 0), BTreeMap::from([("run", 1), ("worker", 4)]));
    }
    let left: Vec<_> = files_below(&folder).iter().map(|file| file.file_name().unwrap().to_owned()).collect();
    assert_eq!(left, ["flamegraph_rank0.svg", "profile.h5", "profile_rank0.prof"]);
}
