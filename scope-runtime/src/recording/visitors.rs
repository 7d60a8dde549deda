//! What is made of a lane's calls: totals, or the calls themselves.

use crate::clock::TickScale;
use crate::fold::{Folded, Parent};
use crate::recording::{Call, Recording};
use crate::regions::Regions;
use crate::replay::{Cut, Visitor};
use crate::totals::{PathId, PathTotals, PathTree};

/// Adds the calls of a lane to a tree of paths. Region ids in it are those of [`Regions`].
pub(super) struct Totaller<'a> {
    pub(super) regions: &'a Regions,
    pub(super) scale: TickScale,
    pub(super) tree: PathTree,
    pub(super) open: Vec<OpenPath>,
    pub(super) cut: u64,
}

pub(super) struct OpenPath {
    pub(super) path: PathId,
    start_ns: i64,
    children_ns: i64,
}

impl Totaller<'_> {
    /// Adds what was kept in totals. `dead` calls were open further out that nobody counts.
    pub(super) fn join(&mut self, folded: &Folded, dead: u64) {
        let ns = |ticks: u64| self.scale.span_ns(ticks);
        let mut children_ns = vec![0; folded.nodes.len()];
        for node in &folded.nodes {
            if let Parent::Node(parent) = node.parent {
                let sum: &mut i64 = &mut children_ns[parent as usize];
                *sum = sum.saturating_add(ns(node.inclusive));
            }
        }
        let mut paths: Vec<PathId> = Vec::with_capacity(folded.nodes.len());
        for (node, children_ns) in folded.nodes.iter().zip(children_ns) {
            let inclusive_ns = ns(node.inclusive);
            let parent = match node.parent {
                Parent::Node(parent) => Some(paths[parent as usize]),
                Parent::Inherited(depth) => {
                    let index = depth
                        .checked_sub(dead.saturating_add(1))
                        .and_then(|index| usize::try_from(index).ok());
                    let call = index.and_then(|index| self.open.get_mut(index));
                    call.map(|call| {
                        call.children_ns = call.children_ns.saturating_add(inclusive_ns);
                        call.path
                    })
                }
            };
            let path = self.tree.step(parent, self.regions.id(node.region));
            paths.push(path);
            self.cut = self.cut.saturating_add(node.cut);
            self.tree.add_totals(
                path,
                &PathTotals {
                    parent,
                    region: self.regions.id(node.region),
                    calls: node.calls,
                    open: node.cut,
                    inclusive_ns,
                    self_ns: inclusive_ns.saturating_sub(children_ns),
                    min_ns: ns(node.min.min(node.max)),
                    max_ns: ns(node.max),
                },
            );
        }
    }
}

impl Visitor for Totaller<'_> {
    fn enter(&mut self, region: u32, at: u64) {
        let at_ns = self.scale.ns(at);
        let parent = self.open.last().map(|open| open.path);
        let path = self.tree.step(parent, self.regions.id(region));
        self.open.push(OpenPath { path, start_ns: at_ns, children_ns: 0 });
    }

    fn leave(&mut self, at: u64, cut: Cut) {
        let Some(call) = self.open.pop() else { return };
        let duration_ns = self.scale.ns(at).saturating_sub(call.start_ns);
        let open = cut == Cut::Open;
        self.tree.add_call(call.path, duration_ns, duration_ns.saturating_sub(call.children_ns), open);
        self.cut += u64::from(open);
        if let Some(parent) = self.open.last_mut() {
            parent.children_ns = parent.children_ns.saturating_add(duration_ns);
        }
    }
}

pub(super) struct CallCollector<'a> {
    pub(super) recording: &'a Recording,
    pub(super) calls: Vec<Call>,
    pub(super) open: Vec<u32>,
}

impl Visitor for CallCollector<'_> {
    fn enter(&mut self, region: u32, at: u64) {
        let at_ns = self.recording.scale.ns(at);
        let region = self.recording.regions.called_id(region);
        let parent = self.open.last().copied();
        self.open.push(u32::try_from(self.calls.len()).expect("fewer than 2^32 calls on a lane"));
        self.calls.push(Call { region, start_ns: at_ns, end_ns: at_ns, parent, open: false });
    }

    fn leave(&mut self, at: u64, cut: Cut) {
        let Some(call) = self.open.pop() else { return };
        let at_ns = self.recording.scale.ns(at);
        let call = &mut self.calls[call as usize];
        (call.end_ns, call.open) = (at_ns, cut == Cut::Open);
    }
}
