//! The open calls of each lane. A lane on which nothing begins any more does not keep those that have ended.

/// Lanes are looked through for ended calls when they are twice as many as were left by the last time, or
/// as this. Tests have few calls.
pub(super) const LEAST_SWEEP: usize = if cfg!(test) { 2 } else { 512 };

/// A call that is open, or was.
pub(super) trait OpenCall {
    /// Whether a call that starts at `start` is behind this one.
    fn has_ended(&self, start: i64) -> bool;
}

/// A stack of calls per lane.
pub(super) struct Stacks<O> {
    lanes: Vec<Stack<O>>,
    /// The lanes that may have calls.
    busy: Vec<u32>,
    /// So many lanes were left when they were looked through.
    left: usize,
}

struct Stack<O> {
    calls: Vec<O>,
    /// It is among the busy ones.
    is_busy: bool,
}

impl<O: OpenCall> Stacks<O> {
    pub(super) fn new() -> Stacks<O> {
        Stacks { lanes: Vec::new(), busy: Vec::new(), left: 0 }
    }

    /// Makes room for so many lanes.
    pub(super) fn extend_to(&mut self, lanes: usize) {
        self.lanes.resize_with(lanes, || Stack { calls: Vec::new(), is_busy: false });
    }

    /// The stack of a lane for a call that starts at `start`, the next in order; `close` gets calls that
    /// have ended, among them all of that lane.
    pub(super) fn at(&mut self, lane: u32, start: i64, mut close: impl FnMut(O)) -> &mut Vec<O> {
        if self.busy.len() >= 2 * self.left.max(LEAST_SWEEP) {
            self.sweep(start, &mut close);
        }
        let stack = &mut self.lanes[lane as usize];
        if !std::mem::replace(&mut stack.is_busy, true) {
            self.busy.push(lane);
        }
        stack.close_ended(start, &mut close);
        &mut stack.calls
    }

    fn sweep(&mut self, start: i64, close: &mut impl FnMut(O)) {
        self.busy.retain(|&lane| {
            let stack = &mut self.lanes[lane as usize];
            stack.close_ended(start, close);
            if stack.calls.is_empty() {
                *stack = Stack { calls: Vec::new(), is_busy: false };
            }
            stack.is_busy
        });
        self.left = self.busy.len();
    }

    /// All calls that are left.
    pub(super) fn into_calls(self) -> impl Iterator<Item = O> {
        self.lanes.into_iter().flat_map(|stack| stack.calls)
    }
}

impl<O: OpenCall> Stack<O> {
    fn close_ended(&mut self, start: i64, close: &mut impl FnMut(O)) {
        while let Some(ended) = self.calls.pop_if(|call| call.has_ended(start)) {
            close(ended);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl OpenCall for i64 {
        fn has_ended(&self, start: i64) -> bool {
            *self < start
        }
    }

    #[test]
    fn lanes_with_one_call_each_are_given_up() {
        let (mut stacks, mut closed) = (Stacks::new(), 0);
        stacks.extend_to(10_000);
        for lane in 0..10_000 {
            let end = if lane % 1000 == 0 { i64::MAX } else { i64::from(lane) };
            stacks.at(lane, lane.into(), |_| closed += 1).push(end);
        }
        let kept: Vec<_> = stacks.lanes.iter().filter(|stack| stack.calls.capacity() > 0).collect();
        assert!(kept.len() <= 2 * 10.max(LEAST_SWEEP) && kept.len() == stacks.busy.len(), "{}", kept.len());
        let left: Vec<_> = stacks.into_calls().collect();
        assert_eq!(left.iter().filter(|end| **end == i64::MAX).count(), 10);
        assert_eq!(closed + left.len(), 10_000);
    }
}
