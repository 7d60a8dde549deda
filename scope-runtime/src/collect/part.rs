//! What a profile of several ranks takes of one of them besides the columns of its calls.

#[cfg(feature = "mpio")]
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::merged::{AsyncRow, Events, LinkRow, PollRow, TaskRow, WaitRow};
use crate::profile::Profile;
use crate::recording::{CallLink, Info};
use crate::totals::PathTree;

use super::rank::{self, CallIds, RegionRun};
use super::{Error, RankRecording, tasks};

/// One rank without the columns of its calls. It does not grow with the calls, but for those that are async
/// or were started elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The recording.
    pub(super) path: PathBuf,
    pub(super) info: Info,
    /// Without its collective calls.
    pub(super) profile: Profile,
    /// The totals with what was started elsewhere below what started it.
    pub(super) linked: Option<PathTree>,
    pub(super) runs: Vec<RegionRun>,
    pub(super) links: Option<Vec<LinkRow>>,
    /// With times that are still on the recording clock.
    pub(super) tasks: Option<Vec<TaskRow>>,
    pub(super) async_calls: Option<Vec<AsyncRow>>,
    pub(super) polls: Option<Vec<PollRow>>,
    /// What is known of waiting in collective calls, of this rank and of others for it; paths count from the
    /// first one of their rank.
    pub(super) waits: Vec<WaitRow>,
}

impl Part {
    /// Of a recording, with the columns of its calls, and nothing yet of its waiting.
    ///
    /// # Errors
    /// When a call refers to a region or a parent that is not there, or the recording changes meanwhile.
    pub(crate) fn of(path: &Path, recording: &impl RankRecording) -> Result<(Part, Events), Error> {
        let (events, runs) = rank::columns(recording).map_err(|failure| Error::of(failure, path))?;
        Ok((Part::new(path, recording, runs), events))
    }

    /// Of a recording, the calls of whose regions are in these runs.
    pub(super) fn new(path: &Path, recording: &impl RankRecording, runs: Vec<RegionRun>) -> Part {
        let (info, profile, found) = (recording.info(), recording.profile(), recording.tasks());
        let (rank, ids) = (info.rank, CallIds::of_lanes(found));
        let link_row = |link: CallLink| LinkRow {
            rank,
            call_id: ids.of(link.call),
            started_by: ids.of(link.started_by),
        };
        let (has_links, has_tasks) = (found.has_links(), !found.tasks().is_empty());
        Part {
            path: path.to_path_buf(),
            info: info.clone(),
            profile: profile.without_collectives(),
            linked: has_links.then(|| recording.linked_paths()).flatten(),
            runs,
            links: has_links.then(|| recording.links().into_iter().map(link_row).collect()),
            tasks: has_tasks.then(|| tasks::task_rows(profile, found)),
            async_calls: has_tasks.then(|| tasks::async_rows(rank, found, &ids)),
            polls: has_tasks.then(|| tasks::poll_rows(rank, found, &ids)),
            waits: Vec::new(),
        }
    }

    /// The calls of each row in the columns.
    #[cfg(feature = "mpio")]
    pub(crate) fn runs(&self) -> impl Iterator<Item = Range<usize>> {
        self.runs.iter().map(|run| run.events.clone())
    }

    /// Says what is known of waiting; see [`LastArrivals::waits_of`](super::LastArrivals::waits_of).
    #[cfg(feature = "mpio")]
    pub(crate) fn set_waits(&mut self, waits: Vec<WaitRow>) {
        self.waits = waits;
    }
}
