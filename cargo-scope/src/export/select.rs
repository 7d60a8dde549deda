//! The calls of the selected ranks and regions, nested.

use std::cell::OnceCell;
use std::collections::HashMap;

use regex::Regex;
use scope_runtime::call_stack::{BadLanes, LaneReport, RegionCalls, RegionTable, build_good_lanes};
use scope_runtime::profile::RegionId;
use scope_runtime::totals::{PathId, PathTree};

use super::view::{self, View};
use super::{Error, Selection};
use crate::merged::{MergedProfile, PathRow, Row};
use crate::paths::NamedPaths;

/// A profile with what is selected from it.
pub(super) struct Selected<'a> {
    profile: &'a MergedProfile,
    /// Ranks, in ascending order.
    pub(super) ranks: Vec<u32>,
    /// All regions that have a row, in the order in which they are listed.
    order: Vec<u32>,
    /// For each region whether the filters keep it.
    kept: Vec<bool>,
    /// Position in the profile's rows by rank and region.
    rows: HashMap<(u32, u32), usize>,
    view: View,
    /// Positions of the view's paths in the profile's, by rank; those of a rank in ascending order.
    paths: OnceCell<HashMap<u32, Vec<usize>>>,
}

impl<'a> Selected<'a> {
    /// Checks `selection` against `profile`.
    ///
    /// # Errors
    /// When it does not fit.
    pub(super) fn new(profile: &'a MergedProfile, selection: &Selection) -> Result<Selected<'a>, Error> {
        let filter = Filter::new(selection)?;
        let order = regions_in_order(profile);
        let kept: Vec<_> = profile.names.iter().map(|name| filter.keeps(name)).collect();
        if !order.is_empty() && !order.iter().any(|&region| kept[region as usize]) {
            return Err(Error::NoRegions { regions: order.len() });
        }
        // A run that recorded nothing had a rank all the same.
        let ranks = selection.ranks.resolve(profile.ranks().max(1))?;
        let rows =
            profile.rows.iter().enumerate().map(|(index, row)| ((row.rank, row.region), index)).collect();
        Ok(Selected { profile, ranks, order, kept, rows, view: selection.view, paths: OnceCell::new() })
    }

    /// The same for what is drawn or nested.
    ///
    /// # Errors
    /// Also when the profile has no call paths.
    pub(super) fn with_paths(
        profile: &'a MergedProfile,
        selection: &Selection,
    ) -> Result<Selected<'a>, Error> {
        if profile.has_regions_only() {
            return Err(Error::TotalsOnly);
        }
        Selected::new(profile, selection)
    }

    /// The selected calls of `rank`. Lanes that do not nest are left out, with their errors.
    ///
    /// # Errors
    /// When the columns do not fit each other, or there are more calls than can be numbered.
    pub(super) fn calls(&self, rank: u32) -> Result<LaneReport, Error> {
        let keeps_all = self.order.iter().all(|&region| self.kept[region as usize]);
        if keeps_all || self.profile.events.parent_ids.is_none() || self.view == View::WallByLane {
            return self.nest(rank, |region| self.kept[region as usize]);
        }
        // Recorded parents are known only as long as all calls are there, so the hidden ones are
        // taken out afterwards.
        let mut report = self.nest(rank, |_| true)?;
        let kept: Vec<_> = self.rows_of(rank).map(|row| self.kept[row.region as usize]).collect();
        report.calls = report.calls.keep_regions(|index| kept[index]);
        Ok(report)
    }

    fn nest(&self, rank: u32, keep: impl Fn(u32) -> bool) -> Result<LaneReport, Error> {
        let rows: Vec<&Row> = self.rows_of(rank).filter(|row| keep(row.region)).collect();
        let ends: Vec<_> = rows.iter().map(|row| self.ends(row)).collect();
        let regions: Vec<_> =
            rows.iter().zip(&ends).map(|(row, ends)| self.region_calls(row, ends)).collect();
        build_good_lanes(&regions, BadLanes::Drop).map_err(|source| Error::Calls { rank, source })
    }

    fn rows_of(&self, rank: u32) -> impl Iterator<Item = &'a Row> {
        let rows = self.order.iter().filter_map(move |&region| self.rows.get(&(rank, region)));
        rows.map(|&row| &self.profile.rows[row])
    }

    fn ends(&self, row: &Row) -> Vec<i64> {
        let run = row.events.clone();
        let calls =
            self.profile.events.start_ns[run.clone()].iter().zip(&self.profile.events.duration_ns[run]);
        calls.map(|(start_ns, duration_ns)| start_ns.saturating_add(*duration_ns)).collect()
    }

    fn region_calls<'b>(&'b self, row: &'b Row, ends: &'b [i64]) -> RegionCalls<'b> {
        let run = row.events.clone();
        let events = &self.profile.events;
        let column = |column: &'b Option<Vec<i64>>| column.as_ref().map(|column| &column[run.clone()]);
        RegionCalls {
            name: &self.profile.names[row.region as usize],
            source_file: Some(row.source_file.as_str()).filter(|file| !file.is_empty()),
            source_line: Some(row.source_line).filter(|&line| line >= 0),
            starts: &events.start_ns[run.clone()],
            ends,
            thread_ids: column(&events.thread_ids),
            task_ids: column(&events.task_ids),
            call_ids: column(&events.call_ids).filter(|_| self.view != View::WallByLane),
            parent_ids: column(&events.parent_ids).filter(|_| self.view != View::WallByLane),
        }
    }

    /// What titles say of the times.
    pub(super) fn view_name(&self) -> Option<&'static str> {
        self.view.name(self.profile)
    }

    /// The call paths of `rank`, with the place of each region.
    ///
    /// They come from the totals where the profile has some: its events are not all then, or do not
    /// say when they ran. Where it has totals per region only, each region is a path of one step.
    pub(super) fn totals(&self, rank: u32) -> Option<(PathTree, RegionTable)> {
        let rows = match self.view {
            _ if self.profile.has_regions_only() => self.region_totals(rank),
            View::Busy => self.paths_of(rank, self.profile.paths.as_ref()?),
            View::Linked => {
                self.paths_of(rank, self.profile.linked_paths.as_ref().or(self.profile.paths.as_ref())?)
            }
            View::WallByLane => return None,
            View::Wall => {
                self.profile.tasks.as_ref()?;
                let paths = view::wall_paths(self.profile, rank)?;
                let rows = paths.nodes().iter().map(|node| PathRow::new(rank, node.region.0, node));
                rows.enumerate().collect()
            }
        };
        let mut regions = RegionTable::default();
        for (region, name) in self.profile.names.iter().enumerate() {
            let row = self.rows.get(&(rank, region as u32)).map(|&row| &self.profile.rows[row]);
            let file = row.map(|row| row.source_file.clone()).filter(|file| !file.is_empty());
            regions.names.push(name.clone());
            regions.source_files.push(file);
            regions.source_lines.push(row.map(|row| row.source_line).filter(|&line| line >= 0));
        }
        let mut tree = PathTree::default();
        // What a path has become: hidden regions leave their time to the nearest kept one.
        let mut kept: Vec<(usize, Option<PathId>)> = Vec::with_capacity(rows.len());
        for (position, row) in rows {
            let parent = usize::try_from(row.parent).ok();
            let parent = parent.and_then(|parent| {
                let place = kept.binary_search_by_key(&parent, |&(position, _)| position).ok()?;
                kept[place].1
            });
            if !self.kept[row.region as usize] {
                if let Some(parent) = parent {
                    tree.add_self(parent, row.self_ns);
                }
                kept.push((position, parent));
                continue;
            }
            let path = tree.step(parent, RegionId(row.region));
            tree.add_totals(path, &row.totals(parent));
            kept.push((position, Some(path)));
        }
        Some((tree, regions))
    }

    /// The paths of `rank` and their positions in `all`, which are the same in each call.
    fn paths_of(&self, rank: u32, all: &[PathRow]) -> Vec<(usize, PathRow)> {
        let by_rank = self.paths.get_or_init(|| {
            let mut by_rank: HashMap<u32, Vec<usize>> = HashMap::new();
            all.iter().enumerate().for_each(|(at, path)| by_rank.entry(path.rank).or_default().push(at));
            by_rank
        });
        by_rank.get(&rank).into_iter().flatten().map(|&at| (at, all[at])).collect()
    }

    /// The regions of `rank` as paths of one step, with the positions of their rows.
    fn region_totals(&self, rank: u32) -> Vec<(usize, PathRow)> {
        let regions = 0..self.profile.names.len() as u32;
        let mut rows: Vec<usize> =
            regions.filter_map(|region| self.rows.get(&(rank, region))).copied().collect();
        rows.sort_unstable();
        let totals = self.profile.aggregates.as_deref().unwrap_or_default();
        let called = rows.into_iter().filter(|&row| totals[row].count > 0);
        called.map(|row| (row, PathRow::of_region(&self.profile.rows[row], &totals[row]))).collect()
    }

    /// The call paths of `rank`.
    pub(super) fn paths(&self, rank: u32) -> Result<NamedPaths, Error> {
        if let Some((paths, _)) = self.totals(rank) {
            return Ok(NamedPaths { names: self.profile.names.clone(), paths });
        }
        let calls = self.calls(rank)?.calls;
        Ok(NamedPaths { names: calls.names().to_vec(), paths: PathTree::from_calls(&calls) })
    }

    /// The call paths of all selected ranks, added up.
    pub(super) fn all_paths(&self) -> Result<NamedPaths, Error> {
        // Rank by rank, so that the calls and paths of one rank at a time are in memory twice.
        let (mut all, mut ids) = (NamedPaths::default(), HashMap::new());
        for &rank in &self.ranks {
            all.add(&mut ids, &self.paths(rank)?);
        }
        Ok(all)
    }
}

/// Regions with a row by their first start over all ranks, in seconds as floats, as the Python
/// package lists them: the order decides which of two equal intervals encloses the other.
fn regions_in_order(profile: &MergedProfile) -> Vec<u32> {
    let mut first_s: Vec<Option<f64>> = vec![None; profile.names.len()];
    for row in &profile.rows {
        let first_ns = profile.events.start_ns[row.events.clone()].iter().min().copied().unwrap_or(0);
        let start_s = first_ns as f64 / 1e9;
        let first = &mut first_s[row.region as usize];
        *first = Some(first.map_or(start_s, |first| first.min(start_s)));
    }
    let mut order: Vec<_> =
        (0u32..).zip(first_s).filter_map(|(region, first)| Some((first?, region))).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    order.into_iter().map(|(_, region)| region).collect()
}

struct Filter {
    include: Vec<Regex>,
    exclude: Vec<Regex>,
}

impl Filter {
    fn new(selection: &Selection) -> Result<Filter, Error> {
        let compile = |pattern: &String| {
            Regex::new(pattern)
                .map_err(|error| Error::BadPattern { pattern: pattern.clone(), source: Box::new(error) })
        };
        let include = selection.include.iter().map(compile).collect::<Result<_, _>>()?;
        let exclude = selection.exclude.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Filter { include, exclude })
    }

    fn keeps(&self, name: &str) -> bool {
        // The leftmost match is at the start if any is.
        let matches = |pattern: &Regex| pattern.find(name).is_some_and(|found| found.start() == 0);
        (self.include.is_empty() || self.include.iter().any(matches)) && !self.exclude.iter().any(matches)
    }
}
