//! Threads that fill chunks faster than one thread can empty them: events first, then totals, and an
//! end of recording while some go on. A single test, since a process has one recording.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use scope_runtime::{finalize, init, region, scope};

const THREADS: u64 = 6;
const CALLS: u64 = 40_000;

#[scope]
fn call(n: u64) -> u64 {
    std::hint::black_box(n)
}

#[scope]
fn work() {
    for n in 0..CALLS {
        call(n);
    }
}

#[test]
fn no_call_of_busy_threads_is_lost() {
    let folder = std::env::temp_dir().join(format!("scope-busy-{}", std::process::id()));
    // SAFETY: the only thread that touches the environment is this one.
    unsafe {
        std::env::set_var("SCOPE_OUTPUT", &folder);
        std::env::set_var("SCOPE_EVENT_LIMIT", "1MiB");
    }
    let session = init();
    thread::scope(|scope| (0..THREADS).for_each(|_| _ = scope.spawn(work)));
    let done = &AtomicBool::new(false);
    let profile = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    region!("going on", {
                        call(0);
                    });
                }
            });
        }
        while std::fs::metadata(folder.join("rank0.scope")).is_ok_and(|file| file.len() < 1 << 20) {
            thread::yield_now();
        }
        drop(session);
        done.store(true, Relaxed);
        finalize()
    });
    let calls = |name: &str| -> u64 {
        let is_named = |region: u32| profile.regions[region as usize].name == name;
        let paths = profile.paths.nodes().iter().filter(|path| is_named(path.region.0));
        paths.map(|path| path.calls).sum()
    };
    assert_eq!(calls("work"), THREADS);
    let going_on = calls("going on");
    // Recording may have ended between the two.
    assert!((THREADS * CALLS..=THREADS * CALLS + going_on).contains(&calls("call")), "{}", calls("call"));
    assert!(calls("call") + 2 >= THREADS * CALLS + going_on);
    assert_eq!((profile.lost_calls, profile.faulty_calls), (0, 0));
    assert!(profile.timeline_end_ns.is_some(), "the limit is met");
    std::fs::remove_dir_all(&folder).expect("it is ours");
}
