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
use crate::room::room;

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

/// A window is aimed at this many calls at least: two copies of them fit a first-level cache or
/// nearly. With many runs it takes more, so that a visit to a run pays.
const WINDOW: usize = 2048;
/// Two copies of so many calls still fit a second-level cache.
const LARGEST_WINDOW: usize = 8192;
const CALLS_PER_VISIT: usize = 16;
/// One start in so many goes into the sample that the windows are cut by.
const SAMPLE: usize = 64;
/// Slots of a window with more calls than this are not sorted by insertion.
const FEW: u32 = 24;

/// Gives all calls to `take` in order of start, a slice at a time; calls that start together go in
/// order of `tie`, those with the same tie in list order.
pub(super) fn in_order<E>(
    regions: &[RegionCalls<'_>],
    lanes: &Lanes,
    tie: impl Fn(&Item, &[Run]) -> u64,
    mut take: impl FnMut(&[Run], &[Item]) -> Result<(), E>,
) -> Result<(), E> {
    let mut runs = find_runs(regions, lanes);
    let calls: usize = regions.iter().map(RegionCalls::len).sum();
    if runs.len().saturating_mul(calls / WINDOW) > calls {
        let (items, _) = sort_all(regions, &runs, tie);
        return take(&runs, &items);
    }
    let mut items = Vec::new();
    let mut sorter = WindowSorter::default();
    for limit in cut_windows(regions, &runs).into_iter().map(Some).chain([None]) {
        items.clear();
        gather(regions, &mut runs, limit, &mut items);
        sorter.sort(&mut items, |item| tie(item, &runs));
        take(&runs, &items)?;
    }
    Ok(())
}

/// All calls at once in the order of [`in_order`], and memory for as many more.
pub(super) fn all_in_order(
    regions: &[RegionCalls<'_>],
    lanes: &Lanes,
    tie: impl Fn(&Item, &[Run]) -> u64,
) -> (Vec<Run>, Vec<Item>, Vec<Item>) {
    let runs = find_runs(regions, lanes);
    let (items, other) = sort_all(regions, &runs, tie);
    (runs, items, other)
}

fn sort_all(
    regions: &[RegionCalls<'_>],
    runs: &[Run],
    tie: impl Fn(&Item, &[Run]) -> u64,
) -> (Vec<Item>, Vec<Item>) {
    let mut items = room(regions.iter().map(RegionCalls::len).sum());
    gather_all(regions, runs, &mut items);
    let mut other = room(items.len());
    other.resize(items.len(), Item::default());
    radix_sort(&mut items, &mut other, |item| tie(item, runs));
    radix_sort(&mut items, &mut other, |item| ordered(item.start));
    (items, other)
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
    let window = (runs.len() * CALLS_PER_VISIT).clamp(WINDOW, LARGEST_WINDOW);
    let per_window = window / SAMPLE;
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
        let (first, number) = (run.at, number as u32);
        let item = |(after, (&start, &end)): (usize, (&i64, &i64))| {
            let call = first + after as u32;
            Item { start, end, call, run: number }
        };
        items.extend(starts[..passed].iter().zip(ends).enumerate().map(item));
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
    for (number, run) in runs.iter().enumerate() {
        let region = &regions[run.region as usize];
        for call in run.at..run.end {
            let (start, end) = (region.starts[call as usize], region.ends[call as usize]);
            items.push(Item { start, end, call, run: number as u32 });
        }
    }
}

/// A time as a number without sign that sorts alike.
#[inline]
pub(super) fn ordered(time: i64) -> u64 {
    time.cast_unsigned() ^ 1 << 63
}

/// Stable sort by a key; digits that all keys share cost nothing.
fn radix_sort(items: &mut Vec<Item>, other: &mut Vec<Item>, key: impl Fn(&Item) -> u64) {
    const BITS: u32 = 11;
    let Some((min, max)) = key_range(items, &key) else { return };
    for shift in (0..u64::BITS - (max - min).leading_zeros()).step_by(BITS as usize) {
        let digit = |item: &Item| ((key(item) - min) >> shift) as usize & ((1 << BITS) - 1);
        let mut places = vec![0_u32; 1 << BITS];
        items.iter().for_each(|item| places[digit(item)] += 1);
        let mut before = 0;
        places.iter_mut().for_each(|place| before += std::mem::replace(place, before));
        for item in items.iter() {
            let place = &mut places[digit(item)];
            other[*place as usize] = *item;
            *place += 1;
        }
        std::mem::swap(items, other);
    }
}

fn key_range(items: &[Item], key: impl Fn(&Item) -> u64) -> Option<(u64, u64)> {
    let first = key(items.first()?);
    let widen = |(min, max): (u64, u64), item: &Item| (min.min(key(item)), max.max(key(item)));
    Some(items.iter().fold((first, first), widen))
}

/// Sorts windows, keeping its memory from one to the next.
#[derive(Default)]
struct WindowSorter {
    sorted: Vec<Item>,
    places: Vec<u32>,
}

impl WindowSorter {
    /// Distributes the calls over two to four times as many slots of time. Most slots then have one
    /// call or none, and what is left to do is to look at each pair of neighbours once.
    fn sort(&mut self, items: &mut Vec<Item>, tie: impl Fn(&Item) -> u64) {
        let Some((min, max)) = key_range(items, |item| ordered(item.start)) else { return };
        let slots = 2 * items.len().next_power_of_two();
        let span_bits = u64::BITS - (max - min).leading_zeros();
        let shift = span_bits.saturating_sub(slots.trailing_zeros());
        let slot = |item: &Item| ((ordered(item.start) - min) >> shift) as usize;
        self.places.clear();
        self.places.resize(slots, 0);
        items.iter().for_each(|item| self.places[slot(item)] += 1);
        let (mut before, mut most) = (0, 0);
        for place in &mut self.places {
            most = most.max(*place);
            before += std::mem::replace(place, before);
        }
        if most > FEW {
            return items.sort_by_key(|item| (item.start, tie(item)));
        }
        self.sorted.resize(items.len(), Item::default());
        for item in items.iter() {
            let place = &mut self.places[slot(item)];
            self.sorted[*place as usize] = *item;
            *place += 1;
        }
        insert_in_order(&mut self.sorted, tie);
        std::mem::swap(items, &mut self.sorted);
    }
}

/// Stable insertion sort: no call is more than [`FEW`] places off.
fn insert_in_order(items: &mut [Item], tie: impl Fn(&Item) -> u64) {
    let goes_first = |a: &Item, b: &Item| a.start < b.start || (a.start == b.start && tie(a) < tie(b));
    for at in 1..items.len() {
        if !goes_first(&items[at], &items[at - 1]) {
            continue;
        }
        let item = items[at];
        let mut to = at;
        while to > 0 && goes_first(&item, &items[to - 1]) {
            items[to] = items[to - 1];
            to -= 1;
        }
        items[to] = item;
    }
}
