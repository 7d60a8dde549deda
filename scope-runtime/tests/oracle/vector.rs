//! One vector: its input as columns.

use scope_runtime::call_stack::RegionCalls;
use serde_json::Value;

pub(crate) struct Region {
    name: String,
    source_file: Option<String>,
    source_line: Option<i64>,
    starts: Vec<i64>,
    ends: Vec<i64>,
    thread_ids: Option<Vec<i64>>,
    task_ids: Option<Vec<i64>>,
}

impl Region {
    fn of(value: &Value) -> Region {
        let column = |name: &str| value[name].as_array().map(|_| ints(&value[name]));
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        Region {
            name: text("name").unwrap(),
            source_file: text("source_file"),
            source_line: value["source_line"].as_i64(),
            starts: column("starts").unwrap(),
            ends: column("ends").unwrap(),
            thread_ids: column("thread_ids"),
            task_ids: column("task_ids"),
        }
    }

    pub(crate) fn calls(&self) -> RegionCalls<'_> {
        RegionCalls {
            source_file: self.source_file.as_deref(),
            source_line: self.source_line,
            thread_ids: self.thread_ids.as_deref(),
            task_ids: self.task_ids.as_deref(),
            ..RegionCalls::new(&self.name, &self.starts, &self.ends)
        }
    }
}

pub(crate) fn regions(vector: &Value) -> Vec<Region> {
    vector["regions"].as_array().expect("regions").iter().map(Region::of).collect()
}

pub(crate) fn ints(value: &Value) -> Vec<i64> {
    let int = |value: &Value| value.as_i64().unwrap_or_else(|| panic!("{value} is no 64-bit integer"));
    value.as_array().unwrap_or_else(|| panic!("{value} is no list")).iter().map(int).collect()
}
