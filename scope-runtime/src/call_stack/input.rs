//! The calls of one region on one rank, as columns that the caller owns.

use super::error::NestingError;

/// Calls of one region in the order stored; all columns have one entry per call.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegionCalls<'a> {
    /// Name of the region; need not be unique.
    pub name: &'a str,
    /// Source file, when known.
    pub source_file: Option<&'a str>,
    /// Line in that file, when known.
    pub source_line: Option<i64>,
    /// Entry times in ns.
    pub starts: &'a [i64],
    /// Exit times in ns on the same clock.
    pub ends: &'a [i64],
    /// Thread index per call, negative when unknown; `None` when threads were not recorded.
    pub thread_ids: Option<&'a [i64]>,
    /// Task number per call, negative outside a task. Counts only beside `thread_ids`.
    pub task_ids: Option<&'a [i64]>,
    /// Number of each call, unique within the rank and growing in order of entry.
    pub call_ids: Option<&'a [i64]>,
    /// The `call_ids` entry of the enclosing call, -1 at the top.
    pub parent_ids: Option<&'a [i64]>,
}

impl<'a> RegionCalls<'a> {
    /// Calls of a region without source, lanes or ids.
    pub fn new(name: &'a str, starts: &'a [i64], ends: &'a [i64]) -> RegionCalls<'a> {
        RegionCalls { name, starts, ends, ..RegionCalls::default() }
    }

    /// Number of calls.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether the region has no call.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Checks that all columns are as long as `starts`.
    fn check(&self) -> Result<(), NestingError> {
        let columns = [
            ("ends", Some(self.ends)),
            ("thread_ids", self.thread_ids),
            ("task_ids", self.task_ids),
            ("call_ids", self.call_ids),
            ("parent_ids", self.parent_ids),
        ];
        for (column, values) in columns {
            let found = values.map_or(self.len(), <[i64]>::len);
            if found != self.len() {
                let region = self.name.to_owned();
                return Err(NestingError::Columns { region, column, expected: self.len(), found });
            }
        }
        Ok(())
    }
}

/// Checks all columns and gives the number of calls, which must leave room for "no parent".
pub(super) fn count_calls(regions: &[RegionCalls<'_>]) -> Result<usize, NestingError> {
    regions.iter().try_for_each(RegionCalls::check)?;
    let calls = regions.iter().map(RegionCalls::len).sum();
    if u32::try_from(calls).is_ok_and(|calls| calls < u32::MAX) {
        Ok(calls)
    } else {
        Err(NestingError::TooManyCalls(calls))
    }
}

/// Presents named pairs of start and end columns (ns) as regions, in the order given.
///
/// # Examples
/// ```
/// use scope_runtime::call_stack::regions_from_snapshot;
///
/// let snapshot = [("main", vec![0], vec![100]), ("step", vec![10, 50], vec![30, 60])];
/// let regions = regions_from_snapshot(&snapshot);
/// assert_eq!((regions[1].name, regions[1].len()), ("step", 2));
/// ```
pub fn regions_from_snapshot<'a, S, T>(snapshot: &'a [(S, T, T)]) -> Vec<RegionCalls<'a>>
where
    S: AsRef<str>,
    T: AsRef<[i64]>,
{
    let region =
        |(name, starts, ends): &'a (S, T, T)| RegionCalls::new(name.as_ref(), starts.as_ref(), ends.as_ref());
    snapshot.iter().map(region).collect()
}
