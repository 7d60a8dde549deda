//! The layout of the file, once, for writer and reader: names, types, and how the columns map
//! to [`MergedProfile`](crate::merged::MergedProfile).
//!
//! A table is a group of equally long one-dimensional datasets. A [`Column`] says name and type
//! of one of them, and how its value gets out of a row in memory and back into one.

use std::borrow::Cow;

use crate::merged::{
    Aggregate, AsyncRow, ClockRow, Events, LinkRow, MessageRow, PathRow, PollRow, Row, Statistics, TaskRow,
    ThreadRow, WaitRow,
};

/// Version that is written; readers take 1 to this one.
pub const SCHEMA: i64 = 3;
pub const SCHEMA_ATTRIBUTE: &str = "scope_profiler_schema";
pub const LAYOUT_ATTRIBUTE: &str = "storage_layout";
pub const COLUMNAR: &str = "columnar";
pub const AGGREGATE: &str = "aggregate";

pub const EVENTS: &str = "events";
pub const INDEX: &str = "rank_region_index";
pub const REGIONS: &str = "region_table";
pub const NAMES: &str = "names";
pub const METADATA: &str = "metadata";
pub const THREADS: &str = "thread_table";
pub const TASKS: &str = "task_table";
/// Group of what only we know; other readers pass it by.
pub const OWN: &str = "cargo_scope";
/// Totals per call path, where the events are not all; other readers pass it by.
pub const PATHS: &str = "cargo_scope_paths";
/// Calls that ran in parts, and their polls; other readers pass them by.
pub const ASYNC_CALLS: &str = "cargo_scope_async_calls";
pub const POLLS: &str = "cargo_scope_polls";
/// What was started elsewhere, and the totals with that below what started it.
pub const LINKS: &str = "cargo_scope_links";
pub const LINKED_PATHS: &str = "cargo_scope_linked_paths";
/// What ranks sent each other, how long they waited for each other, and how their clocks differ.
pub const MESSAGES: &str = "cargo_scope_messages";
pub const WAITS: &str = "cargo_scope_waits";
pub const CLOCKS: &str = "cargo_scope_clocks";
/// Names as they were, as JSON, in [`OWN`], where `region_table/names` cannot hold one: a variable string
/// ends at its first NUL for every reader in C.
pub const EXACT_NAMES: &str = "names_as_json";

pub const START_DELTAS: &str = "start_deltas";
pub const CALL_IDS: &str = "call_ids";
pub const PARENT_IDS: &str = "parent_ids";
pub const THREAD_IDS: &str = "thread_ids";
pub const TASK_IDS: &str = "task_ids";
pub const AWAIT: &str = "await_ns";
pub const START_TIMES: &str = "start_times";
pub const DURATIONS: &str = "durations";
pub const END_TIMES: &str = "end_times";
pub const STATISTICS: &str = "summary_statistics";
pub const EVENT_METADATA: &str = "event_metadata";
/// Value of a row of [`EVENT_METADATA`]: none for any call.
pub const NO_EVENT_METADATA: &str = "[]";
pub const EXCLUSIVE_TOTALS: &str = "exclusive_totals";
/// Stands for an unknown source line.
pub const NO_LINE: i64 = -1;
/// Stands for an exclusive total that was not computed.
pub const NOT_COMPUTED: i64 = -1;

/// One dataset of a table whose rows are `T`.
pub struct Column<T> {
    pub name: &'static str,
    pub field: Field<T>,
}

/// Type of a column in the file, with its getter and its setter.
pub enum Field<T> {
    U32(fn(&T) -> u32, fn(&mut T, u32)),
    U64(fn(&T) -> u64, fn(&mut T, u64)),
    I64(fn(&T) -> i64, fn(&mut T, i64)),
    I8(fn(&T) -> i8, fn(&mut T, i8)),
    /// The setter says what is wrong with a text that it cannot take.
    Text(for<'a> fn(&'a T) -> Cow<'a, str>, fn(&mut T, String) -> Result<(), String>),
}

/// A column that is a field of the row as it stands: `column!(I64 "start_ns" => start_ns)`.
macro_rules! column {
    (Text $name:literal => $field:ident) => {
        Column {
            name: $name,
            field: Field::Text(
                |row| Cow::Borrowed(&row.$field),
                |row, value| {
                    row.$field = value;
                    Ok(())
                },
            ),
        }
    };
    ($kind:ident $name:literal => $field:ident) => {
        Column { name: $name, field: Field::$kind(|row| row.$field, |row, value| row.$field = value) }
    };
}

/// `rank_region_index`: what row this is, in both layouts.
pub const ROW_IDENTITY: &[Column<Row>] = &[column!(U32 "region_ids" => region), column!(U32 "ranks" => rank)];

/// `rank_region_index`: the row's run of calls. The offset comes first, since the setter of the
/// count needs it.
pub const ROW_RUN: &[Column<Row>] = &[
    Column {
        name: "event_offsets",
        field: Field::U64(|row| row.events.start as u64, |row, value| row.events.start = value as usize),
    },
    Column {
        name: "event_counts",
        field: Field::U64(
            |row| row.events.len() as u64,
            |row, value| row.events.end = row.events.start.saturating_add(value as usize),
        ),
    },
];

/// `rank_region_index`: where the row's region is in the source. The reference has these in the
/// columnar layout only; we write them in both.
pub const ROW_SOURCE: &[Column<Row>] = &[
    column!(I64 "source_lines" => source_line),
    column!(Text "source_files" => source_file),
    column!(Text "source_texts" => source_text),
    Column { name: "tags", field: Field::Text(|row| tags_to_json(&row.tags), set_tags) },
];

/// `rank_region_index`: columns that a file may lack.
pub const ROW_OPTIONAL: &[Column<Row>] = &[Column {
    name: EXCLUSIVE_TOTALS,
    field: Field::I64(
        |row| row.exclusive_total_ns.unwrap_or(NOT_COMPUTED),
        |row, value| row.exclusive_total_ns = (value != NOT_COMPUTED).then_some(value),
    ),
}];

/// `rank_region_index` in the aggregate layout.
pub const ROW_AGGREGATE: &[Column<Aggregate>] = &[
    column!(U64 "aggregate_counts" => count),
    column!(I64 "aggregate_totals" => total_ns),
    column!(I64 "aggregate_minimums" => min_ns),
    column!(I64 "aggregate_maximums" => max_ns),
    column!(I64 "aggregate_exclusives" => exclusive_ns),
];

pub const PATH_TABLE: &[Column<PathRow>] = &[
    column!(U32 "ranks" => rank),
    column!(I64 "parents" => parent),
    column!(U32 "region_ids" => region),
    column!(U64 "calls" => calls),
    column!(U64 "open_calls" => open),
    column!(U64 "cancelled_calls" => cancelled),
    column!(I64 "inclusive_ns" => inclusive_ns),
    column!(I64 "self_ns" => self_ns),
    column!(I64 "wall_ns" => wall_ns),
    column!(I64 "minimum_ns" => min_ns),
    column!(I64 "maximum_ns" => max_ns),
];

pub const ASYNC_TABLE: &[Column<AsyncRow>] = &[
    column!(U32 "ranks" => rank),
    column!(I64 "call_ids" => call_id),
    column!(U64 "polls" => polls),
    column!(I8 "cancelled" => cancelled),
    column!(I8 "open" => open),
];

pub const LINK_TABLE: &[Column<LinkRow>] = &[
    column!(U32 "ranks" => rank),
    column!(I64 "call_ids" => call_id),
    column!(I64 "started_by" => started_by),
];

pub const POLL_TABLE: &[Column<PollRow>] = &[
    column!(U32 "ranks" => rank),
    column!(I64 "call_ids" => call_id),
    column!(I64 "thread_ids" => thread),
    column!(I64 "start_ns" => start_ns),
    column!(I64 "duration_ns" => duration_ns),
];

pub const MESSAGE_TABLE: &[Column<MessageRow>] = &[
    column!(U32 "ranks" => rank),
    column!(U64 "paths" => path),
    column!(I8 "kinds" => kind),
    column!(I64 "peers" => peer),
    column!(U64 "messages" => messages),
    column!(U64 "bytes" => bytes),
    column!(U64 "minimum_bytes" => min_bytes),
    column!(U64 "maximum_bytes" => max_bytes),
];

pub const WAIT_TABLE: &[Column<WaitRow>] = &[
    column!(U32 "ranks" => rank),
    column!(U64 "paths" => path),
    column!(U64 "calls" => calls),
    column!(I64 "wait_ns" => wait_ns),
    column!(U64 "last" => last),
    column!(I64 "caused_ns" => caused_ns),
];

pub const CLOCK_TABLE: &[Column<ClockRow>] = &[
    column!(U32 "ranks" => rank),
    column!(I64 "at_ns" => at_ns),
    column!(I64 "offset_ns" => offset_ns),
    column!(I64 "uncertainty_ns" => uncertainty_ns),
];

pub const THREAD_TABLE: &[Column<ThreadRow>] = &[
    column!(U32 "ranks" => rank),
    column!(I64 "index" => index),
    column!(I64 "ident" => ident),
    column!(I64 "native_id" => native_id),
    column!(I8 "daemon" => daemon),
    column!(I64 "start_ns" => start_ns),
    column!(I64 "end_ns" => end_ns),
    column!(I64 "cpu_ns" => cpu_ns),
    column!(Text "name" => name),
];

pub const TASK_TABLE: &[Column<TaskRow>] = &[
    column!(U32 "ranks" => rank),
    column!(I64 "index" => index),
    column!(I64 "thread_index" => thread_index),
    column!(I64 "created_ns" => created_ns),
    column!(I64 "done_ns" => done_ns),
    column!(I64 "steps" => steps),
    column!(I64 "running_ns" => running_ns),
    column!(I64 "suspended_ns" => suspended_ns),
    column!(Text "kind" => kind),
    column!(Text "name" => name),
    column!(Text "coro_name" => coro_name),
];

/// A column of [`Events`] that is absent where it was not recorded.
pub struct EventColumn {
    pub name: &'static str,
    /// Stands for calls of ranks that have not recorded it.
    pub unknown: i64,
    pub get: fn(&Events) -> Option<&Vec<i64>>,
    pub set: fn(&mut Events, Vec<i64>),
}

impl EventColumn {
    /// Whether a file with these calls has the column.
    pub fn is_needed_by(&self, events: &Events) -> bool {
        // Readers take task and waiting time together; zero is the schema's default.
        (self.get)(events).is_some() || (self.name == AWAIT && events.task_ids.is_some())
    }
}

macro_rules! event_column {
    ($name:expr => $field:ident, $unknown:literal) => {
        EventColumn {
            name: $name,
            unknown: $unknown,
            get: |events| events.$field.as_ref(),
            set: |events, values| events.$field = Some(values),
        }
    };
}

/// `events`: the optional columns; the schema has no unsigned ones among them.
pub const OPTIONAL_EVENTS: &[EventColumn] = &[
    event_column!(CALL_IDS => call_ids, -1),
    event_column!(PARENT_IDS => parent_ids, -1),
    event_column!(THREAD_IDS => thread_ids, -1),
    event_column!(TASK_IDS => task_ids, -1),
    event_column!(AWAIT => await_ns, 0),
    event_column!("gpu_durations" => gpu_durations_ns, -1),
];

/// Members of the compound `summary_statistics`: packed, little-endian, eight bytes each.
pub const STATISTICS_MEMBERS: [(&str, Member); 11] = [
    ("total", Member::Signed(|s| s.total_ns)),
    ("minimum", Member::Signed(|s| s.min_ns)),
    ("maximum", Member::Signed(|s| s.max_ns)),
    ("first", Member::Signed(|s| s.first_ns)),
    ("last", Member::Signed(|s| s.last_ns)),
    ("start_minimum", Member::Signed(|s| s.start_min_ns)),
    ("end_maximum", Member::Signed(|s| s.end_max_ns)),
    ("gpu_count", Member::Unsigned(|s| s.gpu_count)),
    ("gpu_total", Member::Signed(|s| s.gpu_total_ns)),
    ("mean", Member::Float(|s| s.mean_ns)),
    ("m2", Member::Float(|s| s.m2_ns2)),
];

/// Bytes of one `summary_statistics` entry.
pub const STATISTICS_SIZE: usize = 8 * STATISTICS_MEMBERS.len();

/// Type of a member of `summary_statistics`, with its getter. There is no setter: the reader
/// has the calls and computes the statistics anew.
#[derive(Clone, Copy)]
pub enum Member {
    Signed(fn(&Statistics) -> i64),
    Unsigned(fn(&Statistics) -> u64),
    Float(fn(&Statistics) -> f64),
}

impl Member {
    /// The member's eight bytes in the file.
    pub fn bytes(self, statistics: &Statistics) -> [u8; 8] {
        match self {
            Member::Signed(get) => get(statistics).to_le_bytes(),
            Member::Unsigned(get) => get(statistics).to_le_bytes(),
            Member::Float(get) => get(statistics).to_le_bytes(),
        }
    }
}

fn tags_to_json(tags: &[String]) -> Cow<'_, str> {
    Cow::Owned(serde_json::Value::from(tags).to_string())
}

/// Takes a JSON list of strings; an empty text is none.
fn set_tags(row: &mut Row, text: String) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    row.tags = serde_json::from_str(&text).map_err(|e| format!("is no JSON list of strings: {e}"))?;
    Ok(())
}
