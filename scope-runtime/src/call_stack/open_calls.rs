//! The open calls of a lane, while its calls are taken in order of start.

use super::arrays::NO_PARENT;
use super::order::Item;

/// An open call: all that is asked of it while others start and end.
#[derive(Clone, Copy)]
struct Open {
    /// Last tick at which a call that starts is inside: the end only for a call of 0 ns.
    last: i64,
    end: i64,
    /// Sum of the durations of its children so far.
    children_ns: i64,
    id: u32,
    depth: u32,
}

impl Open {
    /// Below the outermost call: nothing ends it, anything fits.
    const BOTTOM: Open =
        Open { last: i64::MAX, end: i64::MAX, children_ns: 0, id: NO_PARENT, depth: u32::MAX };

    /// The exclusive column has durations; those of the children are known when a call is closed.
    #[inline]
    fn close(&self, exclusive_ns: &mut [i64]) {
        let exclusive = &mut exclusive_ns[self.id as usize];
        *exclusive = exclusive.wrapping_sub(self.children_ns);
    }
}

/// The open calls of a lane, the innermost by itself.
#[derive(Clone)]
pub(super) struct Stack {
    top: Open,
    below: Vec<Open>,
}

impl Stack {
    pub(super) const EMPTY: Stack = Stack { top: Open::BOTTOM, below: Vec::new() };

    /// Nests calls from the first of `items` on until one is of another lane or does not fit; gives
    /// the number of calls that were nested. The other slices have a place for each of `items`,
    /// whose ids begin with `first`.
    pub(super) fn nest(
        &mut self,
        first: usize,
        items: &[Item],
        of_lane: impl Fn(&Item) -> bool,
        to: NewCalls<'_>,
    ) -> usize {
        let NewCalls { ends, depths, parents, exclusive_ns } = to;
        let (ends, depths) = (&ends[..items.len()], &mut depths[..items.len()]);
        let parents = &mut parents[..items.len()];
        // Kept out of memory: the next call nearly always looks at the one that was opened last.
        let mut top = self.top;
        let mut nested = items.len();
        for (at, item) in items.iter().enumerate() {
            if !of_lane(item) {
                nested = at;
                break;
            }
            while item.start > top.last {
                top.close(exclusive_ns);
                top = self.below.pop().unwrap_or(Open::BOTTOM);
            }
            // Not the item's end: an earlier round may have moved it.
            let end = ends[at];
            if end > top.end || end < item.start {
                nested = at;
                break;
            }
            let depth = top.depth.wrapping_add(1);
            depths[at] = depth;
            parents[at] = top.id;
            top.children_ns = top.children_ns.wrapping_add(end.wrapping_sub(item.start));
            self.below.push(top);
            let last = end - i64::from(end != item.start);
            top = Open { last, end, children_ns: 0, id: (first + at) as u32, depth };
        }
        self.top = top;
        nested
    }

    /// Id and end of the innermost open call; [`NO_PARENT`] and a time after all others for none.
    pub(super) fn top(&self) -> (u32, i64) {
        (self.top.id, self.top.end)
    }

    /// Closes all that is open.
    pub(super) fn close_all(&mut self, exclusive_ns: &mut [i64]) {
        let open = self.below.drain(..).chain([self.top]);
        open.filter(|open| open.id != NO_PARENT).for_each(|open| open.close(exclusive_ns));
        self.top = Open::BOTTOM;
    }
}

/// Columns of calls that are being nested; `exclusive_ns` is of all calls so far.
pub(super) struct NewCalls<'a> {
    pub(super) ends: &'a [i64],
    pub(super) depths: &'a mut [u32],
    pub(super) parents: &'a mut [u32],
    pub(super) exclusive_ns: &'a mut [i64],
}
