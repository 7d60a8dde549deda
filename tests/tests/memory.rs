//! What recording and merging take in memory and on disk, however many calls and ranks there are.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use tests::package::{Package, empty_folder};
use tests::{subcommand, tools};

const CALLS: u64 = 100_000_000;
const MIB: u64 = 1 << 20;
/// The main thread and the two that make the calls.
const LIVE_THREADS: u64 = 3;
/// What is mapped beside the pool: the header and room for totals.
const MAPPED_BESIDES_KIB: u64 = 4 + 512;

/// Numbers that the program prints, by their names.
struct Printed(HashMap<String, String>);

impl Printed {
    fn text(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.0))
    }

    fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap()
    }
}

/// Runs the program with this limit of events; gives what it prints and the size of its recording.
fn run(limit: &str) -> (Printed, u64) {
    let source = std::fs::read_to_string(tools::in_tests("programs/hundred_million_calls.rs")).unwrap();
    let package = Package::new("hundred-million-calls", &source, &[]);
    let folder = empty_folder(&format!("hundred-million-calls-{limit}"));
    let mut command = Command::new(package.build_optimised());
    subcommand::without_traces_of_the_test(&mut command);
    command.env("SCOPE_OUTPUT", &folder).env("SCOPE_EVENT_LIMIT", limit);
    let stdout = tools::succeed(&mut command);
    let lines = stdout.lines().map(|line| line.rsplit_once(' ').unwrap());
    let printed = lines.map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let size = std::fs::metadata(folder.join("rank0.scope")).unwrap().len();
    std::fs::remove_dir_all(&folder).unwrap();
    (Printed(printed), size)
}

/// The calls are all there, and their times are those of the whole run.
fn check_totals(printed: &Printed) {
    assert_eq!(printed.number("lost"), 0);
    for (name, calls) in [("start", 1), ("all", 1), ("work", 2), ("call", CALLS), ("last", 2)] {
        assert_eq!(printed.number(&format!("{name} calls")), calls, "{name}");
        let [inclusive, min, max] =
            ["inclusive_ns", "min_ns", "max_ns"].map(|what| printed.number(&format!("{name} {what}")));
        assert!(min * calls <= inclusive && inclusive <= max * calls, "{name}: {min} {inclusive} {max}");
    }
    let of = |name: &str| printed.number(name);
    let children = of("call inclusive_ns") + of("last inclusive_ns");
    assert_eq!(of("work inclusive_ns"), of("work self_ns") + children);
    for name in ["start", "all", "call", "last"] {
        assert_eq!(of(&format!("{name} inclusive_ns")), of(&format!("{name} self_ns")), "{name}");
    }
    assert!(of("last min_ns") >= 20_000_000);
    assert!(of("work max_ns") <= of("all inclusive_ns"));
    // The program's own clock around it: the same up to what the two readings take, and their rates.
    let (around, all) = (of("around_all_ns"), of("all inclusive_ns"));
    assert!(all.abs_diff(around) <= 1_000_000 + around / 1_000, "{all} ns of {around} ns");
}

fn check_memory(printed: &Printed) {
    let anonymous = printed.number("anonymous_kib") * 1024;
    assert!(anonymous <= 32 * MIB, "{anonymous} bytes of anonymous memory");
    let pool = (printed.number("mapped_kib") - MAPPED_BESIDES_KIB) * 1024;
    assert!(pool <= LIVE_THREADS * MIB, "a pool of {pool} bytes");
}

#[test]
fn a_hundred_million_calls_take_constant_memory() {
    if !tools::has_time() {
        return;
    }
    let (printed, size) = run("8GiB");
    check_totals(&printed);
    check_memory(&printed);
    assert_eq!(printed.text("timeline_ends"), "false");
    assert!(size <= 16 * CALLS, "{size} bytes");
}

#[test]
fn past_the_event_limit_totals_are_exact_to_the_end() {
    if !tools::has_time() {
        return;
    }
    let (printed, size) = run("64MiB");
    check_totals(&printed);
    check_memory(&printed);
    assert_eq!(printed.text("timeline_ends"), "true");
    // Each thread may go beyond by the chunk in its hands.
    assert!((64 * MIB..(64 + 2 + LIVE_THREADS) * MIB).contains(&size), "{size} bytes");
}

/// Most memory that the command has had, in bytes; it must succeed.
#[expect(clippy::zombie_processes, reason = "`wait4` waits for it, and tells of its memory")]
fn peak_memory(command: &mut Command) -> u64 {
    let child = command.spawn().unwrap();
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::uninit());
    // SAFETY: both places are ours, and the child is waited for here alone.
    let ended = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, usage.as_mut_ptr()) };
    assert_eq!((ended, status), (child.id() as libc::pid_t, 0), "{command:?}");
    // SAFETY: wait4 succeeded, so it has filled the place.
    let kib = unsafe { usage.assume_init() }.ru_maxrss;
    u64::try_from(kib).unwrap() * 1024
}

fn collect(recordings: &Path) -> u64 {
    let mut collect = Command::new(subcommand::binary());
    subcommand::without_traces_of_the_test(&mut collect);
    peak_memory(collect.arg("collect").arg(recordings))
}

#[test]
fn ranks_are_merged_in_memory_that_does_not_grow_with_them() {
    const CALLS_OF_A_RANK: u64 = 20_000;
    let source = std::fs::read_to_string(tools::in_tests("programs/calls_of_a_rank.rs")).unwrap();
    let program = Package::new("calls-of-a-rank", &source, &[]).build_optimised();
    let peak = |ranks: u64| {
        let folder = empty_folder(&format!("merge-{ranks}"));
        for rank in 0..ranks {
            let mut command = Command::new(&program);
            subcommand::without_traces_of_the_test(&mut command);
            command.env("PMI_RANK", rank.to_string()).env("PMI_SIZE", ranks.to_string());
            tools::succeed(command.arg(CALLS_OF_A_RANK.to_string()).env("SCOPE_OUTPUT", &folder));
        }
        let peak = collect(&folder);
        let profile = cargo_scope::hdf5::read(&folder.join("profile.h5")).unwrap();
        assert_eq!(profile.events.start_ns.len() as u64, ranks * CALLS_OF_A_RANK);
        std::fs::remove_dir_all(&folder).unwrap();
        peak
    };
    let (few, many) = (peak(8), peak(64));
    // The calls of the 56 ranks more would be 43 MiB in memory.
    assert!(many <= few + 12 * MIB, "{few} bytes for 8 ranks, {many} for 64");
}

/// A file as the Python package writes it: no totals, so that everything comes from its calls.
#[test]
fn files_are_read_in_memory_that_does_not_grow_with_their_calls() {
    const CALLS: u64 = 4_000_000;
    // The five columns alone are 153 MiB.
    const MOST: u64 = 96 * MIB;
    let Some(python) = tools::python().filter(|_| tools::has_time()) else { return };
    let folder = empty_folder("many-calls");
    std::fs::create_dir_all(&folder).unwrap();
    let (file, expected) = (folder.join("profile.h5"), folder.join("expected.json"));
    let calls = CALLS.to_string();
    tools::run_python(&python, "make_many_calls.py", &[&file, &expected, Path::new(&calls)]);
    let scope = |arguments: &[&str]| {
        let mut scope = Command::new(subcommand::binary());
        subcommand::without_traces_of_the_test(&mut scope);
        scope.args(arguments).arg(&file).current_dir(&folder);
        scope
    };
    let with_percentiles = ["inspect", "--json"];
    let json = std::fs::File::create(folder.join("inspect.json")).unwrap();
    let mut inspect = scope(&with_percentiles[..1]);
    let peaks = [
        peak_memory(inspect.stdout(std::process::Stdio::null())),
        peak_memory(scope(&with_percentiles).stdout(json)),
        peak_memory(&mut scope(&["export", "prof"])),
        peak_memory(&mut scope(&["export", "flame"])),
    ];
    assert!(peaks.iter().all(|peak| *peak <= MOST), "{peaks:?} bytes");
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
    };
    let (found, expected) = (read("inspect.json"), read("expected.json"));
    let rows = found[0]["call_paths"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, expected) in rows.iter().zip(expected.as_array().unwrap()) {
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&row[key], value, "{key} of {row}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
