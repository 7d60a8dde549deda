//! What a job loses where its ranks are not equally fast: time in which the others have to wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::export::is_among;
use crate::merged::MergedProfile;
use crate::names::visible;
use crate::units::{count, counted, duration};

/// Regions that the summary names.
const NAMED: usize = 3;
/// A loss below this part of all time is not worth a word.
const LEAST_PART: f64 = 0.001;

/// A region in which some ranks take longer than others.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Name of the region.
    pub region: String,
    /// Sum over the ranks of what they would have to wait for the slowest, in ns.
    pub lost_ns: i64,
    /// By what part the slowest rank exceeds the mean.
    pub imbalance: f64,
    /// The slowest rank; of several the first.
    pub slowest: u32,
}

/// Waiting in the collective calls of one region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Name of the region.
    pub region: String,
    /// Sum over the ranks, in ns.
    pub wait_ns: i64,
    /// Number of calls of all ranks.
    pub calls: u64,
    /// The rank for which the others waited longest.
    pub latest: u32,
    /// In how many calls it came last, of its own.
    pub last: (u64, u64),
    /// How long the others waited for it, in ns.
    pub caused_ns: i64,
}

/// The regions of these ranks, given in ascending order, by what is lost in them, the most first. What
/// counts is time outside of children; calls of MPI are left out, in which ranks wait for what happened
/// before.
pub fn losses(profile: &MergedProfile, ranks: &[u32]) -> Vec<Loss> {
    let mut by_region: HashMap<u32, BTreeMap<u32, i64>> = HashMap::new();
    let of_ranks = profile.paths.iter().flatten().filter(|path| is_among(ranks, path.rank));
    for path in of_ranks.filter(|path| !is_mpi_call(&profile.names[path.region as usize])) {
        let self_ns = by_region.entry(path.region).or_default().entry(path.rank).or_default();
        *self_ns = self_ns.saturating_add(path.self_ns);
    }
    let loss = |(region, self_ns): (u32, BTreeMap<u32, i64>)| {
        let (slowest, most_ns) =
            self_ns.iter().map(|(&rank, &ns)| (rank, ns)).min_by_key(|x| (Reverse(x.1), x.0))?;
        let sum_ns = self_ns.values().copied().fold(0, i64::saturating_add);
        let mean_ns = sum_ns as f64 / ranks.len() as f64;
        Some(Loss {
            region: profile.names[region as usize].clone(),
            lost_ns: most_ns.saturating_mul(ranks.len() as i64).saturating_sub(sum_ns),
            imbalance: if mean_ns > 0.0 { most_ns as f64 / mean_ns - 1.0 } else { 0.0 },
            slowest,
        })
    };
    let mut losses: Vec<Loss> = by_region.into_iter().filter_map(loss).collect();
    losses.sort_by(|a, b| (b.lost_ns, &a.region).cmp(&(a.lost_ns, &b.region)));
    losses
}

/// The collective calls in which these ranks, given in ascending order, waited; the longest waiting first.
pub fn waiting(profile: &MergedProfile, ranks: &[u32]) -> Vec<Waiting> {
    let paths = profile.paths.as_deref().unwrap_or_default();
    // By region and rank: calls, waited, last, caused.
    let mut sums: BTreeMap<(u32, u32), (u64, i64, u64, i64)> = BTreeMap::new();
    for row in profile.waits.iter().flatten().filter(|row| is_among(ranks, row.rank)) {
        let (calls, wait_ns, last, caused_ns) =
            sums.entry((paths[row.path as usize].region, row.rank)).or_default();
        *calls = calls.saturating_add(row.calls);
        *wait_ns = wait_ns.saturating_add(row.wait_ns);
        *last = last.saturating_add(row.last);
        *caused_ns = caused_ns.saturating_add(row.caused_ns);
    }
    let mut regions: BTreeMap<u32, Waiting> = BTreeMap::new();
    for ((region, rank), (calls, wait_ns, last, caused_ns)) in sums {
        let waiting = regions.entry(region).or_insert_with(|| Waiting {
            region: profile.names[region as usize].clone(),
            latest: rank,
            last: (last, calls),
            caused_ns,
            ..Waiting::default()
        });
        waiting.calls = waiting.calls.saturating_add(calls);
        waiting.wait_ns = waiting.wait_ns.saturating_add(wait_ns);
        if caused_ns > waiting.caused_ns {
            (waiting.latest, waiting.last, waiting.caused_ns) = (rank, (last, calls), caused_ns);
        }
    }
    let mut regions: Vec<Waiting> = regions.into_values().collect();
    regions.sort_by(|a, b| (b.wait_ns, &a.region).cmp(&(a.wait_ns, &b.region)));
    regions
}

/// What the summary says: the three worst regions of each kind, of those that it is about and as far as they
/// count.
pub fn notes(profile: &MergedProfile, ranks: &[u32], is_shown: impl Fn(&str) -> bool) -> Vec<String> {
    if ranks.len() < 2 {
        return Vec::new();
    }
    let all_ns: i64 = profile
        .paths
        .iter()
        .flatten()
        .filter(|path| is_among(ranks, path.rank))
        .map(|path| path.self_ns)
        .fold(0, i64::saturating_add);
    let counts = |ns: i64| ns as f64 >= LEAST_PART * all_ns as f64 && ns > 0;
    let losses = losses(profile, ranks).into_iter();
    let losses = losses.filter(|loss| counts(loss.lost_ns) && is_shown(&loss.region)).take(NAMED);
    let losses: Vec<String> = losses
        .map(|loss| {
            let (region, lost) = (visible(&loss.region).into_owned(), duration(loss.lost_ns));
            format!(
                "{lost} in {region} (rank {} is {:.1}% above the mean)",
                loss.slowest,
                100.0 * loss.imbalance
            )
        })
        .collect();
    let waiting = waiting(profile, ranks).into_iter();
    let waiting = waiting.filter(|waiting| counts(waiting.wait_ns) && is_shown(&waiting.region)).take(NAMED);
    let waiting: Vec<String> = waiting
        .map(|waiting| {
            let (region, wait) = (visible(&waiting.region).into_owned(), duration(waiting.wait_ns));
            let (last, calls) = waiting.last;
            let calls = counted(calls, "call", "calls");
            format!("{wait} in {region} (rank {} is last in {} of {calls})", waiting.latest, count(last))
        })
        .collect();
    let note =
        |what: &str, list: Vec<String>| (!list.is_empty()).then(|| format!("{what} {}", list.join(", ")));
    note("lost to imbalance:", losses).into_iter().chain(note("waited for the last rank:", waiting)).collect()
}

/// Whether a region is a call of MPI.
fn is_mpi_call(name: &str) -> bool {
    name.starts_with("MPI_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merged::{PathRow, WaitRow};

    /// ```text
    ///          work   step   MPI_Barrier (waited)
    /// rank 0   100    1000   500 (440)
    /// rank 1   300    1000   300 (  0)
    /// rank 2          1000   600 (560)
    /// ```
    fn three_ranks() -> MergedProfile {
        let path =
            |rank, region, self_ns| PathRow { rank, region, self_ns, parent: -1, ..PathRow::default() };
        let wait =
            |rank, path, wait_ns, last, caused_ns| WaitRow { rank, path, calls: 4, wait_ns, last, caused_ns };
        MergedProfile {
            names: ["work", "step", "MPI_Barrier"].map(String::from).to_vec(),
            paths: Some(vec![
                path(0, 0, 60),
                path(0, 0, 40),
                path(0, 1, 1000),
                path(0, 2, 500),
                path(1, 0, 300),
                path(1, 1, 1000),
                path(1, 2, 300),
                path(2, 1, 1000),
                path(2, 2, 600),
            ]),
            waits: Some(vec![wait(0, 3, 440, 1, 10), wait(1, 6, 0, 3, 990), wait(2, 8, 560, 0, 0)]),
            ..MergedProfile::default()
        }
    }

    #[test]
    fn what_is_lost_is_what_the_others_wait_for() {
        let losses = losses(&three_ranks(), &[0, 1, 2]);
        let names: Vec<&str> = losses.iter().map(|loss| loss.region.as_str()).collect();
        assert_eq!(names, ["work", "step"]);
        let work = &losses[0];
        assert_eq!((work.lost_ns, work.slowest, losses[1].lost_ns), (500, 1, 0));
        assert!((work.imbalance - 1.25).abs() < 1e-12, "{work:?}");
    }

    #[test]
    fn waiting_names_the_rank_that_the_others_wait_for() {
        let waiting = waiting(&three_ranks(), &[0, 1, 2]);
        let expected = Waiting {
            region: "MPI_Barrier".into(),
            wait_ns: 1000,
            calls: 12,
            latest: 1,
            last: (3, 4),
            caused_ns: 990,
        };
        assert_eq!(waiting, [expected]);
    }

    #[test]
    fn sums_of_a_damaged_profile_stop_at_the_largest() {
        let mut profile = three_ranks();
        for number in [i64::MAX, i64::MIN] {
            profile.paths.iter_mut().flatten().for_each(|path| path.self_ns = number);
            for row in profile.waits.iter_mut().flatten() {
                (row.calls, row.last, row.wait_ns, row.caused_ns) = (u64::MAX, u64::MAX, number, number);
            }
            assert_eq!(losses(&profile, &[0, 1, 2]).len(), 2);
            let waiting = waiting(&profile, &[0, 1, 2]);
            assert_eq!((waiting[0].calls, waiting[0].wait_ns), (u64::MAX, number));
            super::notes(&profile, &[0, 1, 2], |_| true);
        }
    }

    #[test]
    fn the_notes_say_what_counts() {
        let notes = notes(&three_ranks(), &[0, 1, 2], |_| true);
        assert_eq!(
            notes,
            [
                "lost to imbalance: 500 ns in work (rank 1 is 125.0% above the mean)",
                "waited for the last rank: 1.000 us in MPI_Barrier (rank 1 is last in 3 of 4 calls)",
            ]
        );
        assert!(super::notes(&three_ranks(), &[1], |_| true).is_empty());
        assert!(super::notes(&three_ranks(), &[0, 1, 2], |_| false).is_empty());
    }
}
