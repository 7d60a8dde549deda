//! Sorts calls by their start, as keys of 8 bytes instead of the calls themselves.
//!
//! ```text
//! key   | start since the first | tie, where there is room | position |
//!       63                                                           0
//! ```

use std::ops::RangeInclusive;

use super::order::Item;

/// Slots with more keys than this are not sorted by insertion.
const FEW: u32 = 8;
/// So many pairs of keys are looked at to decide how all of them are sorted.
const PAIRS: usize = 256;
/// Where 2 to the power of so many calls start on each tick, they are a crowd.
const CROWD_BITS: u32 = 3;
/// Bits of a key that a crowd is sorted by in one pass over it.
const DIGIT_BITS: u32 = 8;

/// Calls that are looked up by what is in a key.
pub(super) trait Calls: Copy {
    type Call: Starting;

    /// The call at `position`; `start` is its start, where that is known.
    fn at(self, position: u64, start: Option<i64>) -> Self::Call;
}

/// What has a start to be sorted by.
pub(super) trait Starting: Copy {
    fn start(&self) -> i64;
}

impl Starting for Item {
    fn start(&self) -> i64 {
        self.start
    }
}

/// Calls in their order.
#[derive(Clone, Copy)]
pub(super) struct Sorted<'a, C> {
    calls: C,
    keys: &'a [u64],
    /// `None` when keys are positions alone.
    layout: Option<Layout>,
}

impl<'a, C: Calls> Sorted<'a, C> {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The call at a place in the order.
    pub(super) fn get(self, at: usize) -> C::Call {
        call_of(self.keys[at], self.layout, self.calls)
    }

    /// Gives `take` each call and its place. Without iterators in between all of it becomes one loop.
    #[inline(always)]
    pub(super) fn for_each(self, mut take: impl FnMut(usize, C::Call)) {
        for (at, key) in self.keys.iter().enumerate() {
            take(at, call_of(*key, self.layout, self.calls));
        }
    }

    #[inline]
    pub(super) fn iter(self) -> impl ExactSizeIterator<Item = C::Call> + use<'a, C> {
        self.keys.iter().map(move |key| call_of(*key, self.layout, self.calls))
    }
}

/// How start, tie and position share a key.
#[derive(Clone, Copy)]
struct Layout {
    first_start: i64,
    start_bits: u32,
    first_tie: u64,
    /// 0 when ties are left for later.
    tie_bits: u32,
    position_bits: u32,
}

impl Layout {
    /// Starts and positions; `None` when the starts are too far apart to share 64 bits with positions.
    fn of_starts(starts: &RangeInclusive<i64>, position_bits: u32) -> Option<Layout> {
        let first_start = *starts.start();
        let start_bits = bits(starts.end().wrapping_sub(first_start).cast_unsigned());
        let layout = Layout { first_start, start_bits, first_tie: 0, tie_bits: 0, position_bits };
        (start_bits + position_bits < u64::BITS).then_some(layout)
    }

    /// The same with ties; `None` when they do not fit in.
    fn with_ties(self, ties: impl Iterator<Item = u64>) -> Option<Layout> {
        let ties = range(ties)?;
        let tie_bits = bits(ties.end() - ties.start());
        let fits = self.start_bits + tie_bits + self.position_bits < u64::BITS;
        fits.then_some(Layout { first_tie: *ties.start(), tie_bits, ..self })
    }

    /// A key where ties are left for later.
    #[inline]
    fn key(self, start: i64, position: u64) -> u64 {
        start.wrapping_sub(self.first_start).cast_unsigned() << self.position_bits | position
    }

    /// A key where ties have room.
    #[inline]
    fn key_with_tie(self, start: i64, tie: u64, position: u64) -> u64 {
        let start = start.wrapping_sub(self.first_start).cast_unsigned();
        (start << self.tie_bits | (tie - self.first_tie)) << self.position_bits | position
    }

    /// The bits of a key that are the position.
    #[inline]
    fn position(self) -> u64 {
        (1 << self.position_bits) - 1
    }

    #[inline]
    fn start(self, key: u64) -> i64 {
        self.first_start.wrapping_add((key >> (self.position_bits + self.tie_bits)).cast_signed())
    }
}

/// The call that a key stands for.
#[inline(always)]
fn call_of<C: Calls>(key: u64, layout: Option<Layout>, calls: C) -> C::Call {
    match layout {
        Some(layout) => calls.at(key & layout.position(), Some(layout.start(key))),
        None => calls.at(key, None),
    }
}

/// From the least to the largest.
pub(super) fn range<T: Copy + Ord>(mut values: impl Iterator<Item = T>) -> Option<RangeInclusive<T>> {
    let first = values.next()?;
    let (min, max) = values.fold((first, first), |(min, max), value| (min.min(value), max.max(value)));
    Some(min..=max)
}

/// Makes of each count the sum of those before it: where the first of them goes.
pub(super) fn counts_before(counts: &mut [u32]) {
    let mut before = 0;
    for count in counts {
        before += std::mem::replace(count, before);
    }
}

/// Number of bits of a number.
pub(super) fn bits(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Sorts calls, keeping its memory from one window to the next.
///
/// The calls of a window are distributed over slots of time, up to twice as many. Most slots then have
/// one call or none, and what is left to do is to look at each pair of neighbours once.
#[derive(Default)]
pub(super) struct Sorter {
    /// `None` when keys are positions alone.
    layout: Option<Layout>,
    last_start: i64,
    keys: Vec<u64>,
    /// So many of `keys` are those of the window.
    count: usize,
    other: Vec<u64>,
    /// Number of calls per slot, then where its next call goes, in the end where it ends.
    places: Vec<u32>,
    /// The bits of a key above these are its slot.
    slot_shift: u32,
}

impl Sorter {
    /// Begins a window of about `calls` calls that start in `starts`, at positions below
    /// 2^`position_bits`.
    pub(super) fn begin(&mut self, starts: &RangeInclusive<i64>, position_bits: u32, calls: usize) {
        self.count = 0;
        self.last_start = *starts.end();
        self.layout = Layout::of_starts(starts, position_bits);
        let Some(Layout { start_bits, .. }) = self.layout else { return };
        let slot_bits = start_bits.min(calls.max(1).ilog2() + 1);
        self.slot_shift = position_bits + start_bits - slot_bits;
        self.places.clear();
        self.places.resize(1 << slot_bits, 0);
    }

    /// Adds calls at consecutive positions, up to the first that starts behind the window; gives how
    /// many. They come in list order.
    #[inline]
    pub(super) fn add(&mut self, starts: impl ExactSizeIterator<Item = i64>, position: u64) -> usize {
        let end = self.count + starts.len();
        if self.keys.len() < end {
            self.keys.resize(end.next_power_of_two(), 0);
        }
        let calls = self.keys[self.count..end].iter_mut().zip(starts).zip(position..);
        let calls = calls.take_while(|((_, start), _)| *start <= self.last_start);
        let mut added = 0;
        if let Some(layout) = self.layout {
            let places = &mut self.places[..];
            for ((key, start), position) in calls {
                *key = layout.key(start, position);
                places[(*key >> self.slot_shift) as usize] += 1;
                added += 1;
            }
        } else {
            for ((key, _), position) in calls {
                *key = position;
                added += 1;
            }
        }
        self.count += added;
        added
    }

    /// Sorts the calls of the window by start and `tie`; where both are equal they keep their order.
    pub(super) fn sort<C: Calls>(&mut self, calls: C, tie: impl Fn(&C::Call) -> u64) -> Sorted<'_, C> {
        match self.layout {
            Some(layout) if layout.start_bits + CROWD_BITS < bits(self.count as u64) => {
                self.sort_crowd(layout, calls, tie);
            }
            Some(layout) => {
                let some_full = self.distribute();
                self.sort_slots(some_full, layout, calls, tie);
            }
            None => sort_positions(&mut self.keys[..self.count], calls, tie),
        }
        Sorted { calls, keys: &self.keys[..self.count], layout: self.layout }
    }

    /// Sorts calls many of which start together.
    fn sort_crowd<C: Calls>(&mut self, layout: Layout, calls: C, tie: impl Fn(&C::Call) -> u64) {
        let keys = &mut self.keys[..self.count];
        let call = |key| call_of(key, Some(layout), calls);
        if let Some(with_ties) = layout.with_ties(keys.iter().map(|key| tie(&call(*key)))) {
            for key in keys {
                let call = call(*key);
                *key = with_ties.key_with_tie(call.start(), tie(&call), *key & layout.position());
            }
            self.sort_digits(with_ties);
            self.layout = Some(with_ties);
        } else {
            self.sort_digits(layout);
            order_ties(&mut self.keys[..self.count], &mut Vec::new(), layout, calls, tie);
        }
    }

    /// Sorts calls that fit the cache, the positions of which are those of their starts.
    pub(super) fn sort_window<C: Calls>(
        &mut self,
        calls: C,
        starts: impl ExactSizeIterator<Item = i64> + Clone,
        tie: impl Fn(&C::Call) -> u64,
    ) -> Sorted<'_, C> {
        let count = starts.len();
        self.begin(&range(starts.clone()).unwrap_or(0..=0), bits(count as u64), count);
        self.add(starts, 0);
        self.sort(calls, tie)
    }

    /// Puts the keys into their slots; gives whether any has more than a few.
    fn distribute(&mut self) -> bool {
        let some_full = self.places.iter().fold(false, |some, count| some | (*count > FEW));
        counts_before(&mut self.places);
        self.other.resize(self.keys.len(), 0);
        let other = &mut self.other[..self.count];
        for &key in &self.keys[..self.count] {
            let place = &mut self.places[(key >> self.slot_shift) as usize];
            other[*place as usize] = key;
            *place += 1;
        }
        std::mem::swap(&mut self.keys, &mut self.other);
        some_full
    }

    /// Sorts what is in slots, the full ones by themselves.
    fn sort_slots<C: Calls>(
        &mut self,
        some_full: bool,
        layout: Layout,
        calls: C,
        tie: impl Fn(&C::Call) -> u64,
    ) {
        let (mut rest, mut sorted) = (&mut self.keys[..self.count], 0);
        let (mut begin, mut tied) = (0, Vec::new());
        let full = if some_full { &self.places[..] } else { &[] };
        for &end in full {
            if end - begin > FEW {
                let (few, slot) = rest.split_at_mut((begin - sorted) as usize);
                let (slot, after) = slot.split_at_mut((end - begin) as usize);
                insert_in_order(few, layout, calls, &tie);
                slot.sort_unstable();
                order_ties(slot, &mut tied, layout, calls, &tie);
                (rest, sorted) = (after, end);
            }
            begin = end;
        }
        insert_in_order(rest, layout, calls, tie);
    }

    /// Sorts by one digit of start and tie after the other, the lowest first.
    fn sort_digits(&mut self, layout: Layout) {
        self.other.resize(self.keys.len(), 0);
        let Layout { start_bits, tie_bits, position_bits, .. } = layout;
        for shift in (position_bits..position_bits + tie_bits + start_bits).step_by(DIGIT_BITS as usize) {
            let digit = |key: u64| (key >> shift) as usize & ((1 << DIGIT_BITS) - 1);
            let mut places = [0_u32; 1 << DIGIT_BITS];
            let keys = &self.keys[..self.count];
            keys.iter().for_each(|key| places[digit(*key)] += 1);
            counts_before(&mut places);
            for &key in keys {
                let place = &mut places[digit(key)];
                self.other[*place as usize] = key;
                *place += 1;
            }
            std::mem::swap(&mut self.keys, &mut self.other);
        }
    }
}

/// Sorts keys that are few places off by start, then `tie`: by insertion, where one that is in its place
/// takes a look at the one before.
fn insert_in_order<C: Calls>(keys: &mut [u64], layout: Layout, calls: C, tie: impl Fn(&C::Call) -> u64) {
    if is_mixed(keys) {
        swap_neighbours(keys);
    }
    let position = layout.position();
    let tie = |key: u64| tie(&call_of(key, Some(layout), calls));
    let starts_before = |one: u64, other: u64| one | position < other;
    for at in 1..keys.len() {
        let key = keys[at];
        if starts_before(keys[at - 1], key) {
            continue;
        }
        let mut to = at;
        while to > 0 {
            let before = keys[to - 1];
            if starts_before(before, key) || before ^ key <= position && tie(before) <= tie(key) {
                break;
            }
            keys[to] = before;
            to -= 1;
        }
        keys[to] = key;
    }
}

/// Whether so many keys are before a smaller one that a processor cannot foretell which.
fn is_mixed(keys: &[u64]) -> bool {
    let pairs = keys.windows(2).take(PAIRS);
    pairs.len() < 16 * pairs.filter(|pair| pair[0] > pair[1]).count()
}

/// Moves every key behind the smaller ones that follow it, up to the next larger one, without a branch. All are
/// in their place then where none was further than one to the right of it. Those of calls that start together
/// stay in order of position.
fn swap_neighbours(keys: &mut [u64]) {
    for at in 1..keys.len() {
        let pair = (keys[at - 1], keys[at]);
        (keys[at - 1], keys[at]) = (pair.0.min(pair.1), pair.0.max(pair.1));
    }
}

/// Puts the keys of calls that start together in order of `tie`, then of position. `tied` is room for
/// them.
fn order_ties<C: Calls>(
    keys: &mut [u64],
    tied: &mut Vec<(u64, u64)>,
    layout: Layout,
    calls: C,
    tie: impl Fn(&C::Call) -> u64,
) {
    let together = |one: &u64, other: &u64| one ^ other <= layout.position();
    let mut rest = keys;
    while let Some(at) = rest.windows(2).position(|pair| together(&pair[0], &pair[1])) {
        let (_, from) = rest.split_at_mut(at);
        let count = from.iter().take_while(|key| together(key, &from[0])).count();
        let (keys, after) = from.split_at_mut(count);
        tied.clear();
        tied.extend(keys.iter().map(|key| (tie(&call_of(*key, Some(layout), calls)), *key)));
        tied.sort_unstable();
        keys.iter_mut().zip(&*tied).for_each(|(key, (_, sorted))| *key = *sorted);
        rest = after;
    }
}

/// Sorts keys that are positions alone, by the calls there.
fn sort_positions<C: Calls>(keys: &mut [u64], calls: C, tie: impl Fn(&C::Call) -> u64) {
    keys.sort_by_key(|position| {
        let call = calls.at(*position, None);
        (call.start(), tie(&call))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Calls for &[Item] {
        type Call = Item;

        fn at(self, position: u64, _: Option<i64>) -> Item {
            self[position as usize]
        }
    }

    /// Items at these starts, the tie of each its end.
    fn items(starts: &[i64]) -> Vec<Item> {
        let item = |(at, &start): (usize, &i64)| Item { start, end: at as i64 % 3, ..Item::default() };
        starts.iter().enumerate().map(item).collect()
    }

    #[test]
    fn calls_are_sorted_by_start_and_tie() {
        let burst = [vec![5; 100], vec![4; 100], vec![i64::from(u32::MAX)]].concat();
        let spread: Vec<i64> = (0..500_i64).map(|at| at * at * 7919 % 10_007).collect();
        for starts in [vec![], vec![7], burst, spread, vec![i64::MAX, 0, i64::MIN, 0], vec![i64::MIN; 3]] {
            let items = items(&starts);
            let sorted = |calls: Sorted<'_, &[Item]>| {
                calls.iter().map(|item| (item.start, item.end)).collect::<Vec<_>>()
            };
            let mut sorter = Sorter::default();
            // Ties that fit into the keys, and ties that do not.
            for shift in [0, 62] {
                let tie = |item: &Item| (2 - item.end.cast_unsigned()) << shift;
                let mut expected = items.clone();
                expected.sort_by_key(|item| (item.start, tie(item)));
                let expected: Vec<_> = expected.iter().map(|item| (item.start, item.end)).collect();
                assert_eq!(
                    sorted(sorter.sort_window(&items[..], items.iter().map(Item::start), tie)),
                    expected
                );
            }
        }
    }
}
