//! Which lane a call belongs to, and taking the lanes of a rank apart and together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use super::arrays::{CallArrays, LaneColumn, NO_PARENT};
use super::input::RegionCalls;
use super::small_column::SmallColumn;

/// The lane of calls without thread and task.
pub const UNKNOWN_LANE: i64 = -1;

/// Lane number of a call: the task, else -2 minus the thread index, else [`UNKNOWN_LANE`].
///
/// Negative ids mean "none". A task that moves between threads stays one lane.
pub fn lane_number(thread_id: i64, task_id: i64) -> i64 {
    if task_id >= 0 {
        task_id
    } else if thread_id >= 0 {
        (-2_i64).wrapping_sub(thread_id)
    } else {
        UNKNOWN_LANE
    }
}

impl RegionCalls<'_> {
    /// Lane number of stored call `at`.
    #[inline]
    pub(super) fn lane_number(&self, at: usize) -> i64 {
        let Some(threads) = self.thread_ids else { return UNKNOWN_LANE };
        lane_number(threads[at], self.task_ids.map_or(-1, |tasks| tasks[at]))
    }

    /// The lane of each call in the order stored.
    fn lane_numbers(&self) -> impl Iterator<Item = i64> + '_ {
        (0..self.len()).map(|at| self.lane_number(at))
    }
}

/// The lanes of a rank and the position of each among them.
#[derive(Clone)]
pub(super) struct Lanes {
    /// Ascending and different; `None` when no region has threads and the rank is one lane.
    pub(super) numbers: Option<Vec<i64>>,
    /// Position by number minus the smallest, when the numbers lie close together.
    table: Vec<u32>,
}

impl Lanes {
    /// The lane of a rank whose regions have no threads.
    pub(super) fn one() -> Lanes {
        Lanes { numbers: None, table: Vec::new() }
    }

    pub(super) fn find(regions: &[RegionCalls<'_>]) -> Lanes {
        if regions.iter().all(|region| region.thread_ids.is_none()) {
            return Lanes::one();
        }
        Lanes::among(|| regions.iter().flat_map(RegionCalls::lane_numbers))
    }

    /// The lanes that occur among these numbers.
    pub(super) fn among<I: Iterator<Item = i64>>(all: impl Fn() -> I) -> Lanes {
        let (mut count, mut first, mut last) = (0_usize, i64::MAX, i64::MIN);
        all().for_each(|number| {
            (count, first, last) = (count + 1, first.min(number), last.max(number));
        });
        let span = last.wrapping_sub(first).cast_unsigned();
        if count == 0 || span > 4 * count as u64 + 1024 {
            // Calls of one lane mostly follow each other.
            let mut before = None;
            let mut numbers: Vec<i64> =
                all().filter(|number| before.replace(*number) != Some(*number)).collect();
            numbers.sort_unstable();
            numbers.dedup();
            return Lanes { numbers: Some(numbers), table: Vec::new() };
        }
        let mut table = vec![0; span as usize + 1];
        all().for_each(|number| table[number.wrapping_sub(first) as usize] = 1);
        let mut numbers = Vec::new();
        for (slot, number) in table.iter_mut().zip(first..=last).filter(|(slot, _)| **slot > 0) {
            *slot = numbers.len() as u32;
            numbers.push(number);
        }
        Lanes { numbers: Some(numbers), table }
    }

    /// Number of lanes.
    pub(super) fn count(&self) -> usize {
        self.numbers.as_ref().map_or(1, Vec::len)
    }

    /// Position of a lane that occurs.
    #[inline]
    pub(super) fn position(&self, number: i64) -> u32 {
        match &self.numbers {
            None => 0,
            Some(numbers) if self.table.is_empty() => numbers.partition_point(|other| *other < number) as u32,
            Some(numbers) => self.table[number.wrapping_sub(numbers[0]) as usize],
        }
    }

    /// Number of the lane at `position`; `None` when the rank is one lane.
    pub(super) fn number(&self, position: u32) -> Option<i64> {
        self.numbers.as_ref().map(|numbers| numbers[position as usize])
    }
}

impl CallArrays {
    /// One [`CallArrays`] per lane with calls, in ascending order of lane number.
    ///
    /// Calls stay in call-id order; parents become positions inside the lane; the regions are
    /// shared. Without a lane column there is one entry with [`UNKNOWN_LANE`], without calls none.
    pub fn split_by_lane(&self) -> Vec<(i64, CallArrays)> {
        if self.is_empty() {
            return Vec::new();
        }
        let Some(lane) = &self.lane else { return vec![(UNKNOWN_LANE, self.clone())] };
        let mut members = vec![Vec::new(); lane.numbers.len()];
        let mut place = Vec::with_capacity(self.len());
        for (id, position) in lane.index.iter().enumerate() {
            place.push(members[position].len() as u32);
            members[position].push(id as u32);
        }
        let lanes = lane.numbers.iter().zip(members).filter(|(_, members)| !members.is_empty());
        lanes.map(|(&number, members)| (number, self.lane_part(number, &members, &place))).collect()
    }

    /// The calls `members` of one lane; `place` says where in its lane each call of the rank is.
    fn lane_part(&self, number: i64, members: &[u32], place: &[u32]) -> CallArrays {
        fn pick<T: Copy>(column: &[T], members: &[u32]) -> Vec<T> {
            members.iter().map(|&id| column[id as usize]).collect()
        }
        let mut index = SmallColumn::below(1, members.len());
        index.extend(members.iter().map(|_| 0));
        let parent = members.iter().map(|&id| place.get(self.parent[id as usize] as usize));
        CallArrays {
            regions: Arc::clone(&self.regions),
            region_index: self.region_index.pick(members),
            call_index: pick(&self.call_index, members),
            start_ns: pick(&self.start_ns, members),
            end_ns: pick(&self.end_ns, members),
            depth: pick(&self.depth, members),
            parent: parent.map(|place| place.copied().unwrap_or(NO_PARENT)).collect(),
            exclusive_ns: pick(&self.exclusive_ns, members),
            lane: Some(LaneColumn { numbers: vec![number], index }),
        }
    }

    /// Puts the lanes of a rank together: the inverse of [`split_by_lane`](Self::split_by_lane).
    ///
    /// Calls are ordered by start, then by decreasing end, then by region and stored position, as
    /// [`build_call_arrays`](super::build_call_arrays) orders them, except that parents always
    /// come before their children. A single part comes back unchanged. `None` when the parts do
    /// not share their regions, have no lane or the same lane, or when there is no part.
    pub fn merge_lanes(parts: &[(i64, CallArrays)]) -> Option<CallArrays> {
        let (_, first) = parts.first()?;
        if parts.len() == 1 {
            return Some(first.clone());
        }
        let fits = |part: &CallArrays| part.lane.is_some() && part.regions == first.regions;
        let mut numbers: Vec<i64> = parts.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() != parts.len() || !parts.iter().all(|(_, part)| fits(part)) {
            return None;
        }
        let calls = parts.iter().map(|(_, part)| part.len()).sum();
        let mut merged = CallArrays::with_capacity(Arc::clone(&first.regions), Some(&numbers), calls);
        for (part, at) in merge_order(parts, calls) {
            let (number, part) = &parts[part];
            merged.push_copy(part, at);
            let lane = numbers.partition_point(|other| other < number) as u32;
            merged.lane.as_mut()?.index.extend(std::iter::once(lane));
        }
        Some(merged.with_parents_of(parts, &numbers))
    }

    /// Appends all of call `at` of `part` but its lane.
    fn push_copy(&mut self, part: &CallArrays, at: usize) {
        self.region_index.extend(std::iter::once(part.region_index.get(at) as u32));
        self.call_index.push(part.call_index[at]);
        self.start_ns.push(part.start_ns[at]);
        self.end_ns.push(part.end_ns[at]);
        self.depth.push(part.depth[at]);
        self.parent.push(part.parent[at]);
        self.exclusive_ns.push(part.exclusive_ns[at]);
    }

    /// Turns parents that are positions in a lane into call ids.
    fn with_parents_of(mut self, parts: &[(i64, CallArrays)], numbers: &[i64]) -> CallArrays {
        let mut ids = vec![Vec::new(); numbers.len()];
        for (number, part) in parts {
            ids[numbers.partition_point(|other| other < number)].reserve_exact(part.len());
        }
        let Some(lane) = &self.lane else { return self };
        for (id, position) in lane.index.iter().enumerate() {
            ids[position].push(id as u32);
            let parent = self.parent[id] as usize;
            self.parent[id] = ids[position].get(parent).copied().unwrap_or(NO_PARENT);
        }
        self
    }
}

/// All calls of all parts as (part, position), in call-id order.
///
/// A merge of the parts, each in its own order: that may come from ids or from closing.
fn merge_order(parts: &[(i64, CallArrays)], calls: usize) -> Vec<(usize, usize)> {
    let key = |number: usize, at: usize| {
        let part = &parts[number].1;
        let end = Reverse(part.end_ns[at]);
        Reverse((part.start_ns[at], end, part.region_index.get(at), part.call_index[at], number, at))
    };
    let occupied = (0..parts.len()).filter(|&number| !parts[number].1.is_empty());
    let mut heads: BinaryHeap<_> = occupied.map(|number| key(number, 0)).collect();
    let mut order = Vec::with_capacity(calls);
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((.., number, at)) = *head;
        order.push((number, at));
        if at + 1 < parts[number].1.len() {
            *head = key(number, at + 1);
        } else {
            PeekMut::pop(head);
        }
    }
    order
}
