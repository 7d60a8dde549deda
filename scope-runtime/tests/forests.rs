//! Random forests of calls: what is reconstructed is what was made. 10,000 of each in CI.

use proptest::prelude::*;
use scope_runtime::call_stack::{
    BadLanes, CallArrays, Mode, RegionCalls, build_call_arrays, build_good_lanes, call_stack_children,
    call_stack_roots, lane_number,
};
use scope_runtime::pstats::{PstatsOptions, build_pstats_dict, load_prof, pstats_from_paths, write_prof};
use scope_runtime::totals::PathTree;

fn config() -> ProptestConfig {
    let cases = if std::env::var_os("CI").is_some() { 10_000 } else { 250 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// One call of a forest, in order of entry.
#[derive(Clone, Debug)]
struct Made {
    region: usize,
    thread: i64,
    parent: Option<usize>,
    start: i64,
    end: i64,
}

/// Calls made by steps of (close so many, region, ns until the next); every ns is used at most once
/// per lane, so that there is one tree only.
fn forest() -> impl Strategy<Value = Vec<Made>> {
    let step = (0..4_usize, 0..5_usize, 1..50_i64);
    let lane = prop::collection::vec(step, 0..40);
    (prop::collection::vec(lane, 1..5), prop::sample::select(vec![0, -(1 << 40), (1 << 62) - 700])).prop_map(
        |(lanes, origin)| {
            let mut calls = Vec::new();
            for (thread, steps) in lanes.into_iter().enumerate() {
                make_lane(&mut calls, thread as i64 - 1, steps, origin);
            }
            calls
        },
    )
}

fn make_lane(calls: &mut Vec<Made>, thread: i64, steps: Vec<(usize, usize, i64)>, origin: i64) {
    let (mut time, mut open) = (origin, Vec::<usize>::new());
    for (close, region, wait) in steps {
        for _ in 0..close.min(open.len()) {
            time += 1;
            calls[open.pop().unwrap()].end = time;
        }
        time += wait;
        open.push(calls.len());
        let parent = open.iter().rev().nth(1).copied();
        calls.push(Made { region, thread, parent, start: time, end: 0 });
    }
    for call in open.into_iter().rev() {
        time += 1;
        calls[call].end = time;
    }
}

/// Columns per region, calls in a shuffled order, and where each call of the forest went.
#[derive(Default)]
struct Stored {
    starts: Vec<i64>,
    ends: Vec<i64>,
    threads: Vec<i64>,
    ids: Vec<i64>,
    parents: Vec<i64>,
    made: Vec<usize>,
}

const NAMES: [&str; 5] = ["a", "b > c", "c", "d", "a"];

fn store(calls: &[Made], order: &[usize]) -> Vec<Stored> {
    let mut stored: Vec<Stored> = NAMES.iter().map(|_| Stored::default()).collect();
    for &made in order {
        let call = &calls[made];
        let region = &mut stored[call.region];
        region.starts.push(call.start);
        region.ends.push(call.end);
        region.threads.push(call.thread);
        region.ids.push(3 * made as i64);
        region.parents.push(call.parent.map_or(-1, |parent| 3 * parent as i64));
        region.made.push(made);
    }
    stored
}

fn columns(stored: &[Stored], ids: bool) -> Vec<RegionCalls<'_>> {
    let regions = NAMES.iter().zip(stored).map(|(name, stored)| RegionCalls {
        thread_ids: Some(&stored.threads),
        call_ids: ids.then_some(&stored.ids),
        parent_ids: ids.then_some(&stored.parents),
        ..RegionCalls::new(name, &stored.starts, &stored.ends)
    });
    regions.collect()
}

/// The call of the forest that call `id` is.
fn made(calls: &CallArrays, stored: &[Stored], id: usize) -> usize {
    stored[calls.region_index.get(id)].made[calls.call_index[id] as usize]
}

fn shuffled_forest() -> impl Strategy<Value = (Vec<Made>, Vec<usize>)> {
    forest().prop_flat_map(|calls| {
        let order: Vec<usize> = (0..calls.len()).collect();
        (Just(calls), prop_oneof![Just(order.clone()).boxed(), Just(order).prop_shuffle().boxed()])
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn reconstruction_gives_back_the_tree((forest, order) in shuffled_forest(), ids: bool) {
        let stored = store(&forest, &order);
        let calls = build_call_arrays(&columns(&stored, ids), Mode::Default).unwrap();
        prop_assert_eq!(calls.len(), forest.len());
        for id in 0..calls.len() {
            let call = &forest[made(&calls, &stored, id)];
            let parent = calls.parent_of(id).map(|parent| made(&calls, &stored, parent));
            prop_assert_eq!(parent, call.parent);
            prop_assert_eq!((calls.start_ns[id], calls.end_ns[id]), (call.start, call.end));
            prop_assert_eq!(calls.lane(id), Some(lane_number(call.thread, -1)));
            let depth = calls.parent_of(id).map_or(0, |parent| calls.depth[parent] + 1);
            prop_assert_eq!(calls.depth[id], depth);
        }
    }

    #[test]
    fn inclusive_is_self_and_children((forest, order) in shuffled_forest()) {
        let stored = store(&forest, &order);
        let calls = build_call_arrays(&columns(&stored, false), Mode::Default).unwrap();
        let children = call_stack_children(&calls);
        for id in 0..calls.len() {
            let inside: i64 = children.of(id).iter().map(|child| calls.duration_ns(*child as usize)).sum();
            prop_assert_eq!(calls.duration_ns(id), calls.exclusive_ns[id] + inside);
        }
        let tree = PathTree::from_calls(&calls);
        let own: i64 = tree.nodes().iter().map(|node| node.self_ns).sum();
        let tops: i64 = call_stack_roots(&calls).map(|id| calls.duration_ns(id)).sum();
        prop_assert_eq!(own, tops);
        for total in tree.region_totals() {
            prop_assert!(total.self_ns <= total.inclusive_ns && total.primitive_calls <= total.calls);
        }
    }

    #[test]
    fn split_and_merge_are_inverse((forest, order) in shuffled_forest()) {
        let stored = store(&forest, &order);
        let calls = build_call_arrays(&columns(&stored, false), Mode::Default).unwrap();
        let parts = calls.split_by_lane();
        prop_assert_eq!(parts.iter().map(|(_, part)| part.len()).sum::<usize>(), calls.len());
        if !calls.is_empty() {
            prop_assert_eq!(CallArrays::merge_lanes(&parts), Some(calls));
        }
    }

    #[test]
    fn hidden_regions_leave_what_never_was_recorded((forest, order) in shuffled_forest(), hidden in 0..5_usize) {
        let stored = store(&forest, &order);
        let all = columns(&stored, false);
        let kept: Vec<RegionCalls<'_>> =
            all.iter().enumerate().filter(|(at, _)| *at != hidden).map(|(_, region)| *region).collect();
        let calls = build_call_arrays(&all, Mode::Default).unwrap().keep_regions(|at| at != hidden);
        prop_assert_eq!(calls, build_call_arrays(&kept, Mode::Default).unwrap());
    }

    #[test]
    fn sums_by_name_of_calls_are_those_of_paths((mut forest, order) in shuffled_forest(), by_depth: bool, root: bool) {
        // Up to five deep no region is inside itself then.
        for at in 0..if by_depth { forest.len() } else { 0 } {
            forest[at].region = forest[at].parent.map_or(0, |parent| (forest[parent].region + 1) % NAMES.len());
        }
        let stored = store(&forest, &order);
        let calls = build_call_arrays(&columns(&stored, false), Mode::Default).unwrap();
        let (paths, options) = (PathTree::from_calls(&calls), PstatsOptions::default());
        let root = root.then_some("a");
        let of_paths = pstats_from_paths(&paths, &calls.regions, root, false, &options);
        prop_assert_eq!(build_pstats_dict(&calls, root, false, &options), of_paths);
    }

    #[test]
    fn a_profile_written_is_read_back((forest, order) in shuffled_forest(), by_path: bool, root: bool) {
        let stored = store(&forest, &order);
        let calls = build_call_arrays(&columns(&stored, false), Mode::Default).unwrap();
        let root = root.then_some("a");
        let profile = build_pstats_dict(&calls, root, by_path, &PstatsOptions::default());
        let mut bytes = Vec::new();
        write_prof(&profile, &mut bytes).unwrap();
        prop_assert_eq!(&load_prof(&bytes[..]).unwrap(), &profile);
        // No entry is lost to another: calls and self times are all there.
        let root_calls = i64::from(root.is_some() && !calls.is_empty());
        prop_assert_eq!(profile.entries().iter().map(|entry| entry.nc).sum::<i64>(), calls.len() as i64 + root_calls);
        let own_s: f64 = profile.entries().iter().map(|entry| entry.tt_s).sum();
        let own_ns: i64 = calls.exclusive_ns.iter().sum();
        prop_assert!((own_s - own_ns as f64 / 1e9).abs() < 1e-12);
    }

    #[test]
    fn one_bad_lane_leaves_the_others((forest, order) in shuffled_forest()) {
        let mut stored = store(&forest, &order);
        let whole = build_call_arrays(&columns(&stored, false), Mode::Default).unwrap();
        // Two calls that overlap, on a lane of their own.
        for (region, start, end) in [(0, 0, 10), (1, 5, 15)] {
            stored[region].starts.push(start);
            stored[region].ends.push(end);
            stored[region].threads.push(77);
        }
        let regions = columns(&stored, false);
        prop_assert!(build_call_arrays(&regions, Mode::Default).is_err());
        let report = build_good_lanes(&regions, BadLanes::Drop).unwrap();
        prop_assert_eq!(report.errors.len(), 1);
        prop_assert_eq!(report.errors[0].lane(), Some(lane_number(77, -1)));
        prop_assert_eq!(report.calls.split_by_lane(), whole.split_by_lane());
        let report = build_good_lanes(&regions, BadLanes::Repair).unwrap();
        prop_assert_eq!((report.calls.len(), report.repaired), (whole.len() + 2, 1));
        prop_assert!(report.calls.exclusive_ns.iter().all(|own| *own >= 0));
    }

    #[test]
    fn hostile_files_are_errors(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = load_prof(&bytes[..]);
    }
}
