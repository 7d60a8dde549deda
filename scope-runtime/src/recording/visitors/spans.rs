//! Spans that may go on after a part has ended, on whatever lane.
//!
//! A span counts as a call when its first part ends, and each later part makes it longer; how long it
//! was in the end, and so whether it was the shortest or the longest, is known when all lanes are read.

use std::collections::HashMap;

use crate::totals::{PathId, PathTree, Whole};

/// The spans of which a part has ended and a later one may come, by number.
#[derive(Debug, Default)]
pub(super) struct UnsettledSpans(HashMap<u64, Unsettled>);

/// Times in ns.
#[derive(Clone, Copy, Debug)]
struct Unsettled {
    /// Path and begin of the first part, where that was read already.
    first: Option<(PathId, i64)>,
    last_ns: i64,
    /// What later parts on lanes without the first add to the call, and the path of one of them.
    owed: Option<(PathId, Whole)>,
}

impl UnsettledSpans {
    fn entry(&mut self, instance: u64) -> &mut Unsettled {
        self.0.entry(instance).or_insert(Unsettled { first: None, last_ns: i64::MIN, owed: None })
    }

    /// A part on `path` makes a call longer whose first part was not read yet.
    pub(super) fn owe(&mut self, instance: u64, path: PathId, wall_ns: i64, open: bool) {
        self.entry(instance).add_owed(path, &longer(wall_ns, open));
    }

    /// Adds what was found on another lane, whose paths are at `paths` here.
    pub(super) fn add_all(&mut self, other: UnsettledSpans, paths: &[PathId]) {
        let here = |path: PathId| paths[path.0 as usize];
        for (instance, span) in other.0 {
            let known = self.entry(instance);
            known.first = known.first.or(span.first.map(|(path, start_ns)| (here(path), start_ns)));
            known.last_ns = known.last_ns.max(span.last_ns);
            if let Some((path, owed)) = span.owed {
                known.add_owed(here(path), &owed);
            }
        }
    }

    /// Where the span counts, if its first part was read.
    pub(super) fn path(&self, instance: u64) -> Option<PathId> {
        self.0.get(&instance)?.first.map(|(path, _)| path)
    }

    /// The first part of a span has ended.
    pub(super) fn begin(&mut self, instance: u64, path: PathId, start_ns: i64, end_ns: i64) {
        let span = self.entry(instance);
        span.first = Some((path, start_ns));
        span.last_ns = span.last_ns.max(end_ns);
    }

    /// A later part has ended.
    pub(super) fn extend(&mut self, instance: u64, end_ns: i64) {
        let span = self.entry(instance);
        span.last_ns = span.last_ns.max(end_ns);
    }

    /// A span has ended with its part on this lane; where its first part is on a lane that comes later,
    /// it is kept for that.
    pub(super) fn end(&mut self, instance: u64, end_ns: i64, tree: &mut PathTree) {
        self.extend(instance, end_ns);
        if self.path(instance).is_some()
            && let Some(span) = self.0.remove(&instance)
        {
            span.settle(tree);
        }
    }

    /// Settles those that are left: they have ended with their last part.
    pub(super) fn settle(self, tree: &mut PathTree) {
        self.0.into_values().for_each(|span| span.settle(tree));
    }
}

impl Unsettled {
    fn add_owed(&mut self, path: PathId, more: &Whole) {
        let (_, owed) = self.owed.get_or_insert((path, longer(0, false)));
        owed.wall_ns = owed.wall_ns.saturating_add(more.wall_ns);
        owed.open = owed.open.saturating_add(more.open);
    }

    fn settle(self, tree: &mut PathTree) {
        if let Some((path, owed)) = self.owed {
            tree.add_whole(self.first.map_or(path, |(path, _)| path), &owed);
        }
        if let Some((path, start_ns)) = self.first {
            tree.note_duration(path, self.last_ns.saturating_sub(start_ns));
        }
    }
}

/// A call that is counted now and whose duration is not known yet.
pub(super) fn counted(wall_ns: i64) -> Whole {
    Whole { calls: 1, wall_ns, min_ns: i64::MAX, ..Whole::default() }
}

/// What a later part adds to its call.
pub(super) fn longer(wall_ns: i64, open: bool) -> Whole {
    Whole { open: open.into(), wall_ns, min_ns: i64::MAX, ..Whole::default() }
}
