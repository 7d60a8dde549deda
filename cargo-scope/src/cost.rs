//! What measuring itself cost: in all, and against what each region takes.
//!
//! The program measures at its start what a region with nothing in it costs on its machine; the
//! profile holds that as `region_cost_ns`.

use std::cmp::Reverse;
use std::collections::HashMap;

use scope_runtime::profile::RegionId;
use scope_runtime::text_table::aligned;
use unicode_width::UnicodeWidthStr;

use crate::export::CallStatistics;
use crate::merged::{MergedProfile, MetadataValue};
use crate::names::visible;
use crate::paths::NamedPaths;
use crate::units::{count, counted, duration};

/// A mean below this many times the cost says more about measuring than about the region.
pub const LEAST_TIMES: f64 = 20.0;

/// What one region costs where the program ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionCost {
    /// Entering and leaving, in ns.
    pub ns: f64,
}

/// All calls of one region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    calls: u64,
    /// Of all durations, as the mean that is shown has them.
    total_ns: i64,
}

impl RegionCost {
    /// The cost as the profile has it; `None` where it was not measured.
    pub fn of(profile: &MergedProfile) -> Option<RegionCost> {
        match profile.metadata_value("region_cost_ns") {
            Some(&MetadataValue::Float(ns)) if ns > 0.0 => Some(RegionCost { ns }),
            _ => None,
        }
    }

    /// What measuring these paths cost, in words.
    pub fn in_all(&self, paths: &NamedPaths) -> String {
        let calls = paths.paths.nodes().iter().map(|node| node.calls).sum();
        let total = duration(self.total_ns(calls));
        format!("measuring took about {total}: {} at {:.1} ns", counted(calls, "call", "calls"), self.ns)
    }

    fn total_ns(&self, calls: u64) -> i64 {
        (self.ns * calls as f64) as i64
    }

    /// For each region of `paths` whether its mean is below [`LEAST_TIMES`] times the cost.
    pub(crate) fn too_short(&self, paths: &NamedPaths, statistics: &[CallStatistics]) -> Vec<bool> {
        sums(paths, statistics).iter().map(|sums| self.is_too_short(sums)).collect()
    }

    fn is_too_short(&self, sums: &Sums) -> bool {
        sums.calls > 0 && (sums.total_ns as f64) < LEAST_TIMES * self.ns * sums.calls as f64
    }

    /// The regions that are too short, those first whose measuring took longest, and what to do.
    pub fn report(&self, profile: &MergedProfile, paths: &NamedPaths) -> String {
        let mut text = format!("{}\n", self.in_all(paths));
        let statistics: Vec<_> = paths.paths.nodes().iter().map(CallStatistics::of_path).collect();
        let sums = sums(paths, &statistics);
        let mut regions: Vec<_> =
            (0..).map(RegionId).zip(sums).filter(|(_, sums)| self.is_too_short(sums)).collect();
        if regions.is_empty() {
            text.push_str(&format!("No region has a mean below {LEAST_TIMES} times that.\n"));
            return text;
        }
        regions.sort_by_key(|&(region, sums)| (Reverse(sums.calls), region.0));
        let places = places(profile);
        let heads = ["region", "calls", "mean", "measuring", "proposed"].map(String::from);
        let rows = regions.iter().map(|&(region, sums)| {
            let name = paths.name(region);
            let place = places.get(name).map_or(String::new(), |place| format!("  // {place}"));
            [
                visible(name).into_owned(),
                count(sums.calls),
                duration(sums.total_ns / sums.calls as i64),
                duration(self.total_ns(sums.calls)),
                format!("#[scope(skip)]{place}"),
            ]
        });
        let rows: Vec<_> = [heads].into_iter().chain(rows).collect();
        text.push('\n');
        text.push_str(&aligned(&rows, b"<>>><", UnicodeWidthStr::width));
        text.push_str(&format!(
            "\nTheir mean is below {LEAST_TIMES} times the cost of a region. Put `#[scope(skip)]` at such a function, or \
             take its mark away:\nits time then counts as that of its caller.\n"
        ));
        text
    }
}

/// Sums per region; the index is its id.
fn sums(paths: &NamedPaths, statistics: &[CallStatistics]) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); paths.names.len()];
    for (node, of) in paths.paths.nodes().iter().zip(statistics) {
        let Some(sums) = sums.get_mut(node.region.0 as usize) else { continue };
        sums.calls += of.calls;
        sums.total_ns = sums.total_ns.saturating_add(of.total_ns);
    }
    sums
}

/// Where the regions are, `src/main.rs:7`, by name.
fn places(profile: &MergedProfile) -> HashMap<&str, String> {
    let known = profile.rows.iter().filter(|row| !row.source_file.is_empty() && row.source_line > 0);
    known
        .map(|row| {
            let name = profile.names[row.region as usize].as_str();
            (name, format!("{}:{}", visible(&row.source_file), row.source_line))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use scope_runtime::totals::PathTree;

    use super::*;
    use crate::merged::Row;

    /// `main` 1 ms with 1,000 calls of `step` at 100 ns in it, of which each has a `cell` of 700 ns
    /// once and 40 ns once: both below 20 times 33 ns on the mean.
    fn paths() -> NamedPaths {
        let mut paths = PathTree::default();
        let main = paths.step(None, RegionId(0));
        paths.add_call(main, 1_000_000, 900_000, false);
        let step = paths.step(Some(main), RegionId(1));
        (0..1_000).for_each(|_| paths.add_call(step, 100, 100, false));
        let cell = paths.step(Some(main), RegionId(2));
        paths.add_call(cell, 700, 700, false);
        let other = paths.step(Some(step), RegionId(2));
        paths.add_call(other, 40, 40, false);
        NamedPaths::new(["main", "step", "cell"].map(String::from).to_vec(), paths)
    }

    #[test]
    fn regions_are_too_short_by_the_mean_of_all_their_calls() {
        let paths = paths();
        let statistics: Vec<_> = paths.paths.nodes().iter().map(CallStatistics::of_path).collect();
        let too_short = |ns| RegionCost { ns }.too_short(&paths, &statistics);
        assert_eq!(too_short(33.0), [false, true, true]);
        assert_eq!(too_short(18.0), [false, true, false]);
    }

    #[test]
    fn the_report_proposes_what_to_skip() {
        let row = Row { region: 1, source_file: "src/main.rs".into(), source_line: 7, ..Row::default() };
        let names = paths().names;
        let profile = MergedProfile { names, rows: vec![row], ..MergedProfile::default() };
        let text = RegionCost { ns: 33.1 }.report(&profile, &paths());
        let expected = "\
measuring took about 33.20 us: 1,003 calls at 33.1 ns

region  calls    mean  measuring  proposed
step    1,000  100 ns   33.10 us  #[scope(skip)]  // src/main.rs:7
cell        2  370 ns      66 ns  #[scope(skip)]

Their mean is below 20 times the cost of a region. Put `#[scope(skip)]` at such a function, or take its mark away:
its time then counts as that of its caller.
";
        assert_eq!(text, expected, "\n{text}");
        let text = RegionCost { ns: 0.5 }.report(&profile, &paths());
        assert!(text.ends_with("\nNo region has a mean below 20 times that.\n"), "{text}");
    }
}
