//! The calls of the selected ranks and regions, nested.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

use regex::Regex;
use scope_runtime::call_stack::RegionTable;
use scope_runtime::call_stack::stored::{
    CallVisitor, Known, Nested, Options, SORTED_CALL_BYTES, StoredError, StoredRegion, nest_stored_calls,
};
use scope_runtime::profile::RegionId;
use scope_runtime::totals::{PathId, PathTotals, PathTree};

use super::calls::Calls;
use super::left_out::LeftOut;
use super::view::{self, View};
use super::{Error, Selection};
use crate::hdf5;
use crate::merged::{MergedProfile, PathRow, Row};
use crate::paths::NamedPaths;

/// A profile with what is selected from it.
pub(super) struct Selected<'a> {
    profile: &'a MergedProfile,
    /// Ranks, in ascending order.
    pub(super) ranks: Vec<u32>,
    /// For each region whether the filters keep it.
    kept: Vec<bool>,
    /// Position in the profile's rows by rank and region.
    rows: HashMap<(u32, u32), usize>,
    view: View,
    /// Positions of the view's paths in the profile's, by rank; those of a rank in ascending order.
    paths: OnceCell<HashMap<u32, Vec<usize>>>,
    /// The calls, from when they are first needed.
    calls: RefCell<Option<Calls<'a>>>,
    /// Of the ranks whose paths were made from calls.
    left_out: RefCell<LeftOut>,
    /// The profile with its calls in memory, from when that is first needed.
    loaded: OnceCell<MergedProfile>,
}

/// Call paths of a rank with what its regions are called and where they are.
pub(super) type Sums = (PathTree, RegionTable);

impl<'a> Selected<'a> {
    /// Checks `selection` against `profile`.
    ///
    /// # Errors
    /// When it does not fit.
    pub(super) fn new(profile: &'a MergedProfile, selection: &Selection) -> Result<Selected<'a>, Error> {
        let filter = Filter::new(selection)?;
        let kept: Vec<_> = profile.names.iter().map(|name| filter.keeps(name)).collect();
        let rows: HashMap<_, _> =
            profile.rows.iter().enumerate().map(|(index, row)| ((row.rank, row.region), index)).collect();
        if !rows.is_empty() && !profile.rows.iter().any(|row| kept[row.region as usize]) {
            let regions: HashSet<_> = profile.rows.iter().map(|row| row.region).collect();
            return Err(Error::NoRegions { regions: regions.len() });
        }
        // A run that recorded nothing had a rank all the same.
        let ranks = selection.ranks.resolve(profile.ranks().max(1))?;
        let (paths, calls, loaded) = (OnceCell::new(), RefCell::new(None), OnceCell::new());
        let (view, left_out) = (selection.view, RefCell::default());
        Ok(Selected { profile, ranks, kept, rows, view, paths, calls, left_out, loaded })
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

    /// Takes the selected calls of `rank` in order of start, and gives their paths by the position of the
    /// regions in the table. Lanes that do not nest are left out, with their errors. `visitor` gets for each
    /// of the regions whether it is kept: others may be among those of the calls, and are not in the paths.
    ///
    /// # Errors
    /// When calls cannot be read, or are more than can be numbered.
    pub(super) fn nest<V: CallVisitor>(
        &self,
        rank: u32,
        known: Option<Known>,
        visitor: impl FnOnce(Vec<bool>) -> V,
    ) -> Result<(V, Nested, RegionTable), Error> {
        let mut calls = self.calls.borrow_mut();
        let Calls { columns, starts, order } = match &mut *calls {
            Some(calls) => calls,
            none => none.insert(Calls::of(self.profile)?),
        };
        let rows = order.iter().filter_map(|&region| self.rows.get(&(rank, region)));
        let rows: Vec<usize> = rows.copied().collect();
        let is_kept = |row: &usize| self.kept[self.profile.rows[*row].region as usize];
        let by_lane = self.view == View::WallByLane;
        // Recorded parents are known only as long as all calls are there, so the hidden ones are
        // taken out afterwards.
        let region = |row: &usize| {
            let Row { region, events, .. } = &self.profile.rows[*row];
            let name = &self.profile.names[*region as usize];
            StoredRegion { name, calls: events.clone(), starts: &starts[*row], is_hidden: !is_kept(row) }
        };
        let regions: Vec<_> = rows.iter().map(region).collect();
        let options = Options { ids: !by_lane, known, ..Options::default() };
        let kept: Vec<bool> = rows.iter().map(is_kept).collect();
        let mut visitor = visitor(kept.clone());
        let mut nested =
            nest_stored_calls(columns, &regions, &options, &mut visitor).map_err(|error| match error {
                StoredError::Read(error) => Error::Read(error),
                StoredError::Nesting(source) => Error::Calls { rank, source },
                StoredError::Sort(source) => Error::Sort {
                    profile: self.profile.events_in.as_ref().map(|file| file.path.clone()),
                    folder: std::env::temp_dir(),
                    bytes: regions.iter().map(|region| region.calls.len() as u64).sum::<u64>()
                        * SORTED_CALL_BYTES as u64,
                    source,
                },
            })?;
        if kept.contains(&false) {
            nested.paths = hide(nested.paths.nodes().iter().cloned(), |region| kept[region.0 as usize]);
        }
        let mut table = RegionTable::default();
        rows.iter().for_each(|&row| self.describe(Some(row), self.profile.rows[row].region, &mut table));
        Ok((visitor, nested, table))
    }

    /// Appends a region to `table`, which has this row.
    fn describe(&self, row: Option<usize>, region: u32, table: &mut RegionTable) {
        let row = row.map(|row| &self.profile.rows[row]);
        let file = row.map(|row| row.source_file.as_str()).filter(|file| !file.is_empty());
        let line = row.map(|row| row.source_line).filter(|&line| line >= 0);
        table.push(&self.profile.names[region as usize], file, line);
    }

    /// What titles say of the times.
    pub(super) fn view_name(&self) -> Option<&'static str> {
        self.view.name(self.profile)
    }

    /// The call paths of `rank` as the profile has them, with the place of each region.
    ///
    /// `None` where only its calls tell. Where it has totals per region only, each region is a path of one
    /// step.
    ///
    /// # Errors
    /// When calls are needed and cannot be read.
    pub(super) fn totals(&self, rank: u32) -> Result<Option<Sums>, Error> {
        let paths = |paths: &Option<Vec<PathRow>>| paths.as_ref().map(|paths| self.paths_of(rank, paths));
        let rows = match self.view {
            _ if self.profile.has_regions_only() => Some(self.region_totals(rank)),
            View::Busy => paths(&self.profile.paths),
            View::Linked => paths(&self.profile.linked_paths).or_else(|| paths(&self.profile.paths)),
            View::WallByLane => None,
            // Without tasks a call is busy from begin to end.
            View::Wall if self.profile.tasks.is_none() => paths(&self.profile.paths),
            View::Wall => {
                self.left_out.borrow_mut().add_calls_of(self.profile);
                view::wall_paths(self.loaded()?, rank).map(|paths| {
                    let rows = paths.nodes().iter().map(|node| PathRow::new(rank, node.region.0, node));
                    rows.enumerate().collect()
                })
            }
        };
        let Some(rows) = rows else { return Ok(None) };
        let mut regions = RegionTable::default();
        for region in 0..self.profile.names.len() as u32 {
            self.describe(self.rows.get(&(rank, region)).copied(), region, &mut regions);
        }
        // Positions of parents are those among all ranks.
        let positions: Vec<usize> = rows.iter().map(|(position, _)| *position).collect();
        let rows = rows.into_iter().map(|(_, row)| {
            let parent = usize::try_from(row.parent).ok();
            let parent = parent.and_then(|parent| positions.binary_search(&parent).ok());
            row.totals(parent.map(|parent| PathId(parent as u32)))
        });
        let paths = hide(rows, |region| self.kept[region.0 as usize]);
        Ok(Some((paths, regions)))
    }

    /// The profile with its calls in memory.
    fn loaded(&self) -> Result<&MergedProfile, Error> {
        let Some(file) = &self.profile.events_in else { return Ok(self.profile) };
        if self.loaded.get().is_none() {
            let _ = self.loaded.set(hdf5::read_again(file)?);
        }
        Ok(self.loaded.get().unwrap_or(self.profile))
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

    /// The call paths of `rank`, from its calls where the profile has none, with the place of each region.
    ///
    /// # Errors
    /// As for [`nest`](Self::nest).
    pub(super) fn sums(&self, rank: u32) -> Result<Sums, Error> {
        if let Some(totals) = self.totals(rank)? {
            return Ok(totals);
        }
        let ((), nested, regions) = self.nest(rank, None, |_| ())?;
        Ok((self.paths_of_calls(rank, nested), regions))
    }

    /// The call paths of `rank` where it has no others than those of its calls; notes what is missing.
    pub(super) fn paths_of_calls(&self, rank: u32, nested: Nested) -> PathTree {
        let mut left_out = self.left_out.borrow_mut();
        left_out.add(rank, &nested.errors);
        left_out.add_calls_of(self.profile);
        nested.paths
    }

    /// What is missing from all paths so far.
    pub(super) fn take_left_out(&self) -> LeftOut {
        self.left_out.take()
    }

    /// The call paths of `rank`.
    ///
    /// # Errors
    /// As for [`nest`](Self::nest).
    pub(super) fn paths(&self, rank: u32) -> Result<NamedPaths, Error> {
        let (paths, regions) = self.sums(rank)?;
        Ok(NamedPaths::new(regions.names, paths))
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

/// The paths without those of hidden regions, which leave their time to the nearest kept one above.
///
/// `paths` come as those of a tree do, with parents before their children.
fn hide(paths: impl Iterator<Item = PathTotals>, keeps: impl Fn(RegionId) -> bool) -> PathTree {
    let mut tree = PathTree::default();
    // What each path has become.
    let mut places: Vec<Option<PathId>> = Vec::new();
    for path in paths {
        let parent = path.parent.and_then(|PathId(parent)| places[parent as usize]);
        if !keeps(path.region) {
            if let Some(parent) = parent {
                tree.add_self(parent, path.self_ns);
            }
            places.push(parent);
            continue;
        }
        let place = tree.step(parent, path.region);
        tree.add_totals(place, &path);
        places.push(Some(place));
    }
    tree
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
