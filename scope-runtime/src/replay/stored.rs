//! The state of a replay as it is kept in the file, and back.

use super::{Aside, Ended, LaneEnd, OpenPoll, Replay, SessionEdge, Visitor};
use crate::format::{FieldReader, Fields};

impl<V: Visitor> Replay<V> {
    /// Writes all but visitor and edges.
    pub(crate) fn write_to(&self, fields: Fields) -> Fields {
        let LaneEnd { cpu_ns, first_ticks, last_ticks, faulty } = self.end;
        let fields = fields.u64(self.next_sequence).u64(self.dead).u64(self.now);
        let fields = fields.u32(u32::from(self.in_session)).u32(self.session).u32(self.dead_ended.into());
        let fields = fields.u64(cpu_ns.map_or(0, |ns| ns + 1)).u64(first_ticks.map_or(0, |ticks| ticks + 1));
        let fields = fields.u64(last_ticks).u64(faulty).u64s(&self.open).u32(self.polls.len() as u32);
        let poll = |fields: Fields, poll: &OpenPoll| {
            let fields = fields.u64(poll.index as u64).u64(poll.instance);
            match poll.ended {
                None => fields.u32(0),
                Some(ended) => ended.write_to(fields.u32(1)),
            }
        };
        let spans: Vec<u64> = self.spans.iter().map(|&index| index as u64).collect();
        let fields = self.polls.iter().fold(fields, poll).u64s(&spans);
        let fields = fields.u32(self.aside.iter().len() as u32);
        self.aside.iter().fold(fields, |fields, (instance, calls)| {
            let fields = fields.u64(instance).u32(calls.len() as u32);
            calls.iter().fold(fields, |fields, call| fields.u64(call.start).u32(call.is_span.into()))
        })
    }

    /// Reads what [`Replay::write_to`] wrote.
    pub(crate) fn read_from(fields: &mut FieldReader<'_>, edges: &[SessionEdge]) -> Option<Self>
    where
        V: Default,
    {
        let mut replay = Replay::new(V::default(), &[]);
        (replay.next_sequence, replay.dead, replay.now) = (fields.u64()?, fields.u64()?, fields.u64()?);
        (replay.in_session, replay.session) = (fields.u32()? != 0, fields.u32()?);
        replay.dead_ended = fields.u32()? != 0;
        replay.end = LaneEnd {
            cpu_ns: fields.u64()?.checked_sub(1),
            first_ticks: fields.u64()?.checked_sub(1),
            last_ticks: fields.u64()?,
            faulty: fields.u64()?,
        };
        replay.open = fields.u64s()?;
        for _ in 0..fields.u32()? {
            let (index, instance) = (fields.u64()?, fields.u64()?);
            let ended = if fields.u32()? == 0 { None } else { Some(Ended::read(fields)?) };
            let after = replay.polls.last().map_or(0, |poll| poll.index + 1);
            let index = usize::try_from(index).ok()?;
            if !(after..replay.open.len()).contains(&index) {
                return None;
            }
            replay.polls.push(OpenPoll { index, instance, ended });
        }
        let frames = replay.open.len();
        let known = |index: u64| usize::try_from(index).ok().filter(|&index| index < frames);
        replay.spans = fields.u64s()?.into_iter().map(known).collect::<Option<_>>()?;
        let is_poll = |index: &usize| replay.polls.binary_search_by_key(index, |poll| poll.index).is_ok();
        if !replay.spans.is_sorted_by(|a, b| a < b) || replay.spans.iter().any(is_poll) {
            return None;
        }
        for _ in 0..fields.u32()? {
            let instance = fields.u64()?;
            for _ in 0..fields.u32()? {
                replay.aside.push(instance, Aside { start: fields.u64()?, is_span: fields.u32()? != 0 });
            }
        }
        replay.edges = edges.iter().copied().filter(|edge| edge.ticks >= replay.now).collect();
        replay.note_next_edge();
        Some(replay)
    }
}
