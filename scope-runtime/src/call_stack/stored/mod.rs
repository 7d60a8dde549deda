//! Call paths of calls that are too many for the memory: they are read in blocks, in order of start.
//!
//! ```text
//! region a   |==block==|...............|     each run is read from front to back, as far as needed
//! region b        |==block==|..........|
//!            | window |                      all calls of a window are in blocks that were read
//! ```
//!
//! Calls of one region are stored in order of entry, thread by thread, so a rank has few runs of
//! ascending starts. A window ends before the last start of each block, is sorted, and taken by a stack
//! per lane. Memory is for blocks, open calls and paths. Calls that stand in no order are sorted through
//! a temporary file first. What comes out is what [`build_good_lanes`](super::build_good_lanes) and
//! [`PathTree::from_calls`] make of the same calls in memory, ties and faults included.

mod blocks;
mod intervals;
mod recorded;
mod sorted_file;
mod stacks;
#[cfg(test)]
mod tests;
mod windows;

use std::collections::HashSet;
use std::io;
use std::ops::Range;

pub use blocks::Starts;
pub use sorted_file::SORTED_CALL_BYTES;

use self::blocks::Reader;
use self::windows::Windows;
use super::error::NestingError;
use crate::totals::{PathId, PathTree};

/// A quantity of each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallColumn {
    /// Entry in ns, absolute or as [`StoredCalls::has_differences`] says.
    Start,
    /// Exit minus entry in ns.
    Duration,
    /// Thread index, negative when unknown.
    Thread,
    /// Task number, negative outside a task.
    Task,
    /// Number of the call, unique within the rank and growing in order of entry.
    Id,
    /// Number of the enclosing call, negative at the top.
    Parent,
}

/// Columns of calls, of which any part can be read.
pub trait StoredCalls {
    /// Why a part cannot be read.
    type Error;

    /// Whether the column was recorded. Starts and durations always are.
    fn has(&self, column: CallColumn) -> bool;

    /// Whether the starts of a region are the first start and the differences from one to the next.
    fn has_differences(&self) -> bool;

    /// Number of entries that are best read together, from a multiple of it on; 1 where it makes no
    /// difference.
    fn block(&self) -> usize;

    /// Reads the values of these calls in place of what is in `values`.
    ///
    /// # Errors
    /// When they cannot be read.
    fn read(
        &mut self,
        column: CallColumn,
        calls: Range<usize>,
        values: &mut Vec<i64>,
    ) -> Result<(), Self::Error>;
}

/// The calls of one region of a rank.
#[derive(Clone, Debug)]
pub struct StoredRegion<'a> {
    /// Name of the region; need not be unique.
    pub name: &'a str,
    /// Its calls in the columns.
    pub calls: Range<usize>,
    /// What [`Starts::find`] found of them.
    pub starts: &'a Starts,
    /// Whether its calls are left out where the intervals decide which call is inside which. Where recorded
    /// ids decide, they are needed to know their children's place.
    pub is_hidden: bool,
}

/// How calls are taken.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether recorded ids decide parents, where they are there and consistent.
    pub ids: bool,
    /// About as many bytes are used for blocks.
    pub memory: usize,
    /// What was found out about these calls by taking them before.
    pub known: Option<Known>,
}

impl Default for Options {
    fn default() -> Options {
        Options { ids: true, memory: 96 << 20, known: None }
    }
}

/// What is found out about the calls of a rank by taking them once.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Recorded ids decide parents.
    recorded: bool,
    /// Lanes whose calls do not nest.
    left_out: HashSet<i64>,
}

/// Gets the calls one by one.
pub trait CallVisitor {
    /// Begins, also anew: what came before is to be forgotten.
    fn begin(&mut self);

    /// The next call in call-id order, with its path. The paths so far are without the totals of calls that
    /// are open.
    fn call(&mut self, paths: &PathTree, path: PathId, start_ns: i64, end_ns: i64);
}

/// Visits nothing.
impl CallVisitor for () {
    fn begin(&mut self) {}

    fn call(&mut self, _: &PathTree, _: PathId, _: i64, _: i64) {}
}

/// The call paths of a rank.
#[derive(Clone, Debug)]
pub struct Nested {
    /// Totals per path, region ids being positions in the list of regions, in order of the first call of
    /// each path.
    pub paths: PathTree,
    /// The first error of each lane that does not nest and is left out, in order of time.
    pub errors: Vec<NestingError>,
    /// For taking the same calls again.
    pub known: Known,
}

/// Why calls could not be taken.
#[derive(Debug)]
pub enum StoredError<E> {
    /// A part of them could not be read.
    Read(E),
    /// There are too many.
    Nesting(NestingError),
    /// The temporary file for sorting them failed.
    Sort(io::Error),
}

impl<E> From<E> for StoredError<E> {
    fn from(error: E) -> StoredError<E> {
        StoredError::Read(error)
    }
}

/// Finds the call paths of one rank, its regions being in list order; lanes that do not nest are left out.
///
/// # Errors
/// When the calls cannot be read, are too many, or cannot be sorted.
pub fn nest_stored_calls<'a, S: StoredCalls>(
    source: &mut S,
    regions: &[StoredRegion<'a>],
    options: &Options,
    visitor: &mut impl CallVisitor,
) -> Result<Nested, StoredError<S::Error>> {
    let calls: usize = regions.iter().map(|region| region.calls.len()).sum();
    if calls >= u32::MAX as usize {
        return Err(StoredError::Nesting(NestingError::TooManyCalls(calls)));
    }
    let has_ids = source.has(CallColumn::Id) && source.has(CallColumn::Parent);
    let may_be_recorded = options.known.as_ref().is_none_or(|known| known.recorded);
    if calls > 0 && options.ids && has_ids && may_be_recorded {
        visitor.begin();
        let mut reader = Reader::new(source, regions, true);
        let windows = Windows::new(&mut reader, options.memory, recorded::tie)?;
        if let Some(paths) = recorded::nest(&mut reader, windows, options.known.is_some(), visitor)? {
            let known = Known { recorded: true, left_out: HashSet::new() };
            return Ok(Nested { paths, errors: Vec::new(), known });
        }
    }
    let none = &Starts::none();
    let shown = |region: &StoredRegion<'a>| match region.is_hidden {
        true => StoredRegion { calls: 0..0, starts: none, ..region.clone() },
        false => region.clone(),
    };
    let regions: Vec<_> = regions.iter().map(shown).collect();
    let mut left_out = options.known.clone().unwrap_or_default().left_out;
    let mut all_errors = Vec::new();
    loop {
        visitor.begin();
        let mut reader = Reader::new(source, &regions, false);
        let windows = Windows::new(&mut reader, options.memory, intervals::tie)?;
        let (paths, errors) = intervals::nest(&mut reader, windows, &left_out, visitor)?;
        if errors.is_empty() {
            let known = Known { recorded: false, left_out };
            return Ok(Nested { paths, errors: all_errors, known });
        }
        // Once more without the lanes that do not nest, whose calls are in the paths so far.
        left_out.extend(errors.iter().map(|(lane, _)| lane));
        all_errors.extend(errors.into_iter().map(|(_, error)| error));
    }
}
