//! Paths from intervals alone: a stack per lane, as `build.rs` has for calls in memory.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::blocks::{Call, Reader};
use super::stacks::{OpenCall, Stacks};
use super::windows::Windows;
use super::{CallVisitor, StoredCalls, StoredError};
use crate::call_stack::error::{CallAt, NestingError};
use crate::call_stack::order::ordered;
use crate::profile::RegionId;
use crate::totals::{PathId, PathTree};

/// The longer of two calls that start together encloses the other, so it goes first.
pub(super) fn tie(call: &Call) -> u64 {
    !ordered(call.end)
}

/// An open call.
struct Open {
    path: PathId,
    start: i64,
    end: i64,
    /// Position in the region's stored calls.
    call: u32,
    exclusive_ns: i64,
}

impl OpenCall for Open {
    /// One of 0 ns is open at its own tick.
    fn has_ended(&self, start: i64) -> bool {
        self.end < start || self.end == start && self.start != self.end
    }
}

impl Open {
    fn close(self, paths: &mut PathTree) {
        paths.add_call(self.path, self.end.wrapping_sub(self.start), self.exclusive_ns, false);
    }
}

/// Takes the next call; the call around it, if any, where it does not fit.
fn take(
    call: &Call,
    stacks: &mut Stacks<Open>,
    paths: &mut PathTree,
    visitor: &mut impl CallVisitor,
) -> Result<(), Option<Call>> {
    let open = stacks.at(call.lane, call.start, |ended| ended.close(paths));
    let outer = open.last_mut();
    if call.end < call.start || outer.as_ref().is_some_and(|outer| outer.end < call.end) {
        return Err(outer.map(|outer| {
            let region = paths.nodes()[outer.path.0 as usize].region.0;
            Call { start: outer.start, end: outer.end, call: outer.call, region, ..*call }
        }));
    }
    let duration_ns = call.end.wrapping_sub(call.start);
    let above = outer.map(|outer| {
        outer.exclusive_ns = outer.exclusive_ns.wrapping_sub(duration_ns);
        outer.path
    });
    let path = paths.step(above, RegionId(call.region));
    visitor.call(paths, path, call.start, call.end);
    let &Call { start, end, call, .. } = call;
    open.push(Open { path, start, end, call, exclusive_ns: duration_ns });
    Ok(())
}

/// Lanes that do not nest, with their first errors.
type Faults = Vec<(i64, NestingError)>;

/// The paths of all lanes but those of `left_out`, and which of them do not nest. Calls of these are in the
/// paths, so that they have to be taken again.
pub(super) fn nest<S: StoredCalls>(
    reader: &mut Reader<'_, S>,
    mut windows: Windows,
    left_out: &HashSet<i64>,
    visitor: &mut impl CallVisitor,
) -> Result<(PathTree, Faults), StoredError<S::Error>> {
    let mut paths = PathTree::default();
    let mut stacks = Stacks::new();
    let mut are_left_out: Vec<bool> = Vec::new();
    let mut faulty: Vec<(Call, Option<Call>)> = Vec::new();
    while windows.read(reader)? {
        // Lanes get their places as they occur while blocks are read.
        let new = reader.lanes.numbers[are_left_out.len()..].iter();
        are_left_out.extend(new.map(|lane| left_out.contains(lane)));
        stacks.extend_to(are_left_out.len());
        let _ = windows.in_order(|call| {
            let is_left_out = &mut are_left_out[call.lane as usize];
            if !*is_left_out && let Err(outer) = take(call, &mut stacks, &mut paths, visitor) {
                *is_left_out = true;
                faulty.push((*call, outer));
            }
            ControlFlow::<()>::Continue(())
        });
    }
    stacks.into_calls().for_each(|open| open.close(&mut paths));
    let faults = faulty.into_iter().map(|(inner, outer)| {
        let lane = reader.lanes.number(inner.lane);
        let at = |call: Call| {
            Box::new(CallAt {
                region: reader.regions[call.region as usize].name.to_owned(),
                region_index: call.region as usize,
                call_index: call.call as usize,
                start_ns: call.start,
                end_ns: call.end,
                lane,
            })
        };
        let error = match outer {
            Some(outer) if inner.start <= inner.end => {
                NestingError::Overlap { outer: at(outer), inner: at(inner) }
            }
            _ => NestingError::EndsBeforeStart(at(inner)),
        };
        (reader.lanes.numbers[inner.lane as usize], error)
    });
    Ok((paths, faults.collect()))
}
