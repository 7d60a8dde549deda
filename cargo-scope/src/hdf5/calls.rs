//! Calls that stay in their file, of which parts are read when they are needed.

use std::collections::HashMap;
use std::ops::Range;

use rust_hdf5::H5Dataset;
use scope_runtime::call_stack::stored::{CallColumn, StoredCalls};

use super::Error;
use super::chunks::Chunks;
use super::layout::{CALL_IDS, END_TIMES, EVENTS, PARENT_IDS, START_DELTAS, TASK_IDS, THREAD_IDS};
use super::read::{durations_of_ends, time_columns};
use super::source::Source;
use crate::merged::EventsFile;

/// Columns are read as a whole and kept where all of them together have no more bytes.
const SMALL: usize = 64 << 20;
/// Values that are read together of a column that has chunks, and no tree of them.
const LEAST_BLOCK: usize = 1 << 15;

/// The calls of a file with schema 2 or 3.
pub struct FileCalls<'a> {
    source: Source<'a>,
    /// The columns of ends, or durations, and of starts.
    times: [&'static str; 2],
    /// Number of calls.
    len: usize,
    block: usize,
    columns: HashMap<&'static str, Column>,
    /// Starts, while ends are made durations.
    starts: Vec<i64>,
}

/// One column, in the way in which it is read.
enum Column {
    /// All of it.
    Values(Vec<i64>),
    /// Chunk by chunk; one of them is at hand.
    Chunks { chunks: Chunks, number: usize, values: Vec<i64> },
    /// Part by part.
    Parts(H5Dataset),
}

impl<'a> FileCalls<'a> {
    /// Opens a file of which the rest was read before.
    ///
    /// # Errors
    /// When it cannot be opened, another one is there now, or a column is not what it should be.
    pub fn open(file: &'a EventsFile) -> Result<FileCalls<'a>, Error> {
        let source = Source::open(&file.path)?;
        source.check_is(file)?;
        FileCalls::with_small(source, SMALL)
    }

    /// Columns are read as a whole up to another limit.
    pub(super) fn with_small(source: Source<'a>, small: usize) -> Result<FileCalls<'a>, Error> {
        let object = |name: &str| format!("{EVENTS}/{name}");
        let times = time_columns(&source)?;
        let mut columns = HashMap::new();
        let (mut len, mut block) = (0, 1);
        let mut there = Vec::new();
        for name in times.into_iter().rev().chain(OPTIONAL.map(|(_, name)| name)) {
            if times.contains(&name) || source.has_dataset(&object(name))? {
                len = source.len(&object(name))?;
                there.push(name);
            }
        }
        let is_small = len.saturating_mul(8 * there.len()) <= small;
        for name in there {
            let dataset = source.checked_dataset(&object(name))?;
            let chunks = source.chunks(&object(name), &dataset)?;
            let column = if is_small {
                // Only what is asked for will be read.
                Column::Values(Vec::new())
            } else if let Some(chunks) = chunks {
                block = block.max(chunks.len);
                Column::Chunks { chunks, number: usize::MAX, values: Vec::new() }
            } else {
                let chunk = dataset.chunk_dims().unwrap_or_default().into_iter().product::<usize>();
                if chunk > 1 {
                    block = block.max(chunk * (LEAST_BLOCK / chunk).max(1));
                }
                Column::Parts(dataset)
            };
            columns.insert(name, column);
        }
        Ok(FileCalls { source, times, len, block, columns, starts: Vec::new() })
    }

    /// Reads a part of the column called `name`.
    fn read_named(
        &mut self,
        name: &'static str,
        calls: Range<usize>,
        values: &mut Vec<i64>,
    ) -> Result<(), Error> {
        let object = format!("{EVENTS}/{name}");
        values.clear();
        let missing =
            || Error::NotAProfile { path: self.source.path().to_path_buf(), object: object.clone() };
        if calls.end > self.len {
            return Err(self.source.damaged(&object, format!("it has {} entries", self.len)));
        }
        match self.columns.get_mut(name).ok_or_else(missing)? {
            Column::Values(all) => {
                if all.is_empty() {
                    *all = self.source.integers(&object)?;
                }
                let part = all.get(calls).unwrap_or_default();
                values.extend_from_slice(part);
            }
            Column::Chunks { chunks, number, values: chunk } => {
                let mut at = calls.start;
                while at < calls.end {
                    let (wanted, first) = (at / chunks.len, at % chunks.len);
                    if *number != wanted {
                        *number = usize::MAX;
                        self.source.read_chunk(&object, chunks, wanted, chunk)?;
                        *number = wanted;
                    }
                    let last = chunks.len.min(first + calls.end - at);
                    values.extend_from_slice(&chunk[first..last]);
                    at += last - first;
                }
            }
            Column::Parts(dataset) => *values = self.source.integers_of(&object, dataset, calls)?,
        }
        Ok(())
    }
}

/// The optional columns that say where calls belong.
const OPTIONAL: [(CallColumn, &str); 4] = [
    (CallColumn::Thread, THREAD_IDS),
    (CallColumn::Task, TASK_IDS),
    (CallColumn::Id, CALL_IDS),
    (CallColumn::Parent, PARENT_IDS),
];

impl StoredCalls for FileCalls<'_> {
    type Error = Error;

    fn has(&self, column: CallColumn) -> bool {
        let optional = OPTIONAL.iter().find(|(other, _)| *other == column);
        optional.is_none_or(|(_, name)| self.columns.contains_key(name))
    }

    fn has_differences(&self) -> bool {
        self.times[1] == START_DELTAS
    }

    fn block(&self) -> usize {
        self.block
    }

    fn read(&mut self, column: CallColumn, calls: Range<usize>, values: &mut Vec<i64>) -> Result<(), Error> {
        let [ends, starts] = self.times;
        match column {
            CallColumn::Start => self.read_named(starts, calls, values),
            CallColumn::Duration => {
                self.read_named(ends, calls.clone(), values)?;
                if ends == END_TIMES {
                    let mut of_calls = std::mem::take(&mut self.starts);
                    self.read_named(starts, calls, &mut of_calls)?;
                    durations_of_ends(values, &of_calls);
                    self.starts = of_calls;
                }
                Ok(())
            }
            _ => {
                let optional = OPTIONAL.iter().find(|(other, _)| *other == column);
                optional.map_or(Ok(()), |(_, name)| self.read_named(name, calls, values))
            }
        }
    }
}
