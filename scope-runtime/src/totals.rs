//! Totals per call path: a tree whose nodes sum the calls that share one path.
//!
//! Input comes from the replay of a recording or from reconstructed call columns; all sums are
//! exact integers in ns, so that for every node inclusive = self + sum of children's inclusive.
//! Sums beyond 2^63 ns (292 years) stay there.
//!
//! A call of an async region lasts longer than it runs. Inclusive time is what it ran, so that the
//! times of all paths add up to what threads did; wall time is from its begin to its end.

use std::ops::Range;

use crate::call_stack::CallArrays;
use crate::id_map::IdMap;
use crate::profile::RegionId;
use crate::room::room;

/// Index of a node in a [`PathTree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

/// Sums over all calls with one call path. Times in ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTotals {
    /// The path without its last region; `None` at the top.
    pub parent: Option<PathId>,
    /// The last region of the path.
    pub region: RegionId,
    /// Number of calls.
    pub calls: u64,
    /// Calls among them that were cut at the end of recording.
    pub open: u64,
    /// Calls of async regions among them that were dropped before they completed.
    pub cancelled: u64,
    /// Time in which the calls were running or what they called was; without async regions the sum
    /// of durations.
    pub inclusive_ns: i64,
    /// Time in which the calls were running themselves; inclusive minus that of direct children.
    pub self_ns: i64,
    /// Sum of durations, from begin to end.
    pub wall_ns: i64,
    /// Shortest duration; 0 without calls.
    pub min_ns: i64,
    /// Longest duration; 0 without calls.
    pub max_ns: i64,
}

impl PathTotals {
    /// No calls yet.
    fn new(parent: Option<PathId>, region: RegionId) -> PathTotals {
        PathTotals {
            parent,
            region,
            calls: 0,
            open: 0,
            cancelled: 0,
            inclusive_ns: 0,
            self_ns: 0,
            wall_ns: 0,
            min_ns: 0,
            max_ns: 0,
        }
    }
}

/// Sums over all calls of one region, wherever it was called. Times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionTotals {
    /// Number of calls.
    pub calls: u64,
    /// Calls without a call of the same region around them.
    pub primitive_calls: u64,
    /// Calls that were cut at the end of recording.
    pub open: u64,
    /// Inclusive time of the primitive calls: what is inside a recursion counts once.
    pub inclusive_ns: i64,
    /// Sum of the durations of the primitive calls.
    pub wall_ns: i64,
    /// Sum of durations minus those of direct children, over all calls.
    pub self_ns: i64,
    /// Shortest duration of any call; 0 without calls.
    pub min_ns: i64,
    /// Longest duration of any call; 0 without calls.
    pub max_ns: i64,
}

/// Calls that ran in parts. Times in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Whole {
    pub(crate) calls: u64,
    pub(crate) open: u64,
    pub(crate) cancelled: u64,
    pub(crate) wall_ns: i64,
    pub(crate) min_ns: i64,
    pub(crate) max_ns: i64,
}

impl Whole {
    /// One call.
    pub(crate) fn one(wall_ns: i64, open: bool, cancelled: bool) -> Whole {
        let (open, cancelled) = (open.into(), cancelled.into());
        Whole { calls: 1, open, cancelled, wall_ns, min_ns: wall_ns, max_ns: wall_ns }
    }
}

/// The tree of call paths; parents come before their children.
///
/// # Examples
/// ```
/// use scope_runtime::profile::RegionId;
/// use scope_runtime::totals::PathTree;
///
/// let mut paths = PathTree::default();
/// let main = paths.step(None, RegionId(0));
/// let step = paths.step(Some(main), RegionId(1));
/// paths.add_call(step, 30, 30, false);
/// paths.add_call(main, 100, 70, false);
/// assert_eq!(paths.nodes()[0].self_ns, 70);
/// assert_eq!(paths.region_totals()[1].inclusive_ns, 30);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PathTree {
    nodes: Vec<PathTotals>,
    by_step: IdMap,
    /// The last two different steps that were looked up, per node, those from the top in front. Most
    /// regions call one or two others, and these look-ups stay where the nodes are. Not as pairs, whose
    /// addresses take a step more in what each call waits for.
    recent: Vec<Step>,
}

/// A step from a node that is known from the place where it is kept: the region, and in the lower half the
/// node that it leads to.
#[derive(Clone, Copy, Debug)]
struct Step(u64);

/// No step yet.
const NO_STEP: Step = Step(TOP as u64);

impl Step {
    fn new(region: u32, to: u32) -> Step {
        Step(u64::from(region) << 32 | u64::from(to))
    }

    /// The node that it leads to if it is one with `region`, else a number that is at least [`TOP`].
    #[inline]
    fn with(self, region: u32) -> u64 {
        self.0 ^ u64::from(region) << 32
    }
}

/// Stands for "no parent" in the map of steps; no node has this id.
const TOP: u32 = u32::MAX;

/// A number in as few bytes as a column needs.
trait Number: Copy + Into<u32> + TryFrom<u32> {}

impl<T: Copy + Into<u32> + TryFrom<u32>> Number for T {}

/// Where the recent steps from a node are kept.
#[inline]
fn recent_from(parent: Option<PathId>) -> Range<usize> {
    let from = parent.map_or(0, |PathId(parent)| 2 * (parent as usize + 1));
    from..from + 2
}

impl PathTree {
    /// All nodes, parents before children; the index is the [`PathId`].
    pub fn nodes(&self) -> &[PathTotals] {
        &self.nodes
    }

    /// The node below `parent` for `region`, made when it is not there yet.
    ///
    /// # Panics
    ///
    /// At 2^32 - 1 nodes.
    #[inline]
    pub fn step(&mut self, parent: Option<PathId>, region: RegionId) -> PathId {
        if let Some([newer, older]) = self.recent.get(recent_from(parent)) {
            // Which of the two it is cannot be foretold.
            let to = newer.with(region.0).min(older.with(region.0));
            if to < TOP.into() {
                return PathId(to as u32);
            }
        }
        self.look_up(parent, region)
    }

    fn look_up(&mut self, parent: Option<PathId>, region: RegionId) -> PathId {
        let above = parent.map_or(TOP, |PathId(parent)| parent);
        let new = self.nodes.len() as u32;
        let id = self.by_step.get_or_insert(above, region.0, new);
        if id == new {
            self.push(parent, region);
        }
        self.recent.resize(2 * (self.nodes.len() + 1), NO_STEP);
        if let [newer, older] = &mut self.recent[recent_from(parent)] {
            *older = std::mem::replace(newer, Step::new(region.0, id));
        }
        PathId(id)
    }

    #[cold]
    fn push(&mut self, parent: Option<PathId>, region: RegionId) {
        assert!(self.nodes.len() < TOP as usize - 1, "fewer than 2^32 - 1 call paths");
        self.nodes.push(PathTotals::new(parent, region));
    }

    /// The same tree with each region replaced; `to` must give different regions different ids.
    pub(crate) fn map_regions(mut self, mut to: impl FnMut(RegionId) -> RegionId) -> PathTree {
        self.by_step = IdMap::default();
        self.recent.clear();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.region = to(node.region);
            let above = node.parent.map_or(TOP, |PathId(parent)| parent);
            self.by_step.get_or_insert(above, node.region.0, index as u32);
        }
        self
    }

    /// The same paths without any calls.
    pub(crate) fn without_totals(mut self) -> PathTree {
        for node in &mut self.nodes {
            let (parent, region) = (node.parent, node.region);
            *node = PathTotals::new(parent, region);
        }
        self
    }

    /// The paths that have calls or time, and those above them.
    pub(crate) fn without_empty(&self) -> PathTree {
        let mut kept: Vec<bool> = self.nodes.iter().map(|node| node.calls > 0 || node.self_ns != 0).collect();
        for at in (0..self.nodes.len()).rev() {
            if let (true, Some(PathId(parent))) = (kept[at], self.nodes[at].parent) {
                kept[parent as usize] = true;
            }
        }
        let mut tree = PathTree::default();
        let mut paths: Vec<PathId> = Vec::with_capacity(self.nodes.len());
        for (node, kept) in self.nodes.iter().zip(kept) {
            if !kept {
                paths.push(PathId(TOP));
                continue;
            }
            let path = tree.step(node.parent.map(|PathId(parent)| paths[parent as usize]), node.region);
            tree.add_totals(path, node);
            paths.push(path);
        }
        tree
    }

    /// Adds time to a path that calls below it have taken, when those are to be left out of the tree.
    pub fn add_self(&mut self, path: PathId, self_ns: i64) {
        let node = &mut self.nodes[path.0 as usize];
        node.self_ns = node.self_ns.saturating_add(self_ns);
    }

    /// Adds one call of `duration_ns`, of which `self_ns` outside its children.
    pub fn add_call(&mut self, path: PathId, duration_ns: i64, self_ns: i64, open: bool) {
        self.add_part(path, duration_ns, self_ns);
        let node = &mut self.nodes[path.0 as usize];
        node.min_ns = if node.calls == 0 { duration_ns } else { node.min_ns.min(duration_ns) };
        node.max_ns = node.max_ns.max(duration_ns);
        node.calls += 1;
        node.open += u64::from(open);
        node.wall_ns = node.wall_ns.saturating_add(duration_ns);
    }

    /// Adds a part of a call that is counted by [`add_whole`](Self::add_whole): `duration_ns` in which
    /// it ran, of which `self_ns` outside its children.
    pub(crate) fn add_part(&mut self, path: PathId, duration_ns: i64, self_ns: i64) {
        let node = &mut self.nodes[path.0 as usize];
        node.inclusive_ns = node.inclusive_ns.saturating_add(duration_ns);
        node.self_ns = node.self_ns.saturating_add(self_ns);
    }

    /// Counts `calls` calls whose parts were added, which lasted `wall_ns` together.
    pub(crate) fn add_whole(&mut self, path: PathId, calls: &Whole) {
        let node = &mut self.nodes[path.0 as usize];
        node.min_ns = if node.calls == 0 { calls.min_ns } else { node.min_ns.min(calls.min_ns) };
        node.max_ns = node.max_ns.max(calls.max_ns);
        node.calls = node.calls.saturating_add(calls.calls);
        node.open = node.open.saturating_add(calls.open);
        node.cancelled = node.cancelled.saturating_add(calls.cancelled);
        node.wall_ns = node.wall_ns.saturating_add(calls.wall_ns);
    }

    /// Lets a call that is counted be the shortest or longest.
    pub(crate) fn note_duration(&mut self, path: PathId, duration_ns: i64) {
        let node = &mut self.nodes[path.0 as usize];
        node.min_ns = node.min_ns.min(duration_ns);
        node.max_ns = node.max_ns.max(duration_ns);
    }

    /// Makes inclusive = self + children's inclusive where polls ran inside calls that are not above
    /// them: a thread that waits for other tasks runs these.
    pub(crate) fn settle(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.inclusive_ns = node.self_ns);
        for at in (0..self.nodes.len()).rev() {
            let inclusive_ns = self.nodes[at].inclusive_ns;
            if let Some(PathId(parent)) = self.nodes[at].parent {
                let above = &mut self.nodes[parent as usize].inclusive_ns;
                *above = above.saturating_add(inclusive_ns);
            }
        }
    }

    /// Adds the sums of another node, such as the same call path on another rank.
    pub fn add_totals(&mut self, path: PathId, other: &PathTotals) {
        if other.calls == 0 {
            // A path may have run without having been called: polls of a call that counts elsewhere.
            self.add_part(path, other.inclusive_ns, other.self_ns);
            let node = &mut self.nodes[path.0 as usize];
            node.wall_ns = node.wall_ns.saturating_add(other.wall_ns);
            return;
        }
        let node = &mut self.nodes[path.0 as usize];
        node.min_ns = if node.calls == 0 { other.min_ns } else { node.min_ns.min(other.min_ns) };
        node.max_ns = node.max_ns.max(other.max_ns);
        node.calls = node.calls.saturating_add(other.calls);
        node.open = node.open.saturating_add(other.open);
        node.cancelled = node.cancelled.saturating_add(other.cancelled);
        node.wall_ns = node.wall_ns.saturating_add(other.wall_ns);
        node.inclusive_ns = node.inclusive_ns.saturating_add(other.inclusive_ns);
        node.self_ns = node.self_ns.saturating_add(other.self_ns);
    }

    /// Adds all paths of another tree with the same regions, as if its calls had come after those of
    /// this one; gives where each of its nodes went.
    pub(crate) fn add_tree(&mut self, other: &PathTree) -> Vec<PathId> {
        let mut paths: Vec<PathId> = Vec::with_capacity(other.nodes.len());
        for node in &other.nodes {
            let parent = node.parent.map(|PathId(parent)| paths[parent as usize]);
            let path = self.step(parent, node.region);
            self.add_totals(path, node);
            paths.push(path);
        }
        paths
    }

    /// The totals of reconstructed calls; nodes in order of the first call of each path.
    ///
    /// Region ids are positions in the region list of `calls`.
    ///
    /// # Examples
    /// ```
    /// use scope_runtime::call_stack::{Mode, RegionCalls, build_call_arrays};
    /// use scope_runtime::totals::PathTree;
    ///
    /// let regions =
    ///     [RegionCalls::new("main", &[0], &[100]), RegionCalls::new("step", &[10, 50], &[30, 60])];
    /// let paths = PathTree::from_calls(&build_call_arrays(&regions, Mode::Default)?);
    /// let step = &paths.nodes()[1];
    /// assert_eq!((step.calls, step.inclusive_ns, step.min_ns, step.max_ns), (2, 30, 10, 20));
    /// # Ok::<(), scope_runtime::call_stack::NestingError>(())
    /// ```
    pub fn from_calls(calls: &CallArrays) -> PathTree {
        let mut tree = PathTree::default();
        let paths = tree.paths_of(calls);
        for (id, path) in paths.into_iter().enumerate() {
            tree.add_call(PathId(path), calls.duration_ns(id), calls.exclusive_ns[id], false);
        }
        tree
    }

    /// As [`from_calls`](Self::from_calls) without shortest and longest durations, in half the time:
    /// inclusive times are summed over nodes, not over calls.
    pub(crate) fn sums_of(calls: &CallArrays) -> PathTree {
        // Most programs have few paths, and half the memory for those of their calls.
        let (mut tree, sums) = PathTree::sum::<u16>(calls)
            .or_else(|| PathTree::sum::<u32>(calls))
            .expect("paths whose numbers have 32 bits");
        for (node, sums) in tree.nodes.iter_mut().zip(sums) {
            (node.calls, node.self_ns) = sums;
        }
        tree.settle();
        tree.nodes.iter_mut().for_each(|node| node.wall_ns = node.inclusive_ns);
        tree
    }

    /// The paths, and the number of calls and the self time of each; `None` when `P` is too narrow for them.
    fn sum<P: Number>(calls: &CallArrays) -> Option<(PathTree, Vec<(u64, i64)>)> {
        let mut tree = PathTree::default();
        // The two sums per path by themselves: those of a few hundred paths stay in the first-level cache.
        let mut sums: Vec<(u64, i64)> = Vec::new();
        tree.walk::<P>(calls, |path, exclusive_ns| {
            if path == sums.len() {
                sums.push((0, 0));
            }
            let (calls, self_ns) = &mut sums[path];
            *calls += 1;
            *self_ns = self_ns.saturating_add(exclusive_ns);
        })?;
        Some((tree, sums))
    }

    /// The path of each call.
    pub(crate) fn paths_of(&mut self, calls: &CallArrays) -> Vec<u32> {
        self.walk(calls, |_, _| ()).expect("paths whose numbers have 32 bits")
    }

    /// Finds the path of each call; `visit` gets it and the call's exclusive time. `None` when `P` is too
    /// narrow for the paths.
    fn walk<P: Number>(&mut self, calls: &CallArrays, mut visit: impl FnMut(usize, i64)) -> Option<Vec<P>> {
        use crate::call_stack::SmallColumn;
        match &calls.region_index {
            SmallColumn::U8(regions) => self.walk_regions(calls, regions, &mut visit),
            SmallColumn::U16(regions) => self.walk_regions(calls, regions, &mut visit),
            SmallColumn::U32(regions) => self.walk_regions(calls, regions, &mut visit),
        }
    }

    fn walk_regions<R: Number, P: Number>(
        &mut self,
        calls: &CallArrays,
        regions: &[R],
        visit: &mut impl FnMut(usize, i64),
    ) -> Option<Vec<P>> {
        let mut paths: Vec<P> = room(calls.len());
        for ((&region, &parent), &exclusive_ns) in regions.iter().zip(&calls.parent).zip(&calls.exclusive_ns)
        {
            let above = paths.get(parent as usize).map(|path| PathId((*path).into()));
            let PathId(path) = self.step(above, RegionId(region.into()));
            paths.push(P::try_from(path).ok()?);
            visit(path as usize, exclusive_ns);
        }
        Some(paths)
    }

    /// Per node, whether its region occurs further up on its path too.
    ///
    /// # Examples
    /// ```
    /// use scope_runtime::profile::RegionId;
    /// use scope_runtime::totals::PathTree;
    ///
    /// let mut paths = PathTree::default();
    /// let walk = paths.step(None, RegionId(0));
    /// let again = paths.step(Some(walk), RegionId(0));
    /// assert_eq!(paths.recursive(), [false, true]);
    /// ```
    pub fn recursive(&self) -> Vec<bool> {
        let regions: Vec<u32> = self.nodes.iter().map(|node| node.region.0).collect();
        self.repeated(&regions)
    }

    /// Per node, whether its last step, from region to region, occurs further up on its path too.
    ///
    /// That is what makes a call a re-entry for one caller: in `a > b > c > b`, the step `c > b` is
    /// there once, although `b` is there twice.
    pub fn recursive_steps(&self) -> Vec<bool> {
        let mut ids = IdMap::default();
        let mut count = 0;
        let step = |node: &PathTotals| {
            let from = node.parent.map_or(TOP, |PathId(parent)| self.nodes[parent as usize].region.0);
            let id = ids.get_or_insert(from, node.region.0, count);
            count += u32::from(id == count);
            id
        };
        let steps: Vec<u32> = self.nodes.iter().map(step).collect();
        self.repeated(&steps)
    }

    /// Per node, whether its label, a small number, is that of a node above it too.
    fn repeated(&self, labels: &[u32]) -> Vec<bool> {
        let (mut first_child, mut next) = (vec![TOP; self.nodes.len()], vec![TOP; self.nodes.len()]);
        let mut first_top = TOP;
        for at in (0..self.nodes.len()).rev() {
            let first = match self.nodes[at].parent {
                Some(PathId(parent)) => &mut first_child[parent as usize],
                None => &mut first_top,
            };
            next[at] = std::mem::replace(first, at as u32);
        }
        let mut open = vec![0_u32; labels.iter().max().map_or(0, |last| *last as usize + 1)];
        let mut repeated = vec![false; self.nodes.len()];
        let mut at = first_top;
        while at != TOP {
            let node = at as usize;
            let label = labels[node] as usize;
            repeated[node] = open[label] > 0;
            open[label] += 1;
            at = first_child[node];
            let mut leave = Some(PathId(node as u32)).filter(|_| at == TOP);
            while let Some(PathId(node)) = leave {
                open[labels[node as usize] as usize] -= 1;
                at = next[node as usize];
                leave = self.nodes[node as usize].parent.filter(|_| at == TOP);
            }
        }
        repeated
    }

    /// Totals per region; the index is the region id, the length one more than the largest.
    pub fn region_totals(&self) -> Vec<RegionTotals> {
        let regions = self.nodes.iter().map(|node| node.region.0 as usize + 1).max().unwrap_or(0);
        let mut totals = vec![RegionTotals::default(); regions];
        for (node, recursive) in self.nodes.iter().zip(self.recursive()) {
            let total = &mut totals[node.region.0 as usize];
            if node.calls > 0 {
                total.min_ns = if total.calls == 0 { node.min_ns } else { total.min_ns.min(node.min_ns) };
            }
            total.max_ns = total.max_ns.max(node.max_ns);
            total.calls += node.calls;
            total.open += node.open;
            total.self_ns = total.self_ns.saturating_add(node.self_ns);
            if !recursive {
                total.primitive_calls += node.calls;
                total.inclusive_ns = total.inclusive_ns.saturating_add(node.inclusive_ns);
                total.wall_ns = total.wall_ns.saturating_add(node.wall_ns);
            }
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_stack::{Mode, RegionCalls, build_call_arrays};

    /// main [0 ................ 100]
    /// walk   [10 ..... 50] [60,70]
    /// walk     [20,30]
    fn recursion() -> PathTree {
        let main = RegionCalls::new("main", &[0], &[100]);
        let walk = RegionCalls::new("walk", &[10, 20, 60], &[50, 30, 70]);
        PathTree::from_calls(&build_call_arrays(&[main, walk], Mode::Default).unwrap())
    }

    #[test]
    fn a_recursion_counts_its_outermost_visits() {
        let totals = recursion().region_totals();
        let walk = &totals[1];
        assert_eq!((walk.calls, walk.primitive_calls), (3, 2));
        assert_eq!((walk.inclusive_ns, walk.self_ns), (50, 50));
        assert_eq!((walk.min_ns, walk.max_ns), (10, 40));
        assert_eq!(totals[0].self_ns, 50);
    }

    #[test]
    fn inclusive_is_self_and_children() {
        let tree = recursion();
        assert_eq!(tree.nodes().len(), 3);
        assert_eq!(tree.recursive(), [false, false, true]);
        assert_eq!(tree.recursive_steps(), [false, false, false]);
        assert_eq!(tree.nodes()[1].inclusive_ns, 50);
        assert_eq!(tree.nodes()[1].self_ns, 40);
        assert_eq!(tree.nodes()[2].inclusive_ns, 10);
    }

    #[test]
    fn sums_are_the_same_for_few_paths_and_for_many() {
        for deep in [5, 70_000] {
            let starts: Vec<i64> = (0..deep).collect();
            let ends: Vec<i64> = starts.iter().map(|start| 2 * deep - start).collect();
            let calls =
                build_call_arrays(&[RegionCalls::new("walk", &starts, &ends)], Mode::Default).unwrap();
            let (sums, all) = (PathTree::sums_of(&calls), PathTree::from_calls(&calls));
            let row = |node: &PathTotals| (node.parent, node.calls, node.inclusive_ns, node.self_ns);
            assert!(sums.nodes().iter().map(row).eq(all.nodes().iter().map(row)));
            assert_eq!(sums.nodes().len(), deep as usize);
        }
    }
}
