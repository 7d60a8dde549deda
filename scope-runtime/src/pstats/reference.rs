//! Sums over single calls in the order of the reference: the same floats, and its recursion test.
//!
//! Each call's ns become seconds on their own; these are added from left to right in call-id order.
//! Only the root's time is added pairwise, as NumPy's `sum` does.

use std::collections::BTreeMap;

use super::build::{NameRows, PathRow, Seconds, recursion};
use super::{PstatsOptions, Recursion, Sums};
use crate::call_stack::{CallArrays, NO_PARENT, NS_PER_SECOND};
use crate::totals::{PathId, PathTree};

fn seconds(ns: i64) -> f64 {
    ns as f64 / NS_PER_SECOND
}

pub(super) fn path_rows(calls: &CallArrays) -> Vec<PathRow> {
    let mut tree = PathTree::default();
    let paths = tree.paths_of(calls);
    let row = |node: &crate::totals::PathTotals| PathRow {
        parent: node.parent.map(|PathId(parent)| parent),
        region: node.region.0,
        sums: Seconds::default(),
    };
    let mut rows: Vec<PathRow> = tree.nodes().iter().map(row).collect();
    for (id, path) in paths.into_iter().enumerate() {
        let sums = &mut rows[path as usize].sums;
        sums.cc += 1;
        sums.nc += 1;
        sums.tt_s += seconds(calls.exclusive_ns[id]);
        sums.ct_s += seconds(calls.duration_ns(id));
    }
    rows
}

/// Sums in both kinds; one of them is asked for in the end.
#[derive(Clone, Copy, Default)]
struct BothSums {
    floats: Seconds,
    self_ns: i64,
    inclusive_ns: i64,
}

impl BothSums {
    fn add(&mut self, duration_ns: i64, exclusive_ns: i64, primitive: bool) {
        self.floats.nc += 1;
        self.floats.tt_s += seconds(exclusive_ns);
        self.self_ns = self.self_ns.saturating_add(exclusive_ns);
        if primitive {
            self.floats.cc += 1;
            self.floats.ct_s += seconds(duration_ns);
            self.inclusive_ns = self.inclusive_ns.saturating_add(duration_ns);
        }
    }

    fn get(self, sums: Sums) -> Seconds {
        match sums {
            Sums::Reference => self.floats,
            Sums::Exact => {
                Seconds { tt_s: seconds(self.self_ns), ct_s: seconds(self.inclusive_ns), ..self.floats }
            }
        }
    }
}

pub(super) fn name_rows(calls: &CallArrays, options: &PstatsOptions) -> NameRows {
    let primitive = match options.recursion {
        Recursion::Ancestors => primitive_by_ancestors(calls, options),
        Recursion::Reference => primitive_by_ends(calls),
    };
    let mut regions = vec![None; calls.regions.len()];
    let mut callers: BTreeMap<(u32, Option<u32>), BothSums> = BTreeMap::new();
    for (id, (primitive, primitive_step)) in primitive.into_iter().enumerate() {
        let region = calls.region_index.get(id);
        let caller = calls.parent_of(id).map(|parent| calls.region_index.get(parent) as u32);
        let (duration_ns, exclusive_ns) = (calls.duration_ns(id), calls.exclusive_ns[id]);
        let pair = callers.entry((region as u32, caller)).or_default();
        let sums = regions[region].get_or_insert_with(BothSums::default);
        sums.add(duration_ns, exclusive_ns, primitive);
        pair.add(duration_ns, exclusive_ns, primitive_step);
    }
    NameRows {
        regions: regions.into_iter().map(|sums| sums.map(|sums| sums.get(options.sums))).collect(),
        callers: callers.into_iter().map(|(pair, sums)| (pair, sums.get(options.sums))).collect(),
    }
}

/// Per call, whether no call of its region is around it, and the same for calls from its caller.
fn primitive_by_ancestors(calls: &CallArrays, options: &PstatsOptions) -> Vec<(bool, bool)> {
    let mut tree = PathTree::default();
    let paths = tree.paths_of(calls);
    let recursion = recursion(&tree, options.caller_recursion);
    let primitive = |path: u32| {
        let (region, step) = recursion[path as usize];
        (!region, !step)
    };
    paths.into_iter().map(primitive).collect()
}

/// Per call, whether it ends after all earlier calls of its region, on any lane; twice.
fn primitive_by_ends(calls: &CallArrays) -> Vec<(bool, bool)> {
    let mut largest: Vec<Option<i64>> = vec![None; calls.regions.len()];
    let ends = calls.region_index.iter().zip(&calls.end_ns);
    ends.map(|(region, &end)| {
        let largest = &mut largest[region];
        let primitive = largest.is_none_or(|largest| end > largest);
        *largest = (*largest).max(Some(end));
        (primitive, primitive)
    })
    .collect()
}

/// Sum of the durations at the top.
pub(super) fn root_seconds(calls: &CallArrays, sums: Sums) -> f64 {
    let tops = (0..calls.len()).filter(|id| calls.parent[*id] == NO_PARENT).map(|id| calls.duration_ns(id));
    match sums {
        Sums::Exact => seconds(tops.fold(0, i64::saturating_add)),
        Sums::Reference => pairwise_sum(&tops.map(seconds).collect::<Vec<_>>()),
    }
}

/// NumPy's order of summation (`pairwise_sum` in its `loops_utils.h.src`).
fn pairwise_sum(values: &[f64]) -> f64 {
    if values.len() < 8 {
        return values.iter().fold(0.0, |sum, value| sum + value);
    }
    if values.len() > 128 {
        let half = values.len() / 2;
        let (left, right) = values.split_at(half - half % 8);
        return pairwise_sum(left) + pairwise_sum(right);
    }
    let (blocks, rest) = values.as_chunks::<8>();
    let mut sums = blocks[0];
    for block in &blocks[1..] {
        sums.iter_mut().zip(block).for_each(|(sum, value)| *sum += value);
    }
    let [a, b, c, d, e, f, g, h] = sums;
    rest.iter().fold(((a + b) + (c + d)) + ((e + f) + (g + h)), |sum, value| sum + value)
}
