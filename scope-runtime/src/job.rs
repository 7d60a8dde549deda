//! Totals of all ranks of a job: those of single ranks in, what they add up to and how they differ out.
//!
//! Paths of different ranks are the same where the names of their regions are; which ranks have one,
//! and in which order, may differ.

use std::cmp::Reverse;
use std::collections::HashMap;

#[cfg(any(test, all(feature = "mpi", not(feature = "off"))))]
use crate::format::{FieldReader, Fields};
use crate::names::visible;
use crate::profile::Profile;
use crate::text_table::aligned;
use crate::units::{count, counted, duration};

/// Totals of some ranks, by call path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobTotals {
    /// Number of ranks that are in it.
    pub ranks: u32,
    /// Parents before children.
    paths: Vec<JobPath>,
    by_step: HashMap<(usize, String), usize>,
}

/// One call path over all ranks that have it. Times in ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPath {
    /// The path without its last region: index into [`JobTotals::paths`].
    pub parent: Option<usize>,
    /// Name of the last region.
    pub name: String,
    /// Number of ranks that have it.
    pub ranks: u32,
    /// Number of calls.
    pub calls: u64,
    /// Calls among them that were still open, and are counted up to then.
    pub open: u64,
    /// Time in which threads ran the calls or what they called.
    pub inclusive_ns: i64,
    /// The same, less the inclusive time of direct children.
    pub self_ns: i64,
    /// The inclusive time of the rank with least of it.
    pub least_ns: i64,
    /// The inclusive time of the rank with most of it.
    pub most_ns: i64,
    /// That rank; of several the first.
    pub most_rank: u32,
}

impl JobPath {
    /// Mean inclusive time of the ranks that have it, in whole ns.
    pub fn mean_ns(&self) -> i64 {
        self.inclusive_ns / i64::from(self.ranks.max(1))
    }

    /// By what part the rank with most time exceeds the mean; 0 where there is no time.
    pub fn imbalance(&self) -> f64 {
        if self.inclusive_ns <= 0 {
            return 0.0;
        }
        self.most_ns as f64 * f64::from(self.ranks) / self.inclusive_ns as f64 - 1.0
    }

    fn add(&mut self, other: &JobPath) {
        let newer_is_most =
            (other.most_ns, Reverse(other.most_rank)) > (self.most_ns, Reverse(self.most_rank));
        if newer_is_most {
            (self.most_ns, self.most_rank) = (other.most_ns, other.most_rank);
        }
        self.ranks = self.ranks.saturating_add(other.ranks);
        self.calls = self.calls.saturating_add(other.calls);
        self.open = self.open.saturating_add(other.open);
        self.inclusive_ns = self.inclusive_ns.saturating_add(other.inclusive_ns);
        self.self_ns = self.self_ns.saturating_add(other.self_ns);
        self.least_ns = self.least_ns.min(other.least_ns);
    }
}

/// Stands for no parent in the keys of steps, and in the bytes.
const TOP: usize = usize::MAX;

impl JobTotals {
    /// The totals of one rank.
    ///
    /// # Examples
    /// ```
    /// use scope_runtime::job::JobTotals;
    /// use scope_runtime::profile::Profile;
    ///
    /// let mut job = JobTotals::of_rank(&Profile::default());
    /// job.add(&JobTotals::of_rank(&Profile { rank: 1, ..Profile::default() }));
    /// assert_eq!((job.ranks, job.paths().len()), (2, 0));
    /// ```
    pub fn of_rank(profile: &Profile) -> JobTotals {
        let mut totals = JobTotals { ranks: 1, ..JobTotals::default() };
        let mut places = Vec::with_capacity(profile.paths.nodes().len());
        for path in profile.paths.nodes() {
            let name = profile.regions.get(path.region.0 as usize).map_or("", |region| &region.name);
            let path = JobPath {
                parent: path.parent.map(|parent| places[parent.0 as usize]),
                name: name.to_owned(),
                ranks: 1,
                calls: path.calls,
                open: path.open,
                inclusive_ns: path.inclusive_ns,
                self_ns: path.self_ns,
                least_ns: path.inclusive_ns,
                most_ns: path.inclusive_ns,
                most_rank: profile.rank,
            };
            places.push(totals.add_path(path));
        }
        totals
    }

    /// The paths, parents before children.
    pub fn paths(&self) -> &[JobPath] {
        &self.paths
    }

    /// Adds the totals of other ranks.
    pub fn add(&mut self, other: &JobTotals) {
        self.ranks = self.ranks.saturating_add(other.ranks);
        let mut places: Vec<usize> = Vec::with_capacity(other.paths.len());
        for path in &other.paths {
            let parent = path.parent.map(|parent| places[parent]);
            places.push(self.add_path(JobPath { parent, ..path.clone() }));
        }
    }

    /// Adds a path, whose parent is known; gives its place.
    fn add_path(&mut self, path: JobPath) -> usize {
        let key = (path.parent.unwrap_or(TOP), path.name.clone());
        let next = self.paths.len();
        let place = *self.by_step.entry(key).or_insert(next);
        match self.paths.get_mut(place) {
            Some(known) => known.add(&path),
            None => self.paths.push(path),
        }
        place
    }

    /// The totals as bytes, for another rank.
    #[cfg(any(test, all(feature = "mpi", not(feature = "off"))))]
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let fields = Fields::default().u32(self.ranks).u32(self.paths.len() as u32);
        let path = |fields: Fields, path: &JobPath| {
            let fields = fields.u32(path.parent.unwrap_or(TOP) as u32).text(&path.name);
            let fields = fields.u32(path.ranks).u64(path.calls).u64(path.open);
            let times = [path.inclusive_ns, path.self_ns, path.least_ns, path.most_ns];
            let fields = times.iter().fold(fields, |fields, ns| fields.u64(ns.cast_unsigned()));
            fields.u32(path.most_rank)
        };
        self.paths.iter().fold(fields, path).0
    }

    /// The totals in such bytes; `None` where they make no sense.
    #[cfg(any(test, all(feature = "mpi", not(feature = "off"))))]
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<JobTotals> {
        let mut fields = FieldReader(bytes);
        let mut totals = JobTotals { ranks: fields.u32()?, ..JobTotals::default() };
        for _ in 0..fields.u32()? {
            let parent = match fields.u32()? {
                u32::MAX => None,
                parent if (parent as usize) < totals.paths.len() => Some(parent as usize),
                _ => return None,
            };
            let name = fields.text()?;
            let (ranks, calls, open) = (fields.u32()?, fields.u64()?, fields.u64()?);
            let mut ns = || fields.u64().map(u64::cast_signed);
            let (inclusive_ns, self_ns, least_ns, most_ns) = (ns()?, ns()?, ns()?, ns()?);
            let most_rank = fields.u32()?;
            totals.add_path(JobPath {
                parent,
                name,
                ranks,
                calls,
                open,
                inclusive_ns,
                self_ns,
                least_ns,
                most_ns,
                most_rank,
            });
        }
        fields.0.is_empty().then_some(totals)
    }

    /// The totals as a table, a tree with the longest first; times are those of one rank.
    pub fn render(&self) -> String {
        let head = ["call path", "ranks", "calls", "mean", "min", "max", "imbalance", "slowest"];
        let mut lines = vec![head.map(String::from)];
        let shown = self.shown();
        for &(place, depth) in &shown {
            let path = &self.paths[place];
            let name = shorten(&visible(&path.name), MOST_LETTERS);
            lines.push([
                format!("{:indent$}{name}", "", indent = 2 * depth.min(MOST_LEVELS)),
                count(path.ranks.into()),
                format!("{}{}", count(path.calls), if path.open > 0 { "*" } else { "" }),
                duration(path.mean_ns()),
                duration(path.least_ns),
                duration(path.most_ns),
                format!("{:.1}%", 100.0 * path.imbalance()),
                format!("rank {}", path.most_rank),
            ]);
        }
        let mut text = aligned(&lines, b"<>>>>>>>", |text| text.chars().count());
        let left_out = self.paths.len() - shown.len();
        if left_out > 0 {
            text += &format!("... {}\n", counted(left_out as u64, "more call path", "more call paths"));
        }
        if shown.iter().any(|&(place, _)| self.paths[place].open > 0) {
            text += "* with calls that are still open, counted up to now\n";
        }
        text
    }

    /// The paths of a table and their depths: the longest, with all that is above them.
    fn shown(&self) -> Vec<(usize, usize)> {
        let mut longest: Vec<usize> = (0..self.paths.len()).collect();
        longest.sort_by_key(|&place| (Reverse(self.paths[place].inclusive_ns), place));
        let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        let mut is_shown = vec![false; self.paths.len()];
        for place in longest.into_iter().take(MOST_ROWS) {
            // A parent is mostly the longer one, and then it is here already.
            let mut next = Some(place);
            while let Some(place) = next.filter(|&place| !is_shown[place]) {
                is_shown[place] = true;
                next = self.paths[place].parent;
                children.entry(next).or_default().push(place);
            }
        }
        let mut shown = Vec::new();
        let mut open: Vec<(usize, usize)> = Vec::new();
        let mut below = |parent, depth, open: &mut Vec<(usize, usize)>| {
            let places = children.remove(&parent).unwrap_or_default();
            open.extend(places.into_iter().rev().map(|place| (place, depth)));
        };
        below(None, 0, &mut open);
        while let Some((place, depth)) = open.pop() {
            shown.push((place, depth));
            below(Some(place), depth + 1, &mut open);
        }
        shown
    }
}

/// Most rows of a table, not counting what is above them.
const MOST_ROWS: usize = 40;
/// Levels from here on are shown at one place: what is deeper than a line is wide is no tree any more.
const MOST_LEVELS: usize = 16;
/// Most letters of a name.
const MOST_LETTERS: usize = 48;

fn shorten(name: &str, room: usize) -> String {
    match name.char_indices().nth(room) {
        Some(_) => name.chars().take(room - 1).chain(['…']).collect(),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Region, RegionId};
    use crate::totals::PathTree;

    /// `main` with one child of each name, taking so many ns; `main` takes 100 ns besides.
    fn profile(rank: u32, children: &[(&str, i64)]) -> Profile {
        let region = |name: &str| Region { name: name.into(), file: String::new(), line: 0 };
        let names = std::iter::once("main").chain(children.iter().map(|&(name, _)| name));
        let mut paths = PathTree::default();
        let sum: i64 = children.iter().map(|&(_, ns)| ns).sum();
        let main = paths.step(None, RegionId(0));
        paths.add_call(main, 100 + sum, 100, false);
        for (&(_, ns), region) in children.iter().zip(1..) {
            let path = paths.step(Some(main), RegionId(region));
            paths.add_call(path, ns, ns, false);
        }
        Profile { rank, regions: names.map(region).collect(), paths, ..Profile::default() }
    }

    fn job() -> JobTotals {
        let mut job = JobTotals::of_rank(&profile(0, &[("a", 10), ("b", 20)]));
        job.add(&JobTotals::of_rank(&profile(2, &[("b", 50)])));
        job.add(&JobTotals::of_rank(&profile(1, &[("b", 50), ("c", 1), ("a", 30)])));
        job
    }

    #[test]
    fn names_decide_and_not_every_rank_has_every_path() {
        let job = job();
        assert_eq!(job.ranks, 3);
        let path = |name: &str| job.paths().iter().find(|path| path.name == name).unwrap();
        let b = path("b");
        assert_eq!((b.ranks, b.calls, b.inclusive_ns, b.least_ns, b.most_ns), (3, 3, 120, 20, 50));
        assert_eq!(b.most_rank, 1);
        assert_eq!(b.imbalance(), 0.25);
        let (a, c) = (path("a"), path("c"));
        assert_eq!((a.ranks, a.mean_ns(), a.most_rank, c.ranks), (2, 20, 1, 1));
        assert_eq!(path("main").self_ns, 300);
    }

    #[test]
    fn bytes_come_back_and_damaged_ones_do_no_harm() {
        let job = job();
        let bytes = job.to_bytes();
        assert_eq!(JobTotals::from_bytes(&bytes), Some(job));
        for len in 0..bytes.len() {
            assert_eq!(JobTotals::from_bytes(&bytes[..len]), None, "{len} bytes");
        }
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x80;
            if let Some(totals) = JobTotals::from_bytes(&flipped) {
                totals.render();
            }
        }
    }

    #[test]
    fn the_table_is_a_tree_with_the_longest_first() {
        let text = job().render();
        let names: Vec<&str> =
            text.lines().map(|line| line.split("  ").find(|cell| !cell.is_empty()).unwrap()).collect();
        assert_eq!(names, ["call path", "main", "b", "a", "c"]);
        assert!(
            text.contains("  b            3      3   40 ns   20 ns   50 ns      25.0%   rank 1\n"),
            "{text}"
        );
    }

    #[test]
    fn a_table_of_a_very_deep_path_is_not_wider_for_it() {
        let mut paths = PathTree::default();
        let mut path = paths.step(None, RegionId(0));
        for _ in 0..40_000 {
            path = paths.step(Some(path), RegionId(0));
        }
        // Longer than what is above it, as a damaged recording may have it.
        paths.add_call(path, 7, 7, false);
        let text = JobTotals::of_rank(&Profile { paths, ..profile(0, &[]) }).render();
        assert!(text.lines().all(|line| line.len() < 200));
    }

    #[test]
    fn a_large_table_is_cut() {
        let names: Vec<String> = (0..100).map(|n| format!("region {n}")).collect();
        let children: Vec<(&str, i64)> = names.iter().map(|name| (name.as_str(), 5)).collect();
        let text = JobTotals::of_rank(&profile(0, &children)).render();
        assert!(text.ends_with("... 61 more call paths\n"), "{text}");
    }
}
