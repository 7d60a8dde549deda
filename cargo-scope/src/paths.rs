//! Call paths with the names of their regions: what the summary and the flame graph show.
//!
//! Paths of several ranks or recordings are added up by name, since region numbers are per rank.

use std::collections::HashMap;

use scope_runtime::profile::{Profile, RegionId};
use scope_runtime::totals::{PathId, PathTotals, PathTree};

/// A tree of call paths and the names that its regions stand for.
#[derive(Clone, Debug, Default)]
pub struct NamedPaths {
    /// Names; the index is the [`RegionId`] of `paths`.
    pub names: Vec<String>,
    /// Totals per call path.
    pub paths: PathTree,
    /// How long all of it took, in ns, where these are regions, which are inside each other; `None` where that
    /// is the sum of the roots.
    pub whole_ns: Option<i64>,
}

impl NamedPaths {
    /// A tree of call paths; the index of a name is its [`RegionId`].
    pub fn new(names: Vec<String>, paths: PathTree) -> NamedPaths {
        NamedPaths { names, paths, whole_ns: None }
    }

    /// The call paths of one recording.
    pub fn of_profile(profile: &Profile) -> NamedPaths {
        let names = profile.regions.iter().map(|region| region.name.clone()).collect();
        NamedPaths::new(names, profile.paths.clone())
    }

    /// The sums over several trees.
    ///
    /// # Examples
    /// ```
    /// use cargo_scope::paths::NamedPaths;
    /// use scope_runtime::profile::RegionId;
    ///
    /// let rank = |names: [&str; 2]| {
    ///     let mut tree = NamedPaths { names: names.map(String::from).to_vec(), ..NamedPaths::default() };
    ///     let main = tree.paths.step(None, RegionId(1));
    ///     tree.paths.add_call(main, 100, 100, false);
    ///     tree
    /// };
    /// let all = NamedPaths::merged(&[rank(["step", "main"]), rank(["other", "main"])]);
    /// assert_eq!((all.names.as_slice(), all.paths.nodes()[0].calls), (&["main".to_string()][..], 2));
    /// ```
    pub fn merged<'a>(trees: impl IntoIterator<Item = &'a NamedPaths>) -> NamedPaths {
        let mut merged = NamedPaths::default();
        let mut ids = HashMap::new();
        for tree in trees {
            merged.add(&mut ids, tree);
        }
        merged
    }

    /// Adds one tree; `ids` has the region of every name so far. Gives where each of its paths went.
    pub(crate) fn add(&mut self, ids: &mut HashMap<String, RegionId>, tree: &NamedPaths) -> Vec<PathId> {
        if let Some(whole_ns) = tree.whole_ns {
            self.whole_ns = Some(self.whole_ns.unwrap_or(0).saturating_add(whole_ns));
        }
        let mut paths: Vec<PathId> = Vec::with_capacity(tree.paths.nodes().len());
        for node in tree.paths.nodes() {
            let name = tree.name(node.region);
            let region = ids.get(name).copied().unwrap_or_else(|| {
                let region = RegionId(self.names.len() as u32);
                self.names.push(name.to_string());
                ids.insert(name.to_string(), region);
                region
            });
            let path = self.paths.step(node.parent.map(|parent| paths[parent.0 as usize]), region);
            self.paths.add_totals(path, node);
            paths.push(path);
        }
        paths
    }

    /// The regions as paths of one step, with the inclusive time of their outermost calls.
    pub(crate) fn by_region(&self) -> NamedPaths {
        let all = self.paths.region_totals();
        // Of those of which a path is there.
        let mut cancelled: Vec<Option<u64>> = vec![None; all.len()];
        for node in self.paths.nodes() {
            let sum = cancelled[node.region.0 as usize].get_or_insert_default();
            *sum = sum.saturating_add(node.cancelled);
        }
        let mut regions = PathTree::default();
        for ((region, totals), cancelled) in (0..).map(RegionId).zip(all).zip(cancelled) {
            let Some(cancelled) = cancelled else { continue };
            let path = regions.step(None, region);
            regions.add_totals(
                path,
                &PathTotals {
                    parent: None,
                    region,
                    calls: totals.calls,
                    open: totals.open,
                    cancelled,
                    inclusive_ns: totals.inclusive_ns,
                    self_ns: totals.self_ns,
                    wall_ns: totals.wall_ns,
                    min_ns: totals.min_ns,
                    max_ns: totals.max_ns,
                },
            );
        }
        NamedPaths { names: self.names.clone(), paths: regions, whole_ns: Some(self.whole_ns()) }
    }

    /// How long all of it took, in ns.
    pub(crate) fn whole_ns(&self) -> i64 {
        if let Some(whole_ns) = self.whole_ns {
            return whole_ns;
        }
        let roots = || self.paths.nodes().iter().filter(|node| node.parent.is_none());
        // A file of regions alone says nothing of what is inside what.
        let is_flat = roots().count() == self.paths.nodes().len();
        roots()
            .map(|node| if is_flat { node.self_ns } else { node.inclusive_ns })
            .fold(0, i64::saturating_add)
    }

    /// The name of `region`; empty when it has none.
    pub fn name(&self, region: RegionId) -> &str {
        self.names.get(region.0 as usize).map_or("", String::as_str)
    }

    /// The children of every node, and at the end of the list the roots, each in node order.
    pub(crate) fn children(&self) -> Children {
        Children::new(&self.paths)
    }
}

/// The children of all nodes in one list: no allocation per node, also with a million paths.
pub(crate) struct Children {
    /// Where a node's children begin in `nodes`; the roots are the last run.
    begins: Vec<u32>,
    nodes: Vec<PathId>,
}

impl Children {
    fn new(paths: &PathTree) -> Children {
        let slots = paths.nodes().len() + 1;
        let slot = |parent: Option<PathId>| parent.map_or(slots - 1, |parent| parent.0 as usize);
        let mut begins = vec![0u32; slots + 1];
        paths.nodes().iter().for_each(|node| begins[slot(node.parent) + 1] += 1);
        (1..begins.len()).for_each(|at| begins[at] += begins[at - 1]);
        let mut next = begins.clone();
        let mut nodes = vec![PathId(0); slots - 1];
        for (id, node) in (0..).map(PathId).zip(paths.nodes()) {
            let at = &mut next[slot(node.parent)];
            nodes[*at as usize] = id;
            *at += 1;
        }
        Children { begins, nodes }
    }

    /// The nodes without a parent.
    pub(crate) fn roots(&self) -> &[PathId] {
        self.run(self.begins.len() - 2)
    }

    /// The children of `node`.
    pub(crate) fn of(&self, node: PathId) -> &[PathId] {
        self.run(node.0 as usize)
    }

    fn run(&self, slot: usize) -> &[PathId] {
        &self.nodes[self.begins[slot] as usize..self.begins[slot + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(names: &[&str]) -> NamedPaths {
        let mut paths = PathTree::default();
        let root = paths.step(None, RegionId(0));
        let child = paths.step(Some(root), RegionId(1));
        paths.add_call(child, 10, 10, false);
        paths.add_call(root, 30, 20, true);
        NamedPaths::new(names.iter().map(|name| name.to_string()).collect(), paths)
    }

    #[test]
    fn paths_are_added_up_by_name() {
        let merged = NamedPaths::merged([&tree(&["main", "step"]), &tree(&["main", "other"])]);
        assert_eq!(merged.names, ["main", "step", "other"]);
        let sums = merged.paths.nodes().iter();
        let sums: Vec<_> =
            sums.map(|node| (node.region.0, node.calls, node.inclusive_ns, node.open)).collect();
        assert_eq!(sums, [(0, 2, 60, 2), (1, 1, 10, 0), (2, 1, 10, 0)]);
        assert_eq!(merged.children().roots(), [PathId(0)]);
        assert_eq!(merged.children().of(PathId(0)), [PathId(1), PathId(2)]);
    }
}
