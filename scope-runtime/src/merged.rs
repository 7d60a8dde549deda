//! All ranks of one run in memory: what `profile.h5` holds, in the shape of its columns.
//!
//! `collect` makes it from recordings, `hdf5` writes and reads it, every exporter takes it.
//! Times are ns on the recording clock unless said otherwise; `-1` stands for unknown where
//! the file format says so (HDF5 schema 3 of scope-profiler 0.7.5).

use std::fs::Metadata;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::profile::RegionId;
use crate::totals::{PathId, PathTotals};

/// One run, all ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergedProfile {
    /// What is known about the run, in the order in which it is shown.
    pub metadata: Vec<(String, MetadataValue)>,
    /// Region names; the index is the region id that rows refer to.
    pub names: Vec<String>,
    /// One entry per (rank, region), rank by rank.
    pub rows: Vec<Row>,
    /// The calls of all rows, each row one contiguous run.
    pub events: Events,
    /// The profile file that has the calls where they are not in `events`, as many as it has; the runs of
    /// rows are those in its columns.
    pub events_in: Option<EventsFile>,
    /// Totals in place of events, one per row, for runs that kept no events.
    pub aggregates: Option<Vec<Aggregate>>,
    /// Totals per call path: of all that was recorded, also where the events are not all of it (a limit
    /// was met, the disk was full, no events were wanted). Rank by rank, parents before children.
    pub paths: Option<Vec<PathRow>>,
    /// Threads of all ranks; `None` when the run did not track them.
    pub threads: Option<Vec<ThreadRow>>,
    /// Async tasks of all ranks; `None` when the run did not track them.
    pub tasks: Option<Vec<TaskRow>>,
    /// Calls that ran in parts; `None` when there were none.
    pub async_calls: Option<Vec<AsyncRow>>,
    /// Their polls.
    pub polls: Option<Vec<PollRow>>,
    /// Calls that were started by others than those around them; `None` when there were none.
    pub links: Option<Vec<LinkRow>>,
    /// The totals per call path as in `paths`, with what was started elsewhere below what started it.
    pub linked_paths: Option<Vec<PathRow>>,
    /// What was sent, received, read and written; `None` when nothing was.
    pub messages: Option<Vec<MessageRow>>,
    /// How long ranks waited for each other in collective calls; `None` when there were none.
    pub waits: Option<Vec<WaitRow>>,
    /// Comparisons of the ranks' clocks with that of rank 0; `None` when there were none.
    pub clocks: Option<Vec<ClockRow>>,
}

/// A file, and which one it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventsFile {
    /// Where it is.
    pub path: PathBuf,
    /// Number of bytes.
    pub size: u64,
    /// Time of the last change, where the file system keeps it.
    pub modified: Option<SystemTime>,
    /// Device and number on it, where the system has them.
    pub number: Option<(u64, u64)>,
}

impl EventsFile {
    /// The file at `path`, of which the system says this.
    pub fn new(path: &Path, metadata: &Metadata) -> EventsFile {
        #[cfg(unix)]
        let number = {
            use std::os::unix::fs::MetadataExt;
            Some((metadata.dev(), metadata.ino()))
        };
        #[cfg(not(unix))]
        let number = None;
        let (size, modified) = (metadata.len(), metadata.modified().ok());
        EventsFile { path: path.to_path_buf(), size, modified, number }
    }
}

/// A value of the metadata group.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataValue {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// A list of strings.
    List(Vec<String>),
}

/// The calls of one region on one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Index into [`MergedProfile::names`].
    pub region: u32,
    /// MPI rank.
    pub rank: u32,
    /// Source file; empty when unknown.
    pub source_file: String,
    /// 1-based line; -1 when unknown.
    pub source_line: i64,
    /// Text of the function or block; empty when not captured.
    pub source_text: String,
    /// Free labels.
    pub tags: Vec<String>,
    /// This row's calls in [`Events`].
    pub events: Range<usize>,
    /// Sum of the calls' exclusive ns; `None` when not computed.
    pub exclusive_total_ns: Option<i64>,
}

/// One column per quantity, one entry per call; absent optional columns were not recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Events {
    /// Absolute start.
    pub start_ns: Vec<i64>,
    /// End minus start.
    pub duration_ns: Vec<i64>,
    /// Id, unique within a rank; -1 = not numbered.
    pub call_ids: Option<Vec<i64>>,
    /// `call_ids` value of the enclosing call; -1 = none.
    pub parent_ids: Option<Vec<i64>>,
    /// Index into this rank's rows of the thread table; -1 = unknown.
    pub thread_ids: Option<Vec<i64>>,
    /// Index into this rank's rows of the task table; -1 = outside any task.
    pub task_ids: Option<Vec<i64>>,
    /// ns that the call's task was suspended while the call was open.
    pub await_ns: Option<Vec<i64>>,
    /// Device ns; -1 = none.
    pub gpu_durations_ns: Option<Vec<i64>>,
}

/// Totals of one region on one rank, without its events. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregate {
    /// Number of calls.
    pub count: u64,
    /// Sum of durations.
    pub total_ns: i64,
    /// Shortest duration.
    pub min_ns: i64,
    /// Longest duration.
    pub max_ns: i64,
    /// Sum of exclusive times.
    pub exclusive_ns: i64,
}

/// Totals of one call path on one rank. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathRow {
    /// MPI rank.
    pub rank: u32,
    /// Position of the path without its last region in [`MergedProfile::paths`]; -1 at the top.
    pub parent: i64,
    /// The last region of the path; index into [`MergedProfile::names`].
    pub region: u32,
    /// Number of calls.
    pub calls: u64,
    /// Calls among them that were cut at the end of recording.
    pub open: u64,
    /// Calls of async regions among them that were dropped before they completed.
    pub cancelled: u64,
    /// Time in which a thread ran the calls or what they called.
    pub inclusive_ns: i64,
    /// The same, less the inclusive time of direct children.
    pub self_ns: i64,
    /// Sum of durations; more than `inclusive_ns` where async calls waited.
    pub wall_ns: i64,
    /// Shortest duration.
    pub min_ns: i64,
    /// Longest duration.
    pub max_ns: i64,
}

impl PathRow {
    /// A path of `rank` with its totals, `region` being the number of its region in the profile.
    pub fn new(rank: u32, region: u32, totals: &PathTotals) -> PathRow {
        PathRow {
            rank,
            parent: totals.parent.map_or(-1, |parent| parent.0.into()),
            region,
            calls: totals.calls,
            open: totals.open,
            cancelled: totals.cancelled,
            inclusive_ns: totals.inclusive_ns,
            self_ns: totals.self_ns,
            wall_ns: totals.wall_ns,
            min_ns: totals.min_ns,
            max_ns: totals.max_ns,
        }
    }

    /// A region with the totals that stand in place of its events, as a path of one step.
    pub fn of_region(row: &Row, totals: &Aggregate) -> PathRow {
        PathRow {
            rank: row.rank,
            parent: -1,
            region: row.region,
            calls: totals.count,
            inclusive_ns: totals.total_ns,
            self_ns: totals.exclusive_ns,
            wall_ns: totals.total_ns,
            min_ns: totals.min_ns,
            max_ns: totals.max_ns,
            ..PathRow::default()
        }
    }

    /// The totals, for a path below `parent`.
    pub fn totals(&self, parent: Option<PathId>) -> PathTotals {
        PathTotals {
            parent,
            region: RegionId(self.region),
            calls: self.calls,
            open: self.open,
            cancelled: self.cancelled,
            inclusive_ns: self.inclusive_ns,
            self_ns: self.self_ns,
            wall_ns: self.wall_ns,
            min_ns: self.min_ns,
            max_ns: self.max_ns,
        }
    }
}

/// The messages of one kind that one rank exchanged with one peer on one call path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageRow {
    /// MPI rank.
    pub rank: u32,
    /// The path: index into [`MergedProfile::paths`].
    pub path: u64,
    /// 0 sent, 1 received, 2 in a collective call, 3 written to a file, 4 read from one.
    pub kind: i8,
    /// Rank of the peer; -1 where there is no single one.
    pub peer: i64,
    /// Number of messages.
    pub messages: u64,
    /// Sum of their bytes.
    pub bytes: u64,
    /// Bytes of the smallest.
    pub min_bytes: u64,
    /// Bytes of the largest.
    pub max_bytes: u64,
}

/// How long one rank waited in the collective calls of one path, until the last rank had come too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitRow {
    /// MPI rank.
    pub rank: u32,
    /// The path: index into [`MergedProfile::paths`].
    pub path: u64,
    /// Number of calls that could be compared with those of other ranks.
    pub calls: u64,
    /// Sum of the times from coming to the last rank's coming, or to the call's own end if that was
    /// earlier, in ns.
    pub wait_ns: i64,
    /// In how many of the calls this rank came last.
    pub last: u64,
    /// How long the other ranks waited in those, in ns.
    pub caused_ns: i64,
}

/// A comparison of a rank's clock with that of rank 0. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockRow {
    /// MPI rank.
    pub rank: u32,
    /// When, on the rank's own clock.
    pub at_ns: i64,
    /// What rank 0's clock showed then, less that; the times in this profile are on rank 0's clock.
    pub offset_ns: i64,
    /// By how much the offset can be wrong.
    pub uncertainty_ns: i64,
}

/// One thread of one rank. Times are ns since the run's `start_time_ns`; -1 = unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadRow {
    /// MPI rank.
    pub rank: u32,
    /// Dense per rank, from 0; what `thread_ids` holds.
    pub index: i64,
    /// Identity given by the language runtime.
    pub ident: i64,
    /// Thread id of the operating system.
    pub native_id: i64,
    /// 1 for a thread that does not keep the process alive.
    pub daemon: i8,
    /// First time seen.
    pub start_ns: i64,
    /// End; -1 when alive at finalize.
    pub end_ns: i64,
    /// CPU time.
    pub cpu_ns: i64,
    /// Name.
    pub name: String,
}

/// One async task of one rank. Times are ns since the run's `start_time_ns`; -1 = unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskRow {
    /// MPI rank.
    pub rank: u32,
    /// Dense per rank, from 0; what `task_ids` holds.
    pub index: i64,
    /// Thread that ran the last step.
    pub thread_index: i64,
    /// When it was made.
    pub created_ns: i64,
    /// When it ended; -1 when not done.
    pub done_ns: i64,
    /// Number of polls.
    pub steps: i64,
    /// Sum of the polls.
    pub running_ns: i64,
    /// Time between polls.
    pub suspended_ns: i64,
    /// `task` or `greenlet`.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Name of the function behind it.
    pub coro_name: String,
}

/// A call that did not run from begin to end: of an async region, or of one that was held over an
/// `.await`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsyncRow {
    /// MPI rank.
    pub rank: u32,
    /// Its `call_ids` value.
    pub call_id: i64,
    /// Number of polls.
    pub polls: u64,
    /// 1 when it was dropped before it completed.
    pub cancelled: i8,
    /// 1 when it was cut at the end of recording.
    pub open: i8,
}

/// A call that was started by another one, such as a task by the region in which it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkRow {
    /// MPI rank.
    pub rank: u32,
    /// `call_ids` value of the call.
    pub call_id: i64,
    /// `call_ids` value of the call that started it.
    pub started_by: i64,
}

/// One poll of an async call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollRow {
    /// MPI rank.
    pub rank: u32,
    /// `call_ids` value of the call.
    pub call_id: i64,
    /// The thread: index into the rank's rows of the thread table.
    pub thread: i64,
    /// Absolute start, ns.
    pub start_ns: i64,
    /// ns.
    pub duration_ns: i64,
}

/// No job has more ranks; a mistyped or damaged number must not fill the memory.
pub const MAX_RANKS: u32 = 1 << 24;

impl MergedProfile {
    /// Number of ranks: the larger of the metadata's `mpi_size` and the highest rank of a row
    /// plus one; 0 without rows. A size that no job has does not count.
    pub fn ranks(&self) -> u32 {
        let highest = self.rows.iter().map(|row| row.rank.saturating_add(1)).max().unwrap_or(0);
        match self.metadata_value("mpi_size") {
            Some(&MetadataValue::Integer(size)) if highest > 0 => {
                highest.max(u32::try_from(size).ok().filter(|&size| size <= MAX_RANKS).unwrap_or(0))
            }
            _ => highest,
        }
    }

    /// Whether there are totals per region only, and nothing to tell which region called which.
    pub fn has_regions_only(&self) -> bool {
        self.aggregates.is_some() && self.paths.is_none()
    }

    /// The metadata entry called `key`.
    pub fn metadata_value(&self, key: &str) -> Option<&MetadataValue> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The entry of the metadata with this key; `None` where it is no integer, too.
    pub fn metadata_integer(&self, key: &str) -> Option<i64> {
        match self.metadata_value(key) {
            Some(&MetadataValue::Integer(number)) => Some(number),
            _ => None,
        }
    }

    /// Removes names that no row refers to, and renumbers the regions of the rows.
    ///
    /// # Panics
    /// When a row refers to a name that is not there.
    pub fn drop_unused_names(&mut self) {
        let ids = self.ids_without_unused();
        self.rows.iter_mut().for_each(|row| row.region = ids[row.region as usize].unwrap_or_default());
        let mut kept = ids.iter().map(Option::is_some);
        self.names.retain(|_| kept.next().unwrap_or_default());
    }

    /// For each name its id once the unused names are gone; `None` for an unused one.
    pub(crate) fn ids_without_unused(&self) -> Vec<Option<u32>> {
        let mut ids = vec![None; self.names.len()];
        self.rows.iter().for_each(|row| ids[row.region as usize] = Some(0));
        ids.iter_mut().flatten().zip(0..).for_each(|(id, next)| *id = next);
        ids
    }
}

impl Events {
    /// Appends the calls of another rank; of calls of a rank that has not recorded a column it says that
    /// it is not known.
    pub fn append(&mut self, other: Events) {
        let (before, calls) = (self.duration_ns.len(), other.duration_ns.len());
        let join = |column: &mut Option<Vec<i64>>, other: Option<Vec<i64>>, unknown| {
            if column.is_some() || other.is_some() {
                let column = column.get_or_insert_with(|| vec![unknown; before]);
                column.extend(other.unwrap_or_else(|| vec![unknown; calls]));
            }
        };
        self.start_ns.extend(other.start_ns);
        self.duration_ns.extend(other.duration_ns);
        join(&mut self.call_ids, other.call_ids, -1);
        join(&mut self.parent_ids, other.parent_ids, -1);
        join(&mut self.thread_ids, other.thread_ids, -1);
        join(&mut self.task_ids, other.task_ids, -1);
        join(&mut self.await_ns, other.await_ns, 0);
        join(&mut self.gpu_durations_ns, other.gpu_durations_ns, -1);
    }

    /// Statistics over one run of calls; all zero for an empty one.
    ///
    /// # Panics
    /// When the run does not lie inside the columns.
    pub fn statistics(&self, run: Range<usize>) -> Statistics {
        let mut statistics = Statistics::of(&self.start_ns[run.clone()], &self.duration_ns[run.clone()]);
        if let Some(gpu) = &self.gpu_durations_ns {
            let known = gpu[run].iter().copied().filter(|&ns| ns >= 0);
            (statistics.gpu_count, statistics.gpu_total_ns) =
                known.fold((0, 0i64), |(count, total), ns| (count + 1, total.saturating_add(ns)));
        }
        statistics
    }
}

/// Fixed-size statistics over the calls of one row. Times in ns; sums stop at the largest `i64`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Sum of the durations.
    pub total_ns: i64,
    /// Shortest duration.
    pub min_ns: i64,
    /// Longest duration.
    pub max_ns: i64,
    /// Duration of the first call as stored.
    pub first_ns: i64,
    /// Duration of the last call as stored.
    pub last_ns: i64,
    /// Earliest start, on the recording clock.
    pub start_min_ns: i64,
    /// Latest end, on the recording clock.
    pub end_max_ns: i64,
    /// Number of calls with a known device duration.
    pub gpu_count: u64,
    /// Sum of the known device durations.
    pub gpu_total_ns: i64,
    /// Mean duration.
    pub mean_ns: f64,
    /// Sum of the squared deviations from the mean, in square ns: population variance x calls.
    pub m2_ns2: f64,
}

impl Statistics {
    /// Statistics of calls with these starts and durations, in stored order.
    fn of(start_ns: &[i64], duration_ns: &[i64]) -> Statistics {
        let mut sums = StatisticsSums::default();
        start_ns.iter().zip(duration_ns).for_each(|(&start_ns, &ns)| sums.add(start_ns, ns));
        sums.first_ns = duration_ns.first().copied().unwrap_or_default();
        sums.last_ns = duration_ns.last().copied().unwrap_or_default();
        sums.statistics()
    }
}

/// What statistics are made of, call by call in any order.
#[derive(Clone, Debug)]
pub(crate) struct StatisticsSums {
    /// As stored, for who adds the calls to say.
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
    calls: u64,
    min_ns: i64,
    max_ns: i64,
    start_min_ns: i64,
    end_max_ns: i64,
    /// One of the durations, and what the others are more than that: their sum, and that of their squares.
    base: i64,
    over_base: i128,
    squares: u128,
}

impl Default for StatisticsSums {
    fn default() -> StatisticsSums {
        StatisticsSums {
            first_ns: 0,
            last_ns: 0,
            calls: 0,
            min_ns: i64::MAX,
            max_ns: i64::MIN,
            start_min_ns: i64::MAX,
            end_max_ns: i64::MIN,
            base: 0,
            over_base: 0,
            squares: 0,
        }
    }
}

impl StatisticsSums {
    /// Adds a call.
    #[inline]
    pub(crate) fn add(&mut self, start_ns: i64, ns: i64) {
        if self.calls == 0 {
            self.base = ns;
        }
        self.calls += 1;
        let over_base = i128::from(ns) - i128::from(self.base);
        self.over_base += over_base;
        // A product of two small numbers is one instruction.
        let distance = over_base.unsigned_abs();
        let square = match u64::try_from(distance) {
            Ok(small) => u128::from(small) * u128::from(small),
            Err(_) => u128::MAX,
        };
        self.squares = self.squares.saturating_add(square);
        (self.min_ns, self.max_ns) = (self.min_ns.min(ns), self.max_ns.max(ns));
        self.start_min_ns = self.start_min_ns.min(start_ns);
        self.end_max_ns = self.end_max_ns.max(start_ns.wrapping_add(ns));
    }

    /// All zero without calls.
    pub(crate) fn statistics(&self) -> Statistics {
        if self.calls == 0 {
            return Statistics::default();
        }
        let sum = i128::from(self.base) * i128::from(self.calls) + self.over_base;
        Statistics {
            total_ns: sum.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64,
            min_ns: self.min_ns,
            max_ns: self.max_ns,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            start_min_ns: self.start_min_ns,
            end_max_ns: self.end_max_ns,
            gpu_count: 0,
            gpu_total_ns: 0,
            mean_ns: sum as f64 / self.calls as f64,
            m2_ns2: self.squared_deviations(),
        }
    }

    /// With n calls, (n x squares - over_base^2) / n; exact up to the division unless the numbers are huge, so
    /// that neither the order of calls nor the base matters.
    fn squared_deviations(&self) -> f64 {
        let calls = u128::from(self.calls);
        let square = self.over_base.checked_mul(self.over_base).map(i128::unsigned_abs);
        match self.squares.checked_mul(calls).zip(square) {
            Some((squares, square)) => (squares - square) as f64 / calls as f64,
            None => {
                let over_base = self.over_base as f64;
                (self.squares as f64 - over_base / calls as f64 * over_base).max(0.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_those_from_the_mean_in_any_order() {
        let two_years = 63_072_000_000_000_000;
        let lists: [&[i64]; 5] =
            [&[7], &[1, 2, 4], &[-3, 5], &[two_years, two_years + 3, two_years + 6], &[i64::MIN, i64::MAX]];
        let squares = [0.0, 14.0 / 3.0, 32.0, 18.0, 2f64.powi(127)];
        for (durations, squares) in lists.into_iter().zip(squares) {
            let statistics = Statistics::of(&vec![0; durations.len()], durations);
            assert_eq!(statistics.m2_ns2, squares, "{durations:?}");
            let mean =
                durations.iter().map(|&ns| i128::from(ns)).sum::<i128>() as f64 / durations.len() as f64;
            assert_eq!(statistics.mean_ns, mean, "{durations:?}");
            let backwards: Vec<i64> = durations.iter().rev().copied().collect();
            let backwards = Statistics::of(&vec![0; durations.len()], &backwards);
            assert_eq!((backwards.m2_ns2, backwards.mean_ns), (squares, mean), "{durations:?}");
        }
    }
}
