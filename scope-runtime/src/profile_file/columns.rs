//! The columns of events of a file in the making, chunk by chunk, filled in any order.
//!
//! The calls of a region lie side by side in the file, but come one by one among those of others, and the end
//! of a call comes long after its begin. So a chunk, which has the values of as many calls in all columns, is
//! kept until the last of its calls is known, and then goes to its place in the file:
//!
//! ```text
//! calls        a(0) b(0) b(1) a(1) b(2) ...           region and number
//! chunks       | a(0) a(1) ...    | b(0) b(1) b(2) ... |
//!                 one at a time where calls are short: what is in memory are the chunks that
//!                 have calls and lack some, not the calls
//! ```

use super::layout::{DURATIONS, EVENTS, EventColumn, START_DELTAS};
use super::library::{CHUNK, ColumnChunk, Library, Numbers};

/// The columns that all files have; the others follow.
const REQUIRED: [&str; FIRST_OPTIONAL] = [START_DELTAS, DURATIONS];
pub(super) const START_DELTA: usize = 0;
pub(super) const DURATION: usize = 1;
pub(super) const FIRST_OPTIONAL: usize = 2;

/// From one column of a chunk to the next, in values: were it a power of two, the values of one call would
/// crowd in one place of the caches.
const STRIDE: usize = CHUNK + 16;

/// How many chunks' memory is kept for others.
const MOST_SPARE: usize = 8;

/// The columns of a file, as long as calls were reserved.
pub(super) struct EventColumns<L: Library> {
    /// Behind those that all files have.
    optional: Vec<&'static EventColumn>,
    /// The datasets, once the file is to be compressed.
    datasets: Option<Datasets<L>>,
    chunks: Vec<Chunk>,
    /// Complete chunks that are not in the file yet.
    complete: Vec<usize>,
    /// Memory of chunks that are.
    spare: Vec<Vec<i64>>,
    len: usize,
}

struct Datasets<L: Library> {
    group: L::Group,
    columns: Vec<L::Column>,
}

/// A chunk of all columns.
enum Chunk {
    /// None of its calls is known.
    Empty,
    Open(OpenChunk),
    Written,
}

struct OpenChunk {
    /// Column by column.
    values: Vec<i64>,
    /// Calls that are not complete yet.
    missing: usize,
}

impl OpenChunk {
    fn column(&self, column: usize) -> &[i64] {
        &self.values[column * STRIDE..][..CHUNK]
    }
}

/// The dataset or group that could not be written, and what the library says.
pub(super) type Failure = (String, String);

impl<L: Library> EventColumns<L> {
    pub(super) fn new() -> EventColumns<L> {
        EventColumns {
            optional: Vec::new(),
            datasets: None,
            chunks: Vec::new(),
            complete: Vec::new(),
            spare: Vec::new(),
            len: 0,
        }
    }

    /// Number of columns.
    pub(super) fn count(&self) -> usize {
        FIRST_OPTIONAL + self.optional.len()
    }

    /// Numbers of the columns that not all files have, and these.
    pub(super) fn optional(&self) -> impl Iterator<Item = (usize, &'static EventColumn)> {
        (FIRST_OPTIONAL..).zip(self.optional.iter().copied())
    }

    fn name(&self, column: usize) -> &'static str {
        match REQUIRED.get(column) {
            Some(name) => name,
            None => self.optional[column - FIRST_OPTIONAL].name,
        }
    }

    fn failure(&self, column: usize, cause: String) -> Failure {
        (format!("{EVENTS}/{}", self.name(column)), cause)
    }

    /// Calls that were reserved.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a column, unless it is there; it is not known of the calls so far.
    pub(super) fn add(&mut self, column: &'static EventColumn) -> Result<(), Failure> {
        if self.optional().any(|(_, there)| there.name == column.name) {
            return Ok(());
        }
        let index = self.count();
        self.optional.push(column);
        self.spare.clear();
        for chunk in &mut self.chunks {
            if let Chunk::Open(chunk) = chunk {
                chunk.values.resize((index + 1) * STRIDE, column.unknown);
            }
        }
        let Some(datasets) = &mut self.datasets else { return Ok(()) };
        let unknown = vec![column.unknown; CHUNK];
        let mut begin = || {
            datasets.columns.push(L::column(&datasets.group, column.name, Numbers::I64(&[]))?);
            let written = |(_, chunk): &(usize, &Chunk)| matches!(chunk, Chunk::Written);
            for (chunk, _) in self.chunks.iter().enumerate().filter(written) {
                let values = Numbers::I64(&unknown);
                let chunk = ColumnChunk { column: index, chunk, values };
                L::write(&mut datasets.columns, &[chunk]).map_err(|(_, cause)| cause)?;
            }
            Ok(())
        };
        begin().map_err(|cause| self.failure(index, cause))
    }

    /// Begins to write complete chunks to compressed datasets in `file`.
    pub(super) fn compress(&mut self, file: &L) -> Result<(), Failure> {
        if self.datasets.is_some() {
            return Ok(());
        }
        let group = Self::group(file)?;
        let begin = |column| {
            let dataset = L::column(&group, self.name(column), Numbers::I64(&[]));
            dataset.map_err(|cause| self.failure(column, cause))
        };
        let columns = (0..self.count()).map(begin).collect::<Result<_, _>>()?;
        self.datasets = Some(Datasets { group, columns });
        Ok(())
    }

    fn group(file: &L) -> Result<L::Group, Failure> {
        file.group(EVENTS, false).map_err(|cause| (EVENTS.into(), cause))
    }

    /// Makes room for calls behind those so far.
    pub(super) fn reserve(&mut self, calls: usize) {
        self.len += calls;
        self.chunks.resize_with(self.len.div_ceil(CHUNK), || Chunk::Empty);
    }

    /// The values of the call at `at` in all columns.
    ///
    /// # Panics
    /// When it was not reserved, or is in a chunk that is complete.
    #[inline(always)]
    pub(super) fn call(&mut self, at: usize) -> CallValues<'_> {
        CallValues { at: at % CHUNK, values: &mut self.chunk(at / CHUNK).values }
    }

    #[inline(always)]
    fn chunk(&mut self, chunk: usize) -> &mut OpenChunk {
        let slot = &mut self.chunks[chunk];
        if let Chunk::Empty = slot {
            open(slot, &mut self.spare, FIRST_OPTIONAL + self.optional.len());
        }
        match slot {
            Chunk::Open(chunk) => chunk,
            _ => unreachable!("a call is told before its chunk is complete"),
        }
    }

    /// Sets the values of so many calls from `at` on: `value` gives them by column, and by how many calls come
    /// before.
    pub(super) fn append(
        &mut self,
        at: usize,
        calls: usize,
        value: impl Fn(usize, usize) -> i64,
    ) -> Result<(), Failure> {
        let columns = self.count();
        let mut done = 0;
        while done < calls {
            let (chunk, first) = ((at + done) / CHUNK, (at + done) % CHUNK);
            let count = (calls - done).min(CHUNK - first);
            let open = self.chunk(chunk);
            for column in 0..columns {
                let values = &mut open.values[column * STRIDE + first..][..count];
                values.iter_mut().zip(done..).for_each(|(place, call)| *place = value(column, call));
            }
            open.missing -= count;
            if open.missing == 0 {
                self.complete_chunk(chunk)?;
            }
            done += count;
        }
        Ok(())
    }

    /// All is known of the call at `at` when `set` has set its values.
    #[inline(always)]
    pub(super) fn complete(&mut self, at: usize, set: impl FnOnce(CallValues<'_>)) -> Result<(), Failure> {
        let chunk = self.chunk(at / CHUNK);
        set(CallValues { at: at % CHUNK, values: &mut chunk.values });
        chunk.missing -= 1;
        if chunk.missing == 0 { self.complete_chunk(at / CHUNK) } else { Ok(()) }
    }

    #[cold]
    fn complete_chunk(&mut self, chunk: usize) -> Result<(), Failure> {
        self.complete.push(chunk);
        if self.complete.len() * self.count() < L::chunks_at_a_time() {
            Ok(())
        } else {
            self.write_complete()
        }
    }

    /// Writes the complete chunks, if the file is to be compressed.
    fn write_complete(&mut self) -> Result<(), Failure> {
        let Some(Datasets { columns, .. }) = &mut self.datasets else { return Ok(()) };
        let complete = std::mem::take(&mut self.complete);
        let mut batch = Vec::with_capacity(complete.len() * columns.len());
        for &chunk in &complete {
            let Chunk::Open(open) = &self.chunks[chunk] else { continue };
            let len = CHUNK.min(self.len - chunk * CHUNK);
            for column in 0..columns.len() {
                let values = Numbers::I64(&open.column(column)[..len]);
                batch.push(ColumnChunk { column, chunk, values });
            }
        }
        L::write(columns, &batch).map_err(|(column, cause)| self.failure(column, cause))?;
        for chunk in complete {
            if let Chunk::Open(open) = std::mem::replace(&mut self.chunks[chunk], Chunk::Written)
                && self.spare.len() < MOST_SPARE
            {
                self.spare.push(open.values);
            }
        }
        Ok(())
    }

    /// Writes what is left to `file`, as contiguous datasets where none of it is compressed.
    pub(super) fn finish(mut self, file: &L) -> Result<(), Failure> {
        if self.datasets.is_none() {
            return self.write_contiguous(&Self::group(file)?);
        }
        // The last one is short, and so is never complete before.
        let open = |chunk: &Chunk| matches!(chunk, Chunk::Open(_));
        self.complete = (0..self.chunks.len()).filter(|&chunk| open(&self.chunks[chunk])).collect();
        self.write_complete()?;
        let datasets = self.datasets.take().map_or(Vec::new(), |datasets| datasets.columns);
        for (column, dataset) in datasets.into_iter().enumerate() {
            L::end(dataset, self.len).map_err(|cause| self.failure(column, cause))?;
        }
        Ok(())
    }

    fn write_contiguous(&self, group: &L::Group) -> Result<(), Failure> {
        for column in 0..self.count() {
            let values = self.chunks.iter().filter_map(|chunk| match chunk {
                Chunk::Open(open) => Some(open.column(column)),
                Chunk::Empty | Chunk::Written => None,
            });
            let values: Vec<i64> = values.flatten().copied().take(self.len).collect();
            let written = L::numbers(group, self.name(column), Numbers::I64(&values));
            written.map_err(|cause| self.failure(column, cause))?;
        }
        Ok(())
    }
}

#[cold]
fn open(slot: &mut Chunk, spare: &mut Vec<Vec<i64>>, columns: usize) {
    let values = spare.pop().unwrap_or_else(|| vec![0; columns * STRIDE]);
    *slot = Chunk::Open(OpenChunk { values, missing: CHUNK });
}

/// The values of one call.
pub(super) struct CallValues<'a> {
    values: &'a mut [i64],
    at: usize,
}

impl CallValues<'_> {
    #[inline]
    pub(super) fn set(&mut self, column: usize, value: i64) {
        self.values[column * STRIDE + self.at] = value;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;
    use std::io;
    use std::path::Path;

    use super::super::layout::*;
    use super::super::placing::{BegunCall, CallColumns, EndedCall, Placing, has_column};
    use super::*;
    use crate::merged::MetadataValue;

    thread_local! {
        /// What was written: by column, chunk by chunk.
        static WRITTEN: RefCell<BTreeMap<(String, usize), Vec<i64>>> = const { RefCell::new(BTreeMap::new()) };
        /// How many chunks of columns may still be asked to be written.
        static ROOM: Cell<usize> = const { Cell::new(usize::MAX) };
        static ASKED: Cell<usize> = const { Cell::new(0) };
    }

    fn written(name: &str) -> Vec<i64> {
        WRITTEN.with_borrow(|written| {
            written.iter().filter(|((of, _), _)| of == name).flat_map(|(_, values)| values.clone()).collect()
        })
    }

    /// Notes the chunks of columns, and nothing else.
    struct Notes;

    impl Library for Notes {
        type Group = ();
        type Column = String;

        fn create(_: &Path) -> io::Result<Notes> {
            Ok(Notes)
        }

        fn root(&self) -> Result<(), String> {
            Ok(())
        }

        fn group(&self, _: &str, _: bool) -> Result<(), String> {
            Ok(())
        }

        fn attribute((): &(), _: &str, _: &MetadataValue) -> Result<(), String> {
            Ok(())
        }

        fn numbers((): &(), _: &str, _: Numbers<'_>) -> Result<(), String> {
            Ok(())
        }

        fn texts((): &(), _: &str, _: &[&str]) -> Result<(), String> {
            Ok(())
        }

        fn statistics((): &(), _: &str, _: &[[u8; STATISTICS_SIZE]]) -> Result<(), String> {
            Ok(())
        }

        fn column((): &(), name: &str, _: Numbers<'_>) -> Result<String, String> {
            Ok(name.to_owned())
        }

        fn chunks_at_a_time() -> usize {
            4
        }

        fn write(columns: &mut [String], chunks: &[ColumnChunk<'_>]) -> Result<(), (usize, String)> {
            for &ColumnChunk { column, chunk, values } in chunks {
                ASKED.set(ASKED.get() + 1);
                ROOM.set(ROOM.get().checked_sub(1).ok_or((column, "no room".into()))?);
                let Numbers::I64(values) = values else { return Err((column, "other numbers".into())) };
                let place = (columns[column].clone(), chunk);
                let before = WRITTEN.with_borrow_mut(|written| written.insert(place, values.to_vec()));
                if before.is_some() {
                    return Err((column, "a chunk is written twice".into()));
                }
            }
            Ok(())
        }

        fn end(_: String, _: usize) -> Result<(), String> {
            Ok(())
        }

        fn close(self) -> Result<(), String> {
            Ok(())
        }
    }

    impl EventColumns<Notes> {
        fn chunks_in_memory(&self) -> usize {
            self.chunks.iter().filter(|chunk| matches!(chunk, Chunk::Open(_))).count() + self.spare.len()
        }
    }

    #[test]
    fn only_chunks_that_lack_calls_are_in_memory() {
        const RUNS: usize = 3;
        const CALLS_OF_A_RUN: usize = 20 * CHUNK + 1_000;
        let calls = RUNS * CALLS_OF_A_RUN;
        let mut columns = EventColumns::<Notes>::new();
        columns.compress(&Notes).unwrap();
        columns.reserve(calls);
        for number in 0..CALLS_OF_A_RUN {
            for run in 0..RUNS {
                let at = run * CALLS_OF_A_RUN + number;
                columns.call(at).set(0, at as i64);
                columns.complete(at, |mut values| values.set(1, 1 + at as i64)).unwrap();
            }
            // Of each run the one that is filled, the one that it shares with the run before, and a
            // batch that is about to be written.
            assert!(columns.chunks_in_memory() <= 2 * RUNS + 2, "{} chunks", columns.chunks_in_memory());
        }
        // A column that comes later is not known of these.
        let ids = OPTIONAL_EVENTS.iter().find(|column| column.name == CALL_IDS).unwrap();
        columns.add(ids).unwrap();
        columns.reserve(CHUNK);
        columns.append(calls, CHUNK, |column, call| [7, 8, call as i64][column]).unwrap();
        columns.finish(&Notes).unwrap();
        let known = |first: i64, later: Vec<i64>| -> Vec<i64> {
            (first..first + calls as i64).chain(later).collect()
        };
        assert!(written(START_DELTAS) == known(0, vec![7; CHUNK]));
        assert!(written(DURATIONS) == known(1, vec![8; CHUNK]));
        assert!(written(CALL_IDS) == [vec![-1; calls], (0..CHUNK as i64).collect()].concat());
    }
    #[test]
    fn a_column_of_some_ranks_is_not_known_of_the_others() {
        // Ranks share chunks, and memory of chunks is used again.
        const CALLS: usize = 5 * CHUNK / 2;
        let mut columns = EventColumns::<Notes>::new();
        columns.compress(&Notes).unwrap();
        for (rank, has_tasks) in [false, true, false, true].into_iter().enumerate() {
            let first = columns.len();
            for column in OPTIONAL_EVENTS.iter().filter(|column| has_column(column.name, has_tasks)) {
                columns.add(column).unwrap();
            }
            columns.reserve(CALLS);
            let runs = [0..CALLS, CALLS..CALLS];
            let mut placing = Placing::new(&mut columns, Path::new("a"), first, &runs, has_tasks);
            for at in 0..CALLS {
                let value = (10 * rank + 10) as i64;
                let (id, parent_id, thread_id) = (value + 1, value + 2, value + 3);
                placing.begin(at, &BegunCall { start_ns: value, before_ns: 0, id, parent_id, thread_id });
                let (duration_ns, task_id, await_ns) = (value + 4, value + 5, value + 6);
                placing.end(at, 0, &EndedCall { start_ns: value, duration_ns, task_id, await_ns }).unwrap();
            }
            let statistics: Vec<_> = placing.statistics().collect();
            assert_eq!(statistics[0].total_ns, (10 * rank as i64 + 14) * CALLS as i64);
        }
        columns.finish(&Notes).unwrap();
        let of_ranks = |values: [i64; 4]| values.map(|value| vec![value; CALLS]).concat();
        for (name, values) in [
            (START_DELTAS, [10, 20, 30, 40]),
            (DURATIONS, [14, 24, 34, 44]),
            (CALL_IDS, [11, 21, 31, 41]),
            (PARENT_IDS, [12, 22, 32, 42]),
            (THREAD_IDS, [13, 23, 33, 43]),
            (TASK_IDS, [-1, 25, -1, 45]),
            (AWAIT, [0, 26, 0, 46]),
        ] {
            assert!(written(name) == of_ranks(values), "{name}");
        }
    }

    #[test]
    fn after_a_failure_nothing_more_is_written() {
        let mut columns = EventColumns::<Notes>::new();
        columns.compress(&Notes).unwrap();
        columns.reserve(50 * CHUNK);
        ROOM.set(9);
        let failure = columns.append(0, 50 * CHUNK, |_, _| 0).unwrap_err();
        assert_eq!(failure, ("events/durations".into(), "no room".into()));
        assert_eq!(ASKED.get(), 10);
        assert!(columns.chunks_in_memory() <= 4, "{} chunks", columns.chunks_in_memory());
    }
}
