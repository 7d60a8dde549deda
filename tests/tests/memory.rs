//! What recording takes in memory and on disk, however many calls there are.

use std::collections::HashMap;
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
