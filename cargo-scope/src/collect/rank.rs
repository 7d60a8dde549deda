//! The calls of one rank, lane by lane as recorded, into columns by region as in the file.

use std::collections::HashMap;

use scope_runtime::profile::Region;
use scope_runtime::recording::Call;

/// The calls of one region on one rank: one entry per call in each column.
#[derive(Default)]
pub(super) struct RegionCalls {
    pub(super) start_ns: Vec<i64>,
    pub(super) duration_ns: Vec<i64>,
    pub(super) call_ids: Vec<i64>,
    /// `call_ids` value of the enclosing call; -1 for none.
    pub(super) parent_ids: Vec<i64>,
    pub(super) thread_ids: Vec<i64>,
    /// Durations of the calls, less those of their direct children.
    pub(super) exclusive_ns: i64,
}

/// The regions of one rank, by name: a name is all that the file can tell them by, so those of
/// one name share their columns, under the source of the first.
pub(super) struct RankRegions<'a> {
    regions: Vec<&'a Region>,
    calls: Vec<RegionCalls>,
    /// For each region of the recording its position in the two above.
    position: Vec<usize>,
    next_call_id: i64,
}

/// Position of a call on its lane, and what it refers to that is not there.
type Dangling = (usize, &'static str);

impl<'a> RankRegions<'a> {
    pub(super) fn new(recorded: &'a [Region]) -> RankRegions<'a> {
        let mut regions = Vec::new();
        let mut by_name = HashMap::new();
        let position = recorded.iter().map(|region| {
            *by_name.entry(&region.name).or_insert_with(|| {
                regions.push(region);
                regions.len() - 1
            })
        });
        let position = position.collect();
        let calls = regions.iter().map(|_| RegionCalls::default()).collect();
        RankRegions { regions, calls, position, next_call_id: 0 }
    }

    /// Adds the calls of the next lane, which are in order of entry.
    ///
    /// A parent's exclusive time is what is left of its duration when each child has taken its
    /// own from it; so the sums per region need no memory per call.
    ///
    /// # Errors
    /// When a call names no region of the recording, or a parent that does not come before it.
    pub(super) fn add_lane(&mut self, lane: u32, calls: &[Call]) -> Result<(), Dangling> {
        for (index, call) in calls.iter().enumerate() {
            let region = *self.position.get(call.region.0 as usize).ok_or((index, "region"))?;
            let duration_ns = call.end_ns.wrapping_sub(call.start_ns);
            let mut parent_id = -1;
            if let Some(parent) = call.parent {
                let enclosing = calls[..index].get(parent as usize).ok_or((index, "parent"))?;
                parent_id = self.next_call_id + i64::from(parent);
                // The parent was added before, so its region is known to be there.
                let enclosing = self.position[enclosing.region.0 as usize];
                self.calls[enclosing].exclusive_ns -= duration_ns;
            }
            let columns = &mut self.calls[region];
            columns.exclusive_ns += duration_ns;
            columns.start_ns.push(call.start_ns);
            columns.duration_ns.push(duration_ns);
            columns.call_ids.push(self.next_call_id + index as i64);
            columns.parent_ids.push(parent_id);
            columns.thread_ids.push(lane.into());
        }
        self.next_call_id += calls.len() as i64;
        Ok(())
    }

    /// The regions that have calls, in the order of the recording.
    pub(super) fn into_calls(self) -> impl Iterator<Item = (&'a Region, RegionCalls)> {
        self.regions.into_iter().zip(self.calls).filter(|(_, calls)| !calls.start_ns.is_empty())
    }
}
