//! A profile that can be sorted, cut down and added to, as Python's `pstats.Stats`.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::dict::{Caller, Entry, Key, Pstats};

/// What entries are sorted by. Numbers sort descending, text ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// All calls.
    Calls,
    /// Primitive calls.
    PrimitiveCalls,
    /// Inclusive time.
    Inclusive,
    /// Self time.
    SelfTime,
    /// Source file.
    File,
    /// Source line.
    Line,
    /// Name.
    Name,
    /// Name, then file, then line.
    NameFileLine,
    /// The text that is printed.
    Standard,
}

impl SortKey {
    /// The words of the heading "Ordered by".
    pub(super) fn words(self) -> &'static str {
        match self {
            SortKey::Calls => "call count",
            SortKey::PrimitiveCalls => "primitive call count",
            SortKey::Inclusive => "cumulative time",
            SortKey::SelfTime => "internal time",
            SortKey::File => "file name",
            SortKey::Line => "line number",
            SortKey::Name => "function name",
            SortKey::NameFileLine => "name/file/line",
            SortKey::Standard => "standard name",
        }
    }

    fn compare(self, a: &Entry, b: &Entry) -> Ordering {
        let (one, other) = (&a.key, &b.key);
        match self {
            SortKey::Calls => b.nc.cmp(&a.nc),
            SortKey::PrimitiveCalls => b.cc.cmp(&a.cc),
            SortKey::Inclusive => b.ct_s.total_cmp(&a.ct_s),
            SortKey::SelfTime => b.tt_s.total_cmp(&a.tt_s),
            SortKey::File => one.file.cmp(&other.file),
            SortKey::Line => one.line.cmp(&other.line),
            SortKey::Name => one.name.cmp(&other.name),
            SortKey::NameFileLine => {
                (&one.name, &one.file, one.line).cmp(&(&other.name, &other.file, other.line))
            }
            SortKey::Standard => one.to_string().cmp(&other.to_string()),
        }
    }
}

/// Cuts a list down, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub enum Restriction {
    /// The first so many.
    Count(usize),
    /// The first part of the list, from 0 to 1.
    Fraction(f64),
    /// Those whose printed text contains this.
    Contains(String),
}

impl Restriction {
    fn apply(&self, list: &mut Vec<usize>, entries: &[Entry]) {
        match self {
            Restriction::Count(count) => list.truncate(*count),
            Restriction::Fraction(part) => list.truncate((list.len() as f64 * part + 0.5) as usize),
            Restriction::Contains(text) => list.retain(|at| entries[*at].key.to_string().contains(text)),
        }
    }
}

/// Sums of one or several profiles, with an order.
///
/// # Examples
/// ```
/// use scope_runtime::call_stack::{Mode, RegionCalls, build_call_arrays};
/// use scope_runtime::pstats::{PstatsOptions, SortKey, Stats, build_pstats_dict};
///
/// let regions = [RegionCalls::new("main", &[0], &[100]), RegionCalls::new("step", &[10], &[90])];
/// let calls = build_call_arrays(&regions, Mode::Default)?;
/// let profile = build_pstats_dict(&calls, None, false, &PstatsOptions::default());
/// let mut stats = Stats::from(profile);
/// stats.sort(&[SortKey::SelfTime]);
/// assert_eq!(&*stats.entries(&[])[0].key.name, "step");
/// let mut text = Vec::new();
/// stats.print_stats(&mut text, &[])?;
/// assert!(String::from_utf8(text)?.contains("2 function calls"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    profile: Pstats,
    order: Option<Vec<usize>>,
    pub(super) sorted_by: Vec<SortKey>,
}

impl From<Pstats> for Stats {
    fn from(profile: Pstats) -> Stats {
        Stats { profile, ..Stats::default() }
    }
}

impl Stats {
    /// The entries in the order of their insertion.
    pub fn profile(&self) -> &Pstats {
        &self.profile
    }

    /// All calls of all functions.
    pub fn total_calls(&self) -> i64 {
        self.profile.entries().iter().map(|entry| entry.nc).sum()
    }

    /// Primitive calls of all functions.
    pub fn primitive_calls(&self) -> i64 {
        self.profile.entries().iter().map(|entry| entry.cc).sum()
    }

    /// Self time of all functions in seconds, added in the order of insertion.
    pub fn self_s(&self) -> f64 {
        self.profile.entries().iter().fold(0.0, |sum, entry| sum + entry.tt_s)
    }

    /// Sorts by the first key, equal ones by the next, the last equal ones by the printed text.
    pub fn sort(&mut self, keys: &[SortKey]) {
        let entries = self.profile.entries();
        let texts: Vec<String> = entries.iter().map(|entry| entry.key.to_string()).collect();
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|&a, &b| {
            let by_keys = |order: Ordering, key: &SortKey| {
                order.then_with(|| match key {
                    SortKey::Standard => texts[a].cmp(&texts[b]),
                    key => key.compare(&entries[a], &entries[b]),
                })
            };
            keys.iter().fold(Ordering::Equal, by_keys).then_with(|| texts[a].cmp(&texts[b]))
        });
        self.order = Some(order);
        self.sorted_by = keys.to_vec();
    }

    /// Turns the order round.
    pub fn reverse_order(&mut self) {
        if let Some(order) = &mut self.order {
            order.reverse();
        }
    }

    /// The entries in the order set, cut down by each restriction in turn.
    pub fn entries(&self, restrictions: &[Restriction]) -> Vec<&Entry> {
        let entries = self.profile.entries();
        let mut list = self.order.clone().unwrap_or_else(|| (0..entries.len()).collect());
        restrictions.iter().for_each(|restriction| restriction.apply(&mut list, entries));
        list.into_iter().map(|at| &entries[at]).collect()
    }

    /// Adds another profile: numbers of equal keys are summed, other entries go to the end. The order
    /// set is forgotten.
    pub fn add(&mut self, other: &Pstats) {
        self.order = None;
        self.sorted_by.clear();
        for entry in other.entries() {
            match self.profile.get_mut(&entry.key) {
                Some(sum) => add_entry(sum, entry),
                None => {
                    self.profile.insert(entry.clone());
                }
            }
        }
    }

    /// For each entry, by position, what it calls: (position of the callee, numbers), in the order
    /// of the callees' keys.
    pub fn callees(&self) -> Vec<Vec<(usize, Caller)>> {
        let entries = self.profile.entries();
        let places: HashMap<&Key, usize> =
            entries.iter().enumerate().map(|(at, entry)| (&entry.key, at)).collect();
        let mut callees = vec![Vec::new(); entries.len()];
        for (callee, entry) in entries.iter().enumerate() {
            for (caller, numbers) in &entry.callers {
                if let Some(at) = places.get(caller) {
                    callees[*at].push((callee, *numbers));
                }
            }
        }
        for called in &mut callees {
            called.sort_by_key(|(callee, _)| &entries[*callee].key);
        }
        callees
    }
}

fn add_entry(sum: &mut Entry, entry: &Entry) {
    sum.cc = sum.cc.saturating_add(entry.cc);
    sum.nc = sum.nc.saturating_add(entry.nc);
    sum.tt_s += entry.tt_s;
    sum.ct_s += entry.ct_s;
    let places: HashMap<Key, usize> =
        sum.callers.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)).collect();
    for (key, caller) in &entry.callers {
        let Some(at) = places.get(key) else {
            sum.callers.push((key.clone(), *caller));
            continue;
        };
        let sum = &mut sum.callers[*at].1;
        sum.nc = sum.nc.saturating_add(caller.nc);
        sum.cc = sum.cc.saturating_add(caller.cc);
        sum.tt_s += caller.tt_s;
        sum.ct_s += caller.ct_s;
    }
}
