//! 100 million calls on two threads; prints what the process and its recording took, and the totals.
//!
//! See `tests/tests/memory.rs` for what must hold.

use std::fs::read_to_string;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use scope_runtime::{finalize, region, scope};

const CALLS: u64 = 50_000_000;
const THREADS: u64 = 2;

#[scope]
fn call(n: u64) -> u64 {
    black_box(n)
}

fn main() {
    static DONE: AtomicBool = AtomicBool::new(false);
    region!("start", {});
    let before = kib_of("RssAnon:");
    let watcher = thread::spawn(|| {
        let (mut anonymous, mut mapped) = (0, 0);
        while !DONE.load(Relaxed) {
            anonymous = anonymous.max(kib_of("RssAnon:"));
            mapped = mapped.max(kib_of_recording());
            thread::sleep(Duration::from_millis(5));
        }
        (anonymous, mapped)
    });
    let begun = Instant::now();
    region!("all", {
        thread::scope(|scope| (0..THREADS).for_each(|_| _ = scope.spawn(work)));
    });
    let all_ns = begun.elapsed().as_nanos();
    let profile = finalize();
    DONE.store(true, Relaxed);
    let (anonymous, mapped) = watcher.join().unwrap();
    println!("anonymous_kib {}", anonymous - before);
    println!("mapped_kib {mapped}");
    println!("around_all_ns {all_ns}");
    println!("lost {}", profile.lost_calls);
    println!("timeline_ends {}", profile.timeline_end_ns.is_some());
    for path in profile.paths.nodes() {
        let name = &profile.regions[path.region.0 as usize].name;
        println!("{name} calls {}", path.calls);
        println!("{name} inclusive_ns {}", path.inclusive_ns);
        println!("{name} self_ns {}", path.self_ns);
        println!("{name} min_ns {}", path.min_ns);
        println!("{name} max_ns {}", path.max_ns);
    }
}

/// The longest call comes last, when the limit of events was met long ago.
#[scope]
fn work() {
    for n in 0..CALLS {
        call(n);
    }
    region!("last", { thread::sleep(Duration::from_millis(20)) });
}

/// A value of `/proc/self/status`.
fn kib_of(key: &str) -> u64 {
    let status = read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Size of what is mapped from the recording.
fn kib_of_recording() -> u64 {
    let maps = read_to_string("/proc/self/maps").unwrap();
    let ours = maps.lines().filter(|line| line.ends_with("rank0.scope"));
    let size = |line: &str| {
        let (range, _) = line.split_once(' ').unwrap();
        let (from, to) = range.split_once('-').unwrap();
        u64::from_str_radix(to, 16).unwrap() - u64::from_str_radix(from, 16).unwrap()
    };
    ours.map(size).sum::<u64>() / 1024
}
