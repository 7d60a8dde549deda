//! A profile as `scope-profiler export json` would write it.

use cargo_scope::merged::{MergedProfile, MetadataValue, Row};
use serde_json::{Value, json};

/// Compares the rows with those of the JSON, which has them in an order of its own.
pub(crate) fn check_regions(file: &std::path::Path, profile: &MergedProfile, expected: &[Value]) {
    assert_eq!(profile.rows.len(), expected.len(), "{file:?}");
    for (position, row) in profile.rows.iter().enumerate() {
        let name = &profile.names[row.region as usize];
        let same = |other: &&Value| other["name"] == json!(name) && other["rank"] == json!(row.rank);
        let expected = expected.iter().find(same).unwrap_or_else(|| panic!("{file:?}: {name}"));
        assert_eq!(&region(profile, position, row), expected, "{file:?}: {name}");
    }
}

/// The metadata group, whose keys JSON has in no order.
pub(crate) fn metadata(profile: &MergedProfile) -> Value {
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

/// The row as the JSON has it: keys without a value are left out.
pub(crate) fn region(profile: &MergedProfile, position: usize, row: &Row) -> Value {
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
    // The package takes a row without a known duration for one without the column.
    let gpu = profile.events.gpu_durations_ns.as_ref().map(|values| &values[row.events.clone()]);
    if let Some(values) = gpu.filter(|values| values.iter().any(|ns| *ns >= 0)) {
        put("gpu_durations_ns", json!(values));
    }
    if let Some(total) = row.exclusive_total_ns {
        put("exclusive_total_ns", json!(total));
    }
    region
}

/// The thread table, a list for each rank.
pub(crate) fn threads(profile: &MergedProfile) -> Option<Value> {
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

/// The task table, a list for each rank.
pub(crate) fn tasks(profile: &MergedProfile) -> Option<Value> {
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
