//! The reader against files of scope-profiler: every number as that package reads it.
//!
//! `tests/data/make_reference_files.py` makes the files, and for each a JSON of what is in it.

use std::path::{Path, PathBuf};

use cargo_scope::hdf5;
use cargo_scope::merged::{MergedProfile, MetadataValue, Row};
use serde_json::{Value, json};

fn data_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "h5")).collect();
    files.sort();
    files
}

fn expected(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file.with_extension("json")).unwrap()).unwrap()
}

#[test]
fn every_file_of_the_reference_reads_as_the_reference_reads_it() {
    let files = data_files();
    assert!(files.len() >= 14, "{files:?}");
    for file in files {
        let profile = hdf5::read(&file).unwrap_or_else(|e| panic!("{e}"));
        let expected = expected(&file);
        assert_eq!(json!(profile.ranks()), expected["num_ranks"], "{file:?}");
        assert_eq!(metadata(&profile), expected["metadata"], "{file:?}");
        check_regions(&file, &profile, expected["regions"].as_array().unwrap());
        assert_eq!(threads(&profile), expected.get("threads").cloned(), "{file:?}");
        assert_eq!(tasks(&profile), expected.get("tasks").cloned(), "{file:?}");
    }
}

#[test]
fn what_was_read_comes_back_after_writing_it() {
    let folder = std::env::temp_dir().join(format!("scope-rewrite-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for file in data_files() {
        let profile = hdf5::read(&file).unwrap();
        let copy = folder.join(file.file_name().unwrap());
        hdf5::write(&profile, &copy).unwrap_or_else(|e| panic!("{e}"));
        let again = hdf5::read(&copy).unwrap();
        assert!(again == profile, "{file:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn metadata(profile: &MergedProfile) -> Value {
    let entries = profile.metadata.iter().map(|(key, value)| {
        let value = match value {
            MetadataValue::Text(text) => json!(text),
            MetadataValue::Integer(number) => json!(number),
            MetadataValue::Float(number) => json!(number),
            MetadataValue::List(texts) => json!(texts),
        };
        (key.clone(), value)
    });
    Value::Object(entries.collect())
}

fn check_regions(file: &Path, profile: &MergedProfile, expected: &[Value]) {
    assert_eq!(profile.rows.len(), expected.len(), "{file:?}");
    for (position, row) in profile.rows.iter().enumerate() {
        let name = &profile.names[row.region as usize];
        let same = |other: &&Value| other["name"] == json!(name) && other["rank"] == json!(row.rank);
        let expected = expected.iter().find(same).unwrap_or_else(|| panic!("{file:?}: {name}"));
        assert_eq!(&region(profile, position, row), expected, "{file:?}: {name}");
    }
}

/// The row as the JSON has it: keys without a value are left out.
fn region(profile: &MergedProfile, position: usize, row: &Row) -> Value {
    let mut region = json!({"name": profile.names[row.region as usize], "rank": row.rank});
    let mut put = |key: &str, value: Value| region[key] = value;
    if !row.source_file.is_empty() {
        put("source_file", json!(row.source_file));
    }
    if row.source_line >= 0 {
        put("source_lineno", json!(row.source_line));
    }
    if !row.source_text.is_empty() {
        put("source_text", json!(row.source_text));
    }
    if !row.tags.is_empty() {
        put("tags", json!(row.tags));
    }
    if let Some(totals) = &profile.aggregates {
        let totals = totals[position];
        put(
            "aggregate",
            json!({
                "count": totals.count, "total": totals.total_ns, "minimum": totals.min_ns,
                "maximum": totals.max_ns, "exclusive": totals.exclusive_ns,
            }),
        );
        return region;
    }
    let starts = &profile.events.start_ns[row.events.clone()];
    let durations = &profile.events.duration_ns[row.events.clone()];
    let ends: Vec<i64> = starts.iter().zip(durations).map(|(start, ns)| start + ns).collect();
    put("start_times_ns", json!(starts));
    put("end_times_ns", json!(ends));
    let columns = [
        ("call_ids", &profile.events.call_ids),
        ("parent_ids", &profile.events.parent_ids),
        ("thread_ids", &profile.events.thread_ids),
        ("task_ids", &profile.events.task_ids),
        ("await_ns", &profile.events.await_ns),
    ];
    for (key, column) in columns {
        if let Some(values) = column {
            put(key, json!(values[row.events.clone()]));
        }
    }
    if let Some(total) = row.exclusive_total_ns {
        put("exclusive_total_ns", json!(total));
    }
    region
}

fn threads(profile: &MergedProfile) -> Option<Value> {
    let threads = profile.threads.as_ref()?;
    Some(by_rank(threads.iter().map(|thread| {
        let row = json!({
            "index": thread.index, "name": thread.name, "ident": thread.ident, "native_id": thread.native_id,
            "daemon": thread.daemon != 0, "start_ns": thread.start_ns, "end_ns": thread.end_ns,
            "cpu_ns": thread.cpu_ns,
        });
        (thread.rank, row)
    })))
}

fn tasks(profile: &MergedProfile) -> Option<Value> {
    let tasks = profile.tasks.as_ref()?;
    Some(by_rank(tasks.iter().map(|task| {
        let row = json!({
            "index": task.index, "kind": task.kind, "name": task.name, "coro_name": task.coro_name,
            "thread_index": task.thread_index, "created_ns": task.created_ns, "done_ns": task.done_ns,
            "steps": task.steps, "running_ns": task.running_ns, "suspended_ns": task.suspended_ns,
        });
        (task.rank, row)
    })))
}

fn by_rank(rows: impl Iterator<Item = (u32, Value)>) -> Value {
    let mut ranks = json!({});
    for (rank, row) in rows {
        let rows = &mut ranks[rank.to_string()];
        match rows.as_array_mut() {
            Some(rows) => rows.push(row),
            None => *rows = json!([row]),
        }
    }
    ranks
}
