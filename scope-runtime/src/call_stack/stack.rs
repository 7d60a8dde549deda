//! Reconstructed calls one at a time: records in seconds, roots and children.

use super::PATH_SEPARATOR;
use super::arrays::{CallArrays, NO_PARENT};

/// ns in a second, as a float: times are divided by it, never multiplied by its inverse.
pub const NS_PER_SECOND: f64 = 1e9;

/// One call; times in seconds.
#[derive(Clone, Copy, Debug)]
pub struct CallRecord<'a> {
    calls: &'a CallArrays,
    /// Position in the columns.
    pub call_id: usize,
    /// Name of the region.
    pub name: &'a str,
    /// Source file of the region, when known.
    pub source_file: Option<&'a str>,
    /// Source line of the region, when known.
    pub source_line: Option<i64>,
    /// Position in the region's stored calls.
    pub call_index: usize,
    /// Lane number; -1 when the rank is one lane.
    pub lane: i64,
    /// Entry, seconds since the origin.
    pub start_s: f64,
    /// Exit, seconds since the origin.
    pub end_s: f64,
    /// Duration in seconds, children included.
    pub inclusive_s: f64,
    /// Duration without direct children, seconds.
    pub exclusive_s: f64,
    /// Number of enclosing calls.
    pub depth: usize,
    /// Call id of the enclosing call, `None` at the top.
    pub parent: Option<usize>,
}

impl<'a> CallRecord<'a> {
    /// The enclosing calls and this one, from the top down.
    pub fn path(&self) -> Vec<usize> {
        let mut path = Vec::with_capacity(self.depth + 1);
        path.extend(std::iter::successors(Some(self.call_id), |&id| self.calls.parent_of(id)));
        path.reverse();
        path
    }

    /// The names of [`path`](Self::path) joined with [`PATH_SEPARATOR`].
    ///
    /// Made on request, because the texts of all calls of a deep stack grow with its square.
    pub fn call_path(&self) -> String {
        let names: Vec<&str> = self.path().into_iter().map(|id| self.calls.name(id)).collect();
        names.join(PATH_SEPARATOR)
    }
}

impl CallArrays {
    /// Name of the region of call `id`.
    ///
    /// # Panics
    ///
    /// When there is no such call.
    pub fn name(&self, id: usize) -> &str {
        &self.regions.names[self.region_index.get(id)]
    }

    /// One call as a record, with `origin_s` taken from its times.
    ///
    /// # Panics
    ///
    /// When there is no such call.
    pub fn record(&self, id: usize, origin_s: f64) -> CallRecord<'_> {
        let seconds = |ns: i64| ns as f64 / NS_PER_SECOND;
        let region = self.region_index.get(id);
        CallRecord {
            calls: self,
            call_id: id,
            name: &self.regions.names[region],
            source_file: self.regions.source_files[region].as_deref(),
            source_line: self.regions.source_lines[region],
            call_index: self.call_index[id] as usize,
            lane: self.lane(id).unwrap_or(super::UNKNOWN_LANE),
            start_s: seconds(self.start_ns[id]) - origin_s,
            end_s: seconds(self.end_ns[id]) - origin_s,
            inclusive_s: seconds(self.duration_ns(id)),
            exclusive_s: seconds(self.exclusive_ns[id]),
            depth: self.depth[id] as usize,
            parent: self.parent_of(id),
        }
    }
}

/// All calls as records in call-id order, parents before children; `origin_s` is taken from times.
///
/// # Examples
/// ```
/// use scope_runtime::call_stack::{Mode, RegionCalls, build_call_arrays, build_call_stack};
///
/// let regions = [RegionCalls::new("main", &[0], &[100]), RegionCalls::new("step", &[10], &[30])];
/// let calls = build_call_arrays(&regions, Mode::Default)?;
/// let paths: Vec<String> = build_call_stack(&calls, 0.0).map(|call| call.call_path()).collect();
/// assert_eq!(paths, ["main", "main > step"]);
/// # Ok::<(), scope_runtime::call_stack::NestingError>(())
/// ```
pub fn build_call_stack(
    calls: &CallArrays,
    origin_s: f64,
) -> impl ExactSizeIterator<Item = CallRecord<'_>> + '_ {
    (0..calls.len()).map(move |id| calls.record(id, origin_s))
}

/// Ids of the calls at the top, ascending.
pub fn call_stack_roots(calls: &CallArrays) -> impl Iterator<Item = usize> + '_ {
    calls.parent.iter().enumerate().filter(|(_, parent)| **parent == NO_PARENT).map(|(id, _)| id)
}

/// The direct children of every call, in two columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Children {
    /// Where each call's children end in `ids`; one entry per call.
    ends: Vec<u32>,
    ids: Vec<u32>,
}

impl Children {
    /// Ids of the calls directly inside call `id`, in order of start.
    ///
    /// # Panics
    ///
    /// When there is no such call.
    pub fn of(&self, id: usize) -> &[u32] {
        let from = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.ids[from as usize..self.ends[id] as usize]
    }
}

/// Finds the children of every call, for a walk from the roots down.
///
/// # Examples
/// ```
/// use scope_runtime::call_stack::{
///     Mode, RegionCalls, build_call_arrays, call_stack_children, call_stack_roots,
/// };
///
/// let regions =
///     [RegionCalls::new("main", &[0], &[100]), RegionCalls::new("step", &[10, 50], &[30, 60])];
/// let calls = build_call_arrays(&regions, Mode::Default)?;
/// let children = call_stack_children(&calls);
/// assert!(call_stack_roots(&calls).eq([0]));
/// assert_eq!(children.of(0), [1, 2]);
/// # Ok::<(), scope_runtime::call_stack::NestingError>(())
/// ```
pub fn call_stack_children(calls: &CallArrays) -> Children {
    let mut ends = vec![0_u32; calls.len()];
    let inner = || calls.parent.iter().zip(0_u32..).filter(|(parent, _)| **parent != NO_PARENT);
    inner().for_each(|(parent, _)| ends[*parent as usize] += 1);
    let mut before = 0;
    for count in &mut ends {
        before += std::mem::replace(count, before);
    }
    let mut ids = vec![0; before as usize];
    for (parent, id) in inner() {
        let place = &mut ends[*parent as usize];
        ids[*place as usize] = id;
        *place += 1;
    }
    Children { ends, ids }
}
