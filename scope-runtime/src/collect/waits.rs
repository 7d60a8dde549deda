//! How long ranks waited for each other in collective calls.
//!
//! The calls of all ranks that belong together have one key. Who of them came last is known when all
//! ranks were read, so the times are kept until then: in a file where they are many, since there may be
//! more of them than fit into memory. Ranks that are still there tell each other who came last, and keep
//! the times to themselves.

use std::cmp::Reverse;
#[cfg(any(test, feature = "mpio"))]
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use tempfile::SpooledTempFile;

#[cfg(any(test, feature = "mpio"))]
use crate::format::{FieldReader, Fields};
use crate::merged::WaitRow;
use crate::profile::CollectiveCall;

/// Bytes of arrivals that are kept in memory.
const IN_MEMORY: usize = 64 << 20;

/// The collective calls of the ranks so far.
#[derive(Debug)]
pub(super) struct Waits {
    last: LastArrivals,
    arrivals: BufWriter<SpooledTempFile>,
    count: u64,
    rows: Rows,
}

/// Who came last to each collective call, by its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastArrivals(HashMap<u64, Last>);

/// Who came last to a collective call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Last {
    start_ns: i64,
    rank: u32,
    path: u32,
    /// How many ranks have come.
    ranks: u32,
    /// The one that was counted last, while calls are taken rank by rank.
    newest: u32,
}

impl Last {
    /// Takes the later one; of ranks that came together the first.
    fn take(&mut self, other: &Last) {
        if (other.start_ns, Reverse(other.rank)) > (self.start_ns, Reverse(self.rank)) {
            (self.start_ns, self.rank, self.path) = (other.start_ns, other.rank, other.path);
        }
    }
}

impl LastArrivals {
    /// Those of a single rank.
    #[cfg(any(test, feature = "mpio"))]
    pub(crate) fn of_rank(rank: u32, calls: &[CollectiveCall]) -> LastArrivals {
        let mut all = LastArrivals::default();
        calls.iter().for_each(|call| all.add_call(rank, call));
        all
    }

    /// Adds a call; those of a rank come together.
    fn add_call(&mut self, rank: u32, call: &CollectiveCall) {
        let last = Last { start_ns: call.start_ns, rank, path: call.path.0, ranks: 1, newest: rank };
        let known = self.0.entry(key(call)).or_insert(last);
        if known.newest != rank {
            known.newest = rank;
            known.ranks = known.ranks.saturating_add(1);
        }
        known.take(&last);
    }

    /// Adds those of other ranks.
    #[cfg(any(test, feature = "mpio"))]
    pub(crate) fn add(&mut self, other: LastArrivals) {
        for (key, last) in other.0 {
            match self.0.entry(key) {
                Entry::Vacant(entry) => _ = entry.insert(last),
                Entry::Occupied(mut entry) => {
                    let known = entry.get_mut();
                    known.take(&last);
                    known.ranks = known.ranks.saturating_add(last.ranks);
                    known.newest = known.rank;
                }
            }
        }
    }

    /// How long a rank waited in its calls, and what it thus knows of those for whom it did; paths count from
    /// the first one of their rank.
    #[cfg(any(test, feature = "mpio"))]
    pub(crate) fn waits_of(&self, rank: u32, calls: &[CollectiveCall]) -> Vec<WaitRow> {
        let mut rows = Rows::default();
        calls.iter().for_each(|call| rows.add_arrival(&Arrival::of_call(rank, call), self));
        rows.0.into_iter().map(|((rank, path), row)| WaitRow { rank, path: path.into(), ..row }).collect()
    }

    /// As bytes, for another rank.
    #[cfg(any(test, feature = "mpio"))]
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let last = |fields: Fields, (&key, last): (&u64, &Last)| {
            fields.u64(key).u64(last.start_ns.cast_unsigned()).u32(last.rank).u32(last.path).u32(last.ranks)
        };
        self.0.iter().fold(Fields::default(), last).0
    }

    /// Those in such bytes; `None` where they make no sense.
    #[cfg(any(test, feature = "mpio"))]
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<LastArrivals> {
        let mut fields = FieldReader(bytes);
        let mut all = LastArrivals::default();
        while !fields.0.is_empty() {
            let (key, start_ns) = (fields.u64()?, fields.u64()?.cast_signed());
            let (rank, path, ranks) = (fields.u32()?, fields.u32()?, fields.u32()?);
            all.0.insert(key, Last { start_ns, rank, path, ranks, newest: rank });
        }
        Some(all)
    }
}

/// By rank and path.
#[derive(Debug, Default)]
struct Rows(BTreeMap<(u32, u32), WaitRow>);

impl Rows {
    /// Counts a call that was compared with those of all other ranks.
    fn add_arrival(&mut self, arrival: &Arrival, last: &LastArrivals) {
        // A call that no other rank has recorded cannot be compared.
        let Some(last) = last.0.get(&arrival.key).filter(|last| last.ranks > 1) else { return };
        let is_last = last.rank == arrival.rank;
        let until_ns = last.start_ns.min(arrival.end_ns);
        let wait_ns = until_ns.saturating_sub(arrival.start_ns).max(0);
        let row = WaitRow { calls: 1, wait_ns, last: is_last.into(), ..WaitRow::default() };
        self.add((arrival.rank, arrival.path), &row);
        self.add((last.rank, last.path), &WaitRow { caused_ns: wait_ns, ..WaitRow::default() });
    }

    fn add(&mut self, place: (u32, u32), other: &WaitRow) {
        let row = self.0.entry(place).or_default();
        row.calls = row.calls.saturating_add(other.calls);
        row.wait_ns = row.wait_ns.saturating_add(other.wait_ns);
        row.last = row.last.saturating_add(other.last);
        row.caused_ns = row.caused_ns.saturating_add(other.caused_ns);
    }
}

fn key(call: &CollectiveCall) -> u64 {
    u64::from(call.communicator) << 32 | u64::from(call.number)
}

/// The call of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    key: u64,
    rank: u32,
    path: u32,
    start_ns: i64,
    end_ns: i64,
}

impl Arrival {
    const SIZE: usize = 32;

    fn of_call(rank: u32, call: &CollectiveCall) -> Arrival {
        let (start_ns, end_ns) = (call.start_ns, call.end_ns);
        Arrival { key: key(call), rank, path: call.path.0, start_ns, end_ns }
    }

    fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[0..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.rank.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.path.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.start_ns.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.end_ns.to_le_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8; Self::SIZE]) -> Arrival {
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        Arrival {
            key: u64_at(0),
            rank: u32_at(8),
            path: u32_at(12),
            start_ns: u64_at(16).cast_signed(),
            end_ns: u64_at(24).cast_signed(),
        }
    }
}

impl Default for Waits {
    fn default() -> Waits {
        let arrivals = BufWriter::new(SpooledTempFile::new(IN_MEMORY));
        Waits { last: LastArrivals::default(), arrivals, count: 0, rows: Rows::default() }
    }
}

impl Waits {
    /// Adds the calls of a rank.
    ///
    /// # Errors
    /// When there is no room to keep them.
    pub(super) fn add(&mut self, rank: u32, calls: &[CollectiveCall]) -> io::Result<()> {
        for call in calls {
            self.last.add_call(rank, call);
            self.arrivals.write_all(&Arrival::of_call(rank, call).to_bytes())?;
            self.count += 1;
        }
        Ok(())
    }

    /// Adds what a rank knows of waiting, as [`LastArrivals::waits_of`] gives it.
    pub(super) fn add_rows(&mut self, rows: &[WaitRow]) {
        rows.iter().for_each(|row| self.rows.add((row.rank, row.path as u32), row));
    }

    /// The waits per rank and path; `first_paths` is where the paths of each rank begin.
    ///
    /// # Errors
    /// When the calls cannot be read back.
    pub(super) fn finish(self, first_paths: &HashMap<u32, u64>) -> io::Result<Vec<WaitRow>> {
        let Waits { last, arrivals, count, mut rows } = self;
        let mut arrivals = arrivals.into_inner().map_err(io::IntoInnerError::into_error)?;
        arrivals.seek(SeekFrom::Start(0))?;
        let mut arrivals = BufReader::new(arrivals);
        for _ in 0..count {
            let mut bytes = [0; Arrival::SIZE];
            arrivals.read_exact(&mut bytes)?;
            rows.add_arrival(&Arrival::of_bytes(&bytes), &last);
        }
        let row = |((rank, path), row): ((u32, u32), WaitRow)| {
            let first_path = first_paths.get(&rank).copied().unwrap_or(0);
            WaitRow { rank, path: first_path + u64::from(path), ..row }
        };
        Ok(rows.0.into_iter().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::totals::PathId;

    use super::*;

    fn call(number: u32, path: u32, start_ns: i64, end_ns: i64) -> CollectiveCall {
        CollectiveCall { path: PathId(path), communicator: 7, number, start_ns, end_ns }
    }

    /// ```text
    /// number    0            1             2
    /// rank 0    [10   31]    [40 41]       [90 95]
    /// rank 1      [30 32]      [50    60]
    /// ```
    fn two_ranks() -> Waits {
        let mut waits = Waits::default();
        waits.add(0, &[call(0, 3, 10, 31), call(1, 3, 40, 41), call(2, 4, 90, 95)]).unwrap();
        waits.add(1, &[call(0, 0, 30, 32), call(1, 0, 50, 60)]).unwrap();
        waits
    }

    #[test]
    fn ranks_wait_for_the_last_one_but_not_beyond_their_own_end() {
        let rows = two_ranks().finish(&HashMap::from([(0, 0), (1, 100)])).unwrap();
        let first = WaitRow { rank: 0, path: 3, calls: 2, wait_ns: 20 + 1, last: 0, caused_ns: 0 };
        let second = WaitRow { rank: 1, path: 100, calls: 2, wait_ns: 0, last: 2, caused_ns: 21 };
        assert_eq!(rows, [first, second]);
    }

    #[test]
    fn of_ranks_that_come_together_one_is_the_last() {
        let mut waits = Waits::default();
        (0..3).for_each(|rank| waits.add(rank, &[call(0, 0, 5, 9)]).unwrap());
        let rows = waits.finish(&HashMap::new()).unwrap();
        assert_eq!(rows.iter().map(|row| row.last).sum::<u64>(), 1);
        assert_eq!(rows.iter().map(|row| row.wait_ns).sum::<i64>(), 0);
    }

    #[test]
    fn a_rank_is_not_compared_with_itself() {
        let mut waits = Waits::default();
        waits.add(0, &[call(0, 0, 5, 9), call(0, 0, 7, 9)]).unwrap();
        assert_eq!(waits.finish(&HashMap::new()).unwrap(), []);
    }

    #[test]
    fn ranks_that_tell_each_other_who_came_last_find_the_same() {
        let ranks = [
            vec![call(0, 3, 10, 31), call(1, 3, 40, 41), call(2, 4, 90, 95)],
            vec![call(0, 0, 30, 32), call(1, 0, 50, 60)],
            vec![call(1, 9, 50, 61), call(0, 9, 2, 33)],
        ];
        let last = |rank: usize| LastArrivals::of_rank(rank as u32, &ranks[rank]);
        let mut all = last(1);
        all.add(last(2));
        all.add(last(0));
        assert_eq!(LastArrivals::from_bytes(&all.to_bytes()), Some(all.clone()));
        assert_eq!(LastArrivals::from_bytes(&all.to_bytes()[1..]), None);
        let (mut together, mut apart) = (Waits::default(), Waits::default());
        for (rank, calls) in (0..).zip(&ranks) {
            together.add(rank, calls).unwrap();
            apart.add_rows(&all.waits_of(rank, calls));
        }
        let first_paths = HashMap::from([(0, 0), (1, 100), (2, 200)]);
        let rows = together.finish(&first_paths).unwrap();
        assert_eq!((rows.len(), rows.iter().map(|row| row.last).sum::<u64>()), (3, 2));
        assert_eq!(apart.finish(&first_paths).unwrap(), rows);
    }

    #[test]
    fn arrivals_come_back() {
        let arrival = Arrival { key: u64::MAX - 1, rank: 7, path: 9, start_ns: -5, end_ns: i64::MAX };
        assert_eq!(Arrival::of_bytes(&arrival.to_bytes()), arrival);
    }
}
