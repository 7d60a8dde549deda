//! What the times of a program with async regions mean in an export, and where its calls hang.
//!
//! Programs without tasks have one time only, and all views of them are the same.

use std::collections::HashMap;

use scope_runtime::profile::RegionId;
use scope_runtime::totals::{PathId, PathTree};

use crate::merged::MergedProfile;

/// Which time counts, and below what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// The time in which calls were polled, so that all paths add up to what threads did.
    #[default]
    Busy,
    /// The same, with tasks and linked work below the region that started them.
    Linked,
    /// From begin to end. Calls that overlap count each for itself.
    Wall,
    /// From begin to end, nested lane by lane as readers do that know lanes only.
    WallByLane,
}

impl View {
    /// What titles say of the times in `profile`; nothing without tasks or links.
    pub(super) fn name(self, profile: &MergedProfile) -> Option<&'static str> {
        let name = match self {
            // What is not known of totals is found by lane, from begin to end.
            View::Busy | View::Linked if profile.paths.is_none() => View::WallByLane.words(),
            view => view.words(),
        };
        let has_tasks = profile.tasks.as_ref().is_some_and(|tasks| !tasks.is_empty());
        let linked = self == View::Linked && profile.linked_paths.is_some();
        (has_tasks || linked).then_some(name)
    }

    fn words(self) -> &'static str {
        match self {
            View::Busy => "busy time",
            View::Linked => "busy time below what started it",
            View::Wall => "wall time",
            View::WallByLane => "wall time by lane",
        }
    }
}

/// A call of one rank.
struct WallCall {
    region: u32,
    start_ns: i64,
    end_ns: i64,
    parent: Option<u32>,
    path: Option<PathId>,
    /// Time of it that its children cover.
    covered_ns: i64,
}

/// The call paths of a rank by wall time, region ids being those of the profile's names. The own time
/// of a call is what no child of it covers. `None` when not all calls have ids of their own to tell parents by.
pub(super) fn wall_paths(profile: &MergedProfile, rank: u32) -> Option<PathTree> {
    let mut calls = calls_by_id(profile, rank)?;
    cover(&mut calls);
    let mut tree = PathTree::default();
    let mut above = Vec::new();
    for index in 0..calls.len() as u32 {
        // A parent may have a later number, where it was first polled on a later lane.
        let mut next = Some(index);
        while let Some(call) = next.filter(|&call| calls[call as usize].path.is_none()) {
            above.push(call);
            next = calls[call as usize].parent.filter(|_| above.len() <= calls.len());
        }
        let mut parent = next.and_then(|call| calls[call as usize].path);
        while let Some(call) = above.pop() {
            let call = &mut calls[call as usize];
            let path = *call.path.get_or_insert_with(|| tree.step(parent, RegionId(call.region)));
            parent = Some(path);
        }
        let WallCall { start_ns, end_ns, covered_ns, path, .. } = calls[index as usize];
        if let Some(path) = path {
            let duration_ns = end_ns.saturating_sub(start_ns);
            tree.add_call(path, duration_ns, duration_ns - covered_ns, false);
        }
    }
    Some(tree)
}

fn calls_by_id(profile: &MergedProfile, rank: u32) -> Option<Vec<WallCall>> {
    let events = &profile.events;
    let (ids, parents) = (events.call_ids.as_ref()?, events.parent_ids.as_ref()?);
    let rows = profile.rows.iter().filter(|row| row.rank == rank);
    let mut order: Vec<(i64, u32, usize)> =
        rows.flat_map(|row| row.events.clone().map(|event| (ids[event], row.region, event))).collect();
    order.sort_unstable();
    let is_unclear =
        order.first().is_some_and(|(id, ..)| *id < 0) || order.windows(2).any(|two| two[0].0 == two[1].0);
    if is_unclear {
        return None;
    }
    let position: HashMap<i64, u32> = order.iter().zip(0..).map(|(&(id, ..), index)| (id, index)).collect();
    let call = |&(_, region, event): &(i64, u32, usize)| {
        let start_ns = events.start_ns[event];
        let end_ns = start_ns.saturating_add(events.duration_ns[event]);
        let parent = position.get(&parents[event]).copied();
        WallCall { region, start_ns, end_ns, parent, path: None, covered_ns: 0 }
    };
    Some(order.iter().map(call).collect())
}

/// Finds how much of each call its children cover: the union of their intervals.
fn cover(calls: &mut [WallCall]) {
    let child = |call: &WallCall| Some((call.parent?, call.start_ns, call.end_ns));
    let mut children: Vec<(u32, i64, i64)> = calls.iter().filter_map(child).collect();
    children.sort_unstable();
    let mut until = (u32::MAX, i64::MIN);
    for (parent, start_ns, end_ns) in children {
        if until.0 != parent {
            until = (parent, i64::MIN);
        }
        let call = &mut calls[parent as usize];
        let (from, to) = (start_ns.max(call.start_ns).max(until.1), end_ns.min(call.end_ns));
        call.covered_ns += to.saturating_sub(from).max(0);
        until.1 = until.1.max(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merged::{Events, Row};

    /// ```text
    /// round  [0            100]
    ///   serve  [10 ... 60]            id 3, listed before its parent
    ///   serve      [40 .... 90]
    /// ```
    #[test]
    fn what_overlapping_children_cover_counts_once() {
        let events = Events {
            start_ns: vec![10, 40, 0],
            duration_ns: vec![50, 50, 100],
            call_ids: Some(vec![0, 1, 2]),
            parent_ids: Some(vec![2, 2, -1]),
            ..Events::default()
        };
        let row = |region, events| Row { region, events, ..Row::default() };
        let profile = MergedProfile {
            names: vec!["serve".into(), "round".into()],
            rows: vec![row(0, 0..2), row(1, 2..3)],
            events,
            ..MergedProfile::default()
        };
        let tree = wall_paths(&profile, 0).unwrap();
        let rows: Vec<_> =
            tree.nodes().iter().map(|node| (node.region.0, node.calls, node.wall_ns, node.self_ns)).collect();
        assert_eq!(rows, [(1, 1, 100, 20), (0, 2, 100, 100)]);
    }
}
