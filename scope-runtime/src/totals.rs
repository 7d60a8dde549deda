//! Totals per call path: a tree whose nodes sum the calls that share one path.
//!
//! Input comes from the replay of a recording or from reconstructed call columns; all sums are
//! exact integers in ns, so that for every node inclusive = self + sum of children's inclusive.

use std::collections::HashMap;

use crate::profile::RegionId;

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
    /// Sum of durations.
    pub inclusive_ns: i64,
    /// Sum of durations minus those of direct children.
    pub self_ns: i64,
    /// Shortest duration; 0 without calls.
    pub min_ns: i64,
    /// Longest duration; 0 without calls.
    pub max_ns: i64,
}

/// The tree of call paths; parents come before their children.
#[derive(Clone, Debug, Default)]
pub struct PathTree {
    nodes: Vec<PathTotals>,
    by_step: HashMap<(Option<PathId>, RegionId), PathId>,
}

impl PathTree {
    /// All nodes, parents before children; the index is the [`PathId`].
    pub fn nodes(&self) -> &[PathTotals] {
        &self.nodes
    }

    /// The node below `parent` for `region`, made when it is not there yet.
    pub fn step(&mut self, parent: Option<PathId>, region: RegionId) -> PathId {
        *self.by_step.entry((parent, region)).or_insert_with(|| {
            let id = PathId(u32::try_from(self.nodes.len()).expect("fewer than 2^32 call paths"));
            self.nodes.push(PathTotals {
                parent,
                region,
                calls: 0,
                open: 0,
                inclusive_ns: 0,
                self_ns: 0,
                min_ns: 0,
                max_ns: 0,
            });
            id
        })
    }

    /// The same tree with each region replaced; `to` must give different regions different ids.
    pub(crate) fn map_regions(mut self, mut to: impl FnMut(RegionId) -> RegionId) -> PathTree {
        self.by_step.clear();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.region = to(node.region);
            self.by_step.insert((node.parent, node.region), PathId(index as u32));
        }
        self
    }

    /// Adds one call of `duration_ns`, of which `self_ns` outside its children.
    pub fn add_call(&mut self, path: PathId, duration_ns: i64, self_ns: i64, open: bool) {
        let node = &mut self.nodes[path.0 as usize];
        node.min_ns = if node.calls == 0 { duration_ns } else { node.min_ns.min(duration_ns) };
        node.max_ns = node.max_ns.max(duration_ns);
        node.calls += 1;
        node.open += u64::from(open);
        node.inclusive_ns += duration_ns;
        node.self_ns += self_ns;
    }
    /// Adds the sums of another node, such as the same call path on another rank.
    pub fn add_totals(&mut self, path: PathId, other: &PathTotals) {
        if other.calls == 0 {
            return;
        }
        let node = &mut self.nodes[path.0 as usize];
        node.min_ns = if node.calls == 0 { other.min_ns } else { node.min_ns.min(other.min_ns) };
        node.max_ns = node.max_ns.max(other.max_ns);
        node.calls += other.calls;
        node.open += other.open;
        node.inclusive_ns += other.inclusive_ns;
        node.self_ns += other.self_ns;
    }
}
