//! What a region costs, as a ratio to two bare clock reads around the same work.
//!
//! `cargo bench -p scope-runtime --bench region` runs itself once per way of recording. Every row
//! is the median of the ratios of pairs that were measured in turn, in CPU time of the thread that
//! runs the regions (of the whole process where the row says so).

use std::hint::black_box;
use std::process::Command;
use std::sync::Barrier;

use scope_runtime::scope;

/// Calls in one measurement, and pairs of measurements.
const CALLS: u64 = 400_000;
const PAIRS: usize = 25;

fn main() {
    match std::env::var("REGION_BENCH").as_deref() {
        Ok("events") => measure_events(),
        Ok("off") => measure_off(),
        _ => run_all(),
    }
}

/// Runs this program once per way of recording; the rows come from there.
fn run_all() {
    println!("{:<58} {:>8} {:>12}", "", "ratio", "ns/region");
    let folder = std::env::temp_dir().join(format!("region-bench-{}", std::process::id()));
    for (mode, variables) in [
        ("events", vec![("SCOPE_OUTPUT", folder.as_os_str()), ("SCOPE_EVENT_LIMIT", "64GiB".as_ref())]),
        ("off", vec![]),
    ] {
        let program = std::env::current_exe().expect("a running program has a path");
        let mut command = Command::new(program);
        command.env("REGION_BENCH", mode).env_remove("SCOPE_OUTPUT").envs(variables);
        assert!(command.status().expect("the benchmark starts again").success());
        let _ = std::fs::remove_dir_all(&folder);
    }
}

fn measure_events() {
    row("recorded, one thread", CALLS, thread_cpu_ns, || repeat(two_reads), || repeat(recorded));
    let nests = CALLS / 8;
    row(
        "recorded, 8 levels nested",
        nests * 8,
        thread_cpu_ns,
        || {
            (0..nests).for_each(|n| {
                black_box(two_reads_nested(n, 8));
            })
        },
        || {
            (0..nests).for_each(|n| {
                black_box(recorded_nested(n, 8));
            })
        },
    );
    row(
        "recorded, a block with a literal name",
        CALLS,
        thread_cpu_ns,
        || repeat(two_reads),
        || repeat(block),
    );
    // The thread measures itself: what the drainer does beside it is in the next row.
    two_threads("recorded, two threads at once, each");
    row(
        "recorded, whole process with the draining",
        CALLS * 2,
        process_cpu_ns,
        || on_two_threads(|| repeat(two_reads)),
        || on_two_threads(|| repeat(recorded)),
    );
}

fn measure_off() {
    let bare = median((0..PAIRS).map(|_| time(thread_cpu_ns, || repeat(bare))).collect());
    let off = median((0..PAIRS).map(|_| time(thread_cpu_ns, || repeat(recorded))).collect());
    let added = (off - bare) / CALLS as f64;
    println!("{:<58} {:>8} {added:>12.2}", "off, more than the bare call", "");
}

#[inline(never)]
fn bare(x: u64) -> u64 {
    black_box(x + 1)
}

#[inline(never)]
fn two_reads(x: u64) -> u64 {
    let start = clock();
    let result = black_box(x + 1);
    black_box(clock().wrapping_sub(start));
    result
}

#[scope]
#[inline(never)]
fn recorded(x: u64) -> u64 {
    black_box(x + 1)
}

#[inline(never)]
fn block(x: u64) -> u64 {
    scope_runtime::region!("block", { black_box(x + 1) })
}

#[inline(never)]
fn two_reads_nested(x: u64, levels: u32) -> u64 {
    let start = clock();
    let result = if levels == 1 { black_box(x + 1) } else { two_reads_nested(x, levels - 1) + 1 };
    black_box(clock().wrapping_sub(start));
    result
}

#[scope]
#[inline(never)]
fn recorded_nested(x: u64, levels: u32) -> u64 {
    if levels == 1 { black_box(x + 1) } else { recorded_nested(x, levels - 1) + 1 }
}

#[inline(always)]
fn clock() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    return thread_cpu_ns();
}

fn repeat(call: impl Fn(u64) -> u64) {
    for n in 0..CALLS {
        black_box(call(n));
    }
}

fn on_two_threads(work: impl Fn() + Sync) {
    let start = Barrier::new(2);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                start.wait();
                work();
            });
        }
    });
}

/// Both threads do the same at the same time; each row entry is one thread's ratio.
fn two_threads(name: &str) {
    let ratios = std::sync::Mutex::new(Vec::new());
    let times = std::sync::Mutex::new(Vec::new());
    on_two_threads(|| {
        for _ in 0..PAIRS {
            let base = time(thread_cpu_ns, || repeat(two_reads));
            let ours = time(thread_cpu_ns, || repeat(recorded));
            ratios.lock().expect("nobody panics").push(ours / base);
            times.lock().expect("nobody panics").push(ours / CALLS as f64);
        }
    });
    let take = |list: std::sync::Mutex<Vec<f64>>| median(list.into_inner().expect("nobody panics"));
    print_row(name, take(ratios), take(times));
}

fn row(name: &str, regions: u64, clock: fn() -> u64, base: impl Fn(), ours: impl Fn()) {
    let mut ratios = Vec::new();
    let mut times = Vec::new();
    ours();
    for _ in 0..PAIRS {
        let (base, ours) = (time(clock, &base), time(clock, &ours));
        ratios.push(ours / base);
        times.push(ours / regions as f64);
    }
    print_row(name, median(ratios), median(times));
}

fn print_row(name: &str, ratio: f64, ns: f64) {
    println!("{name:<58} {ratio:>8.3} {ns:>12.1}");
}

fn time(clock: fn() -> u64, work: impl Fn()) -> f64 {
    let start = clock();
    work();
    (clock() - start) as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn thread_cpu_ns() -> u64 {
    cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn process_cpu_ns() -> u64 {
    cpu_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn cpu_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
