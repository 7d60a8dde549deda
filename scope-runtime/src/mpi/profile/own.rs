//! What this rank has recorded: the share that it sends to rank 0, and the calls that it writes itself.

use std::ops::Range;
use std::path::Path;

use mpi_sys::MPI_Comm;

use super::place::Place;
use crate::collect::{LastArrivals, Part, Share};
use crate::merged::Events;
use crate::own_profile::attempt;
use crate::profile::CollectiveCall;
use crate::profile_file::shared::SharedFile;
use crate::recording::Recording;

/// What this rank has recorded.
pub(super) struct Own {
    part: Part,
    events: Events,
    pub(super) collectives: Vec<CollectiveCall>,
}

impl Own {
    pub(super) fn of(mut recording: Recording) -> Result<Own, String> {
        recording.set_sealed();
        let path = recording.path().to_path_buf();
        let (part, events) = Part::of(&path, &recording).map_err(|error| error.to_string())?;
        Ok(Own { part, events, collectives: recording.into_profile().collectives })
    }

    /// The share for rank 0, and the calls.
    pub(super) fn divide(mut self, rank: u32, last: &LastArrivals) -> (Share, OwnCalls) {
        self.part.set_waits(last.waits_of(rank, &self.collectives));
        let runs = self.part.runs().collect();
        (Share::new(self.part, &self.events), OwnCalls { runs, events: self.events })
    }
}

/// The calls of this rank.
pub(super) struct OwnCalls {
    /// Those of each row.
    runs: Vec<Range<usize>>,
    events: Events,
}

impl OwnCalls {
    /// Writes the calls to the file that is to be at `path`, together with all ranks of `comm`.
    pub(super) fn write(&self, place: &Place, path: &Path, comm: MPI_Comm) -> Result<(), String> {
        attempt(path, || {
            let file = SharedFile::open(&place.file, path, comm);
            let outcome = file.and_then(|file| {
                let written = file.write(place.first, &place.has_column, &self.runs, &self.events);
                // The others close the file too, and wait for this rank there.
                let closed = file.close();
                written.and(closed)
            });
            outcome.map_err(|error| error.to_string())
        })
    }
}
