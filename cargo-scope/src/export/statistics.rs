//! Statistics of the calls of each path or region, over the selected ranks.
//!
//! Sums come from the same totals as every export. What only single calls tell (percentiles and the
//! like) comes from the events, and is left out where these are not all calls of a path.

use std::collections::HashMap;

use scope_runtime::call_stack::stored::{CallVisitor, Known};
use scope_runtime::profile::RegionId;
use scope_runtime::totals::{PathId, PathTotals, PathTree};

use super::durations::{Durations, Wanted};
use super::select::Selected;
use super::{Error, LeftOut, Selection};
use crate::merged::MergedProfile;
use crate::paths::NamedPaths;

/// What the rows of a table stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// Call paths.
    #[default]
    Path,
    /// Regions, each with its calls from everywhere.
    Region,
}

/// Statistics of the calls of one path or region. Times in ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallStatistics {
    /// Number of ranks with a call.
    pub ranks: u32,
    /// Number of calls.
    pub calls: u64,
    /// Calls among them that were cut at the end of recording.
    pub open: u64,
    /// Sum of all durations, those of recursive calls too.
    pub total_ns: i64,
    /// From begin to end; of recursive calls the outermost.
    pub inclusive_ns: i64,
    /// The same, as long as a thread ran them.
    pub busy_ns: i64,
    /// `busy_ns` without that of direct children.
    pub self_ns: i64,
    /// Shortest duration.
    pub min_ns: i64,
    /// Longest duration.
    pub max_ns: i64,
    /// Sum of all durations on the rank with least of it, of those with a call.
    pub rank_min_ns: i64,
    /// The same on the rank with most of it.
    pub rank_max_ns: i64,
    /// By how much the largest sum of a rank exceeds the mean of those above 0; 0 for one rank.
    pub imbalance_percent: f64,
    /// `None` where the profile does not hold each of the calls.
    pub spread: Option<Spread>,
}

/// What single calls tell. Times in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Start of the first call, on the recording clock.
    pub start_ns: i64,
    /// Duration of the call that began first.
    pub first_ns: i64,
    /// Duration of the call that ended last.
    pub last_ns: i64,
    /// Standard deviation of the population.
    pub std_ns: f64,
    /// Median, interpolated as are the next two.
    pub p50_ns: f64,
    /// 95 % are shorter.
    pub p95_ns: f64,
    /// 99 % are shorter.
    pub p99_ns: f64,
    /// Time in which at least one of the calls was open, summed over the ranks.
    pub coverage_ns: i64,
}

impl CallStatistics {
    /// What the sums of a path tell.
    pub fn of_path(path: &PathTotals) -> CallStatistics {
        CallStatistics {
            calls: path.calls,
            open: path.open,
            total_ns: path.wall_ns,
            inclusive_ns: path.wall_ns,
            busy_ns: path.inclusive_ns,
            self_ns: path.self_ns,
            min_ns: path.min_ns,
            max_ns: path.max_ns,
            ..CallStatistics::default()
        }
    }

    /// Mean duration in ns; `None` without calls.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.total_ns as f64 / self.calls as f64)
    }
}

/// The call paths of the selected ranks, or their regions as paths of one step, with statistics of
/// each node. `left_out` gets what is missing.
///
/// # Errors
/// When the selection does not fit the profile, or its calls cannot be read or are more than can be numbered.
pub fn statistics(
    profile: &MergedProfile,
    selection: &Selection,
    by: By,
    left_out: &mut LeftOut,
) -> Result<(NamedPaths, Vec<CallStatistics>), Error> {
    let selected = Selected::new(profile, selection)?;
    let mut samples = Samples::new(MOST_KEPT);
    let sums = selected.ranks.iter().map(|&rank| {
        let room = samples.room();
        let (calls, mut nested, regions) =
            selected.nest(rank, None, |kept| RankCalls::new(by, kept, room))?;
        let known = std::mem::take(&mut nested.known);
        samples.add_rank(regions.names.clone(), calls, known);
        let (paths, regions) = match selected.totals(rank)? {
            Some(totals) => totals,
            None => (selected.paths_of_calls(rank, nested), regions),
        };
        Ok(RankSums::new(NamedPaths::new(regions.names, paths), by))
    });
    let (paths, mut statistics) = add_up(sums)?;
    left_out.join(None, selected.take_left_out());
    for (statistics, spread) in statistics.iter_mut().zip(samples.spreads(&paths, &selected)?) {
        statistics.spread = spread;
    }
    if statistics.iter().any(|of| of.calls > 0 && of.spread.is_none()) {
        left_out.add_calls_of(profile);
    }
    Ok((paths, statistics))
}

/// The call paths of the selected ranks, with what their sums tell and how the ranks differ. `left_out` gets
/// what is missing.
///
/// # Errors
/// When the selection does not fit the profile, or its calls cannot be read or are more than can be numbered.
pub fn rank_statistics(
    profile: &MergedProfile,
    selection: &Selection,
    left_out: &mut LeftOut,
) -> Result<(NamedPaths, Vec<CallStatistics>), Error> {
    let selected = Selected::new(profile, selection)?;
    let all = add_up(selected.ranks.iter().map(|&rank| Ok(RankSums::new(selected.paths(rank)?, By::Path))))?;
    left_out.join(None, selected.take_left_out());
    Ok(all)
}

/// The sums of one rank.
struct RankSums {
    paths: NamedPaths,
    /// Sum of all durations, by path.
    total_ns: Vec<i64>,
}

impl RankSums {
    fn new(paths: NamedPaths, by: By) -> RankSums {
        if by == By::Path {
            let total_ns = paths.paths.nodes().iter().map(|node| node.wall_ns).collect();
            return RankSums { paths, total_ns };
        }
        let mut sums = HashMap::<RegionId, i64>::new();
        for node in paths.paths.nodes() {
            let total_ns = sums.entry(node.region).or_default();
            *total_ns = total_ns.saturating_add(node.wall_ns);
        }
        let paths = paths.by_region();
        let total_ns = paths.paths.nodes().iter().map(|node| sums[&node.region]).collect();
        RankSums { paths, total_ns }
    }
}

/// All ranks together, of which one at a time needs to be in memory.
fn add_up(
    ranks: impl Iterator<Item = Result<RankSums, Error>>,
) -> Result<(NamedPaths, Vec<CallStatistics>), Error> {
    let (mut all, mut ids) = (NamedPaths::default(), HashMap::new());
    let mut by_rank: Vec<Vec<i64>> = Vec::new();
    for rank in ranks {
        let rank = rank?;
        let places = all.add(&mut ids, &rank.paths);
        by_rank.resize_with(all.paths.nodes().len(), Vec::new);
        for ((place, node), total_ns) in places.iter().zip(rank.paths.paths.nodes()).zip(&rank.total_ns) {
            if node.calls > 0 {
                by_rank[place.0 as usize].push(*total_ns);
            }
        }
    }
    let statistics = all.paths.nodes().iter().zip(&by_rank).map(|(node, by_rank)| CallStatistics {
        ranks: by_rank.len() as u32,
        total_ns: by_rank.iter().copied().fold(0, i64::saturating_add),
        rank_min_ns: by_rank.iter().copied().min().unwrap_or(0),
        rank_max_ns: by_rank.iter().copied().max().unwrap_or(0),
        imbalance_percent: imbalance_percent(by_rank),
        ..CallStatistics::of_path(node)
    });
    let statistics = statistics.collect();
    Ok((all, statistics))
}

fn imbalance_percent(by_rank: &[i64]) -> f64 {
    let positive: Vec<f64> = by_rank.iter().filter(|&&ns| ns > 0).map(|&ns| ns as f64).collect();
    if positive.len() < 2 {
        return 0.0;
    }
    let mean = positive.iter().sum::<f64>() / positive.len() as f64;
    (positive.iter().fold(0.0, |most: f64, &ns| most.max(ns)) / mean - 1.0) * 100.0
}

/// The single calls by path, as the events nest them.
struct Samples {
    /// The paths of all ranks so far.
    all: NamedPaths,
    ids: HashMap<String, RegionId>,
    /// Their calls.
    by_path: Vec<Calls>,
    /// How the calls of each rank are taken again.
    ranks: Vec<RankPaths>,
    /// So many durations are kept as they are.
    kept: usize,
    /// So many may be.
    most: usize,
}

/// Where the calls of a rank belong.
struct RankPaths {
    by: By,
    /// Its paths among those of all ranks.
    sets: Vec<PathId>,
    known: Known,
}

/// The calls of one rank by path.
struct RankCalls {
    places: Places,
    found: Vec<Calls>,
    /// So many durations may be kept as they are.
    room: usize,
    /// So many are.
    kept: usize,
}

/// So many durations of all ranks are kept as they are: 16 MiB.
const MOST_KEPT: usize = 2 << 20;

/// To which of the paths that are shown the calls of each path belong.
struct Places {
    by: By,
    /// By region, whether it is shown.
    kept: Vec<bool>,
    /// What is shown.
    shown: PathTree,
    /// For each path, whether it is itself shown, and where in `shown` that or what is above it is.
    places: Vec<(bool, Option<PathId>)>,
}

/// The calls of one path on one rank.
#[derive(Clone, Default)]
struct Calls {
    durations: Durations,
    /// Start and duration.
    first: Option<(i64, i64)>,
    /// End and duration.
    last: Option<(i64, i64)>,
    coverage_ns: i64,
    /// Up to where the calls so far cover the time.
    until_ns: Option<i64>,
}

/// Places at which percentiles are interpolated.
const PARTS: [f64; 3] = [0.50, 0.95, 0.99];

impl Samples {
    fn new(most: usize) -> Samples {
        let (all, ids, by_path, ranks) = Default::default();
        Samples { all, ids, by_path, ranks, kept: 0, most }
    }

    /// So many durations of the next rank may be kept as they are.
    fn room(&self) -> usize {
        self.most.saturating_sub(self.kept)
    }

    fn add_rank(&mut self, names: Vec<String>, calls: RankCalls, known: Known) {
        let RankCalls { places: Places { by, shown, .. }, found, .. } = calls;
        let sets = self.all.add(&mut self.ids, &NamedPaths::new(names, shown));
        self.by_path.resize(self.all.paths.nodes().len(), Calls::default());
        for (&PathId(set), calls) in sets.iter().zip(found) {
            let joined = &mut self.by_path[set as usize];
            self.kept -= joined.durations.kept();
            joined.join(calls);
            self.kept += joined.durations.kept();
        }
        if self.kept > self.most {
            let durations = self.by_path.iter_mut().map(|calls| calls.durations.make_room());
            self.kept -= durations.sum::<usize>();
            // Many paths with a few calls each keep them.
            self.most = self.most.max(2 * self.kept);
        }
        self.ranks.push(RankPaths { by, sets, known });
    }

    /// What the calls of each of `paths` tell; `None` where they are not all that it counts.
    ///
    /// # Errors
    /// When the calls cannot be read again.
    fn spreads(self, paths: &NamedPaths, selected: &Selected<'_>) -> Result<Vec<Option<Spread>>, Error> {
        let Samples { mut all, mut ids, mut by_path, ranks, .. } = self;
        let wanted_paths = all.add(&mut ids, paths);
        by_path.resize(all.paths.nodes().len(), Calls::default());
        let durations = by_path.iter_mut().map(|calls| &mut calls.durations);
        let mut wanted =
            Wanted::new(durations, |calls| PARTS.iter().flat_map(|part| around(calls, *part)).collect());
        while wanted.is_incomplete() {
            let index = wanted.index();
            for (&rank, RankPaths { by, sets, known }) in selected.ranks.iter().zip(&ranks) {
                let (index, wanted) = (&index, &mut wanted);
                selected.nest(rank, Some(known.clone()), move |kept| Again {
                    places: Places::new(*by, kept),
                    sets,
                    index,
                    wanted,
                })?;
            }
            wanted.end();
        }
        let values = wanted.values();
        let nodes = paths.paths.nodes().iter().zip(wanted_paths);
        let spread = |(node, PathId(set)): (&PathTotals, PathId)| {
            let calls = &by_path[set as usize];
            (calls.durations.calls() == node.calls).then(|| calls.spread(&values[set as usize])).flatten()
        };
        Ok(nodes.map(spread).collect())
    }
}

impl Places {
    fn new(by: By, kept: Vec<bool>) -> Places {
        Places { by, kept, shown: PathTree::default(), places: Vec::new() }
    }

    /// Forgets all paths.
    fn begin(&mut self) {
        (self.shown, self.places) = Default::default();
    }

    /// Where calls of `path` belong; `None` where they are hidden.
    fn of(&mut self, paths: &PathTree, path: PathId) -> Option<PathId> {
        // Paths come in their order.
        if self.places.len() == path.0 as usize {
            let node = &paths.nodes()[path.0 as usize];
            let above = node.parent.and_then(|PathId(parent)| self.places[parent as usize].1);
            let is_kept = self.kept[node.region.0 as usize];
            let above = above.filter(|_| self.by == By::Path);
            let place = if is_kept { Some(self.shown.step(above, node.region)) } else { above };
            self.places.push((is_kept, place));
        }
        let (is_kept, place) = self.places[path.0 as usize];
        place.filter(|_| is_kept)
    }
}

impl RankCalls {
    fn new(by: By, kept: Vec<bool>, room: usize) -> RankCalls {
        RankCalls { places: Places::new(by, kept), found: Vec::new(), room, kept: 0 }
    }
}

impl CallVisitor for RankCalls {
    fn begin(&mut self) {
        self.places.begin();
        (self.found, self.kept) = Default::default();
    }

    fn call(&mut self, paths: &PathTree, path: PathId, start_ns: i64, end_ns: i64) {
        let Some(PathId(place)) = self.places.of(paths, path) else { return };
        if self.found.len() <= place as usize {
            self.found.resize(place as usize + 1, Calls::default());
        }
        self.kept += usize::from(self.found[place as usize].add(start_ns, end_ns));
        if self.kept > self.room {
            let durations = self.found.iter_mut().map(|calls| calls.durations.make_room());
            self.kept -= durations.sum::<usize>();
            // Many paths with a few calls each keep them.
            self.room = self.room.max(2 * self.kept);
        }
    }
}

/// Takes the calls of a rank again, in the same order, for what is still wanted of their durations.
struct Again<'a> {
    places: Places,
    /// The set of durations of each place.
    sets: &'a [PathId],
    index: &'a [usize],
    wanted: &'a mut Wanted,
}

impl CallVisitor for Again<'_> {
    /// What is known of the calls is never changed by taking them again, so nothing was seen before.
    fn begin(&mut self) {
        self.places.begin();
    }

    fn call(&mut self, paths: &PathTree, path: PathId, start_ns: i64, end_ns: i64) {
        if let Some(PathId(place)) = self.places.of(paths, path) {
            let set = self.sets[place as usize].0 as usize;
            self.wanted.see(self.index, set, end_ns.saturating_sub(start_ns));
        }
    }
}

impl Calls {
    /// Adds a call; they come in order of start. Whether its duration is kept as it is.
    fn add(&mut self, start_ns: i64, end_ns: i64) -> bool {
        let duration_ns = end_ns.saturating_sub(start_ns);
        self.first.get_or_insert((start_ns, duration_ns));
        if self.last.is_none_or(|(last_ns, _)| end_ns >= last_ns) {
            self.last = Some((end_ns, duration_ns));
        }
        let from_ns = self.until_ns.map_or(start_ns, |until_ns| until_ns.max(start_ns));
        self.coverage_ns = self.coverage_ns.saturating_add(end_ns.saturating_sub(from_ns).max(0));
        self.until_ns = self.until_ns.max(Some(end_ns));
        self.durations.add(duration_ns)
    }

    /// Adds those of another rank.
    fn join(&mut self, other: Calls) {
        self.durations.join(other.durations);
        self.coverage_ns = self.coverage_ns.saturating_add(other.coverage_ns);
        self.first = [self.first, other.first].into_iter().flatten().min_by_key(|(start_ns, _)| *start_ns);
        self.last = [self.last, other.last].into_iter().flatten().max_by_key(|(end_ns, _)| *end_ns);
    }

    /// With the durations at the places around each of [`PARTS`]; `None` without calls.
    fn spread(&self, values: &[i64]) -> Option<Spread> {
        let ((start_ns, first_ns), (_, last_ns)) = (self.first?, self.last?);
        let calls = self.durations.calls();
        let quantile = |at: usize| {
            let (below, above) = (values[2 * at] as f64, values[2 * at + 1] as f64);
            below + (above - below) * place(calls, PARTS[at]).fract()
        };
        Some(Spread {
            start_ns,
            first_ns,
            last_ns,
            std_ns: self.durations.std_ns(),
            p50_ns: quantile(0),
            p95_ns: quantile(1),
            p99_ns: quantile(2),
            coverage_ns: self.coverage_ns,
        })
    }
}

/// Where in the order of `calls` durations this part of them ends, as NumPy's `percentile` has it: between
/// two places it interpolates.
fn place(calls: u64, part: f64) -> f64 {
    part * (calls - 1) as f64
}

/// The two places around that.
fn around(calls: u64, part: f64) -> [u64; 2] {
    let place = place(calls, part);
    [place.floor() as u64, place.ceil() as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merged::{Events, Row};

    /// ```text
    /// rank 0   main [0                100]      rank 1   main [5  25]
    ///            walk [10    60]
    ///              walk [20 30]
    ///            walk         [70 80]
    /// ```
    fn two_ranks() -> MergedProfile {
        let row = |region, rank, events| Row { region, rank, events, ..Row::default() };
        let events = Events {
            start_ns: vec![0, 10, 20, 70, 5],
            duration_ns: vec![100, 50, 10, 10, 20],
            ..Events::default()
        };
        MergedProfile {
            names: vec!["main".into(), "walk".into()],
            rows: vec![row(0, 0, 0..1), row(1, 0, 1..4), row(0, 1, 4..5)],
            events,
            ..MergedProfile::default()
        }
    }

    #[test]
    fn regions_pool_their_calls_and_count_recursion_once() {
        let (paths, statistics) =
            statistics(&two_ranks(), &Selection::default(), By::Region, &mut LeftOut::default()).unwrap();
        assert_eq!(paths.names, ["main", "walk"]);
        let [main, walk] = &statistics[..] else { panic!("{statistics:?}") };
        assert_eq!((main.ranks, main.calls, main.total_ns, main.self_ns), (2, 2, 120, 60));
        // 100 against a mean of 60.
        assert!((main.imbalance_percent - 200.0 / 3.0).abs() < 1e-12, "{main:?}");
        assert_eq!((walk.ranks, walk.calls, walk.total_ns, walk.inclusive_ns), (1, 3, 70, 60));
        assert_eq!((walk.min_ns, walk.max_ns, walk.mean_ns()), (10, 50, Some(70.0 / 3.0)));
        let spread = walk.spread.unwrap();
        assert_eq!((spread.start_ns, spread.first_ns, spread.last_ns, spread.coverage_ns), (10, 50, 10, 60));
        assert_eq!((spread.p50_ns, spread.p95_ns, spread.p99_ns), (10.0, 46.0, 49.2));
        // Of 10, 10 and 50.
        assert!((spread.std_ns - (3200.0f64 / 9.0).sqrt()).abs() < 1e-9, "{spread:?}");
    }

    /// However many ranks there are.
    #[test]
    fn durations_of_all_ranks_are_kept_up_to_a_limit() {
        let mut samples = Samples::new(1_000);
        for _ in 0..50 {
            let mut paths = PathTree::default();
            let path = paths.step(None, RegionId(0));
            let mut calls = RankCalls::new(By::Path, vec![true], samples.room());
            (0..100).for_each(|at| calls.call(&paths, path, at, 2 * at));
            samples.add_rank(vec!["main".into()], calls, Known::default());
            assert!(samples.kept <= 1_000 && samples.kept == samples.by_path[0].durations.kept());
        }
        assert_eq!((samples.by_path.len(), samples.by_path[0].durations.calls()), (1, 5_000));
    }

    #[test]
    fn paths_have_their_own_calls() {
        let (paths, statistics) =
            statistics(&two_ranks(), &Selection::default(), By::Path, &mut LeftOut::default()).unwrap();
        let calls: Vec<_> = statistics.iter().map(|one| (one.calls, one.total_ns)).collect();
        assert_eq!((paths.paths.nodes().len(), calls), (3, vec![(2, 120), (2, 60), (1, 10)]));
        assert_eq!(statistics[2].spread.unwrap().p50_ns, 10.0);
        assert_eq!(statistics[0].spread.unwrap().coverage_ns, 120);
    }

    #[test]
    fn hidden_regions_have_no_row() {
        let path = crate::merged::PathRow { parent: -1, calls: 1, ..Default::default() };
        let paths = vec![path, crate::merged::PathRow { parent: 0, region: 1, ..path }];
        let profile = MergedProfile { paths: Some(paths), ..two_ranks() };
        let selection = Selection { include: vec!["walk".into()], ..Selection::default() };
        let (paths, statistics) =
            statistics(&profile, &selection, By::Region, &mut LeftOut::default()).unwrap();
        assert_eq!((paths.names, statistics.len()), (vec!["walk".to_string()], 1));
    }

    #[test]
    fn calls_that_are_not_all_tell_nothing() {
        let path = crate::merged::PathRow { parent: -1, calls: 7, wall_ns: 700, ..Default::default() };
        let profile = MergedProfile { paths: Some(vec![path]), ..two_ranks() };
        let (_, statistics) =
            statistics(&profile, &Selection::default(), By::Path, &mut LeftOut::default()).unwrap();
        assert_eq!((statistics[0].calls, statistics[0].total_ns, statistics[0].spread), (7, 700, None));
    }
}
