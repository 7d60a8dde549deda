//! Which call paths become frames, and how wide they are.
//!
//! ```text
//! main  self 20                     main ==================== 100
//!   step  self 30                     step ========== 50   other 30
//!     tiny  self 0.01 (left out)
//! ```
//!
//! What is left out stays inside the width of its parent, so the rest keeps its place.

use std::borrow::Cow;

use scope_runtime::profile::RegionId;
use scope_runtime::totals::PathId;

use crate::names::visible;
use crate::paths::NamedPaths;

/// Most levels that are drawn: 500 levels are eight screens, and no browser likes 100,000.
pub(super) const MAX_LEVELS: u32 = 500;

/// The widths of all call paths, by node.
pub(super) struct Frames {
    /// Self time and that of all paths below, in ns. Equal to inclusive time, unless a clock that
    /// stepped back made children longer than their parent: the picture has no negative widths.
    pub(super) width_ns: Vec<u64>,
    /// The part of `width_ns` that is not covered by a drawn child.
    bare_ns: Vec<u64>,
    /// Levels above each node.
    depth: Vec<u32>,
    drawn: Vec<bool>,
    /// Sum of the roots' widths.
    pub(super) total_ns: u64,
    /// Time of roots that are too narrow to be drawn.
    pub(super) narrow_roots_ns: u64,
    /// Levels below the last one that is drawn.
    pub(super) levels_left_out: u32,
    /// Paths too narrow to be drawn.
    pub(super) narrow: u64,
}

impl Frames {
    /// Widths of `paths`, leaving out what is less than `threshold_percent` of the whole.
    pub(super) fn new(paths: &NamedPaths, threshold_percent: f64) -> Frames {
        let mut frames = Frames::all(paths);
        let least_ns = threshold_percent / 100.0 * frames.total_ns as f64;
        let mut bare_ns = frames.width_ns.clone();
        for (index, node) in paths.paths.nodes().iter().enumerate() {
            let width_ns = frames.width_ns[index];
            if width_ns == 0 || (width_ns as f64) < least_ns {
                frames.narrow += 1;
                frames.narrow_roots_ns += if node.parent.is_none() { width_ns } else { 0 };
                continue;
            }
            let level = frames.depth[index] + 1;
            frames.levels_left_out = frames.levels_left_out.max(level.saturating_sub(MAX_LEVELS));
            // A path is never wider than its parent, so that one is drawn too.
            frames.drawn[index] = level <= MAX_LEVELS;
            if let (true, Some(parent)) = (frames.drawn[index], node.parent) {
                bare_ns[parent.0 as usize] -= width_ns;
            }
        }
        frames.bare_ns = bare_ns;
        frames
    }

    /// Widths and depths, nothing drawn yet.
    fn all(paths: &NamedPaths) -> Frames {
        let nodes = paths.paths.nodes();
        let own_ns = || nodes.iter().map(|node| node.self_ns.max(0) as u64);
        // A file may claim more than 292 years: then the shares are right, and not the times.
        let whole_ns: u128 = own_ns().map(u128::from).sum();
        let halved = (u128::BITS - whole_ns.leading_zeros()).saturating_sub(i64::BITS - 1);
        let mut width_ns: Vec<u64> = own_ns().map(|ns| ns >> halved).collect();
        let mut total_ns = 0;
        // Parents come before their children, so this goes from the leaves up.
        for (index, node) in nodes.iter().enumerate().rev() {
            let path_ns = width_ns[index];
            match node.parent {
                Some(parent) => width_ns[parent.0 as usize] += path_ns,
                None => total_ns += path_ns,
            }
        }
        let mut depth = vec![0; nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            depth[index] = node.parent.map_or(0, |parent| depth[parent.0 as usize] + 1);
        }
        Frames {
            bare_ns: Vec::new(),
            drawn: vec![false; nodes.len()],
            width_ns,
            depth,
            total_ns,
            narrow_roots_ns: 0,
            levels_left_out: 0,
            narrow: 0,
        }
    }

    /// The drawn nodes, parents before children, siblings by name.
    pub(super) fn in_order(&self, paths: &NamedPaths) -> Vec<usize> {
        let children = paths.children();
        let ranks = name_order(paths);
        let mut order = Vec::new();
        let mut siblings: Vec<PathId> = Vec::new();
        // A stack of its own: the tree may be deeper than the thread's.
        let mut pending: Vec<PathId> = Vec::new();
        let mut next = Some(children.roots());
        while let Some(nodes) = next {
            siblings.clear();
            siblings.extend(nodes.iter().filter(|node| self.drawn[node.0 as usize]));
            siblings.sort_by_key(|node| {
                std::cmp::Reverse(ranks[paths.paths.nodes()[node.0 as usize].region.0 as usize])
            });
            pending.append(&mut siblings);
            next = pending.pop().map(|node| {
                order.push(node.0 as usize);
                children.of(node)
            });
        }
        order
    }

    /// Folded stacks of the drawn paths, in order, each with the time that no child covers.
    pub(super) fn stacks<'a>(
        &'a self,
        paths: &NamedPaths,
        name: impl Fn(usize) -> Cow<'a, str> + 'a,
    ) -> impl Iterator<Item = String> + 'a {
        let mut stack = String::new();
        let mut ends: Vec<usize> = Vec::new();
        self.in_order(paths).into_iter().filter_map(move |node| {
            ends.truncate(self.depth[node] as usize);
            stack.truncate(ends.last().copied().unwrap_or(0));
            if !stack.is_empty() {
                stack.push(';');
            }
            stack.push_str(&name(node));
            ends.push(stack.len());
            (self.bare_ns[node] > 0).then(|| format!("{stack} {}", self.bare_ns[node]))
        })
    }
}

/// For each region its place in the order of names.
fn name_order(paths: &NamedPaths) -> Vec<u32> {
    let highest = paths.paths.nodes().iter().map(|node| node.region.0 + 1).max().unwrap_or(0);
    let mut regions: Vec<u32> = (0..highest).collect();
    regions.sort_by_cached_key(|&region| visible(paths.name(RegionId(region))).into_owned());
    let mut ranks = vec![0; regions.len()];
    regions.iter().zip(0..).for_each(|(&region, rank)| ranks[region as usize] = rank);
    ranks
}
