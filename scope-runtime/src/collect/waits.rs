//! How long ranks waited for each other in collective calls.
//!
//! The calls of all ranks that belong together have one key. Who of them came last is known when all
//! ranks were read, so the times are kept until then: in a file where they are many, since there may be
//! more of them than fit into memory.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use crate::profile::CollectiveCall;
use tempfile::SpooledTempFile;

use crate::merged::WaitRow;

/// Bytes of arrivals that are kept in memory.
const IN_MEMORY: usize = 64 << 20;

/// The collective calls of the ranks so far.
#[derive(Debug)]
pub(super) struct Waits {
    last: HashMap<u64, Last>,
    arrivals: BufWriter<SpooledTempFile>,
    count: u64,
}

/// Who came last to a collective call.
#[derive(Clone, Copy, Debug)]
struct Last {
    start_ns: i64,
    rank: u32,
    path: u32,
    ranks: u32,
    /// The rank that was added last.
    newest: u32,
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
        Waits { last: HashMap::new(), arrivals, count: 0 }
    }
}

impl Waits {
    /// Adds the calls of a rank.
    ///
    /// # Errors
    /// When there is no room to keep them.
    pub(super) fn add(&mut self, rank: u32, calls: &[CollectiveCall]) -> io::Result<()> {
        for call in calls {
            let key = u64::from(call.communicator) << 32 | u64::from(call.number);
            let (path, start_ns) = (call.path.0, call.start_ns);
            let last = self.last.entry(key).or_insert(Last { start_ns, rank, path, ranks: 1, newest: rank });
            last.ranks += u32::from(last.newest != rank);
            last.newest = rank;
            if start_ns > last.start_ns {
                (last.start_ns, last.rank, last.path) = (start_ns, rank, path);
            }
            let arrival = Arrival { key, rank, path, start_ns, end_ns: call.end_ns };
            self.arrivals.write_all(&arrival.to_bytes())?;
            self.count += 1;
        }
        Ok(())
    }

    /// The waits per rank and path; `first_paths` is where the paths of each rank begin.
    ///
    /// # Errors
    /// When the calls cannot be read back.
    pub(super) fn finish(self, first_paths: &HashMap<u32, u64>) -> io::Result<Vec<WaitRow>> {
        let mut rows: BTreeMap<(u32, u32), WaitRow> = BTreeMap::new();
        let Waits { last, arrivals, count } = self;
        let mut arrivals = arrivals.into_inner().map_err(io::IntoInnerError::into_error)?;
        arrivals.seek(SeekFrom::Start(0))?;
        let mut arrivals = BufReader::new(arrivals);
        for _ in 0..count {
            let mut bytes = [0; Arrival::SIZE];
            arrivals.read_exact(&mut bytes)?;
            let arrival = Arrival::of_bytes(&bytes);
            // A call that no other rank has recorded cannot be compared.
            let Some(last) = last.get(&arrival.key).filter(|last| last.ranks > 1) else { continue };
            let is_last = last.rank == arrival.rank;
            let until_ns = last.start_ns.min(arrival.end_ns);
            let wait_ns = until_ns.saturating_sub(arrival.start_ns).max(0);
            let row = rows.entry((arrival.rank, arrival.path)).or_default();
            row.calls += 1;
            row.wait_ns = row.wait_ns.saturating_add(wait_ns);
            row.last += u64::from(is_last);
            let caused = &mut rows.entry((last.rank, last.path)).or_default().caused_ns;
            *caused = caused.saturating_add(wait_ns);
        }
        let row = |((rank, path), row): ((u32, u32), WaitRow)| {
            let first_path = first_paths.get(&rank).copied().unwrap_or(0);
            WaitRow { rank, path: first_path + u64::from(path), ..row }
        };
        Ok(rows.into_iter().map(row).collect())
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
    fn arrivals_come_back() {
        let arrival = Arrival { key: u64::MAX - 1, rank: 7, path: 9, start_ns: -5, end_ns: i64::MAX };
        assert_eq!(Arrival::of_bytes(&arrival.to_bytes()), arrival);
    }
}
