//! Rows of sums, from exact totals, and the dict made of them.

use std::collections::HashMap;
use std::sync::Arc;

use super::dict::{Caller, Entry, Key, PSEUDO_FILENAME, PSEUDO_LINENO, Pstats};
use super::labels::{Labels, escaped};
use super::{CallerOrder, CallerRecursion, Keys, PstatsOptions};
use crate::call_stack::{CallArrays, NS_PER_SECOND, RegionTable, SmallColumn};
use crate::id_map::IdMap;
use crate::totals::{PathId, PathTotals, PathTree};

/// Numbers of an entry or a caller, times in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seconds {
    pub(super) cc: i64,
    pub(super) nc: i64,
    pub(super) tt_s: f64,
    pub(super) ct_s: f64,
}

/// One call path; parents before children.
pub(super) struct PathRow {
    pub(super) parent: Option<u32>,
    pub(super) region: u32,
    pub(super) sums: Seconds,
}

/// Sums per region and per pair of region and caller.
#[derive(Default)]
pub(super) struct NameRows {
    /// By region, `None` without calls.
    pub(super) regions: Vec<Option<Seconds>>,
    /// (region, caller), ascending; the caller is `None` at the top.
    pub(super) callers: Vec<((u32, Option<u32>), Seconds)>,
}

pub(super) fn root_seconds(paths: &PathTree) -> f64 {
    let tops = paths.nodes().iter().filter(|node| node.parent.is_none());
    tops.fold(0_i64, |sum, node| sum.saturating_add(node.inclusive_ns)) as f64 / NS_PER_SECOND
}

pub(super) fn path_rows(paths: &PathTree) -> Vec<PathRow> {
    let row = |node: &PathTotals| PathRow {
        parent: node.parent.map(|PathId(parent)| parent),
        region: node.region.0,
        sums: ExactSums::default().with(node, false).seconds(),
    };
    paths.nodes().iter().map(row).collect()
}

/// Per path, whether a call there is a re-entry of its region, and whether it is one for its caller.
pub(super) fn recursion(paths: &PathTree, callers: CallerRecursion) -> Vec<(bool, bool)> {
    let regions = paths.recursive();
    let steps = match callers {
        CallerRecursion::Pair => paths.recursive_steps(),
        CallerRecursion::Function => regions.clone(),
    };
    regions.into_iter().zip(steps).collect()
}

pub(super) fn name_rows(paths: &PathTree, callers: CallerRecursion) -> NameRows {
    let mut regions: Vec<Option<ExactSums>> = Vec::new();
    let mut pairs: Vec<((u32, Option<u32>), ExactSums)> = Vec::new();
    let mut places = IdMap::default();
    for (node, (recursive, recursive_step)) in paths.nodes().iter().zip(recursion(paths, callers)) {
        let region = node.region.0;
        if regions.len() <= region as usize {
            regions.resize(region as usize + 1, None);
        }
        let sums = &mut regions[region as usize];
        *sums = Some(sums.unwrap_or_default().with(node, recursive));
        let caller = node.parent.map(|PathId(parent)| paths.nodes()[parent as usize].region.0);
        let new = pairs.len() as u32;
        let place = places.get_or_insert(region, caller.unwrap_or(u32::MAX), new);
        if place == new {
            pairs.push(((region, caller), ExactSums::default()));
        }
        let sums = &mut pairs[place as usize].1;
        *sums = sums.with(node, recursive_step);
    }
    NameRows::of(regions, pairs)
}

/// The same without paths, and what [`root_seconds`] would be; `None` where a region calls itself, directly or
/// through others, or where there are many regions. The path of a call waits for that of the call around it,
/// regions wait for nothing.
pub(super) fn name_rows_of_calls(calls: &CallArrays) -> Option<(NameRows, f64)> {
    let SmallColumn::U8(column) = &calls.region_index else { return None };
    let top = calls.regions.len();
    // Calls, self and inclusive time by caller, of which the last is none, and region.
    let mut table = vec![[(0_u64, 0_i64, 0_i64); 1 << u8::BITS]; top + 1];
    let times = calls.start_ns.iter().zip(&calls.end_ns).zip(&calls.exclusive_ns);
    for (id, ((&region, &parent), ((start, end), exclusive_ns))) in
        column.iter().zip(&calls.parent).zip(times).enumerate()
    {
        // Parents come before their children.
        let caller = column[..id].get(parent as usize).map_or(top, |caller| usize::from(*caller));
        let (calls, self_ns, inclusive_ns) = &mut table[caller][usize::from(region)];
        *calls += 1;
        *self_ns = self_ns.saturating_add(*exclusive_ns);
        *inclusive_ns = inclusive_ns.saturating_add(end.wrapping_sub(*start));
    }
    let mut regions: Vec<Option<ExactSums>> = vec![None; top];
    let mut pairs = Vec::new();
    let mut root_ns = 0_i64;
    for (caller, row) in (0_u32..).zip(&table) {
        let caller = ((caller as usize) < top).then_some(caller);
        for (region, &(calls, self_ns, inclusive_ns)) in (0_u32..).zip(row).filter(|(_, sums)| sums.0 > 0) {
            let sums = ExactSums { cc: calls, nc: calls, self_ns, inclusive_ns };
            let of_region = &mut regions[region as usize];
            *of_region = Some(of_region.unwrap_or_default().plus(&sums));
            pairs.push(((region, caller), sums));
            if caller.is_none() {
                root_ns = root_ns.saturating_add(inclusive_ns);
            }
        }
    }
    (!has_cycle(&pairs, top)).then(|| (NameRows::of(regions, pairs), root_ns as f64 / NS_PER_SECOND))
}

/// Whether a region calls itself, directly or through others.
fn has_cycle(pairs: &[((u32, Option<u32>), ExactSums)], regions: usize) -> bool {
    // Those that are called through ever more others, until there is none or they are always the same.
    let mut called = vec![true; regions];
    loop {
        let mut further = vec![false; regions];
        for ((region, caller), _) in pairs {
            further[*region as usize] |= caller.is_some_and(|caller| called[caller as usize]);
        }
        if further == called {
            return called.contains(&true);
        }
        called = further;
    }
}

impl NameRows {
    /// `pairs` come in any order.
    fn of(regions: Vec<Option<ExactSums>>, mut pairs: Vec<((u32, Option<u32>), ExactSums)>) -> NameRows {
        pairs.sort_unstable_by_key(|(pair, _)| *pair);
        NameRows {
            regions: regions.into_iter().map(|sums| sums.map(ExactSums::seconds)).collect(),
            callers: pairs.into_iter().map(|(pair, sums)| (pair, sums.seconds())).collect(),
        }
    }
}

/// Sums in ns.
#[derive(Clone, Copy, Default)]
struct ExactSums {
    cc: u64,
    nc: u64,
    self_ns: i64,
    inclusive_ns: i64,
}

impl ExactSums {
    fn with(self, node: &PathTotals, recursive: bool) -> ExactSums {
        let (cc, inclusive_ns) = if recursive { (0, 0) } else { (node.calls, node.inclusive_ns) };
        self.plus(&ExactSums { cc, nc: node.calls, self_ns: node.self_ns, inclusive_ns })
    }

    fn plus(self, other: &ExactSums) -> ExactSums {
        ExactSums {
            cc: self.cc + other.cc,
            nc: self.nc + other.nc,
            self_ns: self.self_ns.saturating_add(other.self_ns),
            inclusive_ns: self.inclusive_ns.saturating_add(other.inclusive_ns),
        }
    }

    fn seconds(self) -> Seconds {
        Seconds {
            cc: self.cc.cast_signed(),
            nc: self.nc.cast_signed(),
            tt_s: self.self_ns as f64 / NS_PER_SECOND,
            ct_s: self.inclusive_ns as f64 / NS_PER_SECOND,
        }
    }
}

/// Puts rows into a dict: first all entries, then the root, whose key must not be one of theirs,
/// then the callers.
pub(super) struct Builder<'a> {
    regions: &'a RegionTable,
    root_name: Option<&'a str>,
    options: &'a PstatsOptions,
    dict: Pstats,
    /// The number last given to a key that was taken.
    numbered: HashMap<Key, u64>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        regions: &'a RegionTable,
        root_name: Option<&'a str>,
        options: &'a PstatsOptions,
    ) -> Builder<'a> {
        Builder { regions, root_name, options, dict: Pstats::default(), numbered: HashMap::new() }
    }

    pub(super) fn by_path(mut self, rows: &[PathRow], root_s: f64) -> Pstats {
        let unique = self.options.keys == Keys::Unique;
        let limit = if unique { self.options.label_bytes } else { usize::MAX };
        let name = |name: &String| if unique { escaped(name) } else { name.clone() };
        let mut labels = Labels::new(self.regions.names.iter().map(name).collect(), rows, limit);
        let sources = self.sources();
        let mut keys: Vec<Key> = Vec::with_capacity(rows.len());
        let mut places = Vec::with_capacity(rows.len());
        self.dict.reserve(rows.len());
        for row in rows {
            let name = labels.next(row.parent.map(|parent| &*keys[parent as usize].name));
            let key = self.free(keyed(&sources[row.region as usize], name));
            places.push(self.insert(key.clone(), &row.sums));
            keys.push(key);
        }
        let root = self.root(root_s);
        for (row, at) in rows.iter().zip(places) {
            let caller = row.parent.map(|parent| &keys[parent as usize]).or(root.as_ref());
            let callers = caller.map(|caller| (caller.clone(), self.caller(&row.sums)));
            self.set_callers(at, callers.into_iter().collect(), &root);
        }
        self.dict
    }

    pub(super) fn by_name(mut self, rows: &NameRows, root_s: f64) -> Pstats {
        let sources = self.sources();
        let mut keys: Vec<Option<(Key, usize)>> = vec![None; rows.regions.len()];
        for (region, sums) in rows.regions.iter().enumerate() {
            let Some(sums) = sums else { continue };
            let name = self.regions.names[region].as_str().into();
            let key = self.free(keyed(&sources[region], name));
            let at = self.insert(key.clone(), sums);
            keys[region] = Some((key, at));
        }
        let root = self.root(root_s);
        for pairs in rows.callers.chunk_by(|((one, _), _), ((other, _), _)| one == other) {
            let Some((_, at)) = keys[pairs[0].0.0 as usize] else { continue };
            let mut callers: Vec<(Key, Caller)> = Vec::with_capacity(pairs.len());
            for ((_, caller), sums) in pairs {
                let key = match caller {
                    None => root.as_ref(),
                    Some(caller) => keys[*caller as usize].as_ref().map(|(key, _)| key),
                };
                let Some(key) = key else { continue };
                // Equal keys, only with the reference's: the later takes the place of the earlier.
                let taken = (self.options.keys == Keys::Reference)
                    .then(|| callers.iter_mut().find(|(other, _)| other == key));
                match taken.flatten() {
                    Some((_, old)) => *old = self.caller(sums),
                    None => callers.push((key.clone(), self.caller(sums))),
                }
            }
            self.set_callers(at, callers, &root);
        }
        self.dict
    }

    /// File and line of each region as they stand in keys.
    fn sources(&self) -> Vec<(Arc<str>, i64)> {
        let unknown: Arc<str> = PSEUDO_FILENAME.into();
        let files = self.regions.source_files.iter().zip(&self.regions.source_lines);
        files
            .map(|source| match source {
                (Some(file), Some(line)) if !file.is_empty() => (file.as_str().into(), *line),
                _ => (Arc::clone(&unknown), PSEUDO_LINENO),
            })
            .collect()
    }

    /// `key`, or with unique keys the next that is free.
    fn free(&mut self, key: Key) -> Key {
        if self.options.keys == Keys::Reference || self.dict.get(&key).is_none() {
            return key;
        }
        let number = self.numbered.entry(key.clone()).or_insert(1);
        loop {
            *number += 1;
            let next = Key { name: format!("{} #{number}", key.name).into(), ..key.clone() };
            if self.dict.get(&next).is_none() {
                return next;
            }
        }
    }

    fn caller(&self, sums: &Seconds) -> Caller {
        let (nc, cc) = match self.options.callers {
            CallerOrder::Pstats => (sums.nc, sums.cc),
            CallerOrder::Reference => (sums.cc, sums.nc),
        };
        Caller { nc, cc, tt_s: sums.tt_s, ct_s: sums.ct_s }
    }

    fn insert(&mut self, key: Key, sums: &Seconds) -> usize {
        let Seconds { cc, nc, tt_s, ct_s } = *sums;
        self.dict.insert(Entry { key, cc, nc, tt_s, ct_s, callers: Vec::new() })
    }

    /// Inserts the root when one is wanted and there is something to call.
    fn root(&mut self, root_s: f64) -> Option<Key> {
        let name = self.root_name.filter(|_| !self.dict.is_empty())?;
        let key = self.free(keyed(&(PSEUDO_FILENAME.into(), PSEUDO_LINENO), name.into()));
        self.insert(key.clone(), &Seconds { cc: 1, nc: 1, tt_s: 0.0, ct_s: root_s });
        Some(key)
    }

    /// Sets callers. With equal keys, as the reference: those of all entries with the key stay, a
    /// later one with the same caller wins, and an entry whose place the root took has none.
    fn set_callers(&mut self, at: usize, mut callers: Vec<(Key, Caller)>, root: &Option<Key>) {
        let entry = &self.dict.entries()[at];
        if root.as_ref() == Some(&entry.key) {
            return;
        }
        for (key, caller) in &entry.callers {
            if callers.iter().all(|(other, _)| other != key) {
                callers.insert(0, (key.clone(), *caller));
            }
        }
        self.dict.set_callers(at, callers);
    }
}

fn keyed((file, line): &(Arc<str>, i64), name: Arc<str>) -> Key {
    Key { file: Arc::clone(file), line: *line, name }
}
