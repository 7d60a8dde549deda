//! The calls of a profile, wherever they are, and what their starts say of the regions.

use std::ops::Range;

use scope_runtime::call_stack::stored::{CallColumn, Starts, StoredCalls};

use crate::hdf5::{self, FileCalls};
use crate::merged::{Events, MergedProfile};

/// Calls in memory or in a file.
pub(super) enum Columns<'a> {
    Memory(&'a Events),
    File(Box<FileCalls<'a>>),
}

/// The calls of a profile.
pub(super) struct Calls<'a> {
    pub(super) columns: Columns<'a>,
    /// By row.
    pub(super) starts: Vec<Starts>,
    /// All regions that have a row, in the order in which they are listed.
    pub(super) order: Vec<u32>,
}

impl<'a> Calls<'a> {
    /// Looks at all starts of `profile`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn of(profile: &'a MergedProfile) -> Result<Calls<'a>, hdf5::Error> {
        let mut columns = match &profile.events_in {
            Some(file) => Columns::File(Box::new(FileCalls::open(file)?)),
            None => Columns::Memory(&profile.events),
        };
        let rows = profile.rows.iter();
        let starts: Result<Vec<_>, _> =
            rows.map(|row| Starts::find(&mut columns, row.events.clone())).collect();
        let starts = starts?;
        let order = regions_in_order(profile, &starts);
        Ok(Calls { columns, starts, order })
    }
}

/// Regions with a row by their first start over all ranks, in seconds as floats, as the Python
/// package lists them: the order decides which of two equal intervals encloses the other.
fn regions_in_order(profile: &MergedProfile, starts: &[Starts]) -> Vec<u32> {
    let mut first_s: Vec<Option<f64>> = vec![None; profile.names.len()];
    for (row, starts) in profile.rows.iter().zip(starts) {
        let start_s = starts.first_ns.unwrap_or(0) as f64 / 1e9;
        let first = &mut first_s[row.region as usize];
        *first = Some(first.map_or(start_s, |first| first.min(start_s)));
    }
    let mut order: Vec<_> =
        (0u32..).zip(first_s).filter_map(|(region, first)| Some((first?, region))).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    order.into_iter().map(|(_, region)| region).collect()
}

/// A column in memory; `None` where it was not recorded.
fn column(events: &Events, column: CallColumn) -> Option<&[i64]> {
    match column {
        CallColumn::Start => Some(&events.start_ns),
        CallColumn::Duration => Some(&events.duration_ns),
        CallColumn::Thread => events.thread_ids.as_deref(),
        CallColumn::Task => events.task_ids.as_deref(),
        CallColumn::Id => events.call_ids.as_deref(),
        CallColumn::Parent => events.parent_ids.as_deref(),
    }
}

impl StoredCalls for Columns<'_> {
    type Error = hdf5::Error;

    fn has(&self, wanted: CallColumn) -> bool {
        match self {
            Columns::Memory(events) => column(events, wanted).is_some(),
            Columns::File(calls) => calls.has(wanted),
        }
    }

    fn has_differences(&self) -> bool {
        match self {
            Columns::Memory(_) => false,
            Columns::File(calls) => calls.has_differences(),
        }
    }

    fn block(&self) -> usize {
        match self {
            Columns::Memory(_) => 1,
            Columns::File(calls) => calls.block(),
        }
    }

    fn read(
        &mut self,
        wanted: CallColumn,
        calls: Range<usize>,
        values: &mut Vec<i64>,
    ) -> Result<(), hdf5::Error> {
        match self {
            Columns::Memory(events) => {
                values.clear();
                values.extend_from_slice(&column(events, wanted).unwrap_or_default()[calls]);
                Ok(())
            }
            Columns::File(file) => file.read(wanted, calls, values),
        }
    }
}
