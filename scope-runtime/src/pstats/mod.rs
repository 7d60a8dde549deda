//! Profiles as Python's `pstats` knows them: one entry per function with its callers.
//!
//! Input is reconstructed calls or a tree of path totals; output is a dict in insertion order, a
//! `.prof` file that `pstats`, snakeviz and the like read, or a [`Stats`] that prints itself.
//!
//! ```
//! use scope_runtime::call_stack::{Mode, RegionCalls, build_call_arrays};
//! use scope_runtime::pstats::{PstatsOptions, build_pstats_dict, load_prof, write_prof};
//!
//! let regions = [RegionCalls::new("main", &[0], &[100]), RegionCalls::new("step", &[10], &[30])];
//! let calls = build_call_arrays(&regions, Mode::Default)?;
//! let profile = build_pstats_dict(&calls, None, true, &PstatsOptions::default());
//! assert_eq!(&*profile.entries()[1].key.name, "main > step");
//! assert_eq!(profile.entries()[0].tt_s, 8e-8);
//! let mut file = Vec::new();
//! write_prof(&profile, &mut file)?;
//! assert_eq!(load_prof(&file[..])?, profile);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod dict;
mod file;
mod labels;
mod print;
mod reference;
mod stats;

use crate::call_stack::{CallArrays, RegionTable};
use crate::totals::PathTree;

pub use dict::{Caller, Entry, Key, PSEUDO_FILENAME, PSEUDO_LINENO, Pstats};
pub use file::{ProfError, load_prof, write_prof};
pub use stats::{Restriction, SortKey, Stats};

pub use crate::call_stack::NS_PER_SECOND;

/// How times are summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sums {
    /// Integers in ns, divided by 10^9 once.
    #[default]
    Exact,
    /// Seconds as floats in the order of the reference, bit for bit.
    Reference,
}

/// Which calls of a region are re-entries, when entries are per name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recursion {
    /// Those inside another call of the region.
    #[default]
    Ancestors,
    /// Those that end no later than an earlier one of the region, on whatever lane.
    Reference,
}

/// Which calls from one caller are re-entries, when entries are per name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallerRecursion {
    /// Those inside another call from the same caller's region, as cProfile counts.
    #[default]
    Pair,
    /// Those that are re-entries of the region, whoever called.
    Function,
}

/// The order of the first two numbers of a caller entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallerOrder {
    /// All calls, then primitive calls, as cProfile writes and pstats reads them.
    #[default]
    Pstats,
    /// Primitive calls first, as in the entry of a function.
    Reference,
}

/// What happens to entries with the same key.
///
/// # Escapes
///
/// A word of a region name is what stands between single spaces. In a call path, a word that
/// consists of `>` after any number of backslashes gets one more backslash in front, so that a bare
/// word `>` is always a separator and a label has one reading. A key that is taken all the same
/// (two regions with one name, a root that is named as a region) gets ` #2` after its name, or the
/// first higher number that is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    /// Every entry has its own key; labels of call paths are bounded.
    #[default]
    Unique,
    /// The later entry takes the place of the earlier one; labels are as long as they get.
    Reference,
}

/// Where [`build_pstats_dict`] follows the reference instead of what is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PstatsOptions {
    /// How times are summed.
    pub sums: Sums,
    /// What counts as recursion.
    pub recursion: Recursion,
    /// What counts as recursion inside a caller entry; only with [`Recursion::Ancestors`].
    pub caller_recursion: CallerRecursion,
    /// The order inside caller entries.
    pub callers: CallerOrder,
    /// What happens to equal keys.
    pub keys: Keys,
    /// With [`Keys::Unique`], a longer label of a call path is shortened to its top, a mark with
    /// the number of the path, and its end: `main > … #4711 > walk > walk`.
    pub label_bytes: usize,
}

impl Default for PstatsOptions {
    fn default() -> Self {
        PstatsOptions {
            sums: Sums::default(),
            recursion: Recursion::default(),
            caller_recursion: CallerRecursion::default(),
            callers: CallerOrder::default(),
            keys: Keys::default(),
            label_bytes: 512,
        }
    }
}

impl PstatsOptions {
    /// As scope-profiler 0.7.5 in everything.
    pub fn reference() -> PstatsOptions {
        PstatsOptions {
            sums: Sums::Reference,
            recursion: Recursion::Reference,
            caller_recursion: CallerRecursion::Function,
            callers: CallerOrder::Reference,
            keys: Keys::Reference,
            ..PstatsOptions::default()
        }
    }
}

/// Sums calls into the dict that `pstats` reads; times in seconds.
///
/// With `call_paths` there is one entry per call path, in order of first call, named by the names
/// from the top down with ` > ` between them; without, one per region with calls, in list order,
/// callers in list order. With `root_name` an entry of this name comes last and calls every call at
/// the top. No calls give no entry.
pub fn build_pstats_dict(
    calls: &CallArrays,
    root_name: Option<&str>,
    call_paths: bool,
    options: &PstatsOptions,
) -> Pstats {
    let exact = options.sums == Sums::Exact && (call_paths || options.recursion == Recursion::Ancestors);
    if exact
        && !call_paths
        && let Some((rows, root_s)) = build::name_rows_of_calls(calls)
    {
        return build::Builder::new(&calls.regions, root_name, options).by_name(&rows, root_s);
    }
    if exact {
        return pstats_from_paths(&PathTree::sums_of(calls), &calls.regions, root_name, call_paths, options);
    }
    let root_s = reference::root_seconds(calls, options.sums);
    let build = build::Builder::new(&calls.regions, root_name, options);
    if call_paths {
        build.by_path(&reference::path_rows(calls), root_s)
    } else {
        let names = reference::name_rows(calls, options);
        build.by_name(&names, root_s)
    }
}

/// As [`build_pstats_dict`], from the totals of paths; region ids are positions in `regions`.
///
/// Sums are exact and recursion is decided on ancestors whatever the options say: a tree of totals
/// knows no single calls.
pub fn pstats_from_paths(
    paths: &PathTree,
    regions: &RegionTable,
    root_name: Option<&str>,
    call_paths: bool,
    options: &PstatsOptions,
) -> Pstats {
    let root_s = build::root_seconds(paths);
    let build = build::Builder::new(regions, root_name, options);
    if call_paths {
        build.by_path(&build::path_rows(paths), root_s)
    } else {
        build.by_name(&build::name_rows(paths, options.caller_recursion), root_s)
    }
}
