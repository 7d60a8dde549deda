//! What a region costs here and in other profilers of today, on the same work.
//!
//! `cargo run --release --manifest-path tests/peers/Cargo.toml` runs itself once per profiler, since each
//! wants the process for itself, and prints them in the order of their cost: the ratio to two bare
//! reads of the processor's clock around the same work, median of pairs that were measured in turn, in
//! CPU time of the thread that runs the regions and of the whole process.

mod peers;

use std::hint::black_box;
use std::process::Command;

use peers::PEERS;

/// Regions in one measurement, a few traces or frames for those that want such.
const TRACE: u64 = 1_000;
const CALLS: u64 = 100 * TRACE;
const PAIRS: usize = 15;

/// Says which of [`PEERS`] to measure.
const PEER: &str = "PEERS_NAME";

/// How a profiler records one region, and a trace of many.
pub struct Peer {
    name: &'static str,
    /// Whether what was recorded is still there when the process is killed.
    survives_a_kill: bool,
    /// Starts recording into files that begin with the path; what it gives is kept until the end.
    start: fn(&std::path::Path) -> Box<dyn std::any::Any>,
    region: fn(u64) -> u64,
    /// Runs [`TRACE`] regions.
    trace: fn(&dyn Fn()),
}

fn main() {
    if let Some(name) = std::env::var_os(PEER) {
        let peer = PEERS.iter().find(|peer| name == peer.name).expect("the name of a profiler");
        return measure(peer);
    }
    let program = std::env::current_exe().expect("a running program has a path");
    let mut rows: Vec<Row> = PEERS
        .iter()
        .map(|peer| {
            let output = Command::new(&program).env(PEER, peer.name).output().expect("it starts again");
            let text = String::from_utf8_lossy(&output.stdout);
            let row = text.lines().rev().find_map(Row::parse);
            row.unwrap_or_else(|| panic!("{} failed: {}", peer.name, String::from_utf8_lossy(&output.stderr)))
        })
        .collect();
    rows.sort_by(|one, other| one.thread.total_cmp(&other.thread));
    println!("{:<36} {:>10} {:>10} {:>12}  survives a kill", "", "thread", "process", "ns/region");
    for (row, peer) in rows.iter().map(|row| (row, PEERS.iter().find(|peer| peer.name == row.name))) {
        let survives = if peer.is_some_and(|peer| peer.survives_a_kill) { "yes" } else { "no" };
        let Row { name, thread, process, ns } = row;
        println!("{name:<36} {thread:>9.2}x {process:>9.2}x {ns:>12.1}  {survives}");
    }
}

/// What one profiler costs: ratios to two reads of the clock.
struct Row {
    name: String,
    thread: f64,
    process: f64,
    /// CPU time of the thread.
    ns: f64,
}

impl Row {
    fn parse(line: &str) -> Option<Row> {
        let mut fields = line.strip_prefix("row\t")?.split('\t');
        let name = fields.next()?.to_owned();
        let mut number = || fields.next()?.parse().ok();
        Some(Row { name, thread: number()?, process: number()?, ns: number()? })
    }
}

fn measure(peer: &Peer) {
    let folder = std::env::temp_dir().join(format!("peers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for what is recorded");
    let session = (peer.start)(&folder);
    let ours = || {
        for trace in 0..CALLS / TRACE {
            (peer.trace)(&|| repeat(trace, peer.region));
        }
    };
    let base = || (0..CALLS / TRACE).for_each(|trace| repeat(trace, two_reads));
    ours();
    let ratios = |clock: fn() -> u64| -> (Vec<f64>, Vec<f64>) {
        let pair = |_| {
            let (base, ours) = (time(clock, base), time(clock, ours));
            (ours / base, ours / CALLS as f64)
        };
        (0..PAIRS).map(pair).unzip()
    };
    let (thread, ns) = ratios(|| cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID));
    let (process, _) = ratios(|| cpu_ns(libc::CLOCK_PROCESS_CPUTIME_ID));
    drop(session);
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    println!("row\t{}\t{}\t{}\t{}", peer.name, median(thread), median(process), median(ns));
}

fn repeat(trace: u64, region: fn(u64) -> u64) {
    for n in 0..TRACE {
        black_box(region(trace + n));
    }
}

#[inline(never)]
fn two_reads(x: u64) -> u64 {
    let start = clock();
    let result = black_box(x + 1);
    black_box(clock().wrapping_sub(start));
    result
}

#[inline(always)]
fn clock() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    return cpu_ns(libc::CLOCK_MONOTONIC);
}

fn time(clock: fn() -> u64, work: impl Fn()) -> f64 {
    let start = clock();
    work();
    (clock() - start) as f64
}

fn cpu_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
