//! The open calls of each lane, while calls are taken in order of start.

use super::arrays::NO_PARENT;
use crate::cache::prefetch;
use crate::room::room;

/// An open call: all that is asked of it while others start and end.
#[derive(Clone, Copy)]
pub(super) struct Open {
    /// Last tick at which a call that starts is inside: the end only for a call of 0 ns.
    last: i64,
    /// [`NO_PARENT`] below the outermost call, where nothing ends and anything fits.
    pub(super) id: u32,
    /// How much later than `last` the end is, 0 or 1.
    end_after: u32,
}

impl Open {
    const BOTTOM: Open = Open { last: i64::MAX, id: NO_PARENT, end_after: 0 };

    fn new(id: u32, start: i64, end: i64) -> Open {
        let end_after = u32::from(end != start);
        Open { last: end - i64::from(end_after), id, end_after }
    }

    #[inline]
    pub(super) fn end(&self) -> i64 {
        self.last.wrapping_add(i64::from(self.end_after))
    }
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

/// The open calls of each lane, the innermost last. All stacks share one block, because with
/// thousands of them not even the addresses of their pages would stay in the processor otherwise.
///
/// `LOOKED_AT` open calls are looked at together; most calls end fewer others. It is one less than a
/// power of two, for which compilers find a slower way to count.
pub(super) struct Stacks<const LOOKED_AT: usize> {
    open: Vec<Open>,
    places: Vec<Place>,
}

impl<const LOOKED_AT: usize> Stacks<LOOKED_AT> {
    pub(super) fn empty(lanes: usize) -> Self {
        let size = LOOKED_AT + FEW;
        let mut open = room(lanes * size);
        open.resize(lanes * size, Open::BOTTOM);
        let place = |from: usize| Place { bottom: from + LOOKED_AT, top: from + LOOKED_AT, end: from + size };
        Stacks { open, places: (0..lanes).map(|lane| place(lane * size)).collect() }
    }

    pub(super) fn lanes(&self) -> usize {
        self.places.len()
    }

    /// Closes what has ended when a call of `lane` starts at `start`; gives what is innermost then and
    /// the number of open calls.
    ///
    /// How many calls end cannot be foretold, so they are counted and not branched upon: from the
    /// outside in, ends never grow.
    #[inline]
    pub(super) fn close_before(&mut self, lane: u32, start: i64) -> (Open, u32) {
        let place = &mut self.places[lane as usize];
        loop {
            let innermost = &self.open[place.top - LOOKED_AT..place.top];
            let open: usize = innermost.iter().map(|open| usize::from(open.last >= start)).sum();
            place.top = place.top - LOOKED_AT + open;
            if open > 0 {
                return (innermost[open - 1], (place.top - place.bottom) as u32);
            }
        }
    }

    /// Opens a call inside all that are open on `lane`.
    #[inline]
    pub(super) fn open(&mut self, lane: u32, id: u32, start: i64, end: i64) {
        let place = &mut self.places[lane as usize];
        if place.top == place.end {
            place.move_to_more_room(&mut self.open, LOOKED_AT);
        }
        self.open[place.top] = Open::new(id, start, end);
        place.top += 1;
    }

    /// Asks for what the next call of `lane` will look at.
    pub(super) fn prefetch(&self, lane: u32) {
        let top = self.places[lane as usize].top;
        prefetch(&self.open[top - LOOKED_AT..top]);
    }
}

impl Place {
    #[cold]
    fn move_to_more_room(&mut self, open: &mut Vec<Open>, looked_at: usize) {
        let from = self.bottom - looked_at;
        let moved = open.len() - from;
        open.extend_from_within(from..self.end);
        open.resize(open.len() + self.end - from, Open::BOTTOM);
        (self.bottom, self.top, self.end) = (self.bottom + moved, self.top + moved, open.len());
    }
}
