//! Durations of any number of calls, and the values at places of their order, exactly.
//!
//! They are kept as they are as long as there is room. Of more it is counted how many lie in each of the
//! ranges of a fixed scale, 128 to an octave. A range that holds a wanted value is divided further while all
//! calls are taken once more, until it is 1 ns wide or its values are few enough to keep.

use std::ops::Range;

/// So many are kept as they are in any case.
const FEW: usize = 512;
/// Bits of a duration that its range on the scale tells, besides its octave.
const BITS: u32 = 7;
/// Ranges of an octave; those below the first octave are 1 ns wide.
const RANGES: usize = 1 << BITS;
/// Parts into which a range is divided at a time.
const PARTS: u64 = 1024;
/// Bytes that ranges may take which are looked into together.
const MOST_BYTES: usize = 32 << 20;

/// Durations that are 0 or more, in ns.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations {
    calls: u64,
    sum: i128,
    /// Modulo 2^128, as is what is made of it.
    sum_of_squares: i128,
    /// The shortest and the longest; `None` without calls.
    bounds: Option<(i64, i64)>,
    /// One of them, and the rounded sum of the squares of all differences from it.
    base: i64,
    around_base: f64,
    few: Vec<i64>,
    /// Numbers of calls by range, an octave each, from where there are too many to be kept.
    octaves: Vec<Option<Box<[u64; RANGES]>>>,
}

impl Durations {
    /// Adds a duration; whether it is kept as it is.
    pub(super) fn add(&mut self, duration_ns: i64) -> bool {
        self.extend_bounds((duration_ns, duration_ns), duration_ns);
        self.calls += 1;
        let wide = i128::from(duration_ns);
        self.around_base += (duration_ns.abs_diff(self.base) as f64).powi(2);
        self.sum += wide;
        self.sum_of_squares = self.sum_of_squares.wrapping_add(wide * wide);
        let is_kept = self.octaves.is_empty();
        if is_kept {
            self.few.push(duration_ns);
        } else {
            self.count(duration_ns, 1);
        }
        is_kept
    }

    /// Takes in the bounds of others that are around `base`.
    fn extend_bounds(&mut self, (shortest, longest): (i64, i64), base: i64) {
        self.bounds = match self.bounds {
            Some((min, max)) => Some((min.min(shortest), max.max(longest))),
            None => {
                self.base = base;
                Some((shortest, longest))
            }
        };
    }

    /// So many are kept as they are.
    pub(super) fn kept(&self) -> usize {
        self.few.len()
    }

    /// Keeps no more than a few as they are; gives how many fewer these are.
    pub(super) fn make_room(&mut self) -> usize {
        let kept = self.few.len();
        if kept > FEW {
            self.count_few();
        }
        kept - self.few.len()
    }

    fn count_few(&mut self) {
        for duration_ns in std::mem::take(&mut self.few) {
            self.count(duration_ns, 1);
        }
    }

    fn count(&mut self, duration_ns: i64, calls: u64) {
        let (octave, range) = place(duration_ns);
        if self.octaves.len() <= octave {
            self.octaves.resize(octave + 1, None);
        }
        let counts = self.octaves[octave].get_or_insert_with(|| Box::new([0; RANGES]));
        counts[range] += calls;
    }

    /// Adds those of other calls.
    pub(super) fn join(&mut self, other: Durations) {
        let Some(bounds) = other.bounds else { return };
        self.extend_bounds(bounds, other.base);
        let off = (i128::from(other.base) - i128::from(self.base)) as f64;
        self.around_base +=
            other.around_base + off * (2.0 * other.sum_around_base() + off * other.calls as f64);
        self.calls += other.calls;
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.wrapping_add(other.sum_of_squares);
        self.few.extend(other.few);
        if !self.octaves.is_empty() || !other.octaves.is_empty() {
            self.count_few();
        }
        for (octave, counts) in other.octaves.into_iter().enumerate() {
            for (range, calls) in counts.iter().flat_map(|counts| counts.iter().enumerate()) {
                if *calls > 0 {
                    self.count(first_of(octave, range), *calls);
                }
            }
        }
    }

    /// Number of calls.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// Standard deviation of the population in ns; 0 without calls.
    pub(super) fn std_ns(&self) -> f64 {
        let Some((shortest, longest)) = self.bounds else { return 0.0 };
        let calls = i128::from(self.calls);
        let range = i128::from(longest) - i128::from(shortest);
        if range.checked_mul(range).and_then(|square| square.checked_mul(calls)).is_none() {
            let off = self.sum_around_base() / self.calls as f64;
            return (self.around_base / self.calls as f64 - off * off).max(0.0).sqrt();
        }
        // Around a whole number close to the mean the sum of squares is small, and so exact as a float.
        let middle = self.sum / calls;
        let around = self.sum_of_squares.wrapping_sub(middle.wrapping_mul(2 * self.sum));
        let around = around.wrapping_add(middle.wrapping_mul(middle).wrapping_mul(calls));
        let off = (self.sum - middle * calls) as f64 / calls as f64;
        (around as f64 / calls as f64 - off * off).max(0.0).sqrt()
    }

    /// The sum of all differences from the base.
    fn sum_around_base(&self) -> f64 {
        (self.sum - i128::from(self.base) * i128::from(self.calls)) as f64
    }

    /// The range that holds the value at `place` of the ascending order, and the place of its first value.
    fn range_at(&self, place: u64) -> (Range<u64>, u64, u64) {
        let mut before = 0;
        for (octave, counts) in self.octaves.iter().enumerate() {
            for (range, &calls) in counts.iter().flat_map(|counts| counts.iter().enumerate()) {
                if place < before + calls {
                    let first = first_of(octave, range).cast_unsigned();
                    return (first..first + (1 << octave.saturating_sub(1)), before, calls);
                }
                before += calls;
            }
        }
        (0..1, before, 0)
    }
}

/// Octave and range of a duration. Octave 0 has what is below 2^[`BITS`].
fn place(duration_ns: i64) -> (usize, usize) {
    let value = duration_ns.unsigned_abs();
    let octave = (u64::BITS - value.leading_zeros()).saturating_sub(BITS);
    let shift = octave.saturating_sub(1);
    (octave as usize, (value >> shift) as usize & (RANGES - 1))
}

/// The smallest duration in a range.
fn first_of(octave: usize, range: usize) -> i64 {
    match octave.checked_sub(1) {
        None => range as i64,
        Some(shift) => ((RANGES + range) as i64) << shift,
    }
}

/// The values at some places of the order of some durations.
pub(super) struct Wanted {
    /// Per set of durations and place; `None` while it is looked for.
    found: Vec<Vec<Option<i64>>>,
    /// Ordered by set.
    searches: Vec<Search>,
}

/// A range that holds wanted values.
struct Search {
    set: usize,
    values: Range<u64>,
    /// Calls of the set that are shorter than all in the range.
    before: u64,
    calls: u64,
    /// Positions in [`Wanted::found`] of the set, and the places wanted for them.
    places: Vec<(usize, u64)>,
    seen: Seen,
}

/// What was seen of the values of a range.
enum Seen {
    /// It is not its turn.
    Nothing,
    Values(Vec<i64>),
    /// Number of calls by part.
    Parts(Vec<u64>),
}

impl Wanted {
    /// Looks for the values at `places` of each of `sets`; `places` gets the number of calls.
    pub(super) fn new<'a>(
        sets: impl IntoIterator<Item = &'a mut Durations>,
        places: impl Fn(u64) -> Vec<u64>,
    ) -> Wanted {
        let mut wanted = Wanted { found: Vec::new(), searches: Vec::new() };
        for (set, durations) in sets.into_iter().enumerate() {
            durations.few.sort_unstable();
            let places = if durations.calls > 0 { places(durations.calls) } else { Vec::new() };
            wanted.found.push(vec![None; places.len()]);
            for (slot, place) in places.into_iter().enumerate() {
                match durations.few.get(place as usize) {
                    Some(&value) if durations.octaves.is_empty() => wanted.found[set][slot] = Some(value),
                    _ => {
                        let (values, before, calls) = durations.range_at(place);
                        wanted.look_into(set, values, before, calls, (slot, place));
                    }
                }
            }
        }
        wanted.begin();
        wanted
    }

    fn look_into(&mut self, set: usize, values: Range<u64>, before: u64, calls: u64, place: (usize, u64)) {
        if values.end - values.start <= 1 {
            self.found[set][place.0] = Some(values.start.cast_signed());
            return;
        }
        match self.searches.last_mut().filter(|last| last.set == set && last.values == values) {
            Some(last) => last.places.push(place),
            None => {
                let (places, seen) = (vec![place], Seen::Nothing);
                self.searches.push(Search { set, values, before, calls, places, seen });
            }
        }
    }

    /// Makes room for what will be seen next, in as many ranges as fit.
    fn begin(&mut self) {
        let mut bytes = 0;
        for search in &mut self.searches {
            if search.calls <= PARTS {
                search.seen = Seen::Values(Vec::new());
                bytes += 8 * search.calls as usize;
            } else {
                search.seen = Seen::Parts(vec![0; PARTS as usize]);
                bytes += 8 * PARTS as usize;
            }
            if bytes >= MOST_BYTES {
                break;
            }
        }
    }

    /// Whether all calls have to be taken once more.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.searches.is_empty()
    }

    /// Where the ranges of each set begin, for [`see`](Self::see).
    pub(super) fn index(&self) -> Vec<usize> {
        let mut index = vec![0; self.found.len() + 1];
        self.searches.iter().for_each(|search| index[search.set + 1] += 1);
        (1..index.len()).for_each(|set| index[set] += index[set - 1]);
        index
    }

    /// Looks at a call of a set.
    pub(super) fn see(&mut self, index: &[usize], set: usize, duration_ns: i64) {
        for search in &mut self.searches[index[set]..index[set + 1]] {
            let value = duration_ns.cast_unsigned();
            if !search.values.contains(&value) {
                continue;
            }
            let part = (value - search.values.start) / search.part_ns();
            match &mut search.seen {
                Seen::Nothing => (),
                Seen::Values(values) => values.push(duration_ns),
                Seen::Parts(parts) => parts[part as usize] += 1,
            }
        }
    }

    /// Draws the conclusions after all calls were seen.
    pub(super) fn end(&mut self) {
        for mut search in std::mem::take(&mut self.searches) {
            let part_ns = search.part_ns();
            match std::mem::replace(&mut search.seen, Seen::Nothing) {
                Seen::Nothing => self.searches.push(search),
                Seen::Values(mut values) => {
                    values.sort_unstable();
                    for (slot, place) in search.places {
                        self.found[search.set][slot] = values.get((place - search.before) as usize).copied();
                    }
                }
                Seen::Parts(parts) => {
                    for place in search.places {
                        let mut before = search.before;
                        for (part, calls) in (0..).zip(&parts) {
                            if place.1 < before + calls {
                                let first = search.values.start + part * part_ns;
                                self.look_into(search.set, first..first + part_ns, before, *calls, place);
                                break;
                            }
                            before += calls;
                        }
                    }
                }
            }
        }
        self.begin();
    }

    /// The values of each set, in the order of its places.
    pub(super) fn values(self) -> Vec<Vec<i64>> {
        let values = self.found.into_iter();
        values.map(|of_set| of_set.into_iter().map(Option::unwrap_or_default).collect()).collect()
    }
}

impl Search {
    /// Width of a part.
    fn part_ns(&self) -> u64 {
        ((self.values.end - self.values.start) / PARTS).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of all sizes, many of them the same, and all places.
    #[test]
    fn values_are_found_at_all_places() {
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 20
        };
        for bits in [1, 8, 12, 30, 43] {
            let mut values: Vec<i64> = (0..6_000).map(|_| (random() % (1 << bits)) as i64).collect();
            values.extend([0, 127, 128, 255, 256, 1 << 40, i64::MAX]);
            values.extend([77_777; 3_000]);
            let (mut one, mut other) = (Durations::default(), Durations::default());
            values.iter().enumerate().for_each(|(at, value)| match at % 7 {
                0 => assert!(other.add(*value)),
                _ => assert!(one.add(*value)),
            });
            assert!(one.make_room() > FEW && !one.add(77_777));
            values.push(77_777);
            one.join(other);
            let few = values[..9].to_vec();
            let mut of_few = Durations::default();
            few.iter().for_each(|value| assert!(of_few.add(*value)));
            assert_eq!(of_few.make_room(), 0);
            let mut sets = [one, Durations::default(), of_few];
            let mut wanted =
                Wanted::new(&mut sets, |calls| (0..calls).step_by(if calls > 9 { 97 } else { 1 }).collect());
            let mut rounds = 0;
            while wanted.is_incomplete() {
                let index = wanted.index();
                values.iter().for_each(|value| wanted.see(&index, 0, *value));
                few.iter().for_each(|value| wanted.see(&index, 2, *value));
                wanted.end();
                rounds += 1;
                assert!(rounds < 10);
            }
            values.sort_unstable();
            let mut few = few;
            few.sort_unstable();
            let expected: Vec<i64> = values.iter().step_by(97).copied().collect();
            assert_eq!(wanted.values(), [expected, vec![], few]);
        }
    }

    #[test]
    fn the_deviation_is_exact_far_from_zero() {
        let mut durations = Durations::default();
        (0..1_000).for_each(|at| assert!(durations.add(1_000_000_000_000 + at % 2)));
        assert_eq!(durations.std_ns(), 0.5);
        let mut durations = Durations::default();
        [10, 10, 50].into_iter().for_each(|value| assert!(durations.add(value)));
        assert!((durations.std_ns() - (3200.0f64 / 9.0).sqrt()).abs() < 1e-12);
    }

    /// Sums of squares that no integer holds.
    #[test]
    fn the_deviation_of_the_longest_durations_is_no_less() {
        for joined in [false, true] {
            let (mut durations, mut others) = (Durations::default(), Durations::default());
            (0..8).for_each(|_| assert!(durations.add(0)));
            (0..8).for_each(|_| assert!(if joined { &mut others } else { &mut durations }.add(i64::MAX)));
            durations.join(others);
            let expected = i64::MAX as f64 / 2.0;
            assert!((durations.std_ns() / expected - 1.0).abs() < 1e-12, "{}", durations.std_ns());
        }
    }
}
