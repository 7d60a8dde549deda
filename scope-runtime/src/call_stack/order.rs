//! Puts the calls of all regions in order of start without sorting what is sorted already.
//!
//! ```text
//! region a   |--run--------------|--run (next lane) -----|
//! region b   |--run-----|--run-----------|
//!                time ->   | window | window | ...
//! ```
//!
//! Calls of one region and lane are stored in order of start, give or take. Each such run is read
//! from front to back; all runs advance together through windows of time with a few thousand calls
//! each, which are sorted in the cache. Windows are cut at quantiles of a sample, so that bursts
//! and pauses make no difference. Input with very many runs is sorted as a whole, by radix.

use super::input::RegionCalls;
use super::lanes::Lanes;
use super::sort::{Sorted, Sorter};
use crate::cache::prefetch;
use crate::room::room;

/// One call while it is put in order.
#[derive(Clone, Copy, Default)]
pub(super) struct Item {
    pub(super) start: i64,
    pub(super) end: i64,
    /// Position in the region's stored calls.
    pub(super) call: u32,
    /// Position in the list of regions.
    pub(super) region: u32,
    /// Position of the lane among all lanes.
    pub(super) lane: u32,
}

/// Stored calls of one region and lane with non-decreasing starts.
struct Run {
    region: u32,
    lane: u32,
    at: usize,
    end: usize,
}

/// A window is aimed at this many calls at least: they stay in a second-level cache, their keys
/// nearly in the first. With many runs it takes more, so that a visit to a run pays.
const WINDOW: usize = 2048;
/// So many calls still fit a second-level cache.
const LARGEST_WINDOW: usize = 8192;
const CALLS_PER_VISIT: usize = 16;
/// One start in so many goes into the sample that the windows are cut by.
const SAMPLE: usize = 64;
/// With more runs than this, windows that are worth a visit to each of them are too large.
const MOST_RUNS: usize = 2048;
/// Calls that are sorted as a whole are given on in portions of this size.
const PORTION: usize = 128;

/// The calls of a rank, about to be put in order.
pub(super) struct Order<'a> {
    regions: &'a [RegionCalls<'a>],
    lanes: Lanes,
    /// `None` when there are too many.
    runs: Option<Vec<Run>>,
}

impl<'a> Order<'a> {
    pub(super) fn of(regions: &'a [RegionCalls<'a>]) -> Order<'a> {
        match find_runs(regions) {
            Some((lanes, runs)) => Order { regions, lanes, runs: Some(runs) },
            None => Order { regions, lanes: Lanes::find(regions), runs: None },
        }
    }

    /// The lanes that [`Item::lane`] counts.
    pub(super) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Gives all calls to `take` in order of start, some at a time; calls that start together go in
    /// order of `tie`, those with the same tie in list order.
    pub(super) fn in_order<E>(
        self,
        tie: impl Fn(&Item) -> u64,
        mut take: impl FnMut(Sorted<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut sorter = Sorter::default();
        let Some(mut runs) = self.runs else {
            let items = gather_all(self.regions, &self.lanes);
            return sorter.sort_all(&items, tie).portions(PORTION).try_for_each(take);
        };
        let mut items = Vec::new();
        for limit in cut_windows(self.regions, &runs).into_iter().map(Some).chain([None]) {
            items.clear();
            gather(self.regions, &mut runs, limit, &mut items);
            take(sorter.sort_window(&items, &tie))?;
        }
        Ok(())
    }
}

/// All runs and their lanes; `None` for more than [`MOST_RUNS`].
fn find_runs(regions: &[RegionCalls<'_>]) -> Option<(Lanes, Vec<Run>)> {
    let (mut runs, mut numbers) = (Vec::new(), Vec::new());
    for (region, calls) in (0..).zip(regions) {
        let mut at = 0;
        while at < calls.len() {
            let end = end_of_run(calls, at);
            runs.push(Run { region, lane: 0, at, end });
            numbers.push(calls.lane_number(at));
            if runs.len() > MOST_RUNS {
                return None;
            }
            at = end;
        }
    }
    let threads = regions.iter().any(|region| region.thread_ids.is_some());
    let lanes = if threads { Lanes::among(|| numbers.iter().copied()) } else { Lanes::one() };
    runs.iter_mut().zip(&numbers).for_each(|(run, number)| run.lane = lanes.position(*number));
    Some((lanes, runs))
}

fn end_of_run(region: &RegionCalls<'_>, from: usize) -> usize {
    let rises = |at: usize| region.starts[at - 1] <= region.starts[at];
    let end = match region.thread_ids {
        None => (from + 1..region.len()).find(|&at| !rises(at)),
        Some(_) => {
            let lane = region.lane_number(from);
            (from + 1..region.len()).find(|&at| !rises(at) || region.lane_number(at) != lane)
        }
    };
    end.unwrap_or(region.len())
}

/// At how many calls a window is aimed where there are `runs` runs.
pub(super) fn calls_of_window(runs: usize) -> usize {
    (runs * CALLS_PER_VISIT).clamp(WINDOW, LARGEST_WINDOW)
}

/// Starts at which one window ends and the next begins, ascending.
fn cut_windows(regions: &[RegionCalls<'_>], runs: &[Run]) -> Vec<i64> {
    let starts = |run: &Run| &regions[run.region as usize].starts[run.at..run.end];
    let mut sample: Vec<i64> =
        runs.iter().flat_map(|run| starts(run).iter().skip(SAMPLE / 2).step_by(SAMPLE)).copied().collect();
    sample.sort_unstable();
    let window = calls_of_window(runs.len());
    let per_window = window / SAMPLE;
    let mut cuts: Vec<i64> = sample.into_iter().skip(per_window).step_by(per_window).collect();
    cuts.dedup();
    cuts
}

/// Moves every run forward to `limit` and collects what it passes.
fn gather(regions: &[RegionCalls<'_>], runs: &mut [Run], limit: Option<i64>, items: &mut Vec<Item>) {
    for run in runs {
        let (region, lane) = (run.region, run.lane);
        let RegionCalls { starts, ends, .. } = regions[region as usize];
        let passed = limit.map_or(run.end - run.at, |limit| count_below(&starts[run.at..run.end], limit));
        let part = run.at..run.at + passed;
        let calls = run.at as u32..;
        let times = starts[part.clone()].iter().zip(&ends[part]);
        items.extend(times.zip(calls).map(|((&start, &end), call)| Item { start, end, call, region, lane }));
        run.at += passed;
        // The processor sees no pattern in visits as short as these.
        let next = run.at..run.end.min(run.at + passed + passed / 2);
        prefetch(&starts[next.clone()]);
        prefetch(&ends[next]);
    }
}

/// How many values of an ascending slice lie below `limit`; near the front, most likely.
fn count_below(values: &[i64], limit: i64) -> usize {
    let mut step = 1;
    while step < values.len() && values[step - 1] < limit {
        step *= 2;
    }
    let from = step / 2;
    let to = step.min(values.len());
    from + values[from..to].partition_point(|value| *value < limit)
}

fn gather_all(regions: &[RegionCalls<'_>], lanes: &Lanes) -> Vec<Item> {
    let mut items = room(regions.iter().map(RegionCalls::len).sum());
    for (region, calls) in (0..).zip(regions) {
        let times = calls.starts.iter().zip(calls.ends).enumerate();
        items.extend(times.map(|(call, (&start, &end))| {
            let lane = lanes.position(calls.lane_number(call));
            Item { start, end, call: call as u32, region, lane }
        }));
    }
    items
}

/// A time as a number without sign that sorts alike.
#[inline]
pub(super) fn ordered(time: i64) -> u64 {
    time.cast_unsigned() ^ 1 << 63
}
