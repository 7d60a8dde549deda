//! The recording of one rank (`rank<N>.scope`): reading it back, sealed or not.
//!
//! Reading takes what is there: blocks with sound checksums, and the chunks that a killed process
//! left in the pool. Nothing in the file is trusted: sizes and offsets are checked against its
//! length, and a damaged piece costs no more than itself.

mod error;
mod head;
mod links;
mod offsets;
mod pieces;
#[cfg(test)]
mod split_tests;
mod tasks;
mod total;
mod visitors;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::clock::TickScale;
use crate::fold::{Fold, Folded, InheritedEnd};
use crate::format::{BLOCK_ALIGN, CHUNK_BYTES};
use crate::profile::{LaneId, Profile, RegionId};
use crate::regions::Regions;
use crate::replay::{LaneEnd, Replay, SessionEdge, Visitor};

pub use error::Error;
use error::Problem;
use head::Head;
pub use links::CallLink;
use pieces::{Pieces, RawLane};
use tasks::{Found, TaskCollector};
pub use tasks::{PollInterval, Run, RunId, Task, TaskId, Tasks};
pub(crate) use total::Around;
use visitors::CallCollector;
pub use visitors::CallSink;

/// A recording that was opened for reading.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: File,
    info: Info,
    regions: Regions,
    lanes: Vec<RawLane>,
    scale: TickScale,
    session_edges: Vec<SessionEdge>,
    /// Where calls that are still open are cut: the last sign of life or event of any lane.
    cut_ticks: u64,
    profile: Profile,
    /// Whether the profile has each collective call.
    keeps_collectives: bool,
    /// Whether there are polls of async regions.
    is_async: bool,
    tasks: OnceLock<Tasks>,
}

/// What the head of a recording says about the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// MPI rank, 0 outside MPI.
    pub rank: u32,
    /// Number of ranks as the launcher gave it; 1 outside MPI.
    pub ranks: u32,
    /// Process id.
    pub pid: u32,
    /// Id of the process that had started it; 0 when unknown.
    pub parent_pid: u32,
    /// Arguments of the program, its own name first.
    pub args: Vec<String>,
    /// Name of the machine that it ran on; empty when unknown.
    pub host: String,
    /// Wall clock at the start, ns since the Unix epoch.
    pub wall_start_ns: i64,
    /// Version of scope-runtime that recorded.
    pub runtime_version: String,
    /// Name of the clock: `tsc`, `cntvct` or `monotonic`.
    pub clock: String,
    /// What entering and leaving a region cost on its machine, in ps; 0 when it was not measured.
    pub region_cost_ps: u32,
    /// Whether the program ended its recording itself.
    pub sealed: bool,
    /// Comparisons of the clock with that of rank 0, in order of time; empty without MPI.
    pub clock_offsets: Vec<ClockOffset>,
    /// Pieces whose checksum does not fit, and which are left out.
    pub damaged: u64,
}

impl Info {
    /// Whether it was recorded on this machine, as far as is known.
    pub fn is_of_this_host(&self) -> bool {
        self.host.is_empty() || self.host == crate::os::host_name()
    }
}

/// A comparison of a rank's clock with that of rank 0, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockOffset {
    /// When, on the rank's recording clock.
    pub at_ns: i64,
    /// What rank 0's clock showed at that moment, less that.
    pub offset_ns: i64,
    /// By how much the offset can be wrong.
    pub uncertainty_ns: i64,
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
    /// The enclosing call.
    pub parent: Parent,
    /// How it went, where it did not run from begin to end: index into [`Tasks::runs`].
    pub run: Option<RunId>,
    /// Cut at the end of recording.
    pub open: bool,
}

/// What encloses a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// Nothing that is recorded.
    None,
    /// A call of the same lane: its position in the lane's calls.
    Call(u32),
    /// A call of an async region, first polled on whatever lane: index into [`Tasks::runs`].
    Run(RunId),
}

/// Where a call is: its position in the calls of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallRef {
    /// Index into [`Profile::lanes`].
    pub lane: u32,
    /// Position in [`Recording::calls`] of that lane.
    pub index: u32,
}

impl Recording {
    /// Opens a recording and totals it.
    ///
    /// # Errors
    /// When the file cannot be read, is none of ours, or has another format version. Damage
    /// beyond the head is no error: it is counted in [`Info::damaged`].
    ///
    /// # Examples
    /// ```
    /// use scope_runtime::recording::Recording;
    ///
    /// # let folder = std::env::temp_dir().join(format!("scope-open-{}", std::process::id()));
    /// # unsafe { std::env::set_var("SCOPE_OUTPUT", &folder) };
    /// scope_runtime::region!("step", { /* the work */ });
    /// scope_runtime::finalize();
    /// let recording = Recording::open(&folder.join("rank0.scope"))?;
    /// assert!(recording.info().sealed);
    /// assert_eq!(recording.profile().regions[0].name, "step");
    /// # std::fs::remove_dir_all(folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: &Path) -> Result<Recording, Error> {
        let fail = |problem| Error { path: path.to_owned(), problem };
        let file = File::open(path).map_err(|error| fail(error.into()))?;
        Recording::read(file, path, true, |work| work()).map_err(fail)
    }

    /// What the first page of the file says: of [`Info`] all but the arguments, the host, the version, and what
    /// was found out while it ran.
    ///
    /// # Errors
    /// When the file cannot be read or is no recording.
    pub fn read_head(path: &Path) -> Result<Info, Error> {
        let read = || {
            let file = File::open(path)?;
            Ok(Head::read(&file, file.metadata()?.len())?.info)
        };
        read().map_err(|problem| Error { path: path.to_owned(), problem })
    }

    /// Reads an open recording, which may still be written to. Threads that are started for it do
    /// their work in `around`. Collective calls are left out unless they are wanted: there may be many.
    pub(crate) fn from_file(
        file: File,
        path: &Path,
        keeps_collectives: bool,
        around: Around,
    ) -> Result<Recording, Error> {
        Recording::read(file, path, keeps_collectives, around)
            .map_err(|problem| Error { path: path.to_owned(), problem })
    }

    fn read(file: File, path: &Path, keeps_collectives: bool, around: Around) -> Result<Recording, Problem> {
        let len = file.metadata()?.len();
        let head = Head::read(&file, len)?;
        let mut recording = Recording {
            path: path.to_owned(),
            file,
            info: head.info,
            regions: Regions::default(),
            lanes: Vec::new(),
            scale: TickScale::between(head.first, head.last),
            session_edges: Vec::new(),
            cut_ticks: head.last.ticks,
            profile: Profile::default(),
            keeps_collectives,
            is_async: false,
            tasks: OnceLock::new(),
        };
        let mut pieces = Pieces::default();
        // Totals before the pool: what is folded meanwhile is still missing from them, and is found
        // to be missing; the other way round it would be counted twice.
        let totals = pieces.read_totals(&recording.file, head.totals, &mut recording.info);
        let lost_calls = head.lost_calls.saturating_add(head.folded_calls.saturating_sub(totals));
        // The pool before blocks, and before the end of the file is looked up: a chunk that a live
        // program writes out meanwhile is found as a block.
        for &(at, chunks) in &head.segments {
            pieces.read_pool(&recording.file, at, chunks)?;
        }
        let len = recording.file.metadata()?.len();
        let mut mapped = head.segments.clone();
        mapped.iter_mut().for_each(|(_, chunks)| *chunks *= CHUNK_BYTES as u64);
        mapped.push((head.totals.0, 2 * head.totals.1));
        mapped.sort_unstable();
        pieces.read_blocks(&recording.file, len, &mapped, &mut recording.info)?;
        // A definition takes 32 bytes or more; a number beyond that is damage.
        pieces.regions.split_off(&u32::try_from(len / BLOCK_ALIGN).unwrap_or(u32::MAX));
        recording.regions = Regions::resolve(pieces.regions);
        recording.lanes = pieces.lanes.into_values().collect();
        recording.session_edges = pieces.session_edges;
        recording.session_edges.sort_unstable();
        recording.info.clock_offsets.sort_unstable();
        let second = pieces.scale.unwrap_or(head.last);
        recording.scale = offsets::scale(head.first, second, &recording.info.clock_offsets);
        let last_ticks = recording.lanes.iter().map(|lane| lane.last_ticks(&recording.file)).max();
        recording.cut_ticks = recording.cut_ticks.max(last_ticks.unwrap_or(0));
        recording.total(lost_calls, head.first.ticks, around);
        Ok(recording)
    }

    /// What the head of the recording says.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Regions, lanes and totals.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(crate) fn into_profile(self) -> Profile {
        self.profile
    }

    /// Notes which of how many ranks it is of, where one knows better than the launcher said.
    #[cfg(all(feature = "mpi", not(feature = "off")))]
    pub(crate) fn set_rank(&mut self, rank: u32, ranks: u32) {
        (self.info.rank, self.info.ranks, self.profile.rank) = (rank, ranks, rank);
    }

    /// Notes that its program has ended it since it was read.
    #[cfg(feature = "hdf5")]
    pub(crate) fn set_sealed(&mut self) {
        self.info.sealed = true;
    }

    /// The calls of one lane in order of entry, parents before children; those of an async region are
    /// on the lane of their first poll. Events that cannot be read any more are left out, as when the
    /// recording was opened.
    pub fn calls(&self, lane: LaneId) -> Vec<Call> {
        let mut calls = Vec::new();
        self.visit_calls(lane, &mut calls);
        calls
    }

    /// Hands the calls of one lane to `sink`, as [`Recording::calls`] gives them.
    pub fn visit_calls(&self, lane: LaneId, sink: &mut impl CallSink) {
        if let Some(raw) = self.lanes.get(lane.0 as usize) {
            let collector = CallCollector::new(self, self.tasks(), lane.0, sink);
            self.replay(raw, collector, |_, _, _| {});
        }
    }

    /// What is async in the recording; empty without async regions.
    pub fn tasks(&self) -> &Tasks {
        self.tasks.get_or_init(|| if self.is_async { self.collect_tasks() } else { Tasks::default() })
    }

    fn collect_tasks(&self) -> Tasks {
        let mut found = Found::default();
        for (raw, lane) in self.lanes.iter().zip(0..) {
            let collector = TaskCollector::new(&self.regions, self.scale, lane, found);
            found = self.replay(raw, collector, |_, _, _| {}).visitor.into_found();
        }
        let ends = self.session_ends();
        let last_ns = self.scale.ns(self.cut_ticks).max(self.profile.end_ns);
        found
            .into_tasks(|start_ns| ends.iter().copied().find(|&end_ns| end_ns >= start_ns).unwrap_or(last_ns))
    }

    /// Replays a lane: its events with `visitor`, then what it kept in totals only. `join` is called
    /// in between, with the totals and the calls that are open by then.
    fn replay<V: Visitor>(
        &self,
        lane: &RawLane,
        visitor: V,
        join: impl FnOnce(&mut V, &Folded, u64),
    ) -> LaneResult<V> {
        self.replay_watching(lane, visitor, &[], join)
    }

    /// The same, telling the visitor when it is at these positions of the lane.
    fn replay_watching<V: Visitor>(
        &self,
        lane: &RawLane,
        visitor: V,
        positions: &[u64],
        join: impl FnOnce(&mut V, &Folded, u64),
    ) -> LaneResult<V> {
        let mut replay = Replay::new(visitor, &self.session_edges);
        replay.watch(positions);
        let mut fold = lane.fold(&self.session_edges);
        let from_events = fold.as_ref().map_or(u64::MAX, |fold| fold.first_sequence);
        let from_totals = fold.as_ref().map_or(u64::MAX, Fold::next_sequence);
        let mut damaged = 0;
        let mut bytes = Vec::new();
        for (&sequence, chunk) in &lane.chunks {
            if (from_events..from_totals).contains(&sequence) {
                continue;
            }
            let Some(words) = chunk.words(sequence, &self.file, &mut bytes) else {
                damaged += 1;
                continue;
            };
            match &mut fold {
                Some(fold) if sequence >= from_totals => fold.chunk(words),
                _ => replay.chunk(words),
            }
        }
        let begin = fold.as_ref().map(|fold| fold.begin);
        let mut folded_end = LaneEnd::default();
        if let Some(fold) = fold {
            folded_end = join_fold(&mut replay, fold, self.cut_ticks, join);
        }
        let (visitor, mut end) = replay.finish(self.cut_ticks);
        end.add(&folded_end);
        LaneResult { visitor, end, damaged, totals_begin: begin }
    }
}

/// Puts the totals of a lane, which ends at these ticks, together with its events before them, which were
/// replayed.
fn join_fold<V: Visitor>(
    replay: &mut Replay<V>,
    fold: Fold,
    ticks: u64,
    join: impl FnOnce(&mut V, &Folded, u64),
) -> LaneEnd {
    replay.pass_edges(fold.begin);
    let (folded, end) = fold.finish(ticks);
    let dead = replay.dead();
    join(&mut replay.visitor, &folded, dead);
    for frames in &folded.inherited_ends {
        match *frames {
            InheritedEnd::Frames(at, count) => replay.leave_inherited(at, count),
            InheritedEnd::Completed(ended, at) => replay.complete(ended.start, ended.cancelled, at),
            InheritedEnd::Part(instance, at) => replay.end_part(instance, at),
            InheritedEnd::Since(end) => replay.part_since(end),
            InheritedEnd::Poll(word, at) => replay.end_poll(word, at),
            InheritedEnd::Aside(instance, span, at) => replay.end_aside(instance, span, at),
        }
    }
    end
}

/// What the replay of a lane gave.
struct LaneResult<V> {
    visitor: V,
    end: LaneEnd,
    damaged: u64,
    /// Ticks from which on the lane kept totals only.
    totals_begin: Option<u64>,
}

impl<V> LaneResult<V> {
    fn map<T>(self, finish: impl FnOnce(V) -> T) -> LaneResult<T> {
        let LaneResult { visitor, end, damaged, totals_begin } = self;
        LaneResult { visitor: finish(visitor), end, damaged, totals_begin }
    }
}
