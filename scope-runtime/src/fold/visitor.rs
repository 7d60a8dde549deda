//! Adds up the calls of a lane as they come.

use super::{
    Aside, Begun, Children, Folded, Held, InheritedEnd, MAX_UNSETTLED, NONE, Node, Open, OpenPart, Origin,
    Owed, Parent, Unsettled,
};
use crate::format::instance_of;
use crate::profile::MessageSizes;
use crate::replay::{Cut, Ended, Message, Part, Poll, UNKNOWN_REGION, Visitor};

impl Folded {
    fn below(&self) -> Parent {
        match self.open.last() {
            Some(open) => Parent::Node(open.node),
            None => Parent::Inherited(self.inherited),
        }
    }

    /// Ends the innermost frame, or a part of it.
    #[inline]
    fn close_part(&mut self, at: u64) -> Option<Open> {
        let open = self.open.pop()?;
        let inclusive = &mut self.nodes[open.node as usize].inclusive;
        // Sums that are read back may be anything.
        *inclusive = inclusive.saturating_add(at.saturating_sub(open.start));
        Some(open)
    }

    /// Adds to what ran directly in this frame and hangs elsewhere.
    fn add_elsewhere(&mut self, frame: Parent, ticks: i64) {
        let elsewhere = match frame {
            Parent::Node(node) | Parent::Task(_, Some(node)) => &mut self.nodes[node as usize].elsewhere,
            Parent::Inherited(depth) | Parent::Task(depth, None) => {
                self.inherited_elsewhere.entry(depth).or_default()
            }
        };
        *elsewhere = elsewhere.wrapping_add(ticks);
    }

    /// A part of a call has ended that had been set aside. Where its poll was in another frame than before,
    /// it is that one's time.
    #[cold]
    fn end_resumed(&mut self, part: &Open, at: u64) {
        let (parent, around) = (self.nodes[part.node as usize].parent, self.below());
        if parent != around {
            let ticks = at.saturating_sub(part.start).cast_signed();
            self.add_elsewhere(around, ticks);
            self.add_elsewhere(parent, ticks.wrapping_neg());
        }
    }

    /// Counts a call that has ended.
    #[inline]
    fn count(&mut self, node: u32, ticks: u64, cut: bool) {
        let totals = &mut self.nodes[node as usize];
        totals.count(ticks);
        totals.add_cut(cut);
        self.calls = self.calls.saturating_add(1);
    }

    /// Lets a call that is counted be the shortest or longest.
    #[inline]
    fn note_duration(&mut self, node: u32, ticks: u64) {
        let node = &mut self.nodes[node as usize];
        node.min = node.min.min(ticks);
        node.max = node.max.max(ticks);
    }

    /// A span has ended, with its last part at `last`.
    fn settle(&mut self, span: Unsettled) {
        if let Some(Owed { node, ticks, cut }) = span.owed {
            self.add_waited(node, ticks);
            self.nodes[node as usize].add_cut(cut);
        }
        if let Some((node, begin)) = span.first {
            self.note_duration(node, span.last.saturating_sub(begin));
        }
    }

    fn add_waited(&mut self, node: u32, ticks: i64) {
        let waited = &mut self.nodes[node as usize].waited;
        *waited = waited.wrapping_add(ticks);
    }

    /// Makes the call of a span longer, of which `node` is the path of a later part.
    fn lengthen(&mut self, instance: u64, node: u32, ticks: i64) {
        let mut span = self.unsettled.get(&instance).copied().unwrap_or_default();
        if let Some((counted, _)) = span.first {
            return self.add_waited(counted, ticks);
        }
        let owed = span.owed.get_or_insert(Owed { node, ..Owed::default() });
        owed.ticks = owed.ticks.wrapping_add(ticks);
        self.keep(instance, span);
    }

    /// Ends the innermost frame, a part of a span. The time from begin to end of the span counts where
    /// its call does.
    fn close_span_part(&mut self, part: OpenPart, at: u64) -> Option<Open> {
        let open = self.close_part(at)?;
        self.end_resumed(&open, at);
        self.count_part(part, &open, at);
        Some(open)
    }

    /// The innermost frame, a part of a span, has ended or is set aside.
    fn count_part(&mut self, part: OpenPart, open: &Open, at: u64) {
        let ticks = at.saturating_sub(open.start).cast_signed();
        if part != OpenPart::First {
            self.add_waited(open.node, ticks.wrapping_neg());
        }
        if let OpenPart::Later(instance) = part {
            self.lengthen(instance, open.node, ticks);
        }
    }

    /// Keeps a span that may go on, until there are too many.
    fn keep(&mut self, instance: u64, span: Unsettled) {
        self.unsettled.insert(instance, span);
        if self.unsettled.len() > MAX_UNSETTLED
            && let Some((_, oldest)) = self.unsettled.pop_first()
        {
            self.settle(oldest);
        }
    }

    /// The path below `parent` for `region`.
    #[inline(always)]
    fn step(&mut self, parent: Parent, region: u32) -> u32 {
        let last = match parent {
            Parent::Node(index) => self.nodes[index as usize].children.last,
            Parent::Inherited(_) => self.root.last,
            Parent::Task(..) => NONE,
        };
        if last != NONE {
            let node = &self.nodes[last as usize];
            if node.region == region {
                return last;
            }
            let after = node.after;
            if after != NONE && self.nodes[after as usize].region == region {
                self.set_last(parent, after);
                return after;
            }
        }
        self.step_slowly(parent, region, last)
    }

    #[cold]
    fn step_slowly(&mut self, parent: Parent, region: u32, last: u32) -> u32 {
        let known = match parent {
            Parent::Node(index) => self.by_step.get(&(index, region)).copied(),
            // Few calls hang from nothing; a list that is walked does.
            Parent::Inherited(_) => {
                let same = |node: &Node| node.parent == parent && node.region == region;
                self.nodes.iter().position(same).map(|index| index as u32)
            }
            Parent::Task(..) => self.tasks.get(&(parent, region)).copied(),
        };
        let node = known.unwrap_or_else(|| self.add(parent, region));
        if last != NONE {
            self.nodes[last as usize].after = node;
        }
        self.set_last(parent, node);
        node
    }

    fn set_last(&mut self, parent: Parent, last: u32) {
        match parent {
            Parent::Node(index) => self.nodes[index as usize].children.last = last,
            Parent::Inherited(_) => self.root.last = last,
            Parent::Task(..) => {}
        }
    }

    pub(super) fn add(&mut self, parent: Parent, region: u32) -> u32 {
        let index = self.push_node(parent, region);
        match parent {
            Parent::Node(above) => drop(self.by_step.insert((above, region), index)),
            Parent::Task(..) => drop(self.tasks.insert((parent, region), index)),
            Parent::Inherited(_) => {}
        }
        index
    }

    /// A path that no step leads to.
    fn push_node(&mut self, parent: Parent, region: u32) -> u32 {
        let index = self.nodes.len() as u32;
        let (children, after) = (Children::default(), NONE);
        let (calls, cut, cancelled, inclusive, elsewhere, waited, min, max) = (0, 0, 0, 0, 0, 0, u64::MAX, 0);
        self.nodes.push(Node {
            parent,
            region,
            calls,
            cut,
            cancelled,
            inclusive,
            elsewhere,
            waited,
            min,
            max,
            children,
            after,
        });
        index
    }
}

impl Visitor for Folded {
    #[inline(always)]
    fn enter(&mut self, region: u32, at: u64) {
        let node = self.step(self.below(), region);
        self.open.push(Open { node, first: at, start: at });
    }

    #[inline(always)]
    fn leave(&mut self, at: u64, cut: Cut) {
        if self.parts.last().is_some_and(|&(index, _)| index as usize + 1 == self.open.len()) {
            return self.leave_span(at, cut);
        }
        if let Some(open) = self.close_part(at) {
            if open.start != open.first {
                self.end_resumed(&open, at);
            }
            self.count(open.node, at.saturating_sub(open.first), cut == Cut::Open);
        }
    }

    #[inline(always)]
    fn leaf(&mut self, region: u32, start: u64, end: u64) {
        let node = self.step(self.below(), region);
        let (node, ticks) = (&mut self.nodes[node as usize], end - start);
        node.inclusive = node.inclusive.saturating_add(ticks);
        node.count(ticks);
        self.calls = self.calls.wrapping_add(1);
    }

    fn message(&mut self, message: Message) {
        let key = (self.below(), message.kind, message.peer.map_or(0, |peer| peer + 1));
        self.messages.entry(key).or_default().add(&MessageSizes::one(message.bytes));
    }

    fn enter_span(&mut self, region: u32, at: u64) {
        self.parts.push((self.open.len() as u32, OpenPart::First));
        self.enter(region, at);
    }

    fn begin_part(&mut self, part: Part, at: u64) {
        self.parts.push((self.open.len() as u32, OpenPart::Later(part.instance)));
        self.enter(part.region, at);
    }

    fn part_since(&mut self, end: u64) {
        if let (Some(&(_, OpenPart::Later(instance))), Some(open)) = (self.parts.last(), self.open.last()) {
            self.lengthen(instance, open.node, open.start.saturating_sub(end).cast_signed());
        }
    }

    fn end_part(&mut self, instance: u64, at: u64) {
        let Some((_, part)) = self.parts.pop() else { return };
        let Some(open) = self.close_span_part(part, at) else { return };
        let mut span = self.unsettled.get(&instance).copied().unwrap_or_default();
        match part {
            OpenPart::Held(held_by) => {
                return self.inherited_ends.push(InheritedEnd::Aside(held_by, Some(instance), at));
            }
            OpenPart::First => {
                let calls = &mut self.nodes[open.node as usize].calls;
                *calls = calls.saturating_add(1);
                self.calls = self.calls.saturating_add(1);
                span.first = Some((open.node, open.first));
            }
            OpenPart::Later(_) => {}
        }
        self.keep(instance, Unsettled { last: at, ..span });
    }

    fn begin_poll(&mut self, poll: Poll, at: u64) {
        let parent = match self.open.last().map(|open| open.node) {
            Some(node) if poll.nested => Parent::Node(node),
            node => Parent::Task(self.inherited, node),
        };
        let node = self.step(parent, poll.region);
        if poll.first {
            self.add_begun(node, poll.session, 1, poll.start);
        }
        self.polls.push(self.open.len() as u32);
        self.open.push(Open { node, first: at, start: at });
    }

    fn end_poll(&mut self, ended: Option<Ended>, at: u64) {
        self.polls.pop();
        let Some(poll) = self.close_part(at) else { return };
        if let Some(ended) = ended {
            self.add_begun(poll.node, ended.session, -1, ended.start);
            let ticks = at.saturating_sub(ended.start);
            self.add_waited(poll.node, ticks.cast_signed());
            let cancelled = &mut self.nodes[poll.node as usize].cancelled;
            *cancelled = cancelled.saturating_add(ended.cancelled.into());
            self.count(poll.node, ticks, false);
        }
        let ticks = at.saturating_sub(poll.start).cast_signed();
        self.add_waited(poll.node, ticks.wrapping_neg());
        if matches!(self.nodes[poll.node as usize].parent, Parent::Task(..)) {
            self.add_elsewhere(self.below(), ticks);
        }
    }

    fn suspend(&mut self, instance: u64, at: u64) {
        if let Some(open) = self.close_part(at) {
            self.end_resumed(&open, at);
            let Open { node, first, .. } = open;
            let frames = self.open.len();
            let part = self.parts.pop_if(|(index, _)| *index as usize == frames).map(|(_, part)| part);
            if let Some(part) = part {
                self.count_part(part, &open, at);
            }
            self.aside.push(instance, Aside { node, first, since: at, part });
        }
    }

    fn resume(&mut self, instance: u64, at: u64) {
        let Some(Aside { node, first, since, part }) = self.aside.pop(instance) else { return };
        let pause = at.saturating_sub(since).cast_signed();
        match part {
            None | Some(OpenPart::First) => self.add_waited(node, pause),
            Some(OpenPart::Later(span)) => self.lengthen(span, node, pause),
            Some(OpenPart::Held(_)) => {}
        }
        self.parts.extend(part.map(|part| (self.open.len() as u32, part)));
        self.open.push(Open { node, first, start: at });
    }

    fn leave_inherited(&mut self, at: u64, count: u64) {
        let count = count.min(self.inherited);
        self.end_inherited(count, InheritedEnd::Frames(at, count));
    }

    fn cut_inherited(&mut self) {
        self.inherited = 0;
        self.root = Children::default();
    }

    fn part_since_inherited(&mut self, end: u64) {
        if self.inherited > 0 {
            self.inherited_ends.push(InheritedEnd::Since(end));
        }
    }

    fn end_poll_inherited(&mut self, word: u64, at: u64, count: u64) {
        let count = count.min(self.inherited);
        self.end_inherited(count, InheritedEnd::Poll(word, at));
        if count > 1 {
            self.left.insert(instance_of(word).0, self.inherited + 2);
        }
    }

    fn resume_inherited(&mut self, instance: u64, nth: u64, at: u64) {
        let node = self.push_node(self.below(), UNKNOWN_REGION);
        let origin = match self.left.get(&instance) {
            Some(first) => Origin::Open(first.saturating_add(nth)),
            None => Origin::Aside(instance, nth),
        };
        self.held.push(Held { node, origin });
        self.parts.push((self.open.len() as u32, OpenPart::Held(instance)));
        self.open.push(Open { node, first: at, start: at });
    }

    fn complete_inherited(&mut self, ended: Ended, at: u64) {
        self.inherited_ends.push(InheritedEnd::Completed(ended, at));
    }

    fn end_part_inherited(&mut self, instance: u64, at: u64) {
        self.end_inherited(1.min(self.inherited), InheritedEnd::Part(instance, at));
    }
}

impl Folded {
    /// So many of the innermost frames that were open when the fold began have ended.
    fn end_inherited(&mut self, count: u64, end: InheritedEnd) {
        if count > 0 {
            self.inherited -= count;
            self.root = Children::default();
            self.inherited_ends.push(end);
        }
    }

    /// The last part of a span ends, or its only one.
    fn leave_span(&mut self, at: u64, cut: Cut) {
        let Some((_, part)) = self.parts.pop() else { return };
        let Some(open) = self.close_span_part(part, at) else { return };
        let instance = match part {
            OpenPart::First => return self.count(open.node, at.saturating_sub(open.first), cut == Cut::Open),
            OpenPart::Later(instance) => instance,
            OpenPart::Held(_) if cut == Cut::Open => return,
            OpenPart::Held(held_by) => {
                return self.inherited_ends.push(InheritedEnd::Aside(held_by, None, at));
            }
        };
        let mut span = self.unsettled.remove(&instance).unwrap_or_default();
        span.last = at;
        let is_cut = cut == Cut::Open;
        match span.first {
            Some((node, _)) => {
                self.nodes[node as usize].add_cut(is_cut);
                self.settle(span);
            }
            None => {
                span.owed.get_or_insert(Owed { node: open.node, ..Owed::default() }).cut |= is_cut;
                self.keep(instance, span);
            }
        }
    }

    fn add_begun(&mut self, node: u32, session: u32, count: i64, start: u64) {
        let begun = self.begun.entry((node, session)).or_default();
        begun.count = begun.count.wrapping_add(count);
        let start = if count < 0 { start.wrapping_neg() } else { start };
        begun.starts = begun.starts.wrapping_add(start);
        if *begun == Begun::default() {
            self.begun.remove(&(node, session));
        }
    }
}
