//! The open calls of each lane, while calls are taken in order of start.

use super::arrays::NO_PARENT;
use super::order::ordered;
use crate::cache::prefetch_line;
use crate::room::room;

/// An open call: all that is asked of it while others start and end.
#[derive(Clone, Copy)]
struct Open {
    /// See [`last_tick`].
    last: u64,
    /// [`NO_PARENT`] below the outermost call, where nothing ends and anything fits.
    id: u32,
}

impl Open {
    const BOTTOM: Open = Open { last: u64::MAX, id: NO_PARENT };
}

/// Last tick at which a call that starts is inside, as [`ordered`] has it: the end only for a call of 0 ns.
/// `None` when the call ends before its start, or after what is `around`: not inside, though it starts there.
///
/// On the tick of a call of 0 ns a call of 1 ns would pass, but it comes before that one.
#[inline(always)]
fn last_tick(start: i64, end: i64, around: u64) -> Option<u64> {
    let last = ordered(end).wrapping_sub(u64::from(end != start));
    (start <= end && last <= around).then_some(last)
}

/// The open calls of all lanes, the innermost of each last.
pub(super) trait OpenCalls: Default {
    /// Whether they, and the calls that they stand for, are often in no near cache.
    const ARE_FAR: bool = false;

    /// Closes what has ended when a call of `lane` starts at `start`, and opens it inside what is innermost
    /// then. Gives that call and the number of open calls around; `None` when it does not fit in there.
    fn enter(&mut self, lane: u32, id: u32, start: i64, end: i64) -> Option<(u32, u32)>;

    /// The innermost call of a lane that is open at `start`, where `enter` has just been called for it; or
    /// [`NO_PARENT`].
    fn innermost(&self, lane: u32, start: i64) -> u32;

    /// Asks for what [`enter`](Self::enter) will look at on a lane.
    fn prefetch(&self, _lane: u32) {}
}

/// Where the top of a stack is without the calls that have ended at `start`. From the outside in, ends never
/// grow.
///
/// How many calls end cannot be foretold, so they are counted and not branched upon, `LOOKED_AT` together.
#[inline(always)]
fn top_at(start: u64, open: &[Open], mut top: usize) -> usize {
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

/// The open calls of a lane. Mostly the call before is still open when one starts: that can be
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
        OneStack { open: vec![Open::BOTTOM; 2 * (LOOKED_AT + 1)], top: LOOKED_AT }
    }

    /// Opens a call inside what is innermost below `top`.
    #[inline(always)]
    fn push(&mut self, top: usize, id: u32, start: i64, end: i64) -> Option<(u32, u32)> {
        let outer = &self.open[top - 1];
        let found = (outer.id, (top - LOOKED_AT) as u32);
        let Some(last) = last_tick(start, end, outer.last) else {
            self.top = top;
            return None;
        };
        if top == self.open.len() {
            self.open = with_more_room(std::mem::take(&mut self.open));
        }
        self.open[top] = Open { last, id };
        self.top = top + 1;
        Some(found)
    }
}

impl OpenCalls for OneStack {
    #[inline(always)]
    fn enter(&mut self, _: u32, id: u32, start: i64, end: i64) -> Option<(u32, u32)> {
        let ordered_start = ordered(start);
        let mut top = self.top;
        if self.open[top - 1].last < ordered_start {
            top = top_at(ordered_start, &self.open, top - 1);
        }
        self.push(top, id, start, end)
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

/// A stack per lane.
#[derive(Default)]
pub(super) struct FewStacks(Vec<OneStack>);

impl FewStacks {
    pub(super) fn empty(lanes: usize) -> FewStacks {
        FewStacks((0..lanes).map(|_| OneStack::empty()).collect())
    }
}

impl OpenCalls for FewStacks {
    #[inline(always)]
    fn enter(&mut self, lane: u32, id: u32, start: i64, end: i64) -> Option<(u32, u32)> {
        let stack = &mut self.0[lane as usize];
        let top = top_at(ordered(start), &stack.open, stack.top);
        stack.push(top, id, start, end)
    }

    fn innermost(&self, lane: u32, start: i64) -> u32 {
        self.0[lane as usize].innermost(lane, start)
    }
}

/// So many of the innermost open calls of a lane lie together.
const INNER: usize = 8;
/// So many are put aside when there are too many, and come back when all others have ended.
const MOVED: usize = 4;

/// Time since the first start of all calls.
pub(super) trait Tick: Copy + Default + Ord {
    /// The longest time that it can be.
    const MOST: u64;

    /// Of a time of at most [`MOST`](Self::MOST).
    fn of(time: u64) -> Self;

    fn time(self) -> u64;
}

impl Tick for u64 {
    const MOST: u64 = u64::MAX;

    fn of(time: u64) -> u64 {
        time
    }

    fn time(self) -> u64 {
        self
    }
}

impl Tick for u32 {
    const MOST: u64 = u32::MAX as u64;

    fn of(time: u64) -> u32 {
        time as u32
    }

    fn time(self) -> u64 {
        self.into()
    }
}

/// The open calls of one of many lanes, those that are mostly looked at: in one line of the cache where 32 bits
/// are enough for the times of all calls, else in two.
///
/// How many of the inner ones are open is not written down: what has ended has a last tick before any start
/// to come.
#[derive(Clone)]
#[repr(align(64))]
struct Lane<T> {
    lasts: [T; INNER],
    /// [`NO_PARENT`] where there was no call yet, and where it was moved away.
    ids: [u32; INNER],
}

impl<T: Tick> Lane<T> {
    fn empty() -> Lane<T> {
        Lane { lasts: [T::default(); INNER], ids: [NO_PARENT; INNER] }
    }

    /// How many of the inner calls are open at `start`. At tick 0 no call has ended.
    fn open_at(&self, start: T) -> usize {
        self.lasts.iter().zip(&self.ids).filter(|(last, id)| **last >= start && **id != NO_PARENT).count()
    }

    /// The same without a look at ids, so that at tick 0 every place counts.
    ///
    /// Open calls come first. So of four, two and one of them no sum has to wait for another, and compilers
    /// do not gather eight comparisons in a vector to add them up, which takes longer.
    #[inline(always)]
    fn count_open(&self, start: T) -> usize {
        let open = |at: usize| usize::from(self.lasts[at] >= start);
        ((open(0) + open(1) + open(2) + open(3)) | (open(4) + open(5)) | open(6)) + open(7)
    }
}

/// The open calls of many lanes.
#[derive(Default)]
pub(super) struct ManyStacks<T> {
    lanes: Vec<Lane<T>>,
    /// What was put aside on each lane; nothing before any was.
    outer: Vec<Vec<(T, u32)>>,
    /// The tick before the first of all, as [`ordered`] has it.
    before: u64,
}

/// With more lanes than this, a stack by itself for each is in too many lines of the cache.
pub(super) const MANY_LANES: usize = 64;

impl<T: Tick> ManyStacks<T> {
    /// `before` is a tick before all starts, as [`ordered`] has it, if there is any.
    pub(super) fn empty(lanes: usize, before: u64) -> ManyStacks<T> {
        let mut all = room(lanes);
        all.resize(lanes, Lane::empty());
        ManyStacks { lanes: all, outer: Vec::new(), before }
    }

    fn tick(&self, start: i64) -> T {
        T::of(ordered(start) - self.before)
    }

    /// How many calls of a lane are put aside.
    #[inline(always)]
    fn aside(&self, lane: u32) -> usize {
        self.outer.get(lane as usize).map_or(0, Vec::len)
    }

    /// Moves calls such that an inner one is open, if any is, and another has room; gives how many are.
    #[cold]
    fn move_some(&mut self, number: u32, start: T) -> usize {
        if self.outer.is_empty() {
            self.outer.resize(self.lanes.len(), Vec::new());
        }
        let (lane, outer) = (&mut self.lanes[number as usize], &mut self.outer[number as usize]);
        let mut open = lane.open_at(start);
        if open == INNER {
            outer.extend(lane.lasts.into_iter().zip(lane.ids).take(MOVED));
            lane.lasts.copy_within(MOVED.., 0);
            lane.ids.copy_within(MOVED.., 0);
            open -= MOVED;
            lane.lasts[open..].fill(T::default());
            lane.ids[open..].fill(NO_PARENT);
        }
        while open == 0 && !outer.is_empty() {
            let moved = outer.drain(outer.len() - MOVED..);
            for ((last, id), (to_last, to_id)) in moved.zip(lane.lasts.iter_mut().zip(&mut lane.ids)) {
                (*to_last, *to_id) = (last, id);
            }
            open = lane.open_at(start);
        }
        open
    }
}

impl<T: Tick> OpenCalls for ManyStacks<T> {
    const ARE_FAR: bool = true;

    #[inline(always)]
    fn enter(&mut self, number: u32, id: u32, start: i64, end: i64) -> Option<(u32, u32)> {
        let tick = self.tick(start);
        let mut open = self.lanes[number as usize].count_open(tick);
        let mut aside = self.aside(number);
        if open == INNER || open == 0 && aside > 0 {
            open = self.move_some(number, tick);
            aside = self.aside(number);
        }
        let lane = &mut self.lanes[number as usize];
        let (around, parent) = match open {
            0 => (u64::MAX, NO_PARENT),
            open => (self.before + lane.lasts[open - 1].time(), lane.ids[open - 1]),
        };
        let last = last_tick(start, end, around)? - self.before;
        (lane.lasts[open], lane.ids[open]) = (T::of(last), id);
        Some((parent, (aside + open) as u32))
    }

    fn innermost(&self, lane: u32, start: i64) -> u32 {
        let lane = &self.lanes[lane as usize];
        lane.ids[..lane.open_at(self.tick(start))].last().copied().unwrap_or(NO_PARENT)
    }

    #[inline(always)]
    fn prefetch(&self, lane: u32) {
        prefetch_line(&self.lanes[lane as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts and ends of calls in order, most of which nest, on few ticks from the first of all on.
    fn calls(count: i64, seed: i64) -> Vec<(i64, i64)> {
        let mut random = seed;
        let mut below = |bound: i64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33).rem_euclid(bound)
        };
        let mut calls: Vec<_> = (0..count)
            .map(|_| {
                let start = i64::MIN + below(256);
                (start, (start + (below(16) << below(12))).saturating_sub(below(2)))
            })
            .collect();
        calls.sort_by_key(|&(start, end)| (start, !ordered(end)));
        calls
    }

    #[test]
    fn stacks_of_several_lanes_answer_as_one_stack_does() {
        let mut deepest = 0;
        for seed in 0..200 {
            let mut one = OneStack::empty();
            let mut few = FewStacks::empty(2);
            let (mut many, mut narrow) = (ManyStacks::<u64>::empty(2, 0), ManyStacks::<u32>::empty(2, 0));
            let mut calls = calls(500, seed);
            for id in 0..calls.len() {
                let (start, end) = calls[id];
                let mut answer = one.enter(0, id as u32, start, end);
                assert_eq!(few.enter(1, id as u32, start, end), answer, "call {id} of {seed}");
                assert_eq!(many.enter(1, id as u32, start, end), answer, "call {id} of {seed}");
                assert_eq!(narrow.enter(1, id as u32, start, end), answer, "call {id} of {seed}");
                if answer.is_none() {
                    let around = one.innermost(0, start);
                    assert_eq!(few.innermost(1, start), around, "call {id} of {seed}");
                    assert_eq!(many.innermost(1, start), around, "call {id} of {seed}");
                    assert_eq!(narrow.innermost(1, start), around, "call {id} of {seed}");
                    let latest = calls.get(around as usize).map_or(i64::MAX, |&(_, end)| end);
                    calls[id].1 = end.clamp(start, latest);
                    answer = one.enter(0, id as u32, start, calls[id].1);
                    assert_eq!(few.enter(1, id as u32, start, calls[id].1), answer, "call {id} of {seed}");
                    assert_eq!(many.enter(1, id as u32, start, calls[id].1), answer, "call {id} of {seed}");
                    assert_eq!(narrow.enter(1, id as u32, start, calls[id].1), answer, "call {id} of {seed}");
                }
                deepest = deepest.max(answer.unwrap().1);
            }
        }
        assert!(deepest > 3 * INNER as u32, "{deepest}");
    }
}
