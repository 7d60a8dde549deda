//! A fold as it is kept in the file, and back.

use super::{
    Aside, Begun, Fold, Folded, Held, InheritedEnd, NONE, Open, OpenPart, Origin, Owed, Parent, Unsettled,
};
use crate::format::{FieldReader, Fields};
use crate::profile::{MessageKind, MessageSizes};
use crate::replay::{Ended, Replay, SessionEdge};

impl Fold {
    /// The payload of a totals block.
    pub(crate) fn to_fields(&self) -> Fields {
        let fields = Fields::default().u64(self.first_sequence).u64(self.begin);
        self.replay.visitor.write_to(self.replay.write_to(fields))
    }

    /// The fold in the payload of a totals block; `None` where it makes no sense.
    pub(crate) fn from_fields(fields: &mut FieldReader<'_>, edges: &[SessionEdge]) -> Option<Fold> {
        let (first_sequence, begin) = (fields.u64()?, fields.u64()?);
        let mut replay = Replay::<Folded>::read_from(fields, edges)?;
        replay.visitor.read_from(fields)?;
        replay.is_of_same_frames().then_some(Fold { replay, first_sequence, begin })
    }
}

impl Replay<Folded> {
    /// Whether both have the same frames open and set aside, as they have unless a file is damaged.
    fn is_of_same_frames(&self) -> bool {
        let folded = &self.visitor;
        let same_aside = folded.aside.iter().map(|(instance, calls)| (instance, calls.len()));
        folded.open.len() == self.open_frames()
            && folded.polls.iter().map(|&index| index as usize).eq(self.open_polls())
            && folded.parts.iter().map(|&(index, _)| index as usize).eq(self.open_spans())
            && same_aside.eq(self.aside())
    }
}

impl Folded {
    fn write_to(&self, fields: Fields) -> Fields {
        let mut fields = fields.u64(self.calls).u64(self.inherited).u32(self.inherited_ends.len() as u32);
        for end in &self.inherited_ends {
            fields = match *end {
                InheritedEnd::Frames(at, count) => fields.u32(0).u64(at).u64(count),
                InheritedEnd::Completed(ended, at) => ended.write_to(fields.u32(1).u64(at)),
                InheritedEnd::Part(instance, at) => fields.u32(2).u64(at).u64(instance),
                InheritedEnd::Poll(word, at) => fields.u32(3).u64(at).u64(word),
                InheritedEnd::Since(at) => fields.u32(5).u64(at),
                InheritedEnd::Aside(instance, span, at) => {
                    fields.u32(4).u64(at).u64(instance).u64(span.map_or(0, |number| number + 1))
                }
            };
        }
        fields = fields.u32(self.nodes.len() as u32);
        for node in &self.nodes {
            fields = node.parent.write_to(fields).u32(node.region).u64(node.calls).u64(node.cut);
            fields = fields.u64(node.cancelled).u64(node.inclusive).u64(node.elsewhere.cast_unsigned());
            fields = fields.u64(node.waited.cast_unsigned()).u64(node.min).u64(node.max);
        }
        fields = fields.u32(self.open.len() as u32);
        fields = self
            .open
            .iter()
            .fold(fields, |fields, open| fields.u32(open.node).u64(open.first).u64(open.start));
        fields = fields.u32(self.polls.len() as u32);
        fields = self.polls.iter().fold(fields, |fields, &index| fields.u32(index));
        fields = fields.u32(self.aside.iter().len() as u32);
        for (instance, calls) in self.aside.iter() {
            fields = fields.u64(instance).u32(calls.len() as u32);
            for &Aside { node, first, since, part } in calls {
                fields = fields.u32(node).u64(first).u64(since).u64(OpenPart::word(part));
            }
        }
        fields = fields.u32(self.held.len() as u32);
        for held in &self.held {
            fields = match held.origin {
                Origin::Aside(instance, nth) => fields.u32(held.node).u32(0).u64(instance).u64(nth),
                Origin::Open(depth) => fields.u32(held.node).u32(1).u64(depth),
            };
        }
        fields = fields.u32(self.left.len() as u32);
        fields = self.left.iter().fold(fields, |fields, (&instance, &first)| fields.u64(instance).u64(first));
        fields = fields.u32(self.parts.len() as u32);
        for &(index, part) in &self.parts {
            fields = fields.u32(index).u64(OpenPart::word(Some(part)));
        }
        fields = fields.u32(self.unsettled.len() as u32);
        for (&instance, span) in &self.unsettled {
            // No node has this number.
            let (node, begin) = span.first.unwrap_or((NONE, 0));
            let owed = span.owed.unwrap_or(Owed { node: NONE, ..Owed::default() });
            fields = fields.u64(instance).u32(node).u64(begin).u64(span.last);
            fields = fields.u32(owed.node).u64(owed.ticks.cast_unsigned()).u32(owed.cut.into());
        }
        fields = fields.u32(self.begun.len() as u32);
        for (&(node, session), begun) in &self.begun {
            fields = fields.u32(node).u32(session).u64(begun.count.cast_unsigned()).u64(begun.starts);
        }
        fields = fields.u32(self.inherited_elsewhere.len() as u32);
        fields = self
            .inherited_elsewhere
            .iter()
            .fold(fields, |fields, (&depth, &ticks)| fields.u64(depth).u64(ticks.cast_unsigned()));
        fields = fields.u32(self.messages.len() as u32);
        self.messages.iter().fold(fields, |fields, (&(path, kind, peer), sizes)| {
            let fields = path.write_to(fields).u32(kind as u32).u32(peer);
            fields.u64(sizes.messages).u64(sizes.bytes).u64(sizes.min_bytes).u64(sizes.max_bytes)
        })
    }

    fn read_from(&mut self, fields: &mut FieldReader<'_>) -> Option<()> {
        (self.calls, self.inherited) = (fields.u64()?, fields.u64()?);
        for _ in 0..fields.u32()? {
            let (kind, at) = (fields.u32()?, fields.u64()?);
            self.inherited_ends.push(match kind {
                0 => InheritedEnd::Frames(at, fields.u64()?),
                1 => InheritedEnd::Completed(Ended::read(fields)?, at),
                2 => InheritedEnd::Part(fields.u64()?, at),
                3 => InheritedEnd::Poll(fields.u64()?, at),
                4 => InheritedEnd::Aside(fields.u64()?, fields.u64()?.checked_sub(1), at),
                5 => InheritedEnd::Since(at),
                _ => return None,
            });
        }
        for _ in 0..fields.u32()? {
            let parent = Parent::read(fields, self.nodes.len())?;
            let node = self.add(parent, fields.u32()?);
            let node = &mut self.nodes[node as usize];
            (node.calls, node.cut, node.cancelled) = (fields.u64()?, fields.u64()?, fields.u64()?);
            (node.inclusive, node.elsewhere) = (fields.u64()?, fields.u64()?.cast_signed());
            node.waited = fields.u64()?.cast_signed();
            (node.min, node.max) = (fields.u64()?, fields.u64()?);
        }
        let nodes = self.nodes.len() as u32;
        let known = |node: u32| (node < nodes).then_some(node);
        for _ in 0..fields.u32()? {
            let node = known(fields.u32()?)?;
            self.open.push(Open { node, first: fields.u64()?, start: fields.u64()? });
        }
        for _ in 0..fields.u32()? {
            self.polls.push(fields.u32()?);
        }
        for _ in 0..fields.u32()? {
            let instance = fields.u64()?;
            for _ in 0..fields.u32()? {
                let (node, first, since) = (known(fields.u32()?)?, fields.u64()?, fields.u64()?);
                let part = OpenPart::of_word(fields.u64()?);
                self.aside.push(instance, Aside { node, first, since, part });
            }
        }
        for _ in 0..fields.u32()? {
            let node = known(fields.u32()?)?;
            let origin = match fields.u32()? {
                0 => Origin::Aside(fields.u64()?, fields.u64()?),
                1 => Origin::Open(fields.u64()?),
                _ => return None,
            };
            self.held.push(Held { node, origin });
        }
        for _ in 0..fields.u32()? {
            self.left.insert(fields.u64()?, fields.u64()?);
        }
        for _ in 0..fields.u32()? {
            self.parts.push((fields.u32()?, OpenPart::of_word(fields.u64()?)?));
        }
        for _ in 0..fields.u32()? {
            let (instance, node, begin) = (fields.u64()?, fields.u32()?, fields.u64()?);
            let first = if node == NONE { None } else { Some((known(node)?, begin)) };
            let (last, node) = (fields.u64()?, fields.u32()?);
            let (ticks, cut) = (fields.u64()?.cast_signed(), fields.u32()? != 0);
            let owed = if node == NONE { None } else { Some(Owed { node: known(node)?, ticks, cut }) };
            self.unsettled.insert(instance, Unsettled { first, owed, last });
        }
        for _ in 0..fields.u32()? {
            let key = (known(fields.u32()?)?, fields.u32()?);
            let count = fields.u64()?.cast_signed();
            self.begun.insert(key, Begun { count, starts: fields.u64()? });
        }
        for _ in 0..fields.u32()? {
            self.inherited_elsewhere.insert(fields.u64()?, fields.u64()?.cast_signed());
        }
        for _ in 0..fields.u32()? {
            let path = Parent::read(fields, self.nodes.len())?;
            let kind = *MessageKind::ALL.get(fields.u32()? as usize)?;
            let (key, mut number) = ((path, kind, fields.u32()?), || fields.u64());
            let (messages, bytes, min_bytes, max_bytes) = (number()?, number()?, number()?, number()?);
            self.messages.insert(key, MessageSizes { messages, bytes, min_bytes, max_bytes });
        }
        Some(())
    }
}

impl Parent {
    fn write_to(self, fields: Fields) -> Fields {
        match self {
            Parent::Node(index) => fields.u32(0).u64(index.into()),
            Parent::Inherited(depth) => fields.u32(1).u64(depth),
            Parent::Task(depth, None) => fields.u32(2).u64(depth),
            Parent::Task(depth, Some(index)) => fields.u32(3).u64(depth).u64(index.into()),
        }
    }

    /// Reads what was written, with so many paths known.
    fn read(fields: &mut FieldReader<'_>, nodes: usize) -> Option<Parent> {
        let known = |index: u64| u32::try_from(index).ok().filter(|&index| (index as usize) < nodes);
        Some(match fields.u32()? {
            0 => Parent::Node(known(fields.u64()?)?),
            1 => Parent::Inherited(fields.u64()?),
            2 => Parent::Task(fields.u64()?, None),
            3 => Parent::Task(fields.u64()?, Some(known(fields.u64()?)?)),
            _ => return None,
        })
    }
}

impl OpenPart {
    /// In one word: 0 for none, 1 for the first, else twice the number and 2 or 3.
    fn word(part: Option<OpenPart>) -> u64 {
        match part {
            None => 0,
            Some(OpenPart::First) => 1,
            Some(OpenPart::Later(instance)) => 2 * instance + 2,
            Some(OpenPart::Held(instance)) => 2 * instance + 3,
        }
    }

    fn of_word(word: u64) -> Option<OpenPart> {
        match word {
            0 => None,
            1 => Some(OpenPart::First),
            _ => {
                let kind = if word & 1 == 0 { OpenPart::Later } else { OpenPart::Held };
                Some(kind(word / 2 - 1))
            }
        }
    }
}
