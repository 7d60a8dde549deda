//! The reconstructed calls of one rank, as columns.

use std::sync::Arc;

use super::input::RegionCalls;
use super::small_column::SmallColumn;
use crate::room::{room, zeros};

/// In [`CallArrays::parent`]: a call at the top of its lane.
pub const NO_PARENT: u32 = u32::MAX;

/// Names and sources of the regions, one entry per region of the input list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionTable {
    /// Names as given, in list order.
    pub names: Vec<String>,
    /// Source file per region, when known.
    pub source_files: Vec<Option<String>>,
    /// Source line per region, when known.
    pub source_lines: Vec<Option<i64>>,
}

impl RegionTable {
    pub(super) fn of(regions: &[RegionCalls<'_>]) -> RegionTable {
        let mut table = RegionTable::default();
        for region in regions {
            table.push(region.name, region.source_file, region.source_line);
        }
        table
    }

    /// Appends a region.
    pub fn push(&mut self, name: &str, source_file: Option<&str>, source_line: Option<i64>) {
        self.names.push(name.to_owned());
        self.source_files.push(source_file.map(str::to_owned));
        self.source_lines.push(source_line);
    }

    /// Number of regions.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no region.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// The lane of each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneColumn {
    /// The lane numbers that occur, ascending; see [`lane_number`](super::lane_number).
    pub numbers: Vec<i64>,
    /// Per call, the position of its lane in `numbers`.
    pub index: SmallColumn,
}

impl LaneColumn {
    /// The lane number of call `id`.
    ///
    /// # Panics
    ///
    /// When there is no such call.
    pub fn get(&self, id: usize) -> i64 {
        self.numbers[self.index.get(id)]
    }
}

/// One rank's calls with their nesting.
///
/// All columns have one entry per call and are in call-id order: by start, of calls that start
/// together the enclosing one first, so that parents come before their children. 37 bytes per
/// call for a program with fewer than 256 regions and one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallArrays {
    /// The regions of the input list, shared by the parts of a split.
    pub regions: Arc<RegionTable>,
    /// Position of the call's region in `regions`.
    pub region_index: SmallColumn,
    /// Position of the call in its region's stored calls.
    pub call_index: Vec<u32>,
    /// Entry in ns.
    pub start_ns: Vec<i64>,
    /// Exit in ns.
    pub end_ns: Vec<i64>,
    /// Number of enclosing calls.
    pub depth: Vec<u32>,
    /// Call id of the enclosing call; [`NO_PARENT`] at the top.
    pub parent: Vec<u32>,
    /// Duration minus the durations of the direct children, ns.
    pub exclusive_ns: Vec<i64>,
    /// The lane of each call; `None` when the rank is one lane.
    pub lane: Option<LaneColumn>,
}

impl CallArrays {
    /// No calls, with room for `capacity`; `lanes` are the lane numbers, ascending.
    pub(super) fn with_capacity(
        regions: Arc<RegionTable>,
        lanes: Option<&[i64]>,
        capacity: usize,
    ) -> CallArrays {
        CallArrays {
            call_index: room(capacity),
            start_ns: room(capacity),
            end_ns: room(capacity),
            depth: room(capacity),
            parent: room(capacity),
            exclusive_ns: room(capacity),
            ..CallArrays::of_regions(regions, lanes, capacity)
        }
    }

    /// `calls` calls of zeros, but no regions and lanes yet.
    pub(super) fn zeros(regions: Arc<RegionTable>, lanes: Option<&[i64]>, calls: usize) -> CallArrays {
        CallArrays {
            call_index: zeros(calls),
            start_ns: zeros(calls),
            end_ns: zeros(calls),
            depth: zeros(calls),
            parent: zeros(calls),
            exclusive_ns: zeros(calls),
            ..CallArrays::of_regions(regions, lanes, calls)
        }
    }

    /// No calls, with room for the regions and lanes of `capacity`.
    fn of_regions(regions: Arc<RegionTable>, lanes: Option<&[i64]>, capacity: usize) -> CallArrays {
        let lane = lanes.map(|numbers| LaneColumn {
            numbers: numbers.to_vec(),
            index: SmallColumn::below(numbers.len(), capacity),
        });
        CallArrays {
            region_index: SmallColumn::below(regions.len(), capacity),
            regions,
            call_index: Vec::new(),
            start_ns: Vec::new(),
            end_ns: Vec::new(),
            depth: Vec::new(),
            parent: Vec::new(),
            exclusive_ns: Vec::new(),
            lane,
        }
    }

    /// Number of calls.
    pub fn len(&self) -> usize {
        self.start_ns.len()
    }

    /// Whether there is no call.
    pub fn is_empty(&self) -> bool {
        self.start_ns.is_empty()
    }

    /// Region names, in list order.
    pub fn names(&self) -> &[String] {
        &self.regions.names
    }

    /// Source files of the regions, in list order.
    pub fn source_files(&self) -> &[Option<String>] {
        &self.regions.source_files
    }

    /// Source lines of the regions, in list order.
    pub fn source_lines(&self) -> &[Option<i64>] {
        &self.regions.source_lines
    }

    /// The lane number of call `id`, `None` when the rank is one lane.
    ///
    /// # Panics
    ///
    /// When there is no such call.
    pub fn lane(&self, id: usize) -> Option<i64> {
        self.lane.as_ref().map(|lane| lane.get(id))
    }

    /// The enclosing call of call `id`, `None` at the top.
    ///
    /// # Panics
    ///
    /// When there is no such call.
    #[inline]
    pub fn parent_of(&self, id: usize) -> Option<usize> {
        let parent = self.parent[id];
        (parent != NO_PARENT).then_some(parent as usize)
    }

    /// Duration of call `id` in ns.
    ///
    /// # Panics
    ///
    /// When there is no such call.
    #[inline]
    pub fn duration_ns(&self, id: usize) -> i64 {
        self.end_ns[id].wrapping_sub(self.start_ns[id])
    }

    /// Sum of exclusive times per region in ns, in list order; 0 for a region without calls.
    pub fn exclusive_totals_ns(&self) -> Vec<i64> {
        let mut totals = vec![0_i64; self.regions.len()];
        for (region, exclusive) in self.region_index.iter().zip(&self.exclusive_ns) {
            totals[region] = totals[region].saturating_add(*exclusive);
        }
        totals
    }
}
