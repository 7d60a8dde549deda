//! Which call paths are shown: the first ones of an order, each with all that is above it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use scope_runtime::totals::PathId;

use super::Layout;
use crate::paths::NamedPaths;

/// The rows of the table, and what is not in it.
pub(super) struct Rows {
    /// Parents before children, siblings in their order.
    pub(super) shown: Vec<Shown>,
    /// Call paths that have no row.
    pub(super) left_out: u64,
    /// The longest busy time among them.
    pub(super) most_left_out_ns: i64,
    /// Levels of the whole tree.
    pub(super) levels: u32,
    /// Busy time of all that is there.
    pub(super) total_ns: i64,
}

/// One row.
pub(super) struct Shown {
    pub(super) path: PathId,
    /// Number of levels above.
    pub(super) depth: usize,
    /// Whether a later sibling is shown.
    pub(super) continues: bool,
}

/// Chooses the rows of `paths`; `places` has the place of each in the order.
pub(super) fn choose(paths: &NamedPaths, places: &[usize], layout: &Layout) -> Rows {
    let nodes = paths.paths.nodes();
    let children = paths.children();
    let mut depth = vec![1u32; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        depth[index] = node.parent.map_or(1, |parent| depth[parent.0 as usize] + 1);
    }
    // Best first: whatever is taken, its parent was taken before.
    let rank = |path: PathId| (Reverse(places[path.0 as usize]), path);
    let mut open: BinaryHeap<_> = children.roots().iter().map(|&path| rank(path)).collect();
    let total_ns = paths.whole_ns();
    let mut taken = vec![false; nodes.len()];
    let mut count = 0;
    while count < layout.max_rows {
        let Some((_, path)) = open.pop() else { break };
        taken[path.0 as usize] = true;
        count += 1;
        let node = &nodes[path.0 as usize];
        let goes_on = node.inclusive_ns as f64 >= layout.least_part * total_ns as f64;
        if goes_on && (depth[path.0 as usize] as usize) < layout.max_depth {
            open.extend(children.of(path).iter().map(|&child| rank(child)));
        }
    }
    let left_out = nodes.iter().zip(&taken).filter(|(_, taken)| !**taken).map(|(node, _)| node.inclusive_ns);
    Rows {
        left_out: (nodes.len() - count) as u64,
        most_left_out_ns: left_out.max().unwrap_or(0),
        levels: depth.iter().copied().max().unwrap_or(0),
        total_ns,
        shown: in_tree_order(paths, places, &taken),
    }
}

/// The taken rows as a tree is written.
fn in_tree_order(paths: &NamedPaths, places: &[usize], taken: &[bool]) -> Vec<Shown> {
    let children = paths.children();
    let mut shown: Vec<Shown> = Vec::new();
    let mut pending: Vec<Shown> = Vec::new();
    let push = |pending: &mut Vec<Shown>, siblings: &[PathId], depth: usize| {
        let mut siblings: Vec<_> = siblings.iter().copied().filter(|path| taken[path.0 as usize]).collect();
        // The last one comes off the stack first.
        siblings.sort_by_key(|path| Reverse(places[path.0 as usize]));
        for (place, path) in siblings.into_iter().enumerate() {
            pending.push(Shown { path, depth, continues: place > 0 });
        }
    };
    push(&mut pending, children.roots(), 0);
    while let Some(row) = pending.pop() {
        push(&mut pending, children.of(row.path), row.depth + 1);
        shown.push(row);
    }
    shown
}
