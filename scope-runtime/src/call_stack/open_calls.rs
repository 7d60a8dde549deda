//! The open calls of each lane, while calls are taken in order of start.

use super::arrays::NO_PARENT;
use super::order::ordered;
use crate::cache::prefetch_line;
use crate::room::room;

/// An open call: all that is asked of it while others start and end.
#[derive(Clone, Copy)]
struct Open {
    /// Last tick at which a call that starts is inside, as [`ordered`] has it: the end only for a call
    /// of 0 ns.
    last: u64,
    /// [`NO_PARENT`] below the outermost call, where nothing ends and anything fits.
    id: u32,
    /// How much later than `last` the end is, 0 or 1.
    end_after: u32,
}

impl Open {
    const BOTTOM: Open = Open { last: u64::MAX, id: NO_PARENT, end_after: 0 };

    #[inline]
    fn new(id: u32, start: i64, end: i64) -> Open {
        let end_after = u32::from(end != start);
        Open { last: ordered(end) - u64::from(end_after), id, end_after }
    }

    /// Whether a call that starts inside ends inside, too.
    #[inline]
    fn holds(&self, start: i64, end: i64) -> bool {
        // Few calls end together with the one around them.
        start <= end && (ordered(end) <= self.last || ordered(end) - u64::from(self.end_after) == self.last)
    }
}

/// The open calls of all lanes, the innermost of each last.
pub(super) trait OpenCalls: Default {
    /// Closes what has ended when a call of `lane` starts at `start`, and opens it inside what is innermost
    /// then. Gives that call and the number of open calls around; `None` when it does not fit in there.
    fn enter(&mut self, lane: u32, id: u32, start: i64, end: i64) -> Option<(u32, u32)>;

    /// The innermost open call of a lane, or [`NO_PARENT`].
    fn innermost(&self, lane: u32) -> u32;

    /// Asks for what the next calls will look at, on these lanes, where that is rarely in a cache.
    fn prefetch(&self, _lanes: &[u32]) {}
}

/// Where the top of a stack is without the calls that have ended at `start`. From the outside in, ends never
/// grow.
///
/// How many calls end cannot be foretold, so they are counted and not branched upon, `LOOKED_AT` together.
#[inline(always)]
fn top_at<const LOOKED_AT: usize>(start: u64, open: &[Open], mut top: usize) -> usize {
    loop {
        let innermost = &open[top - LOOKED_AT..top];
        let still_open: usize = innermost.iter().map(|open| usize::from(open.last >= start)).sum();
        top = top - LOOKED_AT + still_open;
        if still_open > 0 {
            return top;
        }
    }
}

/// So many open calls are looked at together; most calls end fewer others. It is one less than a power of
/// two, for which compilers find a slower way to count.
const LOOKED_AT: usize = 7;

/// The open calls of the only lane. Mostly the call before is still open when one starts: that can be
/// foretold.
#[derive(Default)]
pub(super) struct OneStack {
    /// Behind as many times [`Open::BOTTOM`] as calls are looked at together.
    open: Vec<Open>,
    /// Behind the innermost open call.
    top: usize,
}

impl OneStack {
    pub(super) fn empty() -> OneStack {
        OneStack { open: vec![Open::BOTTOM; 64], top: LOOKED_AT }
    }
}

impl OpenCalls for OneStack {
    #[inline(always)]
    fn enter(&mut self, _: u32, id: u32, start: i64, end: i64) -> Option<(u32, u32)> {
        let ordered_start = ordered(start);
        if self.open[self.top - 1].last < ordered_start {
            self.top = top_at::<LOOKED_AT>(ordered_start, &self.open, self.top - 1);
        }
        let outer = &self.open[self.top - 1];
        let found = (outer.id, (self.top - LOOKED_AT) as u32);
        if !outer.holds(start, end) {
            return None;
        }
        if self.top == self.open.len() {
            self.open = with_more_room(std::mem::take(&mut self.open));
        }
        self.open[self.top] = Open::new(id, start, end);
        self.top += 1;
        Some(found)
    }

    fn innermost(&self, _: u32) -> u32 {
        self.open[self.top - 1].id
    }
}

/// Takes the vector and not a reference to it, so that the rest of a stack can be in registers.
#[cold]
fn with_more_room(mut open: Vec<Open>) -> Vec<Open> {
    open.resize(2 * open.len(), Open::BOTTOM);
    open
}

/// Room for the open calls of a lane, at first.
const FEW: usize = 9;

/// Where the stack of a lane lies.
struct Place {
    /// Behind as many times [`Open::BOTTOM`] as calls are looked at together.
    bottom: usize,
    /// Behind the innermost open call.
    top: usize,
    /// Where its room ends.
    end: usize,
}

/// The open calls of several lanes. All stacks share one block, because with thousands of them not even
/// the addresses of their pages would stay in the processor otherwise.
///
/// `LOOKED_AT` open calls are looked at together.
#[derive(Default)]
pub(super) struct Stacks<const LOOKED_AT: usize> {
    open: Vec<Open>,
    places: Vec<Place>,
}

/// The stacks of some lanes.
pub(super) type FewStacks = Stacks<LOOKED_AT>;

/// With more lanes than this, their open calls do not stay in a second-level cache.
pub(super) const MANY_LANES: usize = 2000;

/// The stacks of thousands of lanes: what is looked at together should lie in one line of the cache.
pub(super) type ManyStacks = Stacks<3>;

impl<const LOOKED_AT: usize> Stacks<LOOKED_AT> {
    pub(super) fn empty(lanes: usize) -> Self {
        let size = LOOKED_AT + FEW;
        let mut open = room(lanes * size);
        open.resize(lanes * size, Open::BOTTOM);
        let place = |from: usize| Place { bottom: from + LOOKED_AT, top: from + LOOKED_AT, end: from + size };
        Stacks { open, places: (0..lanes).map(|lane| place(lane * size)).collect() }
    }
}

impl<const LOOKED_AT: usize> OpenCalls for Stacks<LOOKED_AT> {
    #[inline(always)]
    fn enter(&mut self, lane: u32, id: u32, start: i64, end: i64) -> Option<(u32, u32)> {
        let place = &mut self.places[lane as usize];
        let mut top = top_at::<LOOKED_AT>(ordered(start), &self.open, place.top);
        let outer = &self.open[top - 1];
        let found = (outer.id, (top - place.bottom) as u32);
        if !outer.holds(start, end) {
            place.top = top;
            return None;
        }
        if top == place.end {
            top = place.move_to_more_room(&mut self.open, LOOKED_AT);
        }
        self.open[top] = Open::new(id, start, end);
        place.top = top + 1;
        Some(found)
    }

    fn innermost(&self, lane: u32) -> u32 {
        self.open[self.places[lane as usize].top - 1].id
    }

    fn prefetch(&self, lanes: &[u32]) {
        if self.places.len() <= MANY_LANES {
            return;
        }
        for lane in lanes {
            let top = self.places[*lane as usize].top;
            prefetch_line(&self.open[top - LOOKED_AT]);
            prefetch_line(&self.open[top - 1]);
            if let Some(next) = self.open.get(top) {
                prefetch_line(next);
            }
        }
    }
}

impl Place {
    /// Moves a full stack; gives where its top is then.
    #[cold]
    fn move_to_more_room(&mut self, open: &mut Vec<Open>, looked_at: usize) -> usize {
        let from = self.bottom - looked_at;
        let moved = open.len() - from;
        open.extend_from_within(from..self.end);
        open.resize(open.len() + self.end - from, Open::BOTTOM);
        let top = self.end + moved;
        (self.bottom, self.end) = (self.bottom + moved, open.len());
        top
    }
}
