//! Parents as they were recorded, for files that have `call_ids` and `parent_ids`.

use std::collections::HashMap;
use std::sync::Arc;

use super::arrays::{CallArrays, NO_PARENT, RegionTable};
use super::input::RegionCalls;
use super::order::{Item, Order, Take, ordered};
use super::sort::{Calls, Sorted};

/// The calls with their recorded parents. `None` when a region has no ids, or when they
/// contradict each other or the times: then the intervals decide.
pub(super) fn build(regions: &[RegionCalls<'_>], calls: usize) -> Option<CallArrays> {
    let has_ids = |region: &RegionCalls<'_>| region.call_ids.is_some() && region.parent_ids.is_some();
    if calls == 0 || !regions.iter().filter(|region| !region.is_empty()).all(has_ids) {
        return None;
    }
    let order = Order::of(regions);
    let table = Arc::new(RegionTable::of(regions));
    let arrays = CallArrays::with_capacity(table, order.lanes().numbers.as_deref(), calls);
    let id_of = |item: &Item| recorded(regions[item.region as usize].call_ids, item);
    let (ids, parents) = (Vec::with_capacity(calls), Vec::with_capacity(calls));
    let mut calls = Recorded { regions, arrays, ids, parents };
    order.in_order(|item| ordered(id_of(item)), &mut calls).ok()?;
    let Recorded { mut arrays, ids, parents, .. } = calls;
    let places = Places::new(&ids)?;
    for (at, parent) in parents.into_iter().enumerate() {
        let parent = if parent < 0 { NO_PARENT } else { places.get(parent)? };
        hang(&mut arrays, at, parent)?;
    }
    arrays.exclusive_ns.iter().all(|exclusive| *exclusive >= 0).then_some(arrays)
}

/// What a column of its region has for a call.
fn recorded(column: Option<&[i64]>, item: &Item) -> i64 {
    column.map_or(-1, |ids| ids[item.call as usize])
}

/// Calls in order, without their nesting.
struct Recorded<'a> {
    regions: &'a [RegionCalls<'a>],
    arrays: CallArrays,
    ids: Vec<i64>,
    parents: Vec<i64>,
}

impl Take for Recorded<'_> {
    type Error = ();

    fn take<C: Calls<Call = Item>>(&mut self, calls: Sorted<'_, C>) -> Result<(), ()> {
        let arrays = &mut self.arrays;
        for item in calls.iter() {
            arrays.start_ns.push(item.start);
            arrays.end_ns.push(item.end);
            arrays.call_index.push(item.call);
            arrays.region_index.extend(std::iter::once(item.region));
            if let Some(lane) = &mut arrays.lane {
                lane.index.extend(std::iter::once(item.lane));
            }
            let region = &self.regions[item.region as usize];
            self.ids.push(recorded(region.call_ids, &item));
            self.parents.push(recorded(region.parent_ids, &item));
            if item.end < item.start {
                return Err(());
            }
        }
        Ok(())
    }
}

/// Hangs call `at` from `parent`, which must come before it, on its lane, and contain it.
fn hang(arrays: &mut CallArrays, at: usize, parent: u32) -> Option<()> {
    let duration = arrays.duration_ns(at);
    let mut depth = 0;
    if parent != NO_PARENT {
        let above = parent as usize;
        let same_lane = arrays.lane.as_ref().is_none_or(|lane| lane.index.get(above) == lane.index.get(at));
        if above >= at || arrays.end_ns[above] < arrays.end_ns[at] || !same_lane {
            return None;
        }
        depth = arrays.depth[above] + 1;
        arrays.exclusive_ns[above] = arrays.exclusive_ns[above].saturating_sub(duration);
    }
    arrays.parent.push(parent);
    arrays.depth.push(depth);
    arrays.exclusive_ns.push(duration);
    Some(())
}

/// Where each recorded id is in call-id order.
enum Places {
    /// By id minus the smallest, for ids that lie close together.
    Table(i64, Vec<u32>),
    Map(HashMap<i64, u32>),
}

impl Places {
    /// `None` when an id occurs twice or is negative.
    fn new(ids: &[i64]) -> Option<Places> {
        let (first, last) = (*ids.iter().min()?, *ids.iter().max()?);
        if first < 0 {
            return None;
        }
        if (last - first) as u64 / 4 > ids.len() as u64 {
            let map: HashMap<i64, u32> = ids.iter().copied().zip(0..).collect();
            return (map.len() == ids.len()).then_some(Places::Map(map));
        }
        let mut table = vec![NO_PARENT; (last - first) as usize + 1];
        for (id, place) in ids.iter().zip(0..) {
            let slot = &mut table[(id - first) as usize];
            if std::mem::replace(slot, place) != NO_PARENT {
                return None;
            }
        }
        Some(Places::Table(first, table))
    }

    /// `None` when no call has this id.
    fn get(&self, id: i64) -> Option<u32> {
        match self {
            Places::Table(first, table) => {
                let slot = table.get(usize::try_from(id.checked_sub(*first)?).ok()?)?;
                (*slot != NO_PARENT).then_some(*slot)
            }
            Places::Map(map) => map.get(&id).copied(),
        }
    }
}
