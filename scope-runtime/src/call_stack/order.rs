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
//! each. What is sorted, in the cache, is a key per call; the calls are taken from where they are
//! stored. Windows are cut at quantiles of a sample, so that bursts and pauses make little difference.
//! Input in very many runs is first taken apart by windows.

use std::ops::{Range, RangeInclusive};

use super::input::RegionCalls;
use super::lanes::Lanes;
use super::partition::Partition;
use super::sort::{Calls, Sorted, Sorter, bits};
use crate::cache::prefetch;

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
#[derive(Clone)]
struct Run {
    region: u32,
    lane: u32,
    at: usize,
    end: usize,
}

/// A window is aimed at this many calls at least: they stay in a second-level cache, their keys
/// nearly in the first. With many runs it takes more, so that a visit to a run pays.
pub(super) const WINDOW: usize = 2048;
/// So many calls still fit a second-level cache.
const LARGEST_WINDOW: usize = 8192;
const CALLS_PER_VISIT: usize = 12;
/// So many calls are looked at together for the end of a run.
const BLOCK: usize = 64;
/// One start in about so many goes into the sample that windows are cut by.
const SAMPLE: usize = 128;
/// With more runs than this, windows that are worth a visit to each of them are too large.
const MOST_RUNS: usize = 2048;

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

    /// Gives all calls to `taker` in order of start, some at a time; calls that start together go in
    /// order of `tie`, those with the same tie in list order.
    pub(super) fn in_order<T: Take>(
        &self,
        tie: impl Fn(&Item) -> u64,
        taker: &mut T,
    ) -> Result<(), T::Error> {
        let mut sorter = Sorter::default();
        let Some(mut runs) = self.runs.clone() else {
            for calls in Partition::of(self.regions, &self.lanes).windows() {
                taker.take(sorter.sort_window(calls, calls.starts(), &tie))?;
            }
            return Ok(());
        };
        let window = calls_of_window(runs.len());
        let calls: usize = runs.iter().map(|run| run.end - run.at).sum();
        let position_bits = VISIT_BITS + bits((runs.len() + (calls >> VISIT_BITS)) as u64);
        let mut visits = Vec::new();
        for starts in cut_windows(self.regions, &runs) {
            visits.clear();
            sorter.begin(&starts, position_bits, window);
            visit(self.regions, &mut runs, &mut sorter, &mut visits);
            taker.take(sorter.sort(Visits { visits: &visits, regions: self.regions }, &tie))?;
        }
        Ok(())
    }
}

/// What is done with calls that were put in order.
pub(super) trait Take {
    type Error;

    fn take<C: Calls<Call = Item>>(&mut self, calls: Sorted<'_, C>) -> Result<(), Self::Error>;
}

/// So many bits of a position count the calls of a visit.
const VISIT_BITS: u32 = 8;

/// Consecutive calls of a run.
#[derive(Clone, Copy)]
struct Visit<'a> {
    ends: &'a [i64],
    /// The first of them.
    call: u32,
    region: u32,
    lane: u32,
}

/// The calls of a window, where they are stored: positions are the visit and the call in it.
#[derive(Clone, Copy)]
struct Visits<'a> {
    visits: &'a [Visit<'a>],
    regions: &'a [RegionCalls<'a>],
}

impl Calls for Visits<'_> {
    type Call = Item;

    #[inline(always)]
    fn at(self, position: u64, start: Option<i64>) -> Item {
        let visit = &self.visits[(position >> VISIT_BITS) as usize];
        let at = position as usize & ((1 << VISIT_BITS) - 1);
        let call = visit.call + at as u32;
        Item {
            start: start.unwrap_or_else(|| self.regions[visit.region as usize].starts[call as usize]),
            end: visit.ends[at],
            call,
            region: visit.region,
            lane: visit.lane,
        }
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
    let lane = region.lane_number(from);
    let mut end = from + 1;
    // Some calls at a time, and not a look at each where all go on.
    while end + BLOCK <= region.len() && goes_on(region, end - 1..end + BLOCK) {
        end += BLOCK;
    }
    let follows = |at: &usize| region.starts[at - 1] <= region.starts[*at] && region.lane_number(*at) == lane;
    end + (end..region.len()).take_while(follows).count()
}

/// Whether starts rise, and threads and tasks are those of the first.
fn goes_on(region: &RegionCalls<'_>, calls: Range<usize>) -> bool {
    let one_value = |column: Option<&[i64]>| {
        column.is_none_or(|column| {
            let values = &column[calls.clone()];
            values.iter().fold(0, |differ, value| differ | value ^ values[0]) == 0
        })
    };
    region.starts[calls.clone()].is_sorted()
        && one_value(region.thread_ids)
        && (region.thread_ids.is_none() || one_value(region.task_ids))
}

/// At how many calls a window is aimed where there are `runs` runs.
pub(super) fn calls_of_window(runs: usize) -> usize {
    (runs * CALLS_PER_VISIT).clamp(WINDOW, LARGEST_WINDOW)
}

/// The starts of all calls in windows that follow each other.
fn cut_windows(regions: &[RegionCalls<'_>], runs: &[Run]) -> Vec<RangeInclusive<i64>> {
    let starts = |run: &Run| &regions[run.region as usize].starts[run.at..run.end];
    let first = runs.iter().filter_map(|run| starts(run).first()).min();
    let last = runs.iter().filter_map(|run| starts(run).last()).max();
    let (Some(&first), Some(&last)) = (first, last) else { return Vec::new() };
    let mut firsts = vec![first];
    firsts.extend(quantiles(runs.iter().map(starts), calls_of_window(runs.len())));
    firsts.dedup();
    let lasts = firsts[1..].iter().map(|next| next - 1).chain([last]);
    firsts.iter().zip(lasts).map(|(first, last)| *first..=last).collect()
}

/// Starts with about `calls` calls from one to the next.
pub(super) fn quantiles<'a>(all: impl Iterator<Item = &'a [i64]>, calls: usize) -> Vec<i64> {
    let (mut sample, mut random) = (Vec::new(), 0_u32);
    let mut next = SAMPLE / 2;
    for starts in all {
        while let Some(start) = starts.get(next) {
            sample.push(*start);
            // Not in step with a period of the input.
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            next += SAMPLE / 2 + (random >> 16) as usize % SAMPLE;
        }
        next -= starts.len();
    }
    sample.sort_unstable();
    let step = calls / SAMPLE;
    sample.into_iter().skip(step).step_by(step).collect()
}

/// Moves every run through the window that the sorter is at.
fn visit<'a>(
    regions: &[RegionCalls<'a>],
    runs: &mut [Run],
    sorter: &mut Sorter,
    visits: &mut Vec<Visit<'a>>,
) {
    for run in runs {
        let (region, lane, from) = (run.region, run.lane, run.at);
        let RegionCalls { starts, ends, .. } = regions[region as usize];
        loop {
            let part = run.at..run.end.min(run.at + (1 << VISIT_BITS));
            let starts = &starts[part.clone()];
            let passed = sorter.add(starts.iter().copied(), (visits.len() as u64) << VISIT_BITS);
            if passed > 0 {
                visits.push(Visit { ends: &ends[part], call: run.at as u32, region, lane });
                run.at += passed;
            }
            if passed < 1 << VISIT_BITS {
                break;
            }
        }
        // The processor sees no pattern in visits as short as these.
        let passed = run.at - from;
        let next = run.at..run.end.min(run.at + passed + passed / 2);
        prefetch(&starts[next.clone()]);
        prefetch(&ends[next]);
    }
}

/// A time as a number without sign that sorts alike.
#[inline]
pub(super) fn ordered(time: i64) -> u64 {
    time.cast_unsigned() ^ 1 << 63
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Region, position, lane, start and end of each call.
    #[derive(Default)]
    struct Taken(Vec<(u32, u32, u32, i64, i64)>);

    impl Take for Taken {
        type Error = ();

        fn take<C: Calls<Call = Item>>(&mut self, calls: Sorted<'_, C>) -> Result<(), ()> {
            self.0.extend(calls.iter().map(|item| (item.region, item.call, item.lane, item.start, item.end)));
            Ok(())
        }
    }

    fn check(starts: &[Vec<i64>], run: usize) {
        let columns: Vec<[Vec<i64>; 3]> = starts
            .iter()
            .map(|starts| {
                let ends = starts.iter().enumerate().map(|(at, start)| start ^ (at as i64 * 7919 % 13));
                let lanes = |at: usize| [at / run / 2 % 3, at / run % 4 / 3].map(|lane| lane as i64);
                let ids = |of: usize| (0..starts.len()).map(move |at| lanes(at)[of] - of as i64).collect();
                [ends.collect(), ids(0), ids(1)]
            })
            .collect();
        let regions: Vec<RegionCalls<'_>> = starts
            .iter()
            .zip(&columns)
            .map(|(starts, [ends, threads, tasks])| RegionCalls {
                thread_ids: Some(threads),
                task_ids: Some(tasks),
                ..RegionCalls::new("a", starts, ends)
            })
            .collect();
        let order = Order::of(&regions);
        let lane_of = |region: &RegionCalls<'_>, at| order.lanes.position(region.lane_number(at));
        let mut expected: Vec<_> = (0_u32..)
            .zip(&regions)
            .flat_map(|(number, region)| (0..region.len()).map(move |at| (number, region, at)))
            .map(|(number, region, at)| {
                (number, at as u32, lane_of(region, at), region.starts[at], region.ends[at])
            })
            .collect();
        expected.sort_by_key(|&(region, call, _, start, end)| (start, !ordered(end), region, call));
        let mut taken = Taken::default();
        order.in_order(|item| !ordered(item.end), &mut taken).unwrap();
        assert!(taken.0 == expected, "{} calls in {} regions", expected.len(), starts.len());
    }

    #[test]
    fn calls_come_in_order_of_start_then_end_then_list() {
        let spread = |calls: i64, step: i64| (0..calls).map(|at| at * step + at * at % 97).collect();
        let shuffled = |calls: i64| (0..calls).map(|at| at * 7919 % 10_007).collect();
        check(&[], 1);
        check(&[vec![], vec![i64::MIN, -1, i64::MAX], vec![i64::MAX; 3]], 100);
        // Ascending in long and in short runs, all at once, with pauses, and in no order.
        check(&[spread(20_000, 3), spread(300, 1000), spread(5000, 1)], 1000);
        check(&[spread(4000, 2), spread(4000, 2)], 5);
        check(&[vec![5; 3000], vec![5; 700], spread(9000, 1)], 2000);
        check(&[spread(3000, 1 << 40), spread(3000, 1)], 500);
        check(&[shuffled(9000), spread(9000, 1)], 1);
        check(&[shuffled(9000), vec![i64::MAX, i64::MIN, 0]], 1);
        check(&[(0..3000).rev().chain([i64::MIN, i64::MAX]).collect()], 1);
        check(&[vec![3; 3000], (0..4000).map(|at| at * 7919 % 7).collect()], 1);
    }
}
