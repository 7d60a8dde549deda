//! The recording of one rank (`rank<N>.scope`): reading it back, sealed or not.
//!
//! Reading takes what is there: blocks with sound checksums, and the chunks that a killed process
//! left in the pool. Nothing in the file is trusted: sizes and offsets are checked against its
//! length, and a damaged piece costs no more than itself.

mod error;
mod head;
mod pieces;
mod visitors;

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::clock::{ClockPair, TickScale};
use crate::fold::{Fold, Folded};
use crate::format::{BLOCK_ALIGN, CHUNK_BYTES};
use crate::profile::{Lane, LaneId, Profile, RegionId};
use crate::regions::Regions;
use crate::replay::{ChunkWords, LaneEnd, Replay, SessionEdge, Visitor};
use crate::totals::PathTree;

pub use error::Error;
use error::Problem;
use head::Head;
use pieces::{Pieces, RawLane};
use visitors::{CallCollector, Totaller};

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
    /// Arguments of the program, its own name first.
    pub args: Vec<String>,
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
    /// Pieces whose checksum does not fit, and which are left out.
    pub damaged: u64,
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
    /// Opens a recording and totals it.
    ///
    /// # Errors
    /// When the file cannot be read, is none of ours, or has another format version. Damage
    /// beyond the head is no error: it is counted in [`Info::damaged`].
    pub fn open(path: &Path) -> Result<Recording, Error> {
        let fail = |problem| Error { path: path.to_owned(), problem };
        let file = File::open(path).map_err(|error| fail(error.into()))?;
        Recording::read(file, path).map_err(fail)
    }

    /// Reads an open recording, which may still be written to.
    pub(crate) fn from_file(file: File, path: &Path) -> Result<Recording, Error> {
        Recording::read(file, path).map_err(|problem| Error { path: path.to_owned(), problem })
    }

    fn read(file: File, path: &Path) -> Result<Recording, Problem> {
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
        let last_ticks = recording.lanes.iter().map(|lane| lane.last_ticks(&recording.file)).max();
        recording.cut_ticks = recording.cut_ticks.max(last_ticks.unwrap_or(0));
        recording.total(lost_calls, head.first);
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

    /// The calls of one lane in order of entry, parents before children. Events that cannot be
    /// read any more are left out, as when the recording was opened.
    pub fn calls(&self, lane: LaneId) -> Vec<Call> {
        let Some(raw) = self.lanes.get(lane.0 as usize) else { return Vec::new() };
        let collector = CallCollector { recording: self, calls: Vec::new(), open: Vec::new() };
        self.replay(raw, collector, |_, _, _| {}).visitor.calls
    }

    /// Replays a lane: its events with `visitor`, then what it kept in totals only. `join` is called
    /// in between, with the totals and the calls that are open by then.
    fn replay<V: Visitor>(
        &self,
        lane: &RawLane,
        visitor: V,
        join: impl FnOnce(&mut V, &Folded, u64),
    ) -> LaneResult<V> {
        let mut replay = Replay::new(visitor, &self.session_edges);
        let mut fold = lane.fold(&self.session_edges);
        let from_events = fold.as_ref().map_or(u64::MAX, |fold| fold.first_sequence);
        let from_totals = fold.as_ref().map_or(u64::MAX, Fold::next_sequence);
        let mut damaged = 0;
        let (mut bytes, mut words) = (Vec::new(), Vec::new());
        for (&sequence, chunk) in &lane.chunks {
            if (from_events..from_totals).contains(&sequence) {
                continue;
            }
            words.clear();
            let Some((depth, base)) = chunk.unpack(&self.file, &mut bytes, &mut words) else {
                damaged += 1;
                continue;
            };
            let words = ChunkWords { sequence, depth, base, words: &words };
            match &mut fold {
                Some(fold) if sequence >= from_totals => fold.chunk(&words),
                _ => replay.chunk(&words),
            }
        }
        let begin = fold.as_ref().map(|fold| fold.begin);
        let mut folded_end = LaneEnd::default();
        if let Some(fold) = fold {
            let (folded, end) = fold.finish(self.cut_ticks);
            folded_end = end;
            let dead = replay.inherit();
            join(&mut replay.visitor, &folded, dead);
            for &(at, count) in &folded.inherited_ends {
                replay.leave_inherited(at, count);
            }
        }
        let (visitor, mut end) = replay.finish(self.cut_ticks);
        end.add(&folded_end);
        LaneResult { visitor, end, damaged, totals_begin: begin }
    }

    /// Fills the profile.
    fn total(&mut self, lost_calls: u64, first: ClockPair) {
        let mut profile = Profile { rank: self.info.rank, lost_calls, ..Profile::default() };
        let mut tree = PathTree::default();
        let mut last_ticks = self.cut_ticks;
        let mut damaged = 0;
        for raw in &self.lanes {
            let totaller =
                Totaller { regions: &self.regions, scale: self.scale, tree, open: Vec::new(), cut: 0 };
            let result = self.replay(raw, totaller, Totaller::join);
            let (totaller, end) = (result.visitor, result.end);
            damaged += result.damaged;
            let cut_here = result.totals_begin.map(|ticks| self.scale.ns(ticks));
            profile.timeline_end_ns = profile.timeline_end_ns.into_iter().chain(cut_here).min();
            tree = totaller.tree;
            profile.open_calls = profile.open_calls.saturating_add(totaller.cut);
            profile.faulty_calls = profile.faulty_calls.saturating_add(end.faulty);
            last_ticks = last_ticks.max(end.last_ticks);
            let first_ticks = end.first_ticks.unwrap_or(raw.start_ticks).min(raw.start_ticks);
            profile.lanes.push(Lane {
                name: raw.name.clone(),
                os_thread: raw.os_thread,
                first_ns: self.scale.ns(first_ticks),
                last_ns: self.scale.ns(end.last_ticks.max(first_ticks)),
                ended: end.cpu_ns.is_some(),
                cpu_ns: end.cpu_ns.and_then(|ns| i64::try_from(ns).ok()),
            });
        }
        self.info.damaged += damaged;
        profile.start_ns = first.ns;
        profile.end_ns = self.scale.ns(last_ticks);
        profile.paths = self.regions.keep_called(tree);
        profile.regions = self.regions.called().to_vec();
        self.profile = profile;
    }
}

/// What the replay of a lane gave.
struct LaneResult<V> {
    visitor: V,
    end: LaneEnd,
    damaged: u64,
    /// Ticks from which on the lane kept totals only.
    totals_begin: Option<u64>,
}
