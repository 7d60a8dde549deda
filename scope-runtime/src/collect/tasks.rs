//! Async tasks, calls and polls of one rank, as rows of the file.

use crate::profile::{Profile, RegionId};
use crate::recording::{Run, RunId, Tasks};

use super::UNKNOWN;
use super::rank::CallIds;
use crate::merged::{AsyncRow, PollRow, TaskRow};

/// Kind of all our tasks.
const TASK: &str = "task";

/// The tasks of a rank, in order of their begin; times are still on the recording clock.
pub(super) fn task_rows(profile: &Profile, tasks: &Tasks) -> Vec<TaskRow> {
    let rows = tasks.tasks().iter().zip(0i64..);
    rows.map(|(task, index)| {
        let RegionId(region) = task.region;
        let name = profile.regions.get(region as usize).map(|region| region.name.clone()).unwrap_or_default();
        TaskRow {
            rank: profile.rank,
            index,
            thread_index: task.last_lane.into(),
            created_ns: task.start_ns,
            done_ns: if task.open { UNKNOWN } else { task.end_ns },
            steps: i64::try_from(task.polls).unwrap_or(i64::MAX),
            running_ns: task.busy_ns,
            suspended_ns: task.wall_ns.wrapping_sub(task.busy_ns),
            kind: TASK.into(),
            name: match task.executor_id {
                Some(number) => format!("task {number}"),
                None => format!("{name} {index}"),
            },
            coro_name: name,
        }
    })
    .collect()
}

/// Makes the times of a task relative to the start of the run.
pub(super) fn begin_at(task: &mut TaskRow, origin_ns: i64) {
    task.created_ns = task.created_ns.wrapping_sub(origin_ns);
    if task.done_ns != UNKNOWN {
        task.done_ns = task.done_ns.wrapping_sub(origin_ns);
    }
}

/// The calls of a rank that ran in parts.
pub(super) fn async_rows(rank: u32, tasks: &Tasks, ids: &CallIds) -> Vec<AsyncRow> {
    let row = |run: &Run| AsyncRow {
        rank,
        call_id: ids.of(run.call),
        polls: run.polls,
        cancelled: run.cancelled.into(),
        open: run.open.into(),
    };
    tasks.runs().iter().map(row).collect()
}

/// The polls of a rank.
pub(super) fn poll_rows(rank: u32, tasks: &Tasks, ids: &CallIds) -> Vec<PollRow> {
    let rows = tasks.polls().iter().filter_map(|poll| {
        let RunId(run) = poll.run;
        Some(PollRow {
            rank,
            call_id: ids.of(tasks.runs().get(run as usize)?.call),
            thread: poll.lane.into(),
            start_ns: poll.start_ns,
            duration_ns: poll.end_ns.wrapping_sub(poll.start_ns),
        })
    });
    rows.collect()
}
