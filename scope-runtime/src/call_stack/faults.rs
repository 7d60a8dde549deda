//! What is done about calls that do not fit where they are.

use super::arrays::CallArrays;
use super::build::{BadLanes, LaneReport};
use super::error::{CallAt, NestingError};
use super::input::RegionCalls;
use super::lanes::Lanes;
use super::order::Item;

/// An open call that another one should fit into.
pub(super) struct Outer {
    pub(super) region: u32,
    pub(super) call: u32,
    pub(super) end: i64,
}

/// The faults met so far.
pub(super) struct Faults<'a> {
    regions: &'a [RegionCalls<'a>],
    lanes: &'a Lanes,
    /// `None` when the first fault is the result.
    bad: Option<BadLanes>,
    faulty_lanes: Vec<bool>,
    errors: Vec<NestingError>,
    repaired: usize,
}

impl<'a> Faults<'a> {
    pub(super) fn none(
        regions: &'a [RegionCalls<'a>],
        lanes: &'a Lanes,
        bad: Option<BadLanes>,
    ) -> Faults<'a> {
        let faulty_lanes = vec![false; lanes.count()];
        Faults { regions, lanes, bad, faulty_lanes, errors: Vec::new(), repaired: 0 }
    }

    /// Deals with a call that ends before it starts or after `outer`: an error, or another end.
    #[cold]
    pub(super) fn meet(&mut self, item: &Item, outer: Option<Outer>) -> Result<i64, NestingError> {
        let outer_end = outer.as_ref().map_or(i64::MAX, |outer| outer.end);
        let error = self.error(item, outer);
        if self.bad.is_none() {
            return Err(first_faulty(self.regions).unwrap_or(error));
        }
        if !std::mem::replace(&mut self.faulty_lanes[item.lane as usize], true) {
            self.errors.push(error);
        }
        self.repaired += 1;
        Ok(item.end.max(item.start).min(outer_end))
    }

    fn error(&self, item: &Item, outer: Option<Outer>) -> NestingError {
        let lane = self.lanes.number(item.lane);
        let at = |region: u32, call: u32| {
            Box::new(CallAt::find(self.regions, region as usize, call as usize, lane))
        };
        let inner = at(item.region, item.call);
        match outer {
            Some(outer) if item.start <= item.end => {
                NestingError::Overlap { outer: at(outer.region, outer.call), inner }
            }
            _ => NestingError::EndsBeforeStart(inner),
        }
    }

    /// The calls without those that are to be left out, and what was wrong.
    pub(super) fn report(self, mut calls: CallArrays) -> LaneReport {
        let Faults { bad, faulty_lanes, errors, mut repaired, .. } = self;
        if bad == Some(BadLanes::Drop) && !errors.is_empty() {
            repaired = 0;
            let kept = |id: usize| calls.lane.as_ref().is_some_and(|lane| !faulty_lanes[lane.index.get(id)]);
            let picked: Vec<u32> = (0..calls.len()).filter(|id| kept(*id)).map(|id| id as u32).collect();
            calls = calls.pick(&picked);
        }
        LaneReport { calls, errors, repaired }
    }
}

/// The error for the first call in list order that ends before it starts.
pub(super) fn first_faulty(regions: &[RegionCalls<'_>]) -> Option<NestingError> {
    let threads = regions.iter().any(|region| region.thread_ids.is_some());
    regions.iter().enumerate().find_map(|(number, region)| {
        let at = region.starts.iter().zip(region.ends).position(|(start, end)| end < start)?;
        let lane = threads.then(|| region.lane_number(at));
        Some(NestingError::EndsBeforeStart(Box::new(CallAt::find(regions, number, at, lane))))
    })
}
