//! All calls of a rank in order of start, a window of time after the other.

use std::ops::ControlFlow;

use super::StoredCalls;
use super::StoredError;
use super::blocks::{Call, Reader};
use super::sorted_file::{self, SortedPart};
use crate::call_stack::order::calls_of_window;
use crate::call_stack::sort::{Calls, Sorter};

/// Calls read at a time where the source does not mind.
const BLOCK: usize = 1024;

/// Orders calls that start together.
pub(super) type Tie = fn(&Call) -> u64;

/// Calls with ascending starts, read as far as needed.
struct Run {
    rest: Rest,
    /// What was read, from `at` on not yet taken.
    block: Vec<Call>,
    at: usize,
}

/// Where the next calls of a run are.
enum Rest {
    /// Positions in the columns, of a region, and the start before the first.
    Columns {
        region: u32,
        at: usize,
        end: usize,
        before_ns: i64,
    },
    File(SortedPart),
}

impl Rest {
    fn is_at_end(&self) -> bool {
        match self {
            Rest::Columns { at, end, .. } => at == end,
            Rest::File(part) => part.is_at_end(),
        }
    }
}

/// The calls of a window, which are not copied: they are larger than what is asked of them.
#[derive(Clone, Copy)]
struct Window<'a>(&'a [Call]);

impl<'a> Calls for Window<'a> {
    type Call = &'a Call;

    #[inline(always)]
    fn at(self, position: u64, _: Option<i64>) -> &'a Call {
        &self.0[position as usize]
    }
}

/// The runs of a rank, and how far they were taken.
pub(super) struct Windows {
    runs: Vec<Run>,
    /// Calls that are read of a run at a time; of columns up to a multiple of it.
    block: usize,
    tie: Tie,
    /// The runs are sorted by all that decides, and are not in list order.
    is_sorted: bool,
    /// How long a window is aimed to be, in ns.
    span_ns: u64,
    window: Vec<Call>,
    sorter: Sorter,
}

impl Windows {
    /// Sorts the calls first where they are in no order, or in too many.
    pub(super) fn new<S: StoredCalls>(
        reader: &mut Reader<'_, S>,
        memory: usize,
        tie: Tie,
    ) -> Result<Windows, StoredError<S::Error>> {
        let fits = |runs: &Vec<Rest>| memory / size_of::<Call>() / runs.len().max(1);
        let runs = runs_in_columns(reader).filter(|runs| reader.source.block().max(1) <= fits(runs));
        let (runs, is_sorted) = match runs {
            Some(runs) => (runs, false),
            None => (sorted_file::sort(reader, memory, tie)?.into_iter().map(Rest::File).collect(), true),
        };
        let block = if is_sorted { 1 } else { reader.source.block() };
        // As many whole blocks of the source as come closest to what is read at a time.
        let block = block * (fits(&runs).min(BLOCK) / block).max(1);
        let run = |rest| Run { rest, block: Vec::new(), at: 0 };
        Ok(Windows {
            runs: runs.into_iter().map(run).collect(),
            block,
            tie,
            is_sorted,
            span_ns: 1024,
            window: Vec::new(),
            sorter: Sorter::default(),
        })
    }

    /// Reads the calls of the next window; false at the end.
    pub(super) fn read<S: StoredCalls>(
        &mut self,
        reader: &mut Reader<'_, S>,
    ) -> Result<bool, StoredError<S::Error>> {
        let Some(limit) = self.read_ahead(reader)? else { return Ok(false) };
        self.window.clear();
        for run in &mut self.runs {
            let rest = &run.block[run.at..];
            let passed = match limit {
                Some(limit) => rest.iter().take_while(|call| call.start < limit).count(),
                None => rest.len(),
            };
            self.window.extend_from_slice(&rest[..passed]);
            run.at += passed;
        }
        // Aimed at so many calls at least, and at most at four times as many.
        let least = calls_of_window(self.runs.len());
        if self.window.len() < least {
            self.span_ns = self.span_ns.saturating_mul(2);
        } else if self.window.len() > 4 * least {
            self.span_ns = (self.span_ns / 2).max(1);
        }
        Ok(true)
    }

    /// Hands the calls of the window to `take` in order of start, then of the tie, then of the list.
    pub(super) fn in_order<B>(&mut self, take: impl FnMut(&Call) -> ControlFlow<B>) -> ControlFlow<B> {
        let tie = self.tie;
        if self.is_sorted {
            self.window.sort_unstable_by_key(|call| call.order(tie));
            return self.window.iter().try_for_each(take);
        }
        let starts = self.window.iter().map(|call| call.start);
        let sorted = self.sorter.sort_window(Window(&self.window), starts, |call| tie(call));
        sorted.iter().try_for_each(take)
    }

    /// Reads blocks until all calls before some time are there; gives the time, or `None` in it for all
    /// that is left, or `None` at the end.
    fn read_ahead<S: StoredCalls>(
        &mut self,
        reader: &mut Reader<'_, S>,
    ) -> Result<Option<Option<i64>>, StoredError<S::Error>> {
        let mut is_over = false;
        loop {
            let (mut first, mut known_to) = (None::<i64>, None::<i64>);
            for run in &mut self.runs {
                if run.at == run.block.len() {
                    run.read(reader, self.block)?;
                }
                let Some(next) = run.block.get(run.at) else {
                    is_over = true;
                    continue;
                };
                first = Some(first.map_or(next.start, |first| first.min(next.start)));
                if let (false, Some(last)) = (run.rest.is_at_end(), run.block.last()) {
                    known_to = Some(known_to.map_or(last.start, |to| to.min(last.start)));
                }
            }
            if std::mem::take(&mut is_over) {
                self.runs.retain(|run| run.at < run.block.len());
            }
            let Some(first) = first else { return Ok(None) };
            let aimed = i64::try_from(self.span_ns).ok().and_then(|span_ns| first.checked_add(span_ns));
            match known_to {
                None => return Ok(Some(aimed)),
                Some(to) if to > first => return Ok(Some(Some(aimed.map_or(to, |aimed| aimed.min(to))))),
                // A block of calls that start together, or with one call left: it takes more to tell.
                Some(_) => {
                    for run in &mut self.runs {
                        let is_short = run.block.last().is_some_and(|last| last.start <= first);
                        if is_short && !run.rest.is_at_end() {
                            run.read(reader, self.block)?;
                        }
                    }
                }
            }
        }
    }
}

impl Run {
    /// Appends the next block to what is left of the one before.
    fn read<S: StoredCalls>(
        &mut self,
        reader: &mut Reader<'_, S>,
        block: usize,
    ) -> Result<(), StoredError<S::Error>> {
        self.block.drain(..self.at);
        self.at = 0;
        match &mut self.rest {
            Rest::Columns { region, at, end, before_ns } => {
                let to = (*at / block + 1).saturating_mul(block).min(*end);
                if *at < to {
                    reader.read(*region, *at..to, before_ns, &mut self.block)?;
                }
                *at = to;
            }
            Rest::File(part) => part.read(block, &mut self.block).map_err(StoredError::Sort)?,
        }
        Ok(())
    }
}

/// The runs of all regions in list order; `None` when a region is in no order.
fn runs_in_columns<S>(reader: &Reader<'_, S>) -> Option<Vec<Rest>> {
    let mut all = Vec::new();
    for (number, region) in (0..).zip(reader.regions) {
        let runs = region.starts.runs.as_ref()?;
        let ends = runs.iter().skip(1).map(|run| run.at).chain([region.calls.end]);
        all.extend(runs.iter().zip(ends).map(|(run, end)| Rest::Columns {
            region: number,
            at: run.at,
            end,
            before_ns: run.before_ns,
        }));
    }
    Some(all)
}
