//! Sorts calls by their start, as keys of 8 bytes instead of the calls themselves.
//!
//! ```text
//! key   | start since the first | tie, where there is room | position |
//!       63                                                           0
//! ```

use super::order::Item;
use crate::room::room;

/// Slots of a window with more calls than this are not sorted by insertion.
const FEW: u32 = 24;
/// Bits of a key that are sorted by in one pass over all calls.
const DIGIT_BITS: u32 = 12;

/// What has a start to be sorted by.
pub(super) trait Starting {
    fn start(&self) -> i64;
}

impl Starting for Item {
    fn start(&self) -> i64 {
        self.start
    }
}

/// Calls in their order.
#[derive(Clone, Copy)]
pub(super) struct Sorted<'a, T = Item> {
    items: &'a [T],
    keys: &'a [u64],
    /// The bits of a key that are a position in `items`.
    position: u64,
}

impl<'a, T> Sorted<'a, T> {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline]
    pub(super) fn iter(self) -> impl ExactSizeIterator<Item = &'a T> {
        self.keys.iter().map(move |key| &self.items[(key & self.position) as usize])
    }

    /// The same calls in portions of at most `size`.
    pub(super) fn portions(self, size: usize) -> impl Iterator<Item = Sorted<'a, T>> {
        let Sorted { items, keys, position } = self;
        keys.chunks(size).map(move |keys| Sorted { items, keys, position })
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
    fn of_starts<T: Starting>(items: &[T]) -> Option<Layout> {
        let (first_start, last_start) = range(items.iter().map(T::start))?;
        let start_bits = bits(last_start.wrapping_sub(first_start).cast_unsigned());
        let position_bits = bits(items.len() as u64);
        let layout = Layout { first_start, start_bits, first_tie: 0, tie_bits: 0, position_bits };
        (start_bits + position_bits < u64::BITS).then_some(layout)
    }

    /// The same with ties, when they fit in.
    fn with_ties(self, ties: impl Iterator<Item = u64>) -> Layout {
        let Some((first_tie, last_tie)) = range(ties) else { return self };
        let tie_bits = bits(last_tie - first_tie);
        let fits = self.start_bits + tie_bits + self.position_bits < u64::BITS;
        if fits { Layout { first_tie, tie_bits, ..self } } else { self }
    }

    fn key<T: Starting>(self, item: &T, tie: impl Fn(&T) -> u64, position: u64) -> u64 {
        let start = item.start().wrapping_sub(self.first_start).cast_unsigned();
        let tie = if self.tie_bits == 0 { 0 } else { tie(item) - self.first_tie };
        (start << self.tie_bits | tie) << self.position_bits | position
    }

    /// The bits of a key that are the position.
    fn position(self) -> u64 {
        (1 << self.position_bits) - 1
    }
}

fn range<T: Copy + Ord>(mut values: impl Iterator<Item = T>) -> Option<(T, T)> {
    let first = values.next()?;
    Some(values.fold((first, first), |(min, max), value| (min.min(value), max.max(value))))
}

fn bits(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Sorts calls, keeping its memory from one window to the next.
#[derive(Default)]
pub(super) struct Sorter {
    keys: Vec<u64>,
    other: Vec<u64>,
    places: Vec<u32>,
}

impl Sorter {
    /// Sorts calls that fit the cache by start and `tie`; where both are equal they keep their order.
    pub(super) fn sort_window<'a, T: Starting>(
        &'a mut self,
        items: &'a [T],
        tie: impl Fn(&T) -> u64,
    ) -> Sorted<'a, T> {
        let layout = Layout::of_starts(items);
        self.sort(items, tie, layout, Sorter::distribute)
    }

    /// As [`sort_window`](Self::sort_window) for any number of calls.
    pub(super) fn sort_all<'a, T: Starting>(
        &'a mut self,
        items: &'a [T],
        tie: impl Fn(&T) -> u64,
    ) -> Sorted<'a, T> {
        (self.keys, self.other) = (room(items.len()), room(items.len()));
        let layout = Layout::of_starts(items).map(|layout| layout.with_ties(items.iter().map(&tie)));
        self.sort(items, tie, layout, Sorter::sort_digits)
    }

    fn sort<'a, T: Starting>(
        &'a mut self,
        items: &'a [T],
        tie: impl Fn(&T) -> u64,
        layout: Option<Layout>,
        sort_keys: impl Fn(&mut Sorter, Layout) -> bool,
    ) -> Sorted<'a, T> {
        self.keys.clear();
        let positions = 0..items.len() as u64;
        let mut position = u64::MAX;
        if let Some(layout) = layout {
            self.keys.extend(items.iter().zip(positions).map(|(item, at)| layout.key(item, &tie, at)));
            position = layout.position();
            if sort_keys(self, layout) {
                if layout.tie_bits == 0 {
                    order_ties(&mut self.keys, position, items, tie);
                }
                return Sorted { items, keys: &self.keys, position };
            }
        } else {
            self.keys.extend(positions);
        }
        self.keys.sort_by_key(|key| {
            let item = &items[(key & position) as usize];
            (item.start(), tie(item))
        });
        Sorted { items, keys: &self.keys, position }
    }

    /// Distributes the keys over two to four times as many slots of time. Most slots then have one
    /// call or none, and what is left to do is to look at each pair of neighbours once. False when
    /// too many starts are close together.
    fn distribute(&mut self, layout: Layout) -> bool {
        let slot_bits = layout.position_bits + 1;
        let shift = (layout.position_bits + layout.start_bits).saturating_sub(slot_bits);
        let slots = 1 << slot_bits;
        self.places.clear();
        self.places.resize(slots, 0);
        let places = &mut self.places[..slots];
        let slot = |key: u64| (key >> shift) as usize & (slots - 1);
        self.keys.iter().for_each(|key| places[slot(*key)] += 1);
        let (mut before, mut most) = (0, 0);
        for place in &mut *places {
            most = most.max(*place);
            before += std::mem::replace(place, before);
        }
        if most > FEW {
            return false;
        }
        self.other.resize(self.keys.len(), 0);
        for &key in &self.keys {
            let place = &mut places[slot(key)];
            self.other[*place as usize] = key;
            *place += 1;
        }
        insert_in_order(&mut self.other);
        std::mem::swap(&mut self.keys, &mut self.other);
        true
    }

    /// Sorts by one digit of start and tie after the other, the lowest first.
    fn sort_digits(&mut self, layout: Layout) -> bool {
        self.other.resize(self.keys.len(), 0);
        let Layout { start_bits, tie_bits, position_bits, .. } = layout;
        for shift in (position_bits..position_bits + tie_bits + start_bits).step_by(DIGIT_BITS as usize) {
            let digit = |key: u64| (key >> shift) as usize & ((1 << DIGIT_BITS) - 1);
            let mut places = [0_u32; 1 << DIGIT_BITS];
            self.keys.iter().for_each(|key| places[digit(*key)] += 1);
            let mut before = 0;
            places.iter_mut().for_each(|place| before += std::mem::replace(place, before));
            for &key in &self.keys {
                let place = &mut places[digit(key)];
                self.other[*place as usize] = key;
                *place += 1;
            }
            std::mem::swap(&mut self.keys, &mut self.other);
        }
        true
    }
}

/// Insertion sort: no key is more than [`FEW`] places off.
fn insert_in_order(keys: &mut [u64]) {
    for at in 1..keys.len() {
        let key = keys[at];
        let mut to = at;
        while to > 0 && keys[to - 1] > key {
            keys[to] = keys[to - 1];
            to -= 1;
        }
        keys[to] = key;
    }
}

/// Puts the keys of calls that start together in order of `tie`, then of position.
fn order_ties<T>(keys: &mut [u64], position: u64, items: &[T], tie: impl Fn(&T) -> u64) {
    let together = |one: &u64, other: &u64| one ^ other <= position;
    if !keys.windows(2).any(|pair| together(&pair[0], &pair[1])) {
        return;
    }
    let mut tied = Vec::new();
    for keys in keys.chunk_by_mut(together).filter(|keys| keys.len() > 1) {
        tied.clear();
        tied.extend(keys.iter().map(|key| (tie(&items[(key & position) as usize]), *key)));
        tied.sort_unstable();
        keys.iter_mut().zip(&tied).for_each(|(key, (_, sorted))| *key = *sorted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items at these starts, the tie of each its end.
    fn items(starts: &[i64]) -> Vec<Item> {
        let item = |(at, &start): (usize, &i64)| Item { start, end: at as i64 % 3, ..Item::default() };
        starts.iter().enumerate().map(item).collect()
    }

    #[test]
    fn windows_and_all_calls_are_sorted_alike() {
        let burst = [vec![5; 100], vec![4; 100], vec![i64::from(u32::MAX)]].concat();
        let spread: Vec<i64> = (0..500_i64).map(|at| at * at * 7919 % 10_007).collect();
        for starts in [vec![], vec![7], burst, spread, vec![i64::MAX, 0, i64::MIN, 0], vec![i64::MIN; 3]] {
            let items = items(&starts);
            let sorted =
                |calls: Sorted<'_>| calls.iter().map(|item| (item.start, item.end)).collect::<Vec<_>>();
            let mut sorter = Sorter::default();
            // Ties that fit into the keys, and ties that do not.
            for shift in [0, 62] {
                let tie = |item: &Item| (2 - item.end.cast_unsigned()) << shift;
                let mut expected = items.clone();
                expected.sort_by_key(|item| (item.start, tie(item)));
                let expected: Vec<_> = expected.iter().map(|item| (item.start, item.end)).collect();
                assert_eq!(sorted(sorter.sort_window(&items, tie)), expected);
                assert_eq!(sorted(sorter.sort_all(&items, tie)), expected);
            }
        }
    }
}
