//! The writer under the eyes of others: HDF5's own tools, h5py, and scope-profiler.
//!
//! Needs `SCOPE_TEST_PYTHON`, the path of a Python that has h5py and scope-profiler 0.7.5, and
//! `h5dump`. Without the variable these tests say that they were left out.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_scope::hdf5;
use cargo_scope::merged::{Aggregate, Events, MergedProfile, MetadataValue, Row, TaskRow, ThreadRow};
use serde_json::{Map, Value, json};

mod hdf5_as_json;
use hdf5_as_json::{check_regions, metadata, tasks, threads};

/// The Python to test with; `None`, and a line that says so, when there is none.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("SCOPE_TEST_PYTHON").map(PathBuf::from);
    if python.is_none() {
        eprintln!("left out: SCOPE_TEST_PYTHON is not set");
    }
    python
}

/// A folder that is gone after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("scope-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, profile: &MergedProfile) -> PathBuf {
        let path = self.0.join(name).with_extension("h5");
        hdf5::write(profile, &path).unwrap_or_else(|e| panic!("{e}"));
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a command that must succeed, and gives its standard output.
fn run(program: impl AsRef<OsStr>, arguments: &[&OsStr]) -> Vec<u8> {
    let output = Command::new(&program).args(arguments).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|e| panic!("{:?}: {e}", program.as_ref()));
    let failure = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?} {arguments:?}: {failure}", program.as_ref());
    output.stdout
}

/// `calls` calls below one root, on two threads, spread over `names` regions.
fn profile(calls: usize, names: usize) -> MergedProfile {
    let mut profile = MergedProfile {
        metadata: vec![
            ("timestamp".into(), MetadataValue::Text("2026-02-28T13:04:05.000006+00:00".into())),
            ("label".into(), MetadataValue::Text("räte/1".into())),
            ("mpi_size".into(), MetadataValue::Integer(1)),
            ("start_time_ns".into(), MetadataValue::Integer(1_000)),
            ("finalize_time_ns".into(), MetadataValue::Integer(1_000_000_000_000)),
            ("share".into(), MetadataValue::Float(0.25)),
            ("arguments".into(), MetadataValue::List(vec!["-n".into(), "".into(), "ä b".into()])),
            ("long".into(), MetadataValue::Text("x".repeat(100_000))),
        ],
        names: (0..names).map(name).collect(),
        threads: Some(vec![thread(0, "main"), thread(1, "wörker")]),
        ..MergedProfile::default()
    };
    let mut events = Events {
        call_ids: Some(Vec::new()),
        parent_ids: Some(Vec::new()),
        thread_ids: Some(Vec::new()),
        ..Events::default()
    };
    for region in 0..names {
        let first = events.start_ns.len();
        for call in (0..calls).filter(|call| call % names == region) {
            let lane = (call / names % 2) as i64;
            events.start_ns.push(5_000 + 1_000 * call as i64);
            events.duration_ns.push(100 + (call * 7_919 % 800) as i64);
            events.call_ids.as_mut().unwrap().push(call as i64);
            events.parent_ids.as_mut().unwrap().push(-1);
            events.thread_ids.as_mut().unwrap().push(lane);
        }
        profile.rows.push(Row {
            region: region as u32,
            source_file: "src/main.rs".into(),
            source_line: 1 + region as i64,
            source_text: if region == 0 { "fn main() {}\n".into() } else { String::new() },
            tags: if region == 1 { vec!["a \"b\"".into(), "ä".into()] } else { Vec::new() },
            events: first..events.start_ns.len(),
            exclusive_total_ns: Some(events.duration_ns[first..].iter().sum()),
            ..Row::default()
        });
    }
    profile.events = events;
    profile
}

fn thread(index: i64, name: &str) -> ThreadRow {
    ThreadRow {
        index,
        ident: 70 + index,
        native_id: 70 + index,
        start_ns: 4_000,
        end_ns: if index == 0 { -1 } else { 900_000 },
        cpu_ns: 12_345,
        name: name.into(),
        ..ThreadRow::default()
    }
}

/// Names that other layouts of such files have lost.
fn name(region: usize) -> String {
    let special =
        ["io", "io/read", "/abs", "trail/", "a//b", "../up", "..", "naïve – 名前 🦀", ";<&>'\"", " "];
    match region {
        10 => "y".repeat(100_000),
        11 => String::new(),
        _ => special.get(region).map_or_else(|| format!("region {region}"), |name| name.to_string()),
    }
}

/// Sizes around every decision of the writer: nothing, plain, compressed, many rows.
fn profiles() -> Vec<(&'static str, MergedProfile)> {
    vec![
        ("no calls", profile(0, 2)),
        ("one call", profile(1, 1)),
        ("1000 calls", profile(1_000, 13)),
        ("70000 calls", profile(70_000, 3)),
        ("200000 calls", profile(200_000, 12)),
        ("3000 names", profile(9_000, 3_000)),
        ("nothing", MergedProfile::default()),
        ("aggregate", aggregate()),
        ("tasks", with_tasks()),
    ]
}

fn aggregate() -> MergedProfile {
    let mut profile = profile(0, 2);
    profile.events = Events::default();
    profile.threads = None;
    profile.rows.iter_mut().for_each(|row| row.exclusive_total_ns = None);
    let total = |count| Aggregate { count, total_ns: 90, min_ns: 1, max_ns: 50, exclusive_ns: 40 };
    profile.aggregates = Some(vec![total(3), total(4)]);
    profile
}

fn with_tasks() -> MergedProfile {
    let mut profile = profile(6, 2);
    profile.events.task_ids = Some(vec![-1, 0, 1, -1, 0, 1]);
    profile.events.await_ns = Some(vec![0, 5, 6, 0, 7, 8]);
    profile.events.gpu_durations_ns = Some(vec![-1, 9, 10, -1, -1, -1]);
    let task = |index| TaskRow {
        index,
        done_ns: -1,
        steps: 3,
        running_ns: 50,
        kind: "task".into(),
        name: "täsk".into(),
        coro_name: "fetch".into(),
        ..TaskRow::default()
    };
    profile.tasks = Some(vec![task(0), task(1)]);
    profile
}

/// What h5py has to see: `[dtype, values]` by dataset, and attributes.
fn meaning(profile: &MergedProfile) -> Map<String, Value> {
    let mut seen = Map::new();
    let aggregate = profile.aggregates.is_some();
    seen.insert("@scope_profiler_schema".into(), json!(3));
    seen.insert("@storage_layout".into(), json!(if aggregate { "aggregate" } else { "columnar" }));
    for (key, value) in metadata(profile).as_object().unwrap() {
        seen.insert(format!("metadata@{key}"), value.clone());
    }
    seen.insert("region_table/names".into(), json!(["text utf-8", profile.names]));
    index(profile, &mut seen);
    match &profile.aggregates {
        Some(totals) => totals_of(totals, &mut seen),
        None => {
            runs(profile, &mut seen);
            events(profile, &mut seen);
        }
    }
    tables(profile, &mut seen);
    seen
}

fn put<T: Into<Value>>(
    seen: &mut Map<String, Value>,
    path: &str,
    dtype: &str,
    values: impl Iterator<Item = T>,
) {
    seen.insert(path.into(), json!([dtype, values.map(Into::into).collect::<Vec<Value>>()]));
}

fn index(profile: &MergedProfile, seen: &mut Map<String, Value>) {
    let rows = || profile.rows.iter();
    put(seen, "rank_region_index/region_ids", "uint32", rows().map(|row| row.region));
    put(seen, "rank_region_index/ranks", "uint32", rows().map(|row| row.rank));
    put(seen, "rank_region_index/source_lines", "int64", rows().map(|row| row.source_line));
    put(seen, "rank_region_index/source_files", "text utf-8", rows().map(|row| row.source_file.clone()));
    put(seen, "rank_region_index/source_texts", "text utf-8", rows().map(|row| row.source_text.clone()));
    put(seen, "rank_region_index/tags", "text utf-8", rows().map(|row| json!(row.tags).to_string()));
}

fn totals_of(totals: &[Aggregate], seen: &mut Map<String, Value>) {
    let totals = || totals.iter();
    put(seen, "rank_region_index/aggregate_counts", "uint64", totals().map(|t| t.count));
    put(seen, "rank_region_index/aggregate_totals", "int64", totals().map(|t| t.total_ns));
    put(seen, "rank_region_index/aggregate_minimums", "int64", totals().map(|t| t.min_ns));
    put(seen, "rank_region_index/aggregate_maximums", "int64", totals().map(|t| t.max_ns));
    put(seen, "rank_region_index/aggregate_exclusives", "int64", totals().map(|t| t.exclusive_ns));
}

fn runs(profile: &MergedProfile, seen: &mut Map<String, Value>) {
    let rows = || profile.rows.iter();
    put(seen, "rank_region_index/event_offsets", "uint64", rows().map(|row| row.events.start));
    put(seen, "rank_region_index/event_counts", "uint64", rows().map(|row| row.events.len()));
    put(seen, "rank_region_index/event_metadata", "text utf-8", rows().map(|_| "[]"));
    let exclusive = rows().map(|row| row.exclusive_total_ns.unwrap_or(-1));
    put(seen, "rank_region_index/exclusive_totals", "int64", exclusive);
    let statistics = rows().map(|row| {
        let s = profile.events.statistics(row.events.clone());
        json!({
            "total": s.total_ns, "minimum": s.min_ns, "maximum": s.max_ns, "first": s.first_ns,
            "last": s.last_ns, "start_minimum": s.start_min_ns, "end_maximum": s.end_max_ns,
            "gpu_count": s.gpu_count, "gpu_total": s.gpu_total_ns, "mean": s.mean_ns, "m2": s.m2_ns2,
        })
    });
    let integers = ["total", "minimum", "maximum", "first", "last", "start_minimum", "end_maximum"];
    let mut members: Vec<_> = integers.iter().map(|name| (*name, "<i8")).collect();
    members.extend([("gpu_count", "<u8"), ("gpu_total", "<i8"), ("mean", "<f8"), ("m2", "<f8")]);
    let members: Vec<_> = members.iter().map(|(name, kind)| format!("('{name}', '{kind}')")).collect();
    put(seen, "rank_region_index/summary_statistics", &format!("[{}]", members.join(", ")), statistics);
}

fn events(profile: &MergedProfile, seen: &mut Map<String, Value>) {
    let events = &profile.events;
    let mut deltas = events.start_ns.clone();
    for row in &profile.rows {
        for position in row.events.clone().skip(1) {
            deltas[position] = events.start_ns[position] - events.start_ns[position - 1];
        }
    }
    let optional = [
        ("events/start_deltas", Some(&deltas)),
        ("events/durations", Some(&events.duration_ns)),
        ("events/call_ids", events.call_ids.as_ref()),
        ("events/parent_ids", events.parent_ids.as_ref()),
        ("events/thread_ids", events.thread_ids.as_ref()),
        ("events/task_ids", events.task_ids.as_ref()),
        ("events/await_ns", events.await_ns.as_ref()),
        ("events/gpu_durations", events.gpu_durations_ns.as_ref()),
    ];
    for (path, values) in optional.into_iter().filter_map(|(path, values)| Some((path, values?))) {
        put(seen, path, "int64", values.iter().copied());
    }
}

/// Thread and task table: the columns of the JSON, by other names in two cases.
fn tables(profile: &MergedProfile, seen: &mut Map<String, Value>) {
    for (group, table) in [("thread_table", threads(profile)), ("task_table", tasks(profile))] {
        let Some(table) = table else { continue };
        let rows = table["0"].as_array().unwrap();
        put(seen, &format!("{group}/ranks"), "uint32", rows.iter().map(|_| 0));
        for key in rows[0].as_object().unwrap().keys() {
            let path = format!("{group}/{key}");
            match (key.as_str(), &rows[0][key]) {
                ("daemon", _) => put(seen, &path, "int8", rows.iter().map(|_| 0)),
                (_, Value::String(_)) => {
                    put(seen, &path, "text utf-8", rows.iter().map(|row| row[key].clone()))
                }
                _ => put(seen, &path, "int64", rows.iter().map(|row| row[key].clone())),
            }
        }
    }
}

/// The profile as far as the package takes it: source columns are none in its aggregate layout.
fn as_taken(profile: &MergedProfile) -> MergedProfile {
    let mut profile = profile.clone();
    if profile.aggregates.is_some() {
        for row in &mut profile.rows {
            *row = Row { region: row.region, rank: row.rank, source_line: -1, ..Row::default() };
        }
    }
    profile
}

#[test]
fn h5py_sees_what_was_meant() {
    let Some(python) = python() else { return };
    let folder = Folder::new("h5py");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/dump_with_h5py.py");
    for (name, profile) in profiles() {
        let file = folder.write(name, &profile);
        let dump = run(&python, &[script.as_os_str(), file.as_os_str()]);
        let seen: Map<String, Value> = serde_json::from_slice(&dump).unwrap();
        let meant = meaning(&profile);
        let paths = |map: &Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
        assert_eq!(paths(&seen), paths(&meant), "{name}");
        // One at a time: the whole map is no message that somebody could read.
        for (path, values) in &meant {
            assert!(seen[path] == *values, "{name}: {path}");
        }
    }
}

#[test]
fn h5dump_reads_every_dataset() {
    if python().is_none() {
        return;
    }
    let folder = Folder::new("h5dump");
    for (name, profile) in profiles() {
        let file = folder.write(name, &profile);
        run("h5dump", &[file.as_os_str()]);
        if profile.aggregates.is_some() || profile.events.duration_ns.is_empty() {
            continue;
        }
        let raw = folder.0.join("durations");
        let options = ["-d", "/events/durations", "-b", "LE", "-o"].map(OsStr::new);
        run("h5dump", &[&options[..], &[raw.as_os_str(), file.as_os_str()]].concat());
        let bytes: Vec<u8> = profile.events.duration_ns.iter().flat_map(|ns| ns.to_le_bytes()).collect();
        assert!(std::fs::read(raw).unwrap() == bytes, "{name}");
    }
}

#[test]
fn scope_profiler_opens_the_file() {
    let Some(python) = python() else { return };
    let folder = Folder::new("reference");
    let scope_profiler = |arguments: &[&OsStr]| {
        let module = ["-m", "scope_profiler"].map(OsStr::new);
        run(&python, &[&module[..], arguments].concat())
    };
    // Reports of the large ones take minutes, and the package makes none without calls.
    let unreported = ["200000 calls", "3000 names", "no calls", "nothing"];
    for (name, profile) in profiles() {
        let file = folder.write(name, &profile);
        let outputs = folder.0.join(name);
        scope_profiler(&[OsStr::new("inspect"), file.as_os_str()]);
        let json = ["export", "json", "-o"].map(OsStr::new);
        scope_profiler(&[&json[..], &[outputs.as_os_str(), file.as_os_str()]].concat());
        let exported: Value =
            serde_json::from_slice(&std::fs::read(outputs.join("profile.json")).unwrap()).unwrap();
        assert_eq!(exported["metadata"], metadata(&profile), "{name}");
        if !name.contains("names") {
            check_regions(&file, &as_taken(&profile), exported["regions"].as_array().unwrap());
        }
        if unreported.contains(&name) {
            continue;
        }
        let report = outputs.join("report.html");
        scope_profiler(
            &[&["report", "-o"].map(OsStr::new)[..], &[report.as_os_str(), file.as_os_str()]].concat(),
        );
        if profile.aggregates.is_none() {
            let prof = ["export", "prof", "-o"].map(OsStr::new);
            scope_profiler(&[&prof[..], &[outputs.as_os_str(), file.as_os_str()]].concat());
        }
    }
}
