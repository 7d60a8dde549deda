//! Data cases made from public bug reports: calls in the order of closing, sums that must come out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use scope_runtime::call_stack::{
    CallArrays, ClosedCalls, ClosedReport, Mode, RegionCalls, RegionTable, build_call_arrays,
    build_closed_calls,
};
use scope_runtime::pstats::{Key, PstatsOptions, build_pstats_dict, load_prof, write_prof};
use serde_json::Value;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of a case by order of closing, and the name of each lane.
fn closed(case: &str) -> (ClosedReport, Vec<String>) {
    let text = file(&format!("{case}.csv"));
    let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let mut rows: Vec<Vec<&str>> = rows.map(|line| line.split(',').collect()).collect();
    rows.sort_by_key(|row| row[0].parse::<u64>().unwrap());
    let (mut table, mut lanes) = (RegionTable::default(), Vec::<String>::new());
    let (mut region_index, mut lane_numbers) = (Vec::new(), Vec::new());
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    // A time beyond 2^63 is a clock that fell below 0; it stays larger than any other.
    let time = |text: &str| i64::try_from(text.parse::<u64>().unwrap()).unwrap_or(i64::MAX);
    for row in rows {
        let known = table.names.iter().position(|name| name == row[2]);
        region_index.push(known.unwrap_or(table.len()) as u32);
        if known.is_none() {
            table.push(row[2], None, None);
        }
        let lane = lanes.iter().position(|name| name == row[1]).unwrap_or(lanes.len());
        if lane == lanes.len() {
            lanes.push(row[1].to_owned());
        }
        lane_numbers.push(lane as i64);
        starts.push(time(row[3]));
        ends.push(time(row[4]));
    }
    let calls = ClosedCalls {
        regions: Arc::new(table),
        region_index: &region_index,
        starts: &starts,
        ends: &ends,
        lanes: Some(&lane_numbers),
    };
    (build_closed_calls(&calls).unwrap(), lanes)
}

/// (lane, names from the top down) to (calls, inclusive ns, own ns).
type Totals = BTreeMap<(String, Vec<String>), (i64, i64, i64)>;

fn totals(calls: &CallArrays, lanes: &[String]) -> Totals {
    let mut totals = Totals::new();
    for id in 0..calls.len() {
        let path = calls.record(id, 0.0).path();
        let stack = path.into_iter().map(|id| calls.name(id).to_owned()).collect();
        let lane = lanes[calls.lane(id).unwrap() as usize].clone();
        let sums = totals.entry((lane, stack)).or_default();
        *sums = (sums.0 + 1, sums.1 + calls.duration_ns(id), sums.2 + calls.exclusive_ns[id]);
    }
    totals
}

fn expected_totals(expected: &Value) -> Totals {
    let mut totals = Totals::new();
    for (lane, rows) in expected["totals"].as_object().unwrap() {
        for row in rows.as_array().unwrap() {
            let stack = row["stack"].as_array().unwrap();
            let stack = stack.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
            let [calls, total, own] =
                ["calls", "total_ns", "self_ns"].map(|name| row[name].as_i64().unwrap());
            totals.insert((lane.clone(), stack), (calls, total, own));
        }
    }
    totals
}

fn expected(case: &str) -> Value {
    serde_json::from_str(&file(&format!("{case}.expected.json"))).unwrap()
}

#[test]
fn totals_and_callers_of_the_export_cases() {
    for case in ["export-01_callers", "export-02_many_roots", "export-03_recursion"] {
        let ((ClosedReport { calls, faulty }, lanes), expected) = (closed(case), expected(case));
        assert_eq!(faulty, 0, "{case}");
        assert_eq!(totals(&calls, &lanes), expected_totals(&expected), "{case}");
        let profile = build_pstats_dict(&calls, None, false, &PstatsOptions::default());
        let expected = expected["pstats"].as_object().unwrap();
        assert_eq!(profile.len(), expected.len(), "{case}");
        for entry in profile.entries() {
            let expected = &expected[&*entry.key.name];
            let [cc, nc, tt, ct] =
                ["cc", "nc", "tt_ns", "ct_ns"].map(|name| expected[name].as_i64().unwrap());
            assert_eq!((entry.cc, entry.nc), (cc, nc), "{case}: {}", entry.key);
            assert_eq!((entry.tt_s, entry.ct_s), (tt as f64 / 1e9, ct as f64 / 1e9), "{case}: {}", entry.key);
            let callers = expected["callers"].as_object().unwrap();
            assert_eq!(entry.callers.len(), callers.len(), "{case}: {}", entry.key);
            for (key, caller) in &entry.callers {
                let [nc, cc, tt, ct] = [0, 1, 2, 3].map(|at| callers[&*key.name][at].as_i64().unwrap());
                assert_eq!((caller.nc, caller.cc), (nc, cc), "{case}: {key} of {}", entry.key);
                assert_eq!((caller.tt_s, caller.ct_s), (tt as f64 / 1e9, ct as f64 / 1e9), "{case}: {key}");
            }
        }
    }
}

#[test]
fn a_root_reaches_every_function() {
    let (report, _) = closed("export-02_many_roots");
    for by_path in [true, false] {
        let profile = build_pstats_dict(&report.calls, Some("<run>"), by_path, &PstatsOptions::default());
        let root = profile.entries().iter().filter(|entry| entry.callers.is_empty());
        let root: Vec<&str> = root.map(|entry| &*entry.key.name).collect();
        assert_eq!(root, ["<run>"]);
    }
}

#[test]
fn equal_times_are_told_apart_by_the_order_of_closing() {
    let (report, lanes) = closed("limits-01_equal_times");
    let mut found = totals(&report.calls, &lanes);
    let instants = ["a", "b", "c"];
    for name in instants {
        let rows = found.iter().filter(|((_, stack), _)| stack.last().unwrap() == name);
        let rows: Vec<_> = rows.map(|((_, stack), sums)| (stack[0].clone(), *sums)).collect();
        assert_eq!(rows, [("day".to_owned(), (1, 0, 0))], "{name}");
    }
    found.retain(|(_, stack), _| !instants.contains(&stack.last().unwrap().as_str()));
    assert_eq!(found, expected_totals(&expected("limits-01_equal_times")));
}

#[test]
fn a_clock_set_back_gives_calls_of_no_time() {
    let (report, lanes) = closed("limits-02_clock_goes_back");
    assert_eq!(report.faulty, 3);
    let mut found = totals(&report.calls, &lanes);
    // `far` may be at the top or under `main`.
    let far = found.keys().find(|(_, stack)| stack.last().unwrap() == "far").cloned().unwrap();
    let sums = found.remove(&far).unwrap();
    found.insert((far.0, vec!["far".to_owned()]), sums);
    assert_eq!(found, expected_totals(&expected("limits-02_clock_goes_back")));
    assert!(report.calls.exclusive_ns.iter().all(|own| *own >= 0));
    assert_eq!(report.calls.exclusive_ns.iter().sum::<i64>(), 450);
}

/// Each name of a `.jsonl` case under `main`.
fn names(case: &str) -> Vec<String> {
    let text = file(case);
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.map(|row| serde_json::from_str::<Value>(row).unwrap()["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn names_come_back_from_a_file() {
    for case in ["export-05_names.jsonl", "svg-01_hostile_names.jsonl"] {
        let names = names(case);
        let times: Vec<[i64; 2]> = (0..names.len() as i64).map(|at| [10 * at, 10 * at + 5]).collect();
        // A region called `main` inside `main` is the same region.
        let mut main = ([vec![0], vec![1000]], Vec::new());
        for (name, [start, end]) in names.iter().zip(&times) {
            match &**name {
                "main" => {
                    [*start, *end].into_iter().zip(&mut main.0).for_each(|(time, column)| column.push(time))
                }
                name => main.1.push(RegionCalls::new(
                    name,
                    std::slice::from_ref(start),
                    std::slice::from_ref(end),
                )),
            }
        }
        let ([starts, ends], mut regions) = main;
        regions.insert(0, RegionCalls::new("main", &starts, &ends));
        let calls = build_call_arrays(&regions, Mode::Default).unwrap();
        for by_path in [true, false] {
            let options = PstatsOptions { label_bytes: 1 << 20, ..PstatsOptions::default() };
            let profile = build_pstats_dict(&calls, None, by_path, &options);
            let mut bytes = Vec::new();
            write_prof(&profile, &mut bytes).unwrap();
            let read = load_prof(&bytes[..]).unwrap();
            assert_eq!(read, profile);
            assert_eq!(read.len(), if by_path { names.len() + 1 } else { regions.len() });
            for name in &names {
                let prefix = if by_path { "main > " } else { "" };
                let name = format!("{prefix}{name}").into();
                let entry = read.get(&Key { file: "~".into(), line: 0, name }).unwrap();
                let (_, caller) = &entry.callers[0];
                assert_eq!((entry.callers.len(), caller.nc), (1, 1), "{case}: {}", entry.key);
            }
        }
    }
}
