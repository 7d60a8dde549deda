//! Adds the calls of a lane to a tree of paths.
//!
//! A poll hangs below what was running on its thread when it began: in another poll below that call's
//! path; else it is the top of a task of its own, whatever region of the thread waits for it. Its time
//! is never that region's own.

use std::collections::{BTreeMap, HashMap};

use crate::clock::TickScale;
use crate::fold::{Begun, Folded, Parent};
use crate::regions::Regions;
use crate::replay::{Cut, Ended, Poll, Visitor};
use crate::totals::{PathId, PathTotals, PathTree, Whole};

/// Adds the calls of a lane to a tree of paths. Region ids in it are those of [`Regions`].
pub(in crate::recording) struct Totaller<'a> {
    pub(in crate::recording) regions: &'a Regions,
    pub(in crate::recording) scale: TickScale,
    totals: LaneTotals,
    /// How to hang what was started elsewhere; else it is at the top.
    pub(in crate::recording) hang: Option<Hang<'a>>,
    started_at: u64,
    /// Per path what is not in the tree yet: sums of calls that ran from begin to end.
    sums: Vec<Sums>,
    open: Vec<OpenPath>,
    /// Positions in `open` of what is being polled.
    polls: Vec<usize>,
    /// Path and begin of calls that were set aside, by instance.
    aside: HashMap<u64, Vec<(PathId, i64)>>,
}

/// What the calls of a lane add up to.
pub(in crate::recording) struct LaneTotals {
    pub(in crate::recording) tree: PathTree,
    pub(in crate::recording) pending: Pending,
    /// Calls that were cut.
    pub(in crate::recording) cut: u64,
    /// Whether there were polls.
    pub(in crate::recording) is_async: bool,
    /// The path at each position that is watched.
    pub(in crate::recording) marks: Vec<(u64, PathId)>,
}

/// Sums over calls of one path that came to their own end: all that one of them changes, in less than
/// a line of the cache. Times in ns.
#[derive(Clone, Copy)]
struct Sums {
    calls: u64,
    duration: i64,
    own: i64,
    min: i64,
    max: i64,
}

impl Sums {
    const NONE: Sums = Sums { calls: 0, duration: 0, own: 0, min: i64::MAX, max: 0 };

    #[inline]
    fn add(&mut self, duration_ns: i64, self_ns: i64) {
        self.calls += 1;
        self.duration = self.duration.saturating_add(duration_ns);
        self.own = self.own.saturating_add(self_ns);
        self.min = self.min.min(duration_ns);
        self.max = self.max.max(duration_ns);
    }
}

/// Where what was started elsewhere belongs.
#[derive(Clone, Copy)]
pub(in crate::recording) struct Hang<'a> {
    /// The path at each position.
    pub(in crate::recording) paths: &'a HashMap<u64, PathId>,
    /// The position at which each instance was started.
    pub(in crate::recording) instances: &'a HashMap<u64, u64>,
}

struct OpenPath {
    path: PathId,
    /// Begin of the call.
    first_ns: i64,
    /// Begin of this part of it.
    start_ns: i64,
    children_ns: i64,
}

/// Instances of async regions that have begun and not ended, by path and by how many sessions had
/// ended before: their number, and the sum of the ns of their begins. One that ends on another
/// thread than it began on is taken from that sum there.
#[derive(Debug, Default)]
pub(in crate::recording) struct Pending(BTreeMap<(PathId, u32), (i64, i64)>);

impl Pending {
    fn add(&mut self, path: PathId, session: u32, count: i64, start_ns: i64) {
        let (begun, starts_ns) = self.0.entry((path, session)).or_default();
        *begun += count;
        *starts_ns = starts_ns.wrapping_add(start_ns.wrapping_mul(count.signum()));
    }

    /// Adds what was found on another lane, whose paths are at `paths` here.
    pub(in crate::recording) fn add_all(&mut self, other: Pending, paths: &[PathId]) {
        for ((path, session), (count, sum_ns)) in other.0 {
            let (begun, starts_ns) = self.0.entry((paths[path.0 as usize], session)).or_default();
            *begun += count;
            *starts_ns = starts_ns.wrapping_add(sum_ns);
        }
    }

    /// Counts in `tree` what has not ended: cut at the end of its session, which `end_ns` gives.
    /// Gives the number of calls. Of several on one path only the sum of their times is known, so
    /// shortest and longest are the mean.
    pub(in crate::recording) fn cut(
        mut self,
        tree: &mut PathTree,
        mut end_ns: impl FnMut(u32) -> i64,
    ) -> u64 {
        self.move_ended(tree);
        let mut calls = 0;
        for ((path, session), (begun, starts_ns)) in self.0 {
            if begun > 0 {
                let wall_ns = begun.wrapping_mul(end_ns(session)).wrapping_sub(starts_ns).max(0);
                let (open, mean_ns) = (begun as u64, wall_ns / begun);
                let whole =
                    Whole { calls: open, open, cancelled: 0, wall_ns, min_ns: mean_ns, max_ns: mean_ns };
                tree.add_whole(path, &whole);
                calls += open;
            }
        }
        calls
    }

    /// A future that was moved into another call before it ended has begun on one path and ended on
    /// another one, where there are more ends than begins now.
    fn move_ended(&mut self, tree: &PathTree) {
        let region = |path: &PathId| tree.nodes()[path.0 as usize].region;
        let ended: Vec<_> =
            self.0.extract_if(.., |_, (begun, _)| *begun < 0).map(|(key, sums)| (key, sums)).collect();
        for ((path, session), (mut ends, mut starts_ns)) in ended {
            let same = |key: &(PathId, u32)| key.1 == session && region(&key.0) == region(&path);
            for (_, (begun, sum_ns)) in self.0.iter_mut().filter(|(key, (begun, _))| same(key) && *begun > 0)
            {
                let moved = (-ends).min(*begun);
                let part_ns = if moved == -ends { starts_ns } else { starts_ns / -ends * moved };
                *begun -= moved;
                *sum_ns = sum_ns.wrapping_add(part_ns);
                ends += moved;
                starts_ns = starts_ns.wrapping_sub(part_ns);
                if ends == 0 {
                    break;
                }
            }
        }
    }
}

impl<'a> Totaller<'a> {
    pub(in crate::recording) fn new(
        regions: &'a Regions,
        scale: TickScale,
        tree: PathTree,
        pending: Pending,
    ) -> Self {
        let totals = LaneTotals { tree, pending, cut: 0, is_async: false, marks: Vec::new() };
        let (sums, open, polls, aside) = Default::default();
        Totaller { regions, scale, totals, hang: None, started_at: 0, sums, open, polls, aside }
    }

    /// What the calls add up to.
    pub(in crate::recording) fn finish(mut self) -> LaneTotals {
        for (path, sums) in (0..).map(PathId).zip(self.sums).filter(|(_, sums)| sums.calls > 0) {
            let Sums { calls, duration: wall_ns, own, min: min_ns, max: max_ns } = sums;
            self.totals.tree.add_part(path, wall_ns, own);
            let whole = Whole { calls, open: 0, cancelled: 0, wall_ns, min_ns, max_ns };
            self.totals.tree.add_whole(path, &whole);
        }
        self.totals
    }

    /// The path for `region` below the innermost frame.
    #[inline]
    fn step(&mut self, region: u32) -> PathId {
        let parent = match self.open.last() {
            Some(open) => Some(open.path),
            None => self.top(Some(self.started_at)),
        };
        self.totals.tree.step(parent, self.regions.id(region))
    }

    /// Adds a call that ran from begin to end.
    #[inline]
    fn add_call(&mut self, path: PathId, duration_ns: i64, self_ns: i64) {
        let path = path.0 as usize;
        if path >= self.sums.len() {
            self.sums.resize(self.totals.tree.nodes().len(), Sums::NONE);
        }
        self.sums[path].add(duration_ns, self_ns);
    }

    /// The path below which something hangs that has nothing around it.
    fn top(&self, started_at: Option<u64>) -> Option<PathId> {
        self.hang?.paths.get(&started_at?).copied()
    }

    /// Adds what was kept in totals. `dead` frames were open further out that nobody counts.
    pub(in crate::recording) fn join(&mut self, folded: &Folded, dead: u64) {
        let ns = |ticks: u64| self.scale.span_ns(ticks);
        let mut children_ns: Vec<i64> = folded.nodes.iter().map(|node| ns(node.elsewhere)).collect();
        for node in &folded.nodes {
            if let Parent::Node(parent) = node.parent {
                children_ns[parent as usize] += ns(node.inclusive);
            }
        }
        let index_of = |depth: u64| depth.checked_sub(dead + 1).and_then(|index| usize::try_from(index).ok());
        for (&depth, &ticks) in &folded.inherited_elsewhere {
            if let Some(call) = index_of(depth).and_then(|index| self.open.get_mut(index)) {
                call.children_ns += ns(ticks);
            }
        }
        let mut paths: Vec<PathId> = Vec::with_capacity(folded.nodes.len());
        for (node, children_ns) in folded.nodes.iter().zip(children_ns) {
            let inclusive_ns = ns(node.inclusive);
            let parent = match node.parent {
                Parent::Node(parent) => Some(paths[parent as usize]),
                Parent::Inherited(depth) | Parent::Task(depth) => {
                    let index = index_of(depth).filter(|&index| index < self.open.len());
                    let is_task = matches!(node.parent, Parent::Task(_));
                    index.and_then(|index| {
                        if !is_task {
                            self.open[index].children_ns += inclusive_ns;
                        }
                        let nested = !is_task || self.polls.first().is_some_and(|&first| first <= index);
                        nested.then_some(self.open[index].path)
                    })
                }
            };
            let path = self.totals.tree.step(parent, self.regions.id(node.region));
            paths.push(path);
            self.totals.cut += node.cut;
            self.totals.tree.add_totals(
                path,
                &PathTotals {
                    parent,
                    region: self.regions.id(node.region),
                    calls: node.calls,
                    open: node.cut,
                    cancelled: node.cancelled,
                    inclusive_ns,
                    self_ns: inclusive_ns - children_ns,
                    wall_ns: inclusive_ns + self.scale.signed_span_ns(node.waited),
                    min_ns: ns(node.min.min(node.max)),
                    max_ns: ns(node.max),
                },
            );
        }
        self.totals.is_async |= folded.nodes.iter().any(|node| node.waited != 0) || !folded.begun.is_empty();
        for (&(node, session), begun) in &folded.begun {
            self.add_begun(paths[node as usize], session, begun);
        }
    }

    fn add_begun(&mut self, path: PathId, session: u32, begun: &Begun) {
        let starts_ns = self.scale.sum_ns(begun.count, begun.starts);
        let (count, sum_ns) = self.totals.pending.0.entry((path, session)).or_default();
        *count += begun.count;
        *sum_ns = sum_ns.wrapping_add(starts_ns);
    }

    /// Ends the innermost frame, or a part of it, and adds it to what the one around it called.
    #[inline]
    fn close_part(&mut self, at: u64) -> Option<(OpenPath, i64)> {
        let frame = self.open.pop()?;
        let duration_ns = self.scale.ns(at) - frame.start_ns;
        if let Some(around) = self.open.last_mut() {
            around.children_ns += duration_ns;
        }
        Some((frame, duration_ns))
    }
}

impl Visitor for Totaller<'_> {
    #[inline(always)]
    fn enter(&mut self, region: u32, at: u64) {
        let at_ns = self.scale.ns(at);
        let path = self.step(region);
        self.open.push(OpenPath { path, first_ns: at_ns, start_ns: at_ns, children_ns: 0 });
    }

    #[inline(always)]
    fn leave(&mut self, at: u64, cut: Cut) {
        let Some((call, duration_ns)) = self.close_part(at) else { return };
        let (self_ns, open) = (duration_ns - call.children_ns, cut == Cut::Open);
        if call.first_ns == call.start_ns && !open {
            self.add_call(call.path, duration_ns, self_ns);
        } else {
            self.totals.tree.add_part(call.path, duration_ns, self_ns);
            let wall_ns = call.start_ns + duration_ns - call.first_ns;
            self.totals.tree.add_whole(call.path, &Whole::one(wall_ns, open, false));
        }
        self.totals.cut += u64::from(open);
    }

    #[inline(always)]
    fn leaf(&mut self, region: u32, start: u64, end: u64) {
        let duration_ns = self.scale.ns(end) - self.scale.ns(start);
        let path = self.step(region);
        self.add_call(path, duration_ns, duration_ns);
        if let Some(around) = self.open.last_mut() {
            around.children_ns += duration_ns;
        }
    }

    fn begin_poll(&mut self, poll: Poll, at: u64) {
        let at_ns = self.scale.ns(at);
        let parent = if poll.nested {
            self.open.last().map(|open| open.path)
        } else {
            self.top(self.hang.and_then(|hang| hang.instances.get(&poll.instance).copied()))
        };
        let path = self.totals.tree.step(parent, self.regions.id(poll.region));
        if poll.first {
            self.totals.pending.add(path, poll.session, 1, self.scale.ns(poll.start));
        }
        self.totals.is_async = true;
        self.polls.push(self.open.len());
        self.open.push(OpenPath { path, first_ns: at_ns, start_ns: at_ns, children_ns: 0 });
    }

    fn end_poll(&mut self, ended: Option<Ended>, at: u64) {
        self.polls.pop();
        let Some((OpenPath { path, start_ns, children_ns, .. }, duration_ns)) = self.close_part(at) else {
            return;
        };
        self.totals.tree.add_part(path, duration_ns, duration_ns - children_ns);
        if let Some(ended) = ended {
            let first_ns = self.scale.ns(ended.start);
            self.totals.pending.add(path, ended.session, -1, first_ns);
            let wall_ns = (start_ns + duration_ns - first_ns).max(0);
            self.totals.tree.add_whole(path, &Whole::one(wall_ns, false, ended.cancelled));
        }
    }

    fn started_at(&mut self, position: u64) {
        self.totals.is_async = true;
        self.started_at = position;
    }

    fn mark(&mut self, position: u64) {
        let path = self.open.last().map(|open| open.path).or_else(|| self.top(Some(self.started_at)));
        self.totals.marks.extend(path.map(|path| (position, path)));
    }

    fn suspend(&mut self, instance: u64, at: u64) {
        if let Some((call, duration_ns)) = self.close_part(at) {
            self.totals.tree.add_part(call.path, duration_ns, duration_ns - call.children_ns);
            self.aside.entry(instance).or_default().push((call.path, call.first_ns));
        }
    }

    fn resume(&mut self, instance: u64, at: u64) {
        let aside = self.aside.get_mut(&instance).and_then(Vec::pop);
        if let Some((path, first_ns)) = aside {
            let start_ns = self.scale.ns(at);
            self.open.push(OpenPath { path, first_ns, start_ns, children_ns: 0 });
        }
    }
}
