//! A profile file that several processes write together, each the calls of its own rank.
//!
//! One of them makes the file, with all that is not a column of events: to change the structure of a file all
//! processes would have to come together each time, and texts of any length and compressed columns they
//! cannot write at all. For the columns it makes room. Then all open the file by MPI-IO and write
//! their parts of the columns, each when it likes.

use std::io;
use std::ops::Range;
use std::path::Path;

use mpi_sys::MPI_Comm;

use super::Error;
use super::layout::{DURATIONS, EVENTS, OPTIONAL_EVENTS, START_DELTAS};
use super::library::{CHUNK, Library};
use super::publish::Temporary;
use super::system::{SystemHdf5, cause};
use super::write::{StatisticsOfRows, Writer, is_compressed, start_deltas};
use crate::merged::{Events, MergedProfile};

/// Values that are written at a time, so that a column is never in memory a second time.
const BATCH: usize = 16 * CHUNK;

/// What the maker of a file knows of calls that others will write.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub(crate) count: usize,
    /// Which of [`OPTIONAL_EVENTS`] they have.
    pub(crate) has_column: Vec<bool>,
    pub(crate) statistics: StatisticsOfRows,
}

impl Calls {
    fn columns(&self) -> impl Iterator<Item = &'static str> {
        let optional = OPTIONAL_EVENTS.iter().zip(&self.has_column);
        let optional = optional.filter(|(_, has)| **has).map(|(column, _)| column.name);
        [START_DELTAS, DURATIONS].into_iter().chain(optional)
    }
}

/// Writes `profile`, which is to be at `path`, to a temporary sibling, with room for its calls.
///
/// # Errors
/// When the profile contradicts itself or the file cannot be written; nothing is left of it.
pub(crate) fn make(profile: &MergedProfile, calls: &Calls, path: &Path) -> Result<Temporary, Error> {
    let temporary = Temporary::beside(path).map_err(|e| Error::io(path, "create", e))?;
    let file = SystemHdf5::create(temporary.path()).map_err(|e| Error::io(path, "create", e))?;
    let compress = is_compressed(calls.columns().count(), calls.count);
    let writer = Writer { path, file: &file, compress, statistics: &calls.statistics };
    writer.write_profile(profile, calls.count)?;
    if calls.count > 0 {
        let group = writer.group(EVENTS)?.group;
        for name in calls.columns() {
            let reserved = SystemHdf5::reserve(&group, name, calls.count);
            reserved.map_err(|cause| Error::write(path, &format!("{EVENTS}/{name}"), cause))?;
        }
    }
    file.close().map_err(|cause| Error::write(path, "the end", cause))?;
    Ok(temporary)
}

/// A file that all ranks of a communicator have open.
pub(crate) struct SharedFile<'a> {
    /// Final place of the file, for messages.
    path: &'a Path,
    file: hdf5::File,
}

impl SharedFile<'_> {
    /// Opens `file`, which is to be at `path`, together with all ranks of `comm`.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn open<'a>(file: &Path, path: &'a Path, comm: MPI_Comm) -> Result<SharedFile<'a>, Error> {
        let opened = hdf5::File::with_options().with_fapl(|access| access.mpio(comm, None)).open_rw(file);
        let file = opened.map_err(|error| Error::io(path, "open", io::Error::other(cause(error))))?;
        Ok(SharedFile { path, file })
    }

    /// Writes the calls of a rank, the first of which has the place `first` in the file; `runs` are those of
    /// its rows. Of a column of the file that they do not have it says that it is not known.
    ///
    /// # Errors
    /// When something cannot be written.
    pub(crate) fn write(
        &self,
        first: usize,
        has_column: &[bool],
        runs: &[Range<usize>],
        events: &Events,
    ) -> Result<(), Error> {
        let place = first..first + events.duration_ns.len();
        self.write_column(START_DELTAS, place.clone(), start_deltas(runs, &events.start_ns))?;
        self.write_column(DURATIONS, place.clone(), |at| events.duration_ns[at])?;
        for (column, _) in OPTIONAL_EVENTS.iter().zip(has_column).filter(|(_, has)| **has) {
            let values = (column.get)(events);
            let value = |at: usize| values.map_or(column.unknown, |values| values[at]);
            self.write_column(column.name, place.clone(), value)?;
        }
        Ok(())
    }

    fn write_column(
        &self,
        name: &str,
        place: Range<usize>,
        value: impl Fn(usize) -> i64,
    ) -> Result<(), Error> {
        let object = format!("{EVENTS}/{name}");
        let failed = |error| Error::write(self.path, &object, cause(error));
        let dataset = self.file.dataset(&object).map_err(failed)?;
        let mut batch = Vec::with_capacity(BATCH.min(place.len()));
        for begin in place.clone().step_by(BATCH) {
            let end = place.end.min(begin + BATCH);
            batch.clear();
            batch.extend((begin - place.start..end - place.start).map(&value));
            dataset.write_slice(&batch[..], begin..end).map_err(failed)?;
        }
        Ok(())
    }

    /// Closes the file, together with all ranks that have it open.
    ///
    /// # Errors
    /// When something could not be written.
    pub(crate) fn close(self) -> Result<(), Error> {
        self.file.close().map_err(|error| Error::write(self.path, "the end", cause(error)))
    }
}
