//! Nesting lane by lane, for ranks with thousands of lanes.
//!
//! In order of time each call would look at another lane's stack, which is in the cache no more
//! when there are many; lane by lane one small stack is enough.

use std::sync::Arc;

use super::arrays::{CallArrays, NO_PARENT, RegionTable};
use super::input::RegionCalls;
use super::lanes::Lanes;
use super::order::{Item, Run, all_in_order};

/// The calls with their nesting; `None` when a lane does not nest, which is for the pass in order of
/// time to say, because it meets the first fault first.
pub(super) fn build(
    regions: &[RegionCalls<'_>],
    lanes: &Lanes,
    tie: impl Fn(&Item, &[Run]) -> u64,
) -> Option<CallArrays> {
    let (runs, items, mut grouped) = all_in_order(regions, lanes, tie);
    let table = Arc::new(RegionTable::of(regions));
    let mut arrays = CallArrays::with_capacity(table, lanes.numbers.as_deref(), items.len());
    let lane_of = |item: &Item| runs[item.run as usize].lane;
    arrays.start_ns.extend(items.iter().map(|item| item.start));
    arrays.end_ns.extend(items.iter().map(|item| item.end));
    arrays.call_index.extend(items.iter().map(|item| item.call));
    arrays.region_index.extend(items.iter().map(|item| runs[item.run as usize].region));
    if let Some(lane) = &mut arrays.lane {
        lane.index.extend(items.iter().map(lane_of));
    }
    let mut ends = vec![0_u32; lanes.count()];
    items.iter().for_each(|item| ends[lane_of(item) as usize] += 1);
    let mut before = 0;
    ends.iter_mut().for_each(|end| before += std::mem::replace(end, before));
    for (id, item) in items.iter().enumerate() {
        let place = &mut ends[lane_of(item) as usize];
        // Which stored call it is has gone into the columns.
        grouped[*place as usize] = Item { call: id as u32, ..*item };
        *place += 1;
    }
    drop(items);
    arrays.parent.resize(grouped.len(), NO_PARENT);
    arrays.depth.resize(grouped.len(), 0);
    arrays.exclusive_ns.resize(grouped.len(), 0);
    let (mut from, mut stack) = (0, Vec::new());
    for to in ends {
        nest_lane(&grouped[from..to as usize], &mut stack, &mut arrays)?;
        from = to as usize;
    }
    Some(arrays)
}

/// An open call and the time that it has to itself so far.
struct Open {
    id: u32,
    /// Last tick at which a call that starts is inside.
    last: i64,
    end: i64,
    exclusive_ns: i64,
}

fn nest_lane(calls: &[Item], stack: &mut Vec<Open>, arrays: &mut CallArrays) -> Option<()> {
    for call in calls {
        while let Some(open) = stack.pop_if(|open| call.start > open.last) {
            arrays.exclusive_ns[open.id as usize] = open.exclusive_ns;
        }
        if call.end < call.start || stack.last().is_some_and(|open| call.end > open.end) {
            return None;
        }
        let duration_ns = call.end.wrapping_sub(call.start);
        arrays.depth[call.call as usize] = stack.len() as u32;
        if let Some(open) = stack.last_mut() {
            arrays.parent[call.call as usize] = open.id;
            open.exclusive_ns = open.exclusive_ns.wrapping_sub(duration_ns);
        }
        let last = call.end - i64::from(call.end != call.start);
        stack.push(Open { id: call.call, last, end: call.end, exclusive_ns: duration_ns });
    }
    stack.drain(..).for_each(|open| arrays.exclusive_ns[open.id as usize] = open.exclusive_ns);
    Some(())
}
