//! Calls of some regions only: children of a hidden call hang from the nearest kept ancestor.

use std::sync::Arc;

use super::arrays::{CallArrays, LaneColumn, NO_PARENT, RegionTable};
use super::small_column::SmallColumn;

impl CallArrays {
    /// The calls of the regions for which `keep` is true, as if only these had been recorded.
    ///
    /// `keep` gets the position in the region list. Children of a hidden call hang from the nearest
    /// kept ancestor, whose exclusive time takes over the hidden call's own time. Regions are
    /// renumbered in list order; parents found through ids stay true ones.
    ///
    /// # Examples
    /// ```
    /// use scope_runtime::call_stack::{Mode, RegionCalls, build_call_arrays};
    ///
    /// let regions = [RegionCalls::new("main", &[0], &[100]), RegionCalls::new("step", &[10], &[30])];
    /// let calls = build_call_arrays(&regions, Mode::Default)?;
    /// let main_only = calls.keep_regions(|region| calls.names()[region] == "main");
    /// assert_eq!((main_only.len(), main_only.exclusive_ns[0]), (1, 100));
    /// # Ok::<(), scope_runtime::call_stack::NestingError>(())
    /// ```
    pub fn keep_regions(&self, keep: impl Fn(usize) -> bool) -> CallArrays {
        let mut table = RegionTable::default();
        let mut renumbered = vec![None; self.regions.len()];
        for (old, slot) in renumbered.iter_mut().enumerate().filter(|(old, _)| keep(*old)) {
            *slot = Some(table.len() as u32);
            let file = self.regions.source_files[old].as_deref();
            table.push(&self.regions.names[old], file, self.regions.source_lines[old]);
        }
        let regions = self.region_index.iter().enumerate();
        let picked: Vec<u32> =
            regions.filter(|(_, region)| renumbered[*region].is_some()).map(|(id, _)| id as u32).collect();
        let mut kept = self.pick(&picked);
        let mut region_index = SmallColumn::below(table.len(), picked.len());
        region_index.extend(kept.region_index.iter().filter_map(|region| renumbered[region]));
        kept.region_index = region_index;
        kept.regions = Arc::new(table);
        kept
    }

    /// The calls with the ids `picked`, ascending, re-hung where a parent is left out.
    pub(super) fn pick(&self, picked: &[u32]) -> CallArrays {
        let lanes = self.lane.as_ref().map(|lane| lane.numbers.as_slice());
        let mut kept = CallArrays::with_capacity(Arc::clone(&self.regions), lanes, picked.len());
        kept.region_index = self.region_index.pick(picked);
        // New id of the nearest kept call from here upwards, the call itself included.
        let mut nearest = vec![NO_PARENT; self.len()];
        let mut next = picked.iter().peekable();
        for id in 0..self.len() {
            let above = self.parent_of(id).map_or(NO_PARENT, |parent| nearest[parent]);
            nearest[id] = above;
            if next.next_if(|picked| **picked as usize == id).is_some() {
                nearest[id] = kept.len() as u32;
                kept.push_below(above, self, id);
            }
        }
        if let (Some(kept), Some(lane)) = (&mut kept.lane, &self.lane) {
            *kept = pick_lanes(lane, picked);
        }
        kept
    }

    /// Appends call `id` of `from` below `parent`, except for region and lane.
    fn push_below(&mut self, parent: u32, from: &CallArrays, id: usize) {
        let duration_ns = from.duration_ns(id);
        let above = (parent != NO_PARENT).then_some(parent as usize);
        self.depth.push(above.map_or(0, |above| self.depth[above] + 1));
        if let Some(above) = above {
            self.exclusive_ns[above] = self.exclusive_ns[above].saturating_sub(duration_ns);
        }
        self.call_index.push(from.call_index[id]);
        self.start_ns.push(from.start_ns[id]);
        self.end_ns.push(from.end_ns[id]);
        self.parent.push(parent);
        self.exclusive_ns.push(duration_ns);
    }
}

/// Lanes of the picked calls; lanes without any are dropped.
fn pick_lanes(lane: &LaneColumn, picked: &[u32]) -> LaneColumn {
    let mut used = vec![false; lane.numbers.len()];
    picked.iter().for_each(|id| used[lane.index.get(*id as usize)] = true);
    let mut position = vec![0; used.len()];
    let mut numbers = Vec::new();
    for old in (0..used.len()).filter(|old| used[*old]) {
        position[old] = numbers.len() as u32;
        numbers.push(lane.numbers[old]);
    }
    let mut index = SmallColumn::below(numbers.len(), picked.len());
    index.extend(picked.iter().map(|id| position[lane.index.get(*id as usize)]));
    LaneColumn { numbers, index }
}
