//! From the recordings of a run to one [`MergedProfile`].
//!
//! Rows come rank by rank; inside a rank the regions are in order of first call, and the calls of
//! a row go lane by lane, in order of entry on each lane.

mod metadata;
mod part;
mod paths;
mod rank;
#[cfg(any(test, feature = "mpio"))]
mod share;
mod source;
mod tasks;
mod waits;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::profile::{Lane, LaneId, Profile};
use crate::recording::{CallLink, CallSink, Info, Recording, Tasks};
use crate::totals::PathTree;

pub(crate) use self::part::Part;
use self::rank::{Counting, Failure, RegionRun};
#[cfg(feature = "mpio")]
pub(crate) use self::share::Share;
use self::source::Sources;
#[cfg(feature = "mpio")]
pub(crate) use self::waits::LastArrivals;
use self::waits::Waits;
use crate::merged::{ClockRow, Events, MergedProfile, MessageRow, Row, ThreadRow};
use crate::profile_file::{self, Library, ProfileWriter};

/// What only the caller knows about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunInfo {
    /// Name of the run; `None` leaves it to the reader, which takes the file's stem.
    pub label: Option<String>,
    /// Cargo profile of the build, such as `release`.
    pub build_profile: Option<String>,
    /// First line of `rustc --version`.
    pub rustc_version: Option<String>,
    /// Cargo features that were asked for.
    pub features: Vec<String>,
    /// The command that started the run, program name first.
    pub command_line: Vec<String>,
    /// Commit of the source, when it is under version control.
    pub git_commit: Option<String>,
    /// Folders that relative names of source files may count from; those before it go first.
    pub source_roots: Vec<PathBuf>,
    /// Where the profile ends, if that is before the program does.
    pub ends_at: Option<&'static str>,
    /// Leaves the program's arguments, the command line and text of its source out of the file.
    pub private: bool,
}

impl RunInfo {
    /// What is known of a run by hand: its program was built in the folder we are in, or in a workspace
    /// around it.
    pub fn by_hand(private: bool) -> RunInfo {
        let here = std::env::current_dir().unwrap_or_default();
        let source_roots = here.ancestors().map(Path::to_path_buf).collect();
        RunInfo { source_roots, private, ..RunInfo::default() }
    }
}

/// The recording of one rank, as [`merge`] needs it.
pub trait RankRecording {
    /// What the head says.
    fn info(&self) -> &Info;
    /// Regions, lanes and totals.
    fn profile(&self) -> &Profile;
    /// Hands over the calls of one lane in order of entry, parents before children.
    fn visit_calls(&self, lane: LaneId, sink: &mut impl CallSink);
    /// What is async.
    fn tasks(&self) -> &Tasks;
    /// What was started by other calls than those around it.
    fn links(&self) -> Vec<CallLink>;
    /// The totals with that below what started it; `None` when there are no links.
    fn linked_paths(&self) -> Option<PathTree>;
}

impl RankRecording for Recording {
    fn info(&self) -> &Info {
        self.info()
    }

    fn profile(&self) -> &Profile {
        self.profile()
    }

    fn visit_calls(&self, lane: LaneId, sink: &mut impl CallSink) {
        self.visit_calls(lane, sink);
    }

    fn tasks(&self) -> &Tasks {
        self.tasks()
    }

    fn links(&self) -> Vec<CallLink> {
        self.links()
    }

    fn linked_paths(&self) -> Option<PathTree> {
        self.linked_paths()
    }
}

/// Why recordings could not be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two recordings of one rank.
    #[error("`{}` and `{}` are both of rank {rank}: give one recording per rank", first.display(), second.display())]
    DuplicateRank {
        /// The rank.
        rank: u32,
        /// The earlier one in the list.
        first: PathBuf,
        /// The later one.
        second: PathBuf,
    },
    /// A call that cannot be right.
    #[error("`{}` is damaged: call {call} of lane {lane} has no {what}", path.display())]
    DamagedRecording {
        /// The recording.
        path: PathBuf,
        /// Lane of the call.
        lane: u32,
        /// Position of the call on its lane.
        call: usize,
        /// What it refers to that is not there.
        what: &'static str,
    },
    /// What ranks are compared by could not be kept until all were read.
    #[error("failed to keep the times of collective calls in a temporary file (TMPDIR says where): {0}")]
    Arrivals(#[from] std::io::Error),
    /// The file that the calls go to could not be written.
    #[error(transparent)]
    File(#[from] profile_file::Error),
    /// A recording whose totals are not those of its calls.
    #[error("the totals of `{}` are not those of its calls", path.display())]
    WrongTotals {
        /// The recording.
        path: PathBuf,
    },
    /// A recording that has other calls each time it is looked at.
    #[error("`{}` changes while it is read: wait for its program to end", path.display())]
    ChangedRecording {
        /// The recording.
        path: PathBuf,
    },
}

impl Error {
    fn of(failure: Failure, path: &Path) -> Error {
        let path = path.to_path_buf();
        match failure {
            Failure::Dangling { lane, call, what } => Error::DamagedRecording { path, lane, call, what },
            Failure::Miscounted => Error::ChangedRecording { path },
            Failure::File(error) => Error::File(error),
        }
    }
}

/// Merges one recording per rank, in any order, each with the path that it was read from, into a
/// profile with all events in memory.
///
/// # Errors
/// See [`Merger::add`].
pub fn merge<P: AsRef<Path>, R: RankRecording>(
    recordings: &[(P, R)],
    run: &RunInfo,
) -> Result<MergedProfile, Error> {
    let mut ranks: Vec<_> = recordings.iter().collect();
    ranks.sort_by_key(|(_, recording)| recording.info().rank);
    let (mut merger, mut events) = (Merger::default(), Events::default());
    for (path, recording) in ranks {
        let (part, calls) = Part::of(path.as_ref(), recording)?;
        merger.add_part(part)?;
        merger.waits.add(recording.info().rank, &recording.profile().collectives)?;
        events.append(calls);
    }
    Ok(MergedProfile { events, ..merger.finish(run)? })
}

/// Has `merge` do its work with a merger that believes the totals of recordings. Where these turn out to be
/// wrong, all is done again with one that looks at all calls first, which takes one more reading of each
/// recording.
///
/// # Errors
/// Those of `merge`.
pub fn with_merger<T>(mut merge: impl FnMut(Merger) -> Result<T, Error>) -> Result<T, Error> {
    match merge(Merger::default()) {
        Err(Error::WrongTotals { .. }) => merge(Merger::that_counts()),
        merged => merged,
    }
}

/// Takes the recordings of the ranks one after the other; of each only what does not grow with its
/// calls is kept (and, of async calls, their polls and links).
///
/// Call ids count through a rank's lanes, lane 0 first, in order of entry: this takes no sorting,
/// and keeps what timestamps cannot tell, the order of calls within one tick of the clock.
/// Times stay as recorded; those of threads are relative to the first rank's start, so that
/// `start_time_ns` plus one of them is on the clock of the calls.
#[derive(Debug, Default)]
pub struct Merger {
    profile: MergedProfile,
    ids: HashMap<String, u32>,
    /// Without what has become rows.
    parts: Vec<Part>,
    calls: usize,
    waits: Waits,
    counting: Counting,
}

impl Merger {
    /// One that looks at all calls before it places them, in place of believing totals.
    pub fn that_counts() -> Merger {
        Merger { counting: Counting::ByCalls, ..Merger::default() }
    }

    /// Adds the recording of a rank, whose calls go to `file`, no more of them being in memory than lie in
    /// chunks of which others are still to come.
    ///
    /// # Errors
    /// When there was one of this rank, a call refers to a region or a parent that is not there, or the file
    /// cannot be written. [`Error::WrongTotals`] where the totals of the recording turn out to be wrong:
    /// then all is to be done again by one [that counts](Self::that_counts), as [`with_merger`] does, which
    /// fails only where a recording changes meanwhile.
    pub fn add<L: Library>(
        &mut self,
        path: &Path,
        recording: &impl RankRecording,
        file: &mut ProfileWriter<L>,
    ) -> Result<(), Error> {
        let placed = rank::into_file(recording, self.counting, file);
        let (runs, statistics) = placed
            .map_err(|failure| match failure {
                Failure::Miscounted if self.counting == Counting::ByTotals => {
                    Error::WrongTotals { path: path.to_path_buf() }
                }
                other => Error::of(other, path),
            })?
            .into_iter()
            .unzip::<_, _, Vec<_>, Vec<_>>();
        let rows = self.add_part(Part::new(path, recording, runs))?;
        for (row, statistics) in self.profile.rows[rows].iter().zip(statistics) {
            file.note_statistics(row, statistics);
        }
        self.waits.add(recording.info().rank, &recording.profile().collectives)?;
        Ok(())
    }

    /// Adds a rank whose calls are elsewhere; gives its rows in [`Merger::rows`].
    ///
    /// # Errors
    /// When there was one of this rank.
    pub(crate) fn add_part(&mut self, mut part: Part) -> Result<Range<usize>, Error> {
        let rank = part.info.rank;
        if let Some(first) = self.parts.iter().find(|part| part.info.rank == rank) {
            return Err(Error::DuplicateRank { rank, first: first.path.clone(), second: part.path });
        }
        let first_row = self.profile.rows.len();
        let runs = std::mem::take(&mut part.runs);
        let calls = runs.iter().map(|run| run.events.end).max().unwrap_or(0);
        runs.into_iter().for_each(|run| self.add_row(rank, &part.profile, run));
        self.calls += calls;
        append(&mut self.profile.links, part.links.take());
        append(&mut self.profile.tasks, part.tasks.take());
        append(&mut self.profile.async_calls, part.async_calls.take());
        append(&mut self.profile.polls, part.polls.take());
        self.waits.add_rows(&std::mem::take(&mut part.waits));
        self.parts.push(part);
        Ok(first_row..self.profile.rows.len())
    }

    /// The rows so far, whose runs count through the events of all recordings as they came.
    pub fn rows(&self) -> &[Row] {
        &self.profile.rows
    }

    /// The heads of the recordings so far.
    pub fn infos(&self) -> impl Iterator<Item = &Info> {
        self.parts.iter().map(|part| &part.info)
    }

    /// The profile without its events.
    ///
    /// # Errors
    /// When what ranks are compared by cannot be read back.
    pub fn finish(mut self, run: &RunInfo) -> Result<MergedProfile, Error> {
        self.profile.rows.sort_by_key(|row| row.rank);
        let mut parts = std::mem::take(&mut self.parts);
        parts.sort_by_key(|part| part.info.rank);
        let origin_ns = parts.first().map_or(0, |first| first.profile.start_ns);
        let (mut paths, mut threads) = (Vec::new(), Vec::new());
        let mut linked_paths = parts.iter().any(|part| part.linked.is_some()).then(Vec::new);
        let mut first_paths = HashMap::new();
        let (mut messages, mut clocks) = (Vec::new(), Vec::new());
        for Part { info, profile, linked, .. } in &parts {
            first_paths.insert(info.rank, paths.len() as u64);
            messages.extend(message_rows(info.rank, paths.len() as u64, profile));
            clocks.extend(clock_rows(info));
            let rows = |tree: &PathTree, merger: &mut Merger| {
                paths::rows(tree, &profile.regions, info.rank, |name| merger.region_id(name))
            };
            paths::append(&mut paths, rows(&profile.paths, &mut self));
            if let Some(linked_paths) = &mut linked_paths {
                paths::append(linked_paths, rows(linked.as_ref().unwrap_or(&profile.paths), &mut self));
            }
            let lanes = profile.lanes.iter().enumerate();
            threads.extend(lanes.map(|(index, lane)| thread_row(info.rank, index, lane, origin_ns)));
        }
        self.profile.tasks.iter_mut().flatten().for_each(|task| tasks::begin_at(task, origin_ns));
        if !run.private {
            self.add_source_texts(&run.source_roots, parts.first().map_or(0, |part| part.info.wall_start_ns));
        }
        let waits = std::mem::take(&mut self.waits).finish(&first_paths)?;
        let ranks: Vec<_> = parts.iter().map(|part| (&part.info, &part.profile)).collect();
        let mut profile = MergedProfile {
            metadata: metadata::describe(&ranks, run),
            paths: Some(paths),
            linked_paths,
            threads: Some(threads),
            messages: Some(messages).filter(|rows| !rows.is_empty()),
            waits: Some(waits).filter(|rows| !rows.is_empty()),
            clocks: Some(clocks).filter(|rows| !rows.is_empty()),
            ..self.profile
        };
        if self.calls == 0 && !profile.rows.is_empty() {
            profile.aggregates = Some(paths::aggregates(&profile));
        }
        Ok(profile)
    }

    /// Puts the text of each region into its first row, where readers look for it: one of each row would
    /// be as many copies as there are ranks.
    fn add_source_texts(&mut self, roots: &[PathBuf], began_ns: i64) {
        let mut sources = Sources::new(roots, began_ns);
        let mut seen = vec![false; self.profile.names.len()];
        for row in &mut self.profile.rows {
            if !std::mem::replace(&mut seen[row.region as usize], true) {
                row.source_text = sources.text(&row.source_file, row.source_line).unwrap_or_default();
            }
        }
    }

    /// `profile` is that of the rank.
    fn add_row(&mut self, rank: u32, profile: &Profile, run: RegionRun) {
        let region = &profile.regions[run.region.0 as usize];
        let id = self.region_id(&region.name);
        self.profile.rows.push(Row {
            region: id,
            rank,
            source_file: region.file.clone(),
            source_line: if region.line == 0 { UNKNOWN } else { region.line.into() },
            source_text: String::new(),
            tags: Vec::new(),
            events: self.calls + run.events.start..self.calls + run.events.end,
            // A clock that stepped back can make children longer than their parent; the file
            // has no way to say a negative sum.
            exclusive_total_ns: (run.exclusive_ns >= 0).then_some(run.exclusive_ns),
        });
    }

    fn region_id(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = self.profile.names.len() as u32;
        self.profile.names.push(name.to_string());
        self.ids.insert(name.to_string(), id);
        id
    }
}

fn append<T>(all: &mut Option<Vec<T>>, rows: Option<Vec<T>>) {
    if let Some(rows) = rows {
        all.get_or_insert_default().extend(rows);
    }
}

/// `first_path` is where the rank's paths begin.
fn message_rows(rank: u32, first_path: u64, profile: &Profile) -> impl Iterator<Item = MessageRow> {
    profile.messages.iter().map(move |row| MessageRow {
        rank,
        path: first_path + u64::from(row.path.0),
        kind: row.kind as i8,
        peer: row.peer.map_or(UNKNOWN, i64::from),
        messages: row.sizes.messages,
        bytes: row.sizes.bytes,
        min_bytes: row.sizes.min_bytes,
        max_bytes: row.sizes.max_bytes,
    })
}

fn clock_rows(info: &Info) -> impl Iterator<Item = ClockRow> {
    info.clock_offsets.iter().map(|offset| ClockRow {
        rank: info.rank,
        at_ns: offset.at_ns,
        offset_ns: offset.offset_ns,
        uncertainty_ns: offset.uncertainty_ns,
    })
}

fn thread_row(rank: u32, index: usize, lane: &Lane, origin_ns: i64) -> ThreadRow {
    let os_thread = if lane.os_thread == 0 { UNKNOWN } else { lane.os_thread as i64 };
    ThreadRow {
        rank,
        index: index as i64,
        ident: os_thread,
        native_id: os_thread,
        daemon: 0,
        start_ns: lane.first_ns.wrapping_sub(origin_ns),
        end_ns: if lane.ended { lane.last_ns.wrapping_sub(origin_ns) } else { UNKNOWN },
        cpu_ns: lane.cpu_ns.unwrap_or(UNKNOWN),
        name: lane.name.clone(),
    }
}

/// Stands for what is not known in the integer columns of the file.
const UNKNOWN: i64 = -1;

#[cfg(test)]
mod tests {
    use crate::profile::{Region, RegionId};
    use crate::recording::{Call, Parent};

    use super::*;

    struct Fake {
        info: Info,
        profile: Profile,
        calls: Vec<Vec<Call>>,
        tasks: Tasks,
    }

    impl RankRecording for Fake {
        fn info(&self) -> &Info {
            &self.info
        }

        fn profile(&self) -> &Profile {
            &self.profile
        }

        fn visit_calls(&self, lane: LaneId, sink: &mut impl CallSink) {
            let mut open: Vec<(u32, i64, _)> = Vec::new();
            for (call, index) in self.calls[lane.0 as usize].iter().zip(0..) {
                while let Some(&(around, end_ns, kept)) = open.last()
                    && call.parent != Parent::Call(around)
                {
                    sink.end(kept, end_ns, None, false);
                    open.pop();
                }
                let around = open.last().map(|(.., kept)| kept);
                open.push((index, call.end_ns, sink.begin(call.region, call.start_ns, call.parent, around)));
            }
            open.iter().rev().for_each(|&(_, end_ns, kept)| sink.end(kept, end_ns, None, false));
        }

        fn tasks(&self) -> &Tasks {
            &self.tasks
        }

        fn links(&self) -> Vec<CallLink> {
            Vec::new()
        }

        fn linked_paths(&self) -> Option<PathTree> {
            None
        }
    }

    fn lane(name: &str, first_ns: i64, last_ns: i64, ended: bool) -> Lane {
        Lane { name: name.into(), os_thread: 7, first_ns, last_ns, ended, cpu_ns: ended.then_some(3) }
    }

    fn rank(rank: u32, names: &[&str], calls: Vec<Vec<Call>>) -> Fake {
        let region = |name: &&str| Region { name: name.to_string(), file: "src/main.rs".into(), line: 4 };
        let lanes = vec![lane("main", 100, 200, false), lane("worker", 110, 150, true)];
        let profile = Profile {
            rank,
            regions: names.iter().map(region).collect(),
            lanes: lanes.into_iter().take(calls.len()).collect(),
            start_ns: 90,
            end_ns: 210,
            ..Profile::default()
        };
        Fake { info: Info { rank, ranks: 2, ..Info::default() }, profile, calls, tasks: Tasks::default() }
    }

    fn call(region: u32, start_ns: i64, end_ns: i64, parent: Option<u32>) -> Call {
        let parent = parent.map_or(Parent::None, Parent::Call);
        Call { region: RegionId(region), start_ns, end_ns, parent, run: None, open: false }
    }

    /// ```text
    /// main    outer [100        200]      worker  inner [110 150]
    ///           inner [120 130]                     inner [120 130]
    ///           inner [140 140]
    /// ```
    fn two_lanes() -> Vec<Vec<Call>> {
        let main = vec![call(0, 100, 200, None), call(1, 120, 130, Some(0)), call(1, 140, 140, Some(0))];
        let worker = vec![call(1, 110, 150, None), call(1, 120, 130, Some(0))];
        vec![main, worker]
    }

    #[test]
    fn calls_go_by_region_then_lane_then_entry() {
        let recording = rank(0, &["outer", "inner"], two_lanes());
        let profile = merge(&[(Path::new("rank0.scope"), recording)], &RunInfo::default()).unwrap();
        assert_eq!(profile.names, ["outer", "inner"]);
        assert_eq!(profile.events.start_ns, [100, 120, 140, 110, 120]);
        assert_eq!(profile.events.duration_ns, [100, 10, 0, 40, 10]);
        assert_eq!(profile.events.call_ids.as_deref(), Some(&[0, 1, 2, 3, 4][..]));
        assert_eq!(profile.events.parent_ids.as_deref(), Some(&[-1, 0, 0, -1, 3][..]));
        assert_eq!(profile.events.thread_ids.as_deref(), Some(&[0, 0, 0, 1, 1][..]));
        assert_eq!(profile.rows.iter().map(|row| row.events.clone()).collect::<Vec<_>>(), [0..1, 1..5]);
        let exclusive: Vec<_> = profile.rows.iter().map(|row| row.exclusive_total_ns).collect();
        assert_eq!(exclusive, [Some(90), Some(50)]);
        assert_eq!(profile.rows[1].source_line, 4);
    }

    #[test]
    fn threads_are_relative_to_the_start_of_the_run() {
        let recording = rank(0, &["outer", "inner"], two_lanes());
        let profile = merge(&[(Path::new("rank0.scope"), recording)], &RunInfo::default()).unwrap();
        let threads = profile.threads.unwrap();
        assert_eq!((threads[0].start_ns, threads[0].end_ns, threads[0].cpu_ns), (10, -1, -1));
        assert_eq!((threads[1].start_ns, threads[1].end_ns, threads[1].cpu_ns), (20, 60, 3));
        assert_eq!((threads[1].index, threads[1].native_id, threads[1].name.as_str()), (1, 7, "worker"));
    }

    #[test]
    fn ranks_come_in_order_and_share_names_not_numbers() {
        let second = rank(1, &["inner", "only here"], vec![vec![call(0, 1, 3, None), call(1, 4, 9, None)]]);
        let first = rank(0, &["outer", "inner", "never called"], two_lanes());
        let recordings = [(Path::new("b"), second), (Path::new("a"), first)];
        let profile = merge(&recordings, &RunInfo::default()).unwrap();
        assert_eq!(profile.names, ["outer", "inner", "only here"]);
        let rows: Vec<_> = profile.rows.iter().map(|row| (row.rank, row.region)).collect();
        assert_eq!(rows, [(0, 0), (0, 1), (1, 1), (1, 2)]);
        assert_eq!(profile.events.call_ids.unwrap()[5..], [0, 1]);
        assert_eq!(profile.threads.unwrap().len(), 3);
    }

    #[test]
    fn regions_of_one_name_share_a_row() {
        let recording = rank(0, &["same", "same"], two_lanes());
        let profile = merge(&[(Path::new("a"), recording)], &RunInfo::default()).unwrap();
        assert_eq!(profile.names, ["same"]);
        assert_eq!(profile.rows[0].events, 0..5);
        assert_eq!(profile.rows[0].exclusive_total_ns, Some(140));
    }

    #[test]
    fn a_second_recording_of_a_rank_is_an_error_that_names_both() {
        let recordings = [
            (Path::new("rank0.scope"), rank(0, &["outer", "inner"], two_lanes())),
            (Path::new("rank0.17.0.scope"), rank(0, &[], Vec::new())),
        ];
        let error = merge(&recordings, &RunInfo::default()).unwrap_err();
        let text = "`rank0.scope` and `rank0.17.0.scope` are both of rank 0: give one recording per rank";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn totals_that_miss_a_region_are_not_believed() {
        let mut recording = rank(0, &["outer", "inner"], two_lanes());
        let inner = recording.profile.paths.step(None, RegionId(1));
        (0..4).for_each(|_| recording.profile.paths.add_call(inner, 10, 10, false));
        let profile = merge(&[(Path::new("rank0.scope"), recording)], &RunInfo::default()).unwrap();
        let runs: Vec<_> = profile.rows.iter().map(|row| row.events.clone()).collect();
        assert_eq!((runs, profile.rows[0].exclusive_total_ns), (vec![0..1, 1..5], Some(90)));
    }

    #[test]
    fn a_call_without_its_parent_is_an_error() {
        let recording = rank(0, &["outer"], vec![vec![call(0, 1, 2, Some(0))]]);
        let error = merge(&[(Path::new("rank0.scope"), recording)], &RunInfo::default()).unwrap_err();
        assert_eq!(error.to_string(), "`rank0.scope` is damaged: call 0 of lane 0 has no parent");
    }

    #[test]
    fn no_recording_makes_an_empty_profile() {
        let none: [(&Path, Fake); 0] = [];
        let profile = merge(&none, &RunInfo::default()).unwrap();
        assert_eq!((profile.rows.len(), profile.ranks()), (0, 0));
    }
}
