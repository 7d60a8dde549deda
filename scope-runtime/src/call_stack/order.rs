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

/// One call while it is put in order.
#[derive(Clone, Copy, Default)]
pub(super) struct Item {
    pub(super) start: i64,
    pub(super) end: i64,
    /// Position in the region's stored calls.
    pub(super) call: u32,
    /// Position in the list of runs.
    pub(super) run: u32,
}

/// Stored calls of one region and lane with non-decreasing starts.
pub(super) struct Run {
    pub(super) region: u32,
    pub(super) lane: u32,
    at: u32,
    end: u32,
}

/// A window is aimed at this many calls: two copies of them fit the second-level cache.
const WINDOW: usize = 4096;
/// One start in so many goes into the sample that the windows are cut by.
const SAMPLE: usize = 64;

/// Gives all calls to `take` in order of start, a slice at a time; of two calls that start
/// together, `first(a, b)` says that `a`, which comes later in the list, still goes first.
pub(super) fn in_order<E>(
    regions: &[RegionCalls<'_>],
    lanes: &Lanes,
    first: impl Fn(&Item, &Item, &[Run]) -> bool,
    mut take: impl FnMut(&[Run], &[Item]) -> Result<(), E>,
) -> Result<(), E> {
    let mut runs = find_runs(regions, lanes);
    let calls: usize = regions.iter().map(RegionCalls::len).sum();
    let mut items = Vec::new();
    if runs.len().saturating_mul(calls / WINDOW) > calls {
        gather_all(regions, &runs, &mut items);
        radix_sort(&mut items);
        settle_ties(&mut items, |a, b| first(a, b, &runs));
        return take(&runs, &items);
    }
    let mut sorter = WindowSorter::default();
    for limit in cut_windows(regions, &runs).into_iter().map(Some).chain([None]) {
        items.clear();
        gather(regions, &mut runs, limit, &mut items);
        sorter.sort(&mut items, |a, b| first(a, b, &runs));
        take(&runs, &items)?;
    }
    Ok(())
}

fn find_runs(regions: &[RegionCalls<'_>], lanes: &Lanes) -> Vec<Run> {
    let mut runs = Vec::new();
    for (number, region) in regions.iter().enumerate() {
        let mut push = |lane: i64, at: usize, end: usize| {
            let lane = lanes.position(lane);
            runs.push(Run { region: number as u32, lane, at: at as u32, end: end as u32 });
        };
        let mut at = 0;
        while at < region.len() {
            let lane = region.lane_number(at);
            let end = end_of_run(region, lane, at);
            push(lane, at, end);
            at = end;
        }
    }
    runs
}

fn end_of_run(region: &RegionCalls<'_>, lane: i64, from: usize) -> usize {
    let starts = &region.starts[from..];
    let falls = |pair: &[i64]| pair[1] < pair[0];
    match region.thread_ids {
        None => starts.windows(2).position(falls),
        Some(_) => starts
            .windows(2)
            .enumerate()
            .position(|(at, pair)| falls(pair) || region.lane_number(from + at + 1) != lane),
    }
    .map_or(region.len(), |at| from + at + 1)
}

/// Starts at which one window ends and the next begins, ascending.
fn cut_windows(regions: &[RegionCalls<'_>], runs: &[Run]) -> Vec<i64> {
    let starts = |run: &Run| &regions[run.region as usize].starts[run.at as usize..run.end as usize];
    let mut sample: Vec<i64> =
        runs.iter().flat_map(|run| starts(run).iter().skip(SAMPLE / 2).step_by(SAMPLE)).copied().collect();
    sample.sort_unstable();
    let per_window = WINDOW / SAMPLE;
    let mut cuts: Vec<i64> = sample.into_iter().skip(per_window).step_by(per_window).collect();
    cuts.dedup();
    cuts
}

/// Moves every run forward to `limit` and collects what it passes.
fn gather(regions: &[RegionCalls<'_>], runs: &mut [Run], limit: Option<i64>, items: &mut Vec<Item>) {
    for (number, run) in runs.iter_mut().enumerate() {
        let region = &regions[run.region as usize];
        let (at, end) = (run.at as usize, run.end as usize);
        let starts = &region.starts[at..end];
        let passed = limit.map_or(starts.len(), |limit| count_below(starts, limit));
        let ends = &region.ends[at..at + passed];
        items.extend(starts.iter().zip(ends).zip(run.at..).map(|((&start, &end), call)| Item {
            start,
            end,
            call,
            run: number as u32,
        }));
        run.at += passed as u32;
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

fn gather_all(regions: &[RegionCalls<'_>], runs: &[Run], items: &mut Vec<Item>) {
    items.reserve_exact(regions.iter().map(RegionCalls::len).sum());
    for (number, run) in runs.iter().enumerate() {
        let region = &regions[run.region as usize];
        for call in run.at..run.end {
            let (start, end) = (region.starts[call as usize], region.ends[call as usize]);
            items.push(Item { start, end, call, run: number as u32 });
        }
    }
}

/// Stable sort by start; passes over digits that all starts share are left out.
fn radix_sort(items: &mut Vec<Item>) {
    const BITS: u32 = 11;
    let Some((min, max)) = start_range(items) else { return };
    let span = max.wrapping_sub(min).cast_unsigned();
    let mut other = vec![Item::default(); items.len()];
    for shift in (0..u64::BITS - span.leading_zeros()).step_by(BITS as usize) {
        let digit = |item: &Item| {
            (item.start.wrapping_sub(min).cast_unsigned() >> shift) as usize & ((1 << BITS) - 1)
        };
        scatter(items, &mut other, &mut vec![0; 1 << BITS], digit);
        std::mem::swap(items, &mut other);
    }
}

fn start_range(items: &[Item]) -> Option<(i64, i64)> {
    let first = items.first()?.start;
    let widen = |(min, max): (i64, i64), item: &Item| (min.min(item.start), max.max(item.start));
    Some(items.iter().fold((first, first), widen))
}

/// Copies `from` to `to` ordered by `digit`, stable. `counts` must be 0 and longer than any digit;
/// afterwards it holds where each digit ends.
fn scatter(from: &[Item], to: &mut [Item], counts: &mut [u32], digit: impl Fn(&Item) -> usize) {
    for item in from {
        counts[digit(item)] += 1;
    }
    let mut before = 0;
    for count in counts.iter_mut() {
        before += std::mem::replace(count, before);
    }
    for item in from {
        let place = &mut counts[digit(item)];
        to[*place as usize] = *item;
        *place += 1;
    }
}

/// Puts calls that start together in order; the rest is in order already.
fn settle_ties(items: &mut [Item], first: impl Fn(&Item, &Item) -> bool) {
    for same in items.chunk_by_mut(|a, b| a.start == b.start) {
        sort_few(same, &first);
    }
}

/// Sorts windows, keeping its memory from one to the next.
#[derive(Default)]
struct WindowSorter {
    sorted: Vec<Item>,
    counts: Vec<u32>,
}

impl WindowSorter {
    /// Distributes the calls over about as many slots of time as there are calls, then sorts the
    /// few calls of each slot.
    fn sort(&mut self, items: &mut Vec<Item>, first: impl Fn(&Item, &Item) -> bool) {
        let Some((min, max)) = start_range(items) else { return };
        let slots = items.len().next_power_of_two();
        let span_bits = u64::BITS - max.wrapping_sub(min).cast_unsigned().leading_zeros();
        let shift = span_bits.saturating_sub(slots.trailing_zeros());
        self.sorted.resize(items.len(), Item::default());
        self.counts.clear();
        self.counts.resize(slots, 0);
        let slot = |item: &Item| (item.start.wrapping_sub(min).cast_unsigned() >> shift) as usize;
        scatter(items, &mut self.sorted, &mut self.counts, slot);
        let mut from = 0;
        for &to in &self.counts {
            let to = to as usize;
            if to - from > 1 {
                sort_few(&mut self.sorted[from..to], &first);
            }
            from = to;
        }
        std::mem::swap(items, &mut self.sorted);
    }
}

/// Stable sort by start and `first`: by insertion when there are few, as there nearly always are.
fn sort_few(items: &mut [Item], first: &impl Fn(&Item, &Item) -> bool) {
    let goes_first = |a: &Item, b: &Item| a.start < b.start || (a.start == b.start && first(a, b));
    if items.len() > 24 {
        return items.sort_by(|a, b| match (goes_first(a, b), goes_first(b, a)) {
            (true, _) => std::cmp::Ordering::Less,
            (_, true) => std::cmp::Ordering::Greater,
            _ => std::cmp::Ordering::Equal,
        });
    }
    for at in 1..items.len() {
        let item = items[at];
        let mut to = at;
        while to > 0 && goes_first(&item, &items[to - 1]) {
            items[to] = items[to - 1];
            to -= 1;
        }
        items[to] = item;
    }
}
