//! The recording of one rank (`rank<N>.scope`): reading it back, sealed or not.

use std::path::Path;

use crate::profile::{LaneId, Profile, RegionId};

/// A recording that was opened for reading.
pub struct Recording {
    info: Info,
    profile: Profile,
}

/// What the head of a recording says about the run.
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// MPI rank, 0 outside MPI.
    pub rank: u32,
    /// Number of ranks as the launcher gave it; 1 outside MPI.
    pub ranks: u32,
    /// Process id.
    pub pid: u32,
    /// Arguments of the program, its own name first.
    pub args: Vec<String>,
    /// Wall clock at the start, ns since the Unix epoch.
    pub wall_start_ns: i64,
    /// Version of scope-runtime that recorded.
    pub runtime_version: String,
    /// Name of the clock: `tsc` or `monotonic`.
    pub clock: String,
    /// Whether the program ended its recording itself.
    pub sealed: bool,
}

/// One call, in the order of entry on its lane. Times in ns on the recording clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Region.
    pub region: RegionId,
    /// Start.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// Position of the enclosing call in the same lane's calls.
    pub parent: Option<u32>,
    /// Cut at the end of recording.
    pub open: bool,
}

impl Recording {
    /// Opens and replays a recording.
    ///
    /// # Errors
    /// When the file cannot be read, is none of ours, or has another format version.
    pub fn open(path: &Path) -> std::io::Result<Recording> {
        let _ = path;
        Err(std::io::Error::other("not there yet"))
    }

    /// What the head of the recording says.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Regions, lanes and totals.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The calls of one lane in order of entry, parents before children.
    pub fn calls(&self, lane: LaneId) -> Vec<Call> {
        let _ = lane;
        Vec::new()
    }
}
