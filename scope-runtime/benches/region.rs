//! What a region costs, as a ratio to two bare clock reads around the same work.
//!
//! `cargo bench -p scope-runtime --bench region` runs itself once per way of recording. Every row
//! is the median of the ratios of pairs that were measured in turn, in CPU time of the thread that
//! runs the regions (of the whole process where the row says so).

#[path = "common/tree8.rs"]
mod tree8;

use std::cell::RefCell;
use std::hint::black_box;
use std::pin::Pin;
use std::process::Command;
use std::sync::Barrier;
use std::task::{Context, Poll, Waker};

use scope_runtime::{Guard, ScopeFuture, Site, scope};

/// Calls in one measurement, and pairs of measurements.
const CALLS: u64 = 400_000;
const PAIRS: usize = 25;

fn main() {
    match std::env::var("REGION_BENCH").as_deref() {
        Ok("events") => measure_events(),
        Ok("totals") => measure_totals(),
        Ok("finalize 1") => measure_finalize(1),
        Ok("finalize 8") => measure_finalize(8),
        Ok("off") => measure_off(),
        _ => run_all(),
    }
}

/// Runs this program once per way of recording; the rows come from there.
fn run_all() {
    println!("{:<58} {:>8} {:>12}", "", "ratio", "ns/region");
    let folder = std::env::temp_dir().join(format!("region-bench-{}", std::process::id()));
    let output = ("SCOPE_OUTPUT", folder.as_os_str());
    let no_limit = ("SCOPE_EVENT_LIMIT", "64GiB".as_ref());
    for (mode, variables) in [
        ("events", vec![output, no_limit]),
        ("totals", vec![output, ("SCOPE_TOTALS_ONLY", "1".as_ref())]),
        ("off", vec![]),
        ("finalize 1", vec![output, no_limit]),
        ("finalize 8", vec![output, no_limit]),
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
    nested("recorded, 8 levels nested");
    row(
        "recorded, a block with a literal name",
        CALLS,
        thread_cpu_ns,
        || repeat(two_reads),
        || repeat(block),
    );
    polls("a poll of an async region");
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

/// Polls of one async call, against polls with two clock reads in them.
fn polls(name: &str) {
    let bare: RefCell<Polled> = RefCell::new(Box::pin(Busy { reads: true }));
    let ours: RefCell<Polled> = RefCell::new(Box::pin(Busy { reads: false }.in_region("polled")));
    let poll = |future: &RefCell<Polled>| {
        let mut future = future.borrow_mut();
        let mut context = Context::from_waker(Waker::noop());
        (0..CALLS).for_each(|_| {
            black_box(future.as_mut().poll(&mut context).is_ready());
        });
    };
    row(name, CALLS, thread_cpu_ns, || poll(&bare), || poll(&ours));
}

type Polled = Pin<Box<dyn Future<Output = ()>>>;

/// Never done.
struct Busy {
    reads: bool,
}

impl Future for Busy {
    type Output = ();

    #[inline(never)]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        black_box(if self.reads { two_reads(1) } else { bare(1) });
        Poll::Pending
    }
}

/// Eight regions inside each other.
fn nested(name: &str) {
    let nests = CALLS / 8;
    row(
        name,
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
}

/// Totals only, in CPU time of the thread, which adds up its chunks itself.
fn measure_totals() {
    let bare = [two_reads as fn(u64) -> u64; 8];
    let rows = [
        ("totals only, one child", [recorded as fn(u64) -> u64; 8]),
        (
            "totals only, two alternating children",
            [first, second, first, second, first, second, first, second],
        ),
        ("totals only, eight siblings", [first, second, third, fourth, fifth, sixth, seventh, eighth]),
    ];
    for (name, children) in rows {
        row(name, CALLS, thread_cpu_ns, || in_turn(&bare), || parent(&children));
    }
    nested("totals only, 8 levels nested");
}

#[scope]
fn parent(children: &[fn(u64) -> u64; 8]) {
    in_turn(children);
}

fn in_turn(children: &[fn(u64) -> u64; 8]) {
    for n in 0..CALLS / 8 {
        for child in children {
            black_box(child(n));
        }
    }
}

macro_rules! siblings {
    ($($name:ident)*) => { $(
        #[scope]
        #[inline(never)]
        fn $name(x: u64) -> u64 {
            black_box(x + 1)
        }
    )* };
}

siblings!(first second third fourth fifth sixth seventh eighth);

/// What it costs to make a profile of 10 million calls, beside what recording them cost.
fn measure_finalize(lanes: u64) {
    const TREE_CALLS: u64 = 10_000_000;
    let per_call = |ns: u64| ns as f64 / TREE_CALLS as f64;
    let recording = time(process_cpu_ns, || {
        std::thread::scope(|threads| {
            for lane in 0..lanes {
                threads.spawn(move || record_tree((TREE_CALLS / lanes) as usize, lane));
            }
        });
    });
    let start = process_cpu_ns();
    let profile = scope_runtime::finalize();
    let finalize = process_cpu_ns() - start;
    let calls: u64 = profile.paths.nodes().iter().map(|node| node.calls).sum();
    assert_eq!(calls, TREE_CALLS, "all calls are in the profile");
    let title = format!("tree8 on {lanes} lane(s), recording, whole process");
    println!("{title:<58} {:>8} {:>12.1}", "", recording / TREE_CALLS as f64);
    println!("{:<58} {:>8} {:>12.1}", "  finalize, per call", "", per_call(finalize));
}

fn record_tree(calls: usize, seed: u64) {
    struct Guards(Vec<Guard>);
    impl tree8::Walker for Guards {
        fn enter(&mut self, region: u32, _time: i64) {
            self.0.push(SITES[region as usize].enter());
        }
        fn leave(&mut self, _time: i64) {
            drop(self.0.pop());
        }
    }
    tree8::walk(calls, seed, &mut Guards(Vec::with_capacity(16)));
}

macro_rules! sites {
    ($($name:literal)*) => { [$(Site::named($name, "", "tree8", $name.len() as u32)),*] };
}

/// One for each region of the workload, as the macros make them.
static SITES: [Site; tree8::REGIONS] = sites!(
    "0" "1" "2" "3" "4" "5" "6" "7" "8" "9" "10" "11" "12" "13" "14" "15" "16" "17" "18" "19" "20" "21" "22" "23"
    "24" "25" "26" "27" "28" "29" "30" "31" "32" "33" "34" "35" "36" "37" "38" "39" "40" "41" "42" "43" "44" "45"
    "46" "47" "48" "49" "50" "51" "52" "53"
);

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
