//! The calls of one rank on their way to the columns of a file, in the order in which they were entered and
//! left.

use std::ops::Range;
use std::path::Path;

use super::Error;
use super::columns::{DURATION, EventColumns, START_DELTA};
use super::layout::*;
use super::library::Library;
use super::write::failed;
use crate::merged::{Statistics, StatisticsSums};

/// Takes the calls of one rank, each to an entry of its own.
pub(crate) trait CallColumns {
    /// The call at `at` begins.
    fn begin(&mut self, at: usize, call: &BegunCall);

    /// The call at `at` ends, which is one of the row with the number `run`.
    ///
    /// # Errors
    /// When what is complete with it cannot be written.
    fn end(&mut self, at: usize, run: usize, call: &EndedCall) -> Result<(), Error>;
}

/// Takes the calls of one rank to a file.
pub(crate) struct Placing<'a, L: Library> {
    columns: &'a mut EventColumns<L>,
    path: &'a Path,
    /// Place of the rank's first call in the file.
    first: usize,
    index: Indexes,
    /// Columns of the file that the rank does not have, and what stands there.
    unknown: Vec<(usize, i64)>,
    /// The calls of each row, and what they add up to.
    runs: Vec<(Range<usize>, StatisticsSums)>,
}

/// Where the columns are.
struct Indexes {
    call_ids: usize,
    parent_ids: usize,
    thread_ids: usize,
    /// Task, and time of waiting.
    of_tasks: Option<(usize, usize)>,
}

/// What is known of a call when it begins.
pub(crate) struct BegunCall {
    pub(crate) start_ns: i64,
    /// The start of the call of its row before it; 0 for none.
    pub(crate) before_ns: i64,
    pub(crate) id: i64,
    pub(crate) parent_id: i64,
    pub(crate) thread_id: i64,
}

/// What is known of it besides when it ends.
pub(crate) struct EndedCall {
    pub(crate) start_ns: i64,
    pub(crate) duration_ns: i64,
    pub(crate) task_id: i64,
    pub(crate) await_ns: i64,
}

impl<'a, L: Library> Placing<'a, L> {
    /// For the calls of `runs`, of which the first goes to `first`.
    pub(super) fn new(
        columns: &'a mut EventColumns<L>,
        path: &'a Path,
        first: usize,
        runs: &[Range<usize>],
        has_tasks: bool,
    ) -> Placing<'a, L> {
        let index = |name| {
            let mut columns = columns.optional();
            columns.find(|(_, column)| column.name == name).expect("the columns were added").0
        };
        let index = Indexes {
            call_ids: index(CALL_IDS),
            parent_ids: index(PARENT_IDS),
            thread_ids: index(THREAD_IDS),
            of_tasks: has_tasks.then(|| (index(TASK_IDS), index(AWAIT))),
        };
        let unknown = columns.optional().filter(|(_, column)| !has_column(column.name, has_tasks));
        let unknown = unknown.map(|(number, column)| (number, column.unknown)).collect();
        let runs = runs.iter().map(|run| (run.clone(), StatisticsSums::default())).collect();
        Placing { columns, path, first, index, unknown, runs }
    }

    /// The statistics of each run.
    pub(crate) fn statistics(&self) -> impl Iterator<Item = Statistics> {
        self.runs.iter().map(|(_, sums)| sums.statistics())
    }
}

impl<L: Library> CallColumns for Placing<'_, L> {
    #[inline(always)]
    fn begin(&mut self, at: usize, call: &BegunCall) {
        let mut values = self.columns.call(self.first + at);
        values.set(START_DELTA, call.start_ns.wrapping_sub(call.before_ns));
        values.set(self.index.call_ids, call.id);
        values.set(self.index.parent_ids, call.parent_id);
        values.set(self.index.thread_ids, call.thread_id);
        self.unknown.iter().for_each(|&(column, value)| values.set(column, value));
    }

    #[inline(always)]
    fn end(&mut self, at: usize, run: usize, call: &EndedCall) -> Result<(), Error> {
        let completed = self.columns.complete(self.first + at, |mut values| {
            values.set(DURATION, call.duration_ns);
            if let Some((task_ids, await_ns)) = self.index.of_tasks {
                values.set(task_ids, call.task_id);
                values.set(await_ns, call.await_ns);
            }
        });
        let (events, sums) = &mut self.runs[run];
        sums.add(call.start_ns, call.duration_ns);
        if at == events.start {
            sums.first_ns = call.duration_ns;
        }
        if at + 1 == events.end {
            sums.last_ns = call.duration_ns;
        }
        completed.map_err(|failure| failed(self.path)(failure))
    }
}

/// Whether a rank whose calls come from its recording has this optional column.
pub(super) fn has_column(name: &str, has_tasks: bool) -> bool {
    match name {
        CALL_IDS | PARENT_IDS | THREAD_IDS => true,
        TASK_IDS | AWAIT => has_tasks,
        _ => false,
    }
}
