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

use super::library::{CHUNK, ColumnChunk, Library, Numbers};
use crate::profile_file::layout::EventColumn;

/// From one column of a chunk to the next, in values: were it a power of two, the values of one call would
/// crowd in one place of the caches.
const STRIDE: usize = CHUNK + 16;

/// How many chunks' memory is kept for others.
const MOST_SPARE: usize = 8;

/// The columns of a file, as long as calls were reserved.
pub(super) struct EventColumns<L: Library> {
    names: Vec<&'static str>,
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

/// What went wrong with which column.
pub(super) type Failure = (&'static str, String);

impl<L: Library> EventColumns<L> {
    pub(super) fn new(names: &[&'static str]) -> EventColumns<L> {
        EventColumns {
            names: names.to_vec(),
            datasets: None,
            chunks: Vec::new(),
            complete: Vec::new(),
            spare: Vec::new(),
            len: 0,
        }
    }

    pub(super) fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// Calls that were reserved.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Which column has this name.
    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|there| *there == name)
    }

    /// Adds a column, which is not known of the calls so far.
    pub(super) fn add(&mut self, column: &EventColumn) -> Result<(), Failure> {
        if self.index(column.name).is_some() {
            return Ok(());
        }
        let index = self.names.len();
        self.names.push(column.name);
        self.spare.clear();
        for chunk in &mut self.chunks {
            if let Chunk::Open(chunk) = chunk {
                chunk.values.resize((index + 1) * STRIDE, column.unknown);
            }
        }
        let Some(Datasets { group, columns }) = &mut self.datasets else { return Ok(()) };
        let dataset = L::column(group, column.name, Numbers::I64(&[]));
        columns.push(dataset.map_err(|cause| (column.name, cause))?);
        let unknown = vec![column.unknown; CHUNK];
        for (chunk, _) in self.chunks.iter().enumerate().filter(|(_, chunk)| matches!(chunk, Chunk::Written))
        {
            let values = Numbers::I64(&unknown);
            let written = L::write(columns, &[ColumnChunk { column: index, chunk, values }]);
            written.map_err(|(_, cause)| (column.name, cause))?;
        }
        Ok(())
    }

    /// Begins to write complete chunks to datasets in `group`.
    pub(super) fn compress(
        &mut self,
        group: impl FnOnce() -> Result<L::Group, Failure>,
    ) -> Result<(), Failure> {
        if self.datasets.is_some() {
            return Ok(());
        }
        let group = group()?;
        let column =
            |name: &&'static str| L::column(&group, name, Numbers::I64(&[])).map_err(|cause| (*name, cause));
        let columns = self.names.iter().map(column).collect::<Result<_, _>>()?;
        self.datasets = Some(Datasets { group, columns });
        Ok(())
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
            open(slot, &mut self.spare, self.names.len());
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
        let columns = self.names.len();
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
        if self.complete.len() * self.names.len() < L::chunks_at_a_time() {
            Ok(())
        } else {
            self.write_complete()
        }
    }

    /// Writes the complete chunks, if the file is to be compressed.
    fn write_complete(&mut self) -> Result<(), Failure> {
        let Some(Datasets { columns, .. }) = &mut self.datasets else { return Ok(()) };
        let complete = std::mem::take(&mut self.complete);
        let mut batch = Vec::with_capacity(complete.len() * self.names.len());
        for &chunk in &complete {
            let Chunk::Open(open) = &self.chunks[chunk] else { continue };
            let len = CHUNK.min(self.len - chunk * CHUNK);
            for (column, values) in open.values.chunks_exact(STRIDE).enumerate() {
                batch.push(ColumnChunk { column, chunk, values: Numbers::I64(&values[..len]) });
            }
        }
        L::write(columns, &batch).map_err(|(column, cause)| (self.names[column], cause))?;
        for chunk in complete {
            if let Chunk::Open(open) = std::mem::replace(&mut self.chunks[chunk], Chunk::Written)
                && self.spare.len() < MOST_SPARE
            {
                self.spare.push(open.values);
            }
        }
        Ok(())
    }

    /// Writes what is left, as contiguous datasets in the `group` where none of it is compressed.
    pub(super) fn finish(mut self, group: impl FnOnce() -> Result<L::Group, Failure>) -> Result<(), Failure> {
        if self.datasets.is_none() {
            let group = group()?;
            for (column, name) in self.names.clone().into_iter().enumerate() {
                let values: Vec<i64> = (0..self.len).map(|at| self.call(at).get(column)).collect();
                L::numbers(&group, name, Numbers::I64(&values)).map_err(|cause| (name, cause))?;
            }
            return Ok(());
        }
        // The last one is short, and so is never complete before.
        let open = |chunk: &Chunk| matches!(chunk, Chunk::Open(_));
        self.complete = (0..self.chunks.len()).filter(|&chunk| open(&self.chunks[chunk])).collect();
        self.write_complete()?;
        let columns = self.datasets.map_or(Vec::new(), |datasets| datasets.columns);
        for (column, name) in columns.into_iter().zip(self.names) {
            L::end(column, self.len).map_err(|cause| (name, cause))?;
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

    fn get(&self, column: usize) -> i64 {
        self.values[column * STRIDE + self.at]
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;
    use std::io;
    use std::path::Path;

    use super::super::layout::*;
    use super::super::placing::{BegunCall, EndedCall, Placing, has_column};
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
        let mut columns = EventColumns::<Notes>::new(&[START_DELTAS, DURATIONS]);
        columns.compress(|| Ok(())).unwrap();
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
        columns.finish(|| Ok(())).unwrap();
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
        let mut columns = EventColumns::<Notes>::new(&[START_DELTAS, DURATIONS]);
        columns.compress(|| Ok(())).unwrap();
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
        columns.finish(|| Ok(())).unwrap();
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
        let mut columns = EventColumns::<Notes>::new(&[START_DELTAS, DURATIONS]);
        columns.compress(|| Ok(())).unwrap();
        columns.reserve(50 * CHUNK);
        ROOM.set(9);
        let failure = columns.append(0, 50 * CHUNK, |_, _| 0).unwrap_err();
        assert_eq!(failure, (DURATIONS, "no room".into()));
        assert_eq!(ASKED.get(), 10);
        assert!(columns.chunks_in_memory() <= 4, "{} chunks", columns.chunks_in_memory());
    }
}
