//! The same answers as for calls in memory, whatever the blocks are.

use std::convert::Infallible;
use std::ops::Range;
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::call_stack::{BadLanes, RegionCalls, build_good_lanes};

/// Calls of one region.
#[derive(Clone, Debug, Default)]
struct Region {
    starts: Vec<i64>,
    ends: Vec<i64>,
    threads: Option<Vec<i64>>,
    tasks: Option<Vec<i64>>,
    ids: Option<Vec<i64>>,
    parents: Option<Vec<i64>>,
}

impl Region {
    fn as_calls(&self) -> RegionCalls<'_> {
        RegionCalls {
            thread_ids: self.threads.as_deref(),
            task_ids: self.tasks.as_deref(),
            call_ids: self.ids.as_deref(),
            parent_ids: self.parents.as_deref(),
            ..RegionCalls::new("region", &self.starts, &self.ends)
        }
    }
}

/// The columns of a file with these regions one after the other.
struct Columns {
    columns: Vec<(CallColumn, Vec<i64>)>,
    has_differences: bool,
    block: usize,
    /// So many ids were read.
    ids_read: usize,
}

impl Columns {
    fn of(regions: &[Region], has_differences: bool, block: usize) -> Columns {
        let optional = |get: fn(&Region) -> Option<&Vec<i64>>| {
            let is_there = regions.iter().any(|region| get(region).is_some());
            let of_region =
                |region: &Region| get(region).cloned().unwrap_or_else(|| vec![-1; region.starts.len()]);
            is_there.then(|| regions.iter().flat_map(of_region).collect::<Vec<_>>())
        };
        let starts = |region: &Region| {
            let before = [0].into_iter().chain(region.starts.iter().copied());
            let values = region.starts.iter().zip(before);
            let values =
                values.map(|(start, before)| start.wrapping_sub(if has_differences { before } else { 0 }));
            values.collect::<Vec<_>>()
        };
        let durations = |region: &Region| {
            let calls = region.starts.iter().zip(&region.ends);
            calls.map(|(start, end)| end.wrapping_sub(*start)).collect::<Vec<_>>()
        };
        let columns = [
            (CallColumn::Start, Some(regions.iter().flat_map(starts).collect())),
            (CallColumn::Duration, Some(regions.iter().flat_map(durations).collect())),
            (CallColumn::Thread, optional(|region| region.threads.as_ref())),
            (CallColumn::Task, optional(|region| region.tasks.as_ref().filter(|_| region.threads.is_some()))),
            (CallColumn::Id, optional(|region| region.ids.as_ref())),
            (CallColumn::Parent, optional(|region| region.parents.as_ref())),
        ];
        let columns = columns.into_iter().filter_map(|(column, values)| Some((column, values?)));
        Columns { columns: columns.collect(), has_differences, block, ids_read: 0 }
    }

    fn column(&self, wanted: CallColumn) -> Option<&[i64]> {
        self.columns.iter().find(|(column, _)| *column == wanted).map(|(_, values)| &**values)
    }
}

impl StoredCalls for Columns {
    type Error = Infallible;

    fn has(&self, column: CallColumn) -> bool {
        self.column(column).is_some()
    }

    fn has_differences(&self) -> bool {
        self.has_differences
    }

    fn block(&self) -> usize {
        self.block
    }

    fn read(
        &mut self,
        column: CallColumn,
        calls: Range<usize>,
        values: &mut Vec<i64>,
    ) -> Result<(), Infallible> {
        self.ids_read += if column == CallColumn::Id { calls.len() } else { 0 };
        values.clear();
        values.extend_from_slice(&self.column(column).unwrap()[calls]);
        Ok(())
    }
}

/// Keeps what it gets.
#[derive(Default)]
struct Visited(Vec<(u32, i64, i64)>);

impl CallVisitor for Visited {
    fn begin(&mut self) {
        self.0.clear();
    }

    fn call(&mut self, _: &PathTree, path: PathId, start_ns: i64, end_ns: i64) {
        self.0.push((path.0, start_ns, end_ns));
    }
}

fn nest(regions: &[Region], columns: &mut Columns, options: &Options) -> (Nested, Visited) {
    let mut at = 0;
    let ranges = regions.iter().map(|region| {
        at += region.starts.len();
        at - region.starts.len()..at
    });
    let ranges: Vec<_> = ranges.collect();
    let starts: Vec<_> = ranges.iter().map(|calls| Starts::find(columns, calls.clone()).unwrap()).collect();
    let stored = ranges.iter().zip(&starts);
    let stored: Vec<_> = stored
        .map(|(calls, starts)| StoredRegion {
            name: "region",
            calls: calls.clone(),
            starts,
            is_hidden: false,
        })
        .collect();
    let mut visited = Visited::default();
    let nested = nest_stored_calls(columns, &stored, options, &mut visited).unwrap();
    (nested, visited)
}

/// Blocks, and bytes for them: some borders inside of runs, some runs that go through a file.
const SIZES: [(usize, usize); 4] = [(1, 96 << 20), (2, 96 << 20), (1, 2000), (3, 1)];

/// Takes the calls in blocks of these sizes, as differences and not; whether recorded ids decided.
fn check(regions: &[Region], ids: bool, sizes: &[(usize, usize)]) -> bool {
    let without_ids = |region: &Region| Region { ids: None, parents: None, ..region.clone() };
    let in_memory: Vec<_> =
        regions.iter().map(|region| if ids { region.clone() } else { without_ids(region) }).collect();
    let calls: Vec<_> = in_memory.iter().map(Region::as_calls).collect();
    let expected = build_good_lanes(&calls, BadLanes::Drop).unwrap();
    let paths = PathTree::from_calls(&expected.calls);
    let mut tree = PathTree::default();
    let of_call = tree.paths_of(&expected.calls);
    let times = expected.calls.start_ns.iter().zip(&expected.calls.end_ns);
    let visited: Vec<_> =
        of_call.into_iter().zip(times).map(|(path, (start, end))| (path, *start, *end)).collect();
    let mut is_recorded = false;
    for &(block, memory) in sizes {
        let mut columns = Columns::of(regions, block != 2, block);
        let options = Options { ids, memory, known: None };
        let (nested, seen) = nest(regions, &mut columns, &options);
        assert_eq!(nested.paths.nodes(), paths.nodes(), "{block} {memory} {regions:?}");
        assert_eq!(nested.errors, expected.errors, "{block} {memory} {regions:?}");
        assert_eq!(seen.0, visited, "{block} {memory} {regions:?}");
        is_recorded = nested.known.recorded;
        // Again with what is known: in one go, and the same.
        let again = Options { known: Some(nested.known), ..options };
        let (again, seen) = nest(regions, &mut columns, &again);
        assert_eq!((again.paths.nodes(), seen.0), (paths.nodes(), visited.clone()));
        assert!(again.errors.is_empty());
    }
    is_recorded
}

/// A call: region, start, length, thread, task.
type Plain = (usize, i64, i64, i64, i64);

fn regions_of(calls: &[Plain], threads: bool, tasks: bool) -> Vec<Region> {
    let mut regions = vec![Region::default(); 4];
    for &(region, start, length, thread, task) in calls {
        let region = &mut regions[region];
        region.starts.push(start);
        region.ends.push(start + length);
        if threads {
            region.threads.get_or_insert_default().push(thread);
        }
        if tasks {
            region.tasks.get_or_insert_default().push(task);
        }
    }
    regions
}

/// Numbers the calls as scope-profiler does, from what is reconstructed.
fn number(regions: &mut [Region], first: i64, far: i64) {
    let calls: Vec<_> = regions.iter().map(Region::as_calls).collect();
    let Ok(report) = build_good_lanes(&calls, BadLanes::Drop) else { return };
    let arrays = report.calls;
    for region in regions.iter_mut() {
        region.ids = Some(vec![-1; region.starts.len()]);
        region.parents = Some(vec![-1; region.starts.len()]);
    }
    let number = |id: usize| first + id as i64 * far;
    for id in 0..arrays.len() {
        let region = &mut regions[arrays.region_index.get(id)];
        let call = arrays.call_index[id] as usize;
        region.ids.as_mut().unwrap()[call] = number(id);
        region.parents.as_mut().unwrap()[call] = arrays.parent_of(id).map_or(-1, number);
    }
}

/// Divides `from..to` of a lane among calls, touching, empty and equal ones included.
fn forest(
    choices: &mut impl Iterator<Item = u32>,
    lane: i64,
    from: i64,
    to: i64,
    depth: u32,
    out: &mut Vec<Plain>,
) {
    let mut at = from;
    while at <= to && out.len() < 60 {
        let Some(choice) = choices.next() else { return };
        let start = (at + i64::from(choice % 3)).min(to);
        let end = (start + i64::from(choice / 3 % 12)).min(to);
        out.push((choice as usize / 36 % 4, start, end - start, lane, -1));
        if depth < 5 && choice % 5 != 0 {
            forest(choices, lane, start, end, depth + 1, out);
        }
        at = end + i64::from(choice / 144 % 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_intervals_nest_alike(
        calls in prop::collection::vec((0..4_usize, 0..30_i64, -1..14_i64, -1..3_i64, -1..2_i64), 0..40),
        (threads, tasks) in any::<(bool, bool)>(),
        sorted in any::<bool>(),
    ) {
        let mut calls = calls;
        if sorted {
            calls.sort_by_key(|call| call.1);
        }
        check(&regions_of(&calls, threads, tasks), true, &SIZES);
    }

    #[test]
    fn forests_nest_alike_with_ids_and_without(
        choices in prop::collection::vec(any::<u32>(), 0..120),
        order in 0..3,
        (first, far) in (0..100_000_i64, prop::sample::select(vec![1, 3, 1 << 40])),
        wrong in prop::option::weighted(0.4, (0..4_usize, any::<prop::sample::Index>(), -2..50_i64, any::<bool>())),
    ) {
        let (mut calls, mut choices) = (Vec::new(), choices.into_iter());
        for lane in 0..3 {
            forest(&mut choices, lane, 0, 60, 0, &mut calls);
        }
        match order {
            0 => calls.sort_by_key(|call| call.1),
            1 => calls.reverse(),
            _ => (),
        }
        let mut regions = regions_of(&calls, true, false);
        number(&mut regions, first, far);
        if let Some((region, call, value, is_parent)) = wrong {
            let region = &mut regions[region];
            let column = if is_parent { &mut region.parents } else { &mut region.ids };
            if let Some(column) = column.as_mut().filter(|column| !column.is_empty()) {
                let at = call.index(column.len());
                column[at] = first + value * far;
            }
        }
        let is_recorded = check(&regions, true, &SIZES);
        prop_assert!(is_recorded || wrong.is_some() || calls.is_empty());
        check(&regions, false, &SIZES);
    }
}

#[test]
fn the_cases_of_the_reference_nest_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/oracle");
    let mut cases = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|suffix| suffix != "json") {
            continue;
        }
        let case: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let numbers = |value: &Value| -> Option<Vec<i64>> {
            Some(value.as_array()?.iter().map(|number| number.as_i64().unwrap()).collect())
        };
        let region = |region: &Value| Region {
            starts: numbers(&region["starts"]).unwrap(),
            ends: numbers(&region["ends"]).unwrap(),
            threads: numbers(&region["thread_ids"]),
            tasks: numbers(&region["task_ids"]),
            ..Region::default()
        };
        let regions: Vec<_> = case["regions"].as_array().unwrap().iter().map(region).collect();
        check(&regions, true, &SIZES);
        cases += 1;
    }
    assert!(cases >= 100, "{cases} cases");
}

/// More runs than are kept, and ids too far apart for a bit each.
#[test]
fn calls_in_no_order_are_sorted_through_a_file() {
    let calls: Vec<Plain> =
        (0..20_000).map(|call| ((call % 4) as usize, call * 7919 % 20_011 * 10, 5, -1, -1)).collect();
    let mut regions = regions_of(&calls, false, false);
    number(&mut regions, 5, 1 << 45);
    let sizes = [(64, 96 << 20), (100, 200_000)];
    assert!(check(&regions, true, &sizes));
    let ids = regions[0].ids.as_mut().unwrap();
    ids[1] = ids[0];
    assert!(!check(&regions, true, &sizes));
}

#[test]
fn ids_are_compared_once_only() {
    let calls: Vec<Plain> = (0..10_000).map(|call| (0, 10 * call, 5, -1, -1)).collect();
    let mut regions = regions_of(&calls, false, false);
    // Too far apart for a bit each.
    number(&mut regions, 5, 1 << 45);
    let mut columns = Columns::of(&regions, false, 64);
    let (nested, _) = nest(&regions, &mut columns, &Options::default());
    assert_eq!((nested.known.recorded, columns.ids_read), (true, 2 * calls.len()));
    let known = Options { known: Some(nested.known), ..Options::default() };
    let (again, _) = nest(&regions, &mut columns, &known);
    assert_eq!((again.known.recorded, columns.ids_read), (true, 3 * calls.len()));
}
