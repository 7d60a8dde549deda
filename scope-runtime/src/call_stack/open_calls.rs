//! The open calls of each lane, while calls are taken in order of start.

use super::arrays::NO_PARENT;
use super::order::ordered;
use crate::room::room;

/// An open call: all that is asked of it while others start and end.
#[derive(Clone, Copy)]
struct Open {
    last: u64,
    /// [`NO_PARENT`] below the outermost call, where nothing ends and anything fits.
    id: u32,
}

impl Open {
    const BOTTOM: Open = Open { last: u64::MAX, id: NO_PARENT };
}

/// Last tick at which a call that starts is inside, as [`ordered`] has it: the end only for a call of 0 ns.
///
/// A call that starts inside also ends inside where its last tick is not the later one. A longer call that
/// starts on the tick of a call of 0 ns would pass, too, but it comes before that one.
#[inline]
fn last_tick(start: i64, end: i64) -> u64 {
    ordered(end) - u64::from(end != start)
}

/// The open calls of all lanes, the innermost of each last.
pub(super) trait OpenCalls: Default {
    /// Closes what has ended when a call of `lane` starts at `start`, and opens it inside what is innermost
    /// then. Gives that call and the number of open calls around; `None` when it does not fit in there.
    fn enter(&mut self, lane: u32, id: u32, start: i64, end: i64) -> Option<(u32, u32)>;

    /// The innermost call of a lane that is open at `start`, or [`NO_PARENT`]; `enter` was called for it.
    fn innermost(&self, lane: u32, start: i64) -> u32;

    /// Asks for what the next calls will look at, on these lanes, where that is rarely in a cache.
    fn look_at(&self, _lanes: &[u32]) {}
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
        OneStack::of(std::iter::empty())
    }

    /// With these open calls, the outermost first.
    fn of(open: impl Iterator<Item = Open>) -> OneStack {
        let mut stack = OneStack { open: vec![Open::BOTTOM; 32], top: LOOKED_AT };
        for call in open {
            stack.open[stack.top] = call;
            stack.top += 1;
        }
        stack
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
        let last = last_tick(start, end);
        if start > end || last > outer.last {
            return None;
        }
        if self.top == self.open.len() {
            self.open = with_more_room(std::mem::take(&mut self.open));
        }
        self.open[self.top] = Open { last, id };
        self.top += 1;
        Some(found)
    }

    fn innermost(&self, _: u32, _: i64) -> u32 {
        self.open[self.top - 1].id
    }
}

/// Takes the vector and not a reference to it, so that the rest of a stack can be in registers.
#[cold]
fn with_more_room(mut open: Vec<Open>) -> Vec<Open> {
    open.resize(2 * open.len(), Open::BOTTOM);
    open
}

/// So many calls of a lane are open at once before it gets a stack that grows: the last ticks of as many are
/// in one line of the cache.
const SHALLOW: usize = 8;

/// The outermost open calls of a lane that was never deep. How many there are is not written down: what has
/// ended has a last tick before any start to come.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Shallow {
    /// All the latest, for a lane that is deep.
    lasts: [u64; SHALLOW],
    /// Of a deep lane the first is the position of its stack.
    ids: [u32; SHALLOW],
}

impl Shallow {
    const EMPTY: Shallow = Shallow { lasts: [0; SHALLOW], ids: [NO_PARENT; SHALLOW] };

    /// How many of these calls are open at `start`.
    #[inline(always)]
    fn open_at(&self, start: u64) -> usize {
        self.lasts.iter().map(|last| usize::from(*last >= start)).sum()
    }

    fn is_deep(&self) -> bool {
        self.lasts == [u64::MAX; SHALLOW]
    }
}

/// The open calls of several lanes.
#[derive(Default)]
pub(super) struct Stacks {
    lanes: Vec<Shallow>,
    deep: Vec<OneStack>,
}

/// With more lanes than this, what is open does not stay in a second-level cache.
const MANY_LANES: usize = 2000;

impl Stacks {
    pub(super) fn empty(lanes: usize) -> Self {
        let mut shallow = room(lanes);
        shallow.resize(lanes, Shallow::EMPTY);
        Stacks { lanes: shallow, deep: Vec::new() }
    }

    /// As `enter`, on a lane with a stack that grows or that gets one now.
    #[cold]
    fn enter_deep(&mut self, lane: u32, id: u32, start: i64, end: i64) -> Option<(u32, u32)> {
        let shallow = &mut self.lanes[lane as usize];
        if !shallow.is_deep() {
            let open = shallow.lasts.iter().zip(&shallow.ids).filter(|(_, id)| **id != NO_PARENT);
            let stack = OneStack::of(open.map(|(&last, &id)| Open { last, id }));
            shallow.lasts = [u64::MAX; SHALLOW];
            shallow.ids[0] = self.deep.len() as u32;
            self.deep.push(stack);
        }
        self.deep[shallow.ids[0] as usize].enter(lane, id, start, end)
    }
}

impl OpenCalls for Stacks {
    #[inline(always)]
    fn enter(&mut self, lane: u32, id: u32, start: i64, end: i64) -> Option<(u32, u32)> {
        let shallow = &mut self.lanes[lane as usize];
        let open = shallow.open_at(ordered(start));
        if open == SHALLOW {
            return self.enter_deep(lane, id, start, end);
        }
        let Shallow { lasts, ids } = shallow;
        let (outer_last, outer) = match open {
            0 => (u64::MAX, NO_PARENT),
            open => (lasts[open - 1], ids[open - 1]),
        };
        let last = last_tick(start, end);
        if start > end || last > outer_last {
            return None;
        }
        (lasts[open], ids[open]) = (last, id);
        Some((outer, open as u32))
    }

    fn innermost(&self, lane: u32, start: i64) -> u32 {
        let shallow = &self.lanes[lane as usize];
        if shallow.is_deep() {
            return self.deep[shallow.ids[0] as usize].innermost(lane, start);
        }
        shallow.ids[..shallow.open_at(ordered(start))].last().copied().unwrap_or(NO_PARENT)
    }

    fn look_at(&self, lanes: &[u32]) {
        if self.lanes.len() > MANY_LANES {
            for lane in lanes {
                let shallow = &self.lanes[*lane as usize];
                std::hint::black_box(shallow.lasts[0]);
                std::hint::black_box(shallow.ids[SHALLOW - 1]);
            }
        }
    }
}
