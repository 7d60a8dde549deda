//! What one rank recorded: its regions, lanes and totals, as values.
//!
//! A [`Profile`] is made by replaying a recording, inside the program at finalize or later by
//! `cargo scope`; it holds no event, so its size does not depend on the length of the run.

use crate::totals::PathTree;

/// Index of a region in [`Profile::regions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u32);

/// Index of a lane in [`Profile::lanes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u32);

/// A named place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The name that users see, unique within a profile.
    pub name: String,
    /// Source file as the compiler named it; empty when unknown.
    pub file: String,
    /// 1-based line; 0 when unknown.
    pub line: u32,
}

/// One sequential flow of control: a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Name of the thread; empty when it has none.
    pub name: String,
    /// Thread id given by the operating system; 0 when unknown.
    pub os_thread: u64,
    /// First time seen on this lane, ns on the recording clock.
    pub first_ns: i64,
    /// Last time seen on this lane, ns on the recording clock.
    pub last_ns: i64,
    /// Whether the thread had ended when recording ended.
    pub ended: bool,
    /// CPU time of the thread in ns at its end, or when recording ended; `None` when unknown.
    pub cpu_ns: Option<i64>,
}

/// What one rank recorded.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// MPI rank, 0 outside MPI.
    pub rank: u32,
    /// Regions that have at least one call, in order of first call.
    pub regions: Vec<Region>,
    /// Lanes in order of their start.
    pub lanes: Vec<Lane>,
    /// Totals per call path, over all lanes together.
    pub paths: PathTree,
    /// Calls that could not be kept; 0 in a complete profile.
    pub lost_calls: u64,
    /// Calls still open when recording ended, cut at that time and counted.
    pub open_calls: u64,
    /// Calls whose end lay before their start (a clock that stepped back); kept with 0 ns.
    pub faulty_calls: u64,
    /// Where the timeline ends, ns on the recording clock: calls that began later are in the totals
    /// only (the event limit was met, the disk was full, or no events were wanted). `None` when all
    /// calls are in it.
    pub timeline_end_ns: Option<i64>,
    /// First and last time of the recording, ns on the recording clock.
    pub start_ns: i64,
    /// See [`Profile::start_ns`].
    pub end_ns: i64,
}

impl Profile {
    /// The regions that have calls cut at the end of recording, in the order of [`Profile::regions`].
    pub fn open_regions(&self) -> Vec<&Region> {
        let mut ids: Vec<_> =
            self.paths.nodes().iter().filter(|path| path.open > 0).map(|path| path.region).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.iter().map(|RegionId(id)| &self.regions[*id as usize]).collect()
    }
}
