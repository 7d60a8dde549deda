//! Thousands of lanes and unsorted input, against the plainest way to nest calls.

use scope_runtime::call_stack::{
    BadLanes, CallArrays, Mode, NestingError, RegionCalls, build_call_arrays, build_good_lanes, lane_number,
};

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ z >> 29
}

/// Columns of one region.
#[derive(Default)]
struct Stored {
    starts: Vec<i64>,
    ends: Vec<i64>,
    threads: Vec<i64>,
}

/// Calls of `lanes` lanes in three regions, many of them starting together.
fn stored(lanes: i64, calls_per_lane: usize, seed: u64) -> Vec<Stored> {
    let mut stored: Vec<Stored> = (0..3).map(|_| Stored::default()).collect();
    let mut state = seed;
    for thread in 0..lanes {
        let (mut time, mut open) = (0, Vec::<(usize, i64)>::new());
        for _ in 0..calls_per_lane {
            while !open.is_empty() && random(&mut state).is_multiple_of(2) {
                time += 1;
                close(&mut stored, &mut open, thread, time);
            }
            open.push((random(&mut state) as usize % 3, time));
            time += (random(&mut state) % 2) as i64;
        }
        while !open.is_empty() {
            time += 1;
            close(&mut stored, &mut open, thread, time);
        }
    }
    stored
}

fn close(stored: &mut [Stored], open: &mut Vec<(usize, i64)>, thread: i64, time: i64) {
    let (region, start) = open.pop().unwrap();
    stored[region].starts.push(start);
    stored[region].ends.push(time);
    stored[region].threads.push(thread);
}

fn columns(stored: &[Stored]) -> Vec<RegionCalls<'_>> {
    let regions = ["a", "b", "c"].into_iter().zip(stored).map(|(name, stored)| RegionCalls {
        thread_ids: Some(&stored.threads),
        ..RegionCalls::new(name, &stored.starts, &stored.ends)
    });
    regions.collect()
}

/// (start, end, region, call, lane, parent) of each call, by a stack per lane.
fn plainly(stored: &[Stored]) -> Vec<(i64, i64, usize, usize, i64, Option<usize>)> {
    let mut calls = Vec::new();
    for (region, stored) in stored.iter().enumerate() {
        for call in 0..stored.starts.len() {
            let lane = lane_number(stored.threads[call], -1);
            calls.push((stored.starts[call], stored.ends[call], region, call, lane, None));
        }
    }
    calls.sort_by_key(|&(start, end, ..)| (start, -end));
    let mut stacks = std::collections::HashMap::<i64, Vec<(usize, i64, i64)>>::new();
    for (id, (start, end, .., lane, parent)) in calls.iter_mut().enumerate() {
        let stack = stacks.entry(*lane).or_default();
        stack.retain(|&(_, begun, ended)| ended > *start || (ended == *start && begun == ended));
        *parent = stack.last().map(|(id, ..)| *id);
        stack.push((id, *start, *end));
    }
    calls
}

fn same(calls: &CallArrays, stored: &[Stored]) {
    let plain = plainly(stored);
    assert_eq!(calls.len(), plain.len());
    let mut exclusive_ns: Vec<i64> = plain.iter().map(|(start, end, ..)| end - start).collect();
    for (id, &(start, end, region, call, lane, parent)) in plain.iter().enumerate() {
        let found = (
            calls.start_ns[id],
            calls.end_ns[id],
            calls.region_index.get(id),
            calls.call_index[id] as usize,
            calls.lane(id).unwrap(),
            calls.parent_of(id),
        );
        assert_eq!(found, (start, end, region, call, lane, parent), "call {id}");
        assert_eq!(calls.depth[id], parent.map_or(0, |parent| calls.depth[parent] + 1));
        if let Some(parent) = parent {
            exclusive_ns[parent] -= end - start;
        }
    }
    assert_eq!(calls.exclusive_ns, exclusive_ns);
}

#[test]
fn few_and_many_lanes_give_the_same() {
    // The last of these take more time than 32 bits count.
    let sizes =
        [(1, 20_000, 1), (8, 5_000, 1), (200, 100, 1), (2_500, 60, 1), (9_000, 60, 1), (9_000, 60, 1 << 27)];
    for (lanes, calls_per_lane, tick) in sizes {
        let mut stored = stored(lanes, calls_per_lane, 7);
        for region in &mut stored {
            let times = region.starts.iter_mut().chain(&mut region.ends);
            times.for_each(|time| *time = *time * tick - 1_000_000_007);
        }
        let calls = build_call_arrays(&columns(&stored), Mode::Default).unwrap();
        same(&calls, &stored);
        let parts = calls.split_by_lane();
        assert_eq!(parts.len(), lanes as usize);
        assert_eq!(CallArrays::merge_lanes(&parts).as_ref(), Some(&calls));
    }
}

#[test]
fn one_lane_in_thousands_is_named() {
    let mut stored = stored(9_000, 7, 11);
    for (start, end) in [(1000, 1010), (1005, 1015)] {
        stored[2].starts.push(start);
        stored[2].ends.push(end);
        stored[2].threads.push(77);
    }
    let regions = columns(&stored);
    let error = build_call_arrays(&regions, Mode::Default).unwrap_err();
    let NestingError::Overlap { outer, inner } = &error else { panic!("{error}") };
    assert_eq!((outer.start_ns, inner.start_ns, error.lane()), (1000, 1005, Some(-79)));
    let report = build_good_lanes(&regions, BadLanes::Drop).unwrap();
    assert_eq!(report.errors, [error]);
    assert_eq!(report.calls.split_by_lane().len(), 8_999);
}
