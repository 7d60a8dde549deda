//! From the recordings of a run to one [`MergedProfile`].
//!
//! Rows come rank by rank; inside a rank the regions are in order of first call, and the calls of
//! a row go lane by lane, in order of entry on each lane.

mod metadata;
mod paths;
mod rank;
mod tasks;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use scope_runtime::profile::{Lane, LaneId, Profile};
use scope_runtime::recording::{Call, CallLink, Info, Recording, Tasks};
use scope_runtime::totals::PathTree;

use self::rank::{CallIds, Columns, Failure, RegionRun};
use crate::merged::{LinkRow, MergedProfile, Row, ThreadRow};

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
    /// Leaves the program's arguments and the command line out of the file.
    pub omit_arguments: bool,
}

/// The recording of one rank, as [`merge`] needs it.
pub trait RankRecording {
    /// What the head says.
    fn info(&self) -> &Info;
    /// Regions, lanes and totals.
    fn profile(&self) -> &Profile;
    /// The calls of one lane in order of entry, parents before children.
    fn calls(&self, lane: LaneId) -> Vec<Call>;
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

    fn calls(&self, lane: LaneId) -> Vec<Call> {
        self.calls(lane)
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
    /// A recording that has other calls each time it is looked at.
    #[error("`{}` changes while it is read: wait for its program to end", path.display())]
    ChangedRecording {
        /// The recording.
        path: PathBuf,
    },
}

/// Merges one recording per rank, in any order, each with the path that it was read from.
///
/// Call ids count through a rank's lanes, lane 0 first, in order of entry: this takes no sorting,
/// and keeps what timestamps cannot tell, the order of calls within one tick of the clock.
/// Times stay as recorded; those of threads are relative to the first rank's start, so that
/// `start_time_ns` plus one of them is on the clock of the calls.
///
/// # Errors
/// When two recordings are of the same rank, a call refers to a region or a parent that is not
/// there, or a recording changes meanwhile.
pub fn merge<R: RankRecording>(recordings: &[(&Path, R)], run: &RunInfo) -> Result<MergedProfile, Error> {
    let ranks = in_rank_order(recordings)?;
    let origin_ns = ranks.first().map_or(0, |(_, first)| first.profile().start_ns);
    let profile = MergedProfile { threads: Some(Vec::new()), ..MergedProfile::default() };
    // The events of a rank whose timeline ends early are not all that was recorded, and those of async
    // calls do not say when they ran; then the totals of all ranks are kept too.
    let with_tasks = ranks.iter().any(|(_, rank)| !rank.tasks().tasks().is_empty());
    let ends_early = ranks.iter().any(|(_, rank)| rank.profile().timeline_end_ns.is_some());
    let with_paths = with_tasks || ends_early;
    let with_links = ranks.iter().any(|(_, rank)| rank.tasks().has_links());
    let mut merger = Merger { profile, ids: HashMap::new(), origin_ns, with_paths, with_links };
    let mut columns = Columns::new(with_tasks);
    for (path, recording) in &ranks {
        merger.add_rank(path, recording, &mut columns)?;
    }
    let heads: Vec<_> = ranks.iter().map(|(_, rank)| (rank.info(), rank.profile())).collect();
    let metadata = metadata::describe(&heads, run);
    let mut profile = MergedProfile { metadata, events: columns.into_events(), ..merger.profile };
    if with_paths && profile.events.start_ns.is_empty() {
        profile.aggregates = Some(paths::aggregates(&profile));
    }
    Ok(profile)
}

fn in_rank_order<'a, R: RankRecording>(
    recordings: &'a [(&'a Path, R)],
) -> Result<Vec<&'a (&'a Path, R)>, Error> {
    let mut ranks: Vec<_> = recordings.iter().collect();
    ranks.sort_by_key(|(_, recording)| recording.info().rank);
    for pair in ranks.windows(2) {
        let rank = pair[0].1.info().rank;
        if rank == pair[1].1.info().rank {
            let (first, second) = (pair[0].0.to_path_buf(), pair[1].0.to_path_buf());
            return Err(Error::DuplicateRank { rank, first, second });
        }
    }
    Ok(ranks)
}

struct Merger {
    profile: MergedProfile,
    ids: HashMap<String, u32>,
    /// Start of the first rank, on its recording clock.
    origin_ns: i64,
    with_paths: bool,
    with_links: bool,
}

impl Merger {
    fn add_rank(
        &mut self,
        path: &Path,
        recording: &impl RankRecording,
        columns: &mut Columns,
    ) -> Result<(), Error> {
        let rank = recording.info().rank;
        let runs = rank::append(columns, recording, self.with_paths).map_err(|failure| match failure {
            Failure::Dangling { lane, call, what } => {
                Error::DamagedRecording { path: path.to_path_buf(), lane, call, what }
            }
            Failure::Miscounted => Error::ChangedRecording { path: path.to_path_buf() },
        })?;
        for run in runs {
            self.add_row(rank, run);
        }
        if self.with_paths {
            let profile = recording.profile();
            let rows = paths::rows(&profile.paths, &profile.regions, rank, |name| self.region_id(name));
            paths::append(self.profile.paths.get_or_insert_default(), rows);
        }
        if self.with_links {
            let profile = recording.profile();
            let linked = recording.linked_paths();
            let linked = linked.as_ref().unwrap_or(&profile.paths);
            let rows = paths::rows(linked, &profile.regions, rank, |name| self.region_id(name));
            paths::append(self.profile.linked_paths.get_or_insert_default(), rows);
            let ids = CallIds::of_lanes(recording.tasks());
            let row = |link: CallLink| LinkRow {
                rank,
                call_id: ids.of(link.call),
                started_by: ids.of(link.started_by),
            };
            self.profile.links.get_or_insert_default().extend(recording.links().into_iter().map(row));
        }
        if !recording.tasks().tasks().is_empty() {
            self.add_tasks(rank, recording);
        }
        let threads = recording.profile().lanes.iter().enumerate();
        let threads = threads.map(|(index, lane)| thread_row(rank, index, lane, self.origin_ns));
        self.profile.threads.get_or_insert_default().extend(threads);
        Ok(())
    }

    fn add_tasks(&mut self, rank: u32, recording: &impl RankRecording) {
        let (profile, found) = (recording.profile(), recording.tasks());
        let ids = CallIds::of_lanes(found);
        let rows = tasks::task_rows(profile, found, self.origin_ns);
        self.profile.tasks.get_or_insert_default().extend(rows);
        self.profile.async_calls.get_or_insert_default().extend(tasks::async_rows(rank, found, &ids));
        self.profile.polls.get_or_insert_default().extend(tasks::poll_rows(rank, found, &ids));
    }

    fn add_row(&mut self, rank: u32, run: RegionRun<'_>) {
        let region = run.region;
        let id = self.region_id(&region.name);
        self.profile.rows.push(Row {
            region: id,
            rank,
            source_file: region.file.clone(),
            source_line: if region.line == 0 { UNKNOWN } else { region.line.into() },
            source_text: String::new(),
            tags: Vec::new(),
            events: run.events,
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
    use scope_runtime::profile::{Region, RegionId};
    use scope_runtime::recording::Parent;

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

        fn calls(&self, lane: LaneId) -> Vec<Call> {
            self.calls[lane.0 as usize].clone()
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
