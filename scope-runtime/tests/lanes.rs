//! The totals of a long recording on several threads, against its single calls. A single test, since a
//! process has one recording.

use std::collections::HashMap;

use scope_runtime::profile::{LaneId, Profile};
use scope_runtime::recording::{Parent, Recording};
use scope_runtime::{finalize, init, scope};

#[scope]
fn leaf(n: u32) -> u32 {
    n / 2
}

#[scope]
fn other(n: u32) -> u32 {
    n + 1
}

#[scope]
fn third(n: u32) -> u32 {
    if n.is_multiple_of(5) { other(leaf(n)) } else { n }
}

/// Calls in an order that differs from thread to thread.
#[scope]
fn worker(calls: u32, seed: u32) -> u32 {
    (0..calls).map(|n| [leaf, other, third][(n * (seed + 1) / 3 % 3) as usize](n)).fold(0, u32::wrapping_add)
}

/// Calls, and sum, shortest and longest of their durations, and the sum of their own times.
type Sums = (u64, i64, i64, i64, i64);

#[test]
fn totals_are_those_of_the_calls_whatever_thread_adds_them_up() {
    const CALLS: u32 = 300_000;
    let folder = std::env::temp_dir().join(format!("scope-lanes-{}", std::process::id()));
    // SAFETY: the only thread that touches the environment is this one.
    unsafe { std::env::set_var("SCOPE_OUTPUT", &folder) };
    let session = init();
    std::thread::scope(|threads| {
        for seed in 0..3 {
            threads.spawn(move || worker(CALLS, seed));
        }
    });
    drop(session);
    let profile = finalize();
    let recording = Recording::open(&folder.join("rank0.scope")).expect("the recording is whole");
    let mut expected: HashMap<String, Sums> = HashMap::new();
    for lane in 0..profile.lanes.len() as u32 {
        add_up(&recording, LaneId(lane), &mut expected);
    }
    let found = by_path(&profile);
    assert_eq!(found, expected);
    assert_eq!(found["worker"].0, 3);
    let total: u64 = ["worker/leaf", "worker/other", "worker/third"].iter().map(|path| found[*path].0).sum();
    assert_eq!(total, u64::from(3 * CALLS));
    assert_eq!(by_path(recording.profile()), expected);
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

fn by_path(profile: &Profile) -> HashMap<String, Sums> {
    let mut names: Vec<String> = Vec::new();
    for node in profile.paths.nodes() {
        let name = &profile.regions[node.region.0 as usize].name;
        let above = node.parent.map(|parent| format!("{}/", names[parent.0 as usize]));
        names.push(above.unwrap_or_default() + name);
    }
    let sums = profile.paths.nodes().iter().map(|n| (n.calls, n.inclusive_ns, n.min_ns, n.max_ns, n.self_ns));
    names.into_iter().zip(sums).collect()
}

fn add_up(recording: &Recording, lane: LaneId, sums: &mut HashMap<String, Sums>) {
    let calls = recording.calls(lane);
    let parent = |call: usize| match calls[call].parent {
        Parent::Call(parent) => Some(parent as usize),
        _ => None,
    };
    let mut own_ns: Vec<i64> = calls.iter().map(|call| call.end_ns - call.start_ns).collect();
    let mut names: Vec<String> = Vec::with_capacity(calls.len());
    for (at, call) in calls.iter().enumerate() {
        if let Some(parent) = parent(at) {
            own_ns[parent] -= call.end_ns - call.start_ns;
        }
        let name = &recording.profile().regions[call.region.0 as usize].name;
        let above = parent(at).map(|parent| format!("{}/", names[parent]));
        names.push(above.unwrap_or_default() + name);
    }
    for ((call, name), own_ns) in calls.iter().zip(names).zip(own_ns) {
        let duration_ns = call.end_ns - call.start_ns;
        let (count, sum, min, max, own) = sums.entry(name).or_insert((0, 0, i64::MAX, 0, 0));
        (*count, *sum, *own) = (*count + 1, *sum + duration_ns, *own + own_ns);
        (*min, *max) = ((*min).min(duration_ns), (*max).max(duration_ns));
    }
}
