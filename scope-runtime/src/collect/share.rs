//! What rank 0 is told of a rank for the profile of the job, as bytes: tables by the columns that they have
//! in the file, the rest field by field.

use crate::format::{FieldReader, Fields};
use crate::merged::{Events, PathRow, Statistics};
use crate::profile::{Lane, MessageKind, MessageSizes, Messages, Profile, Region, RegionId};
use crate::profile_file::layout::{
    ASYNC_TABLE, Column, Field, LINK_TABLE, OPTIONAL_EVENTS, PATH_TABLE, POLL_TABLE, TASK_TABLE, WAIT_TABLE,
};
use crate::recording::{ClockOffset, Info};
use crate::totals::{PathId, PathTree};

use super::part::Part;
use super::rank::RegionRun;

/// One rank, but for the columns of its calls.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub(crate) part: Part,
    /// By run.
    pub(crate) statistics: Vec<Statistics>,
    /// Which of [`OPTIONAL_EVENTS`] the calls have.
    pub(crate) has_column: Vec<bool>,
}

impl Share {
    /// Of a rank with these calls.
    pub(crate) fn new(part: Part, events: &Events) -> Share {
        let statistics = part.runs.iter().map(|run| events.statistics(run.events.clone())).collect();
        let has_column = OPTIONAL_EVENTS.iter().map(|column| column.is_needed_by(events)).collect();
        Share { part, statistics, has_column }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let Share { part, statistics, has_column } = self;
        let fields = Fields::default().text(&part.path.to_string_lossy());
        let fields = put_profile(put_info(fields, &part.info), &part.profile);
        let fields = put(fields, part.linked.as_slice(), put_paths);
        let fields = put(fields, &part.runs, |fields, run| {
            let (start, end) = (run.events.start as u64, run.events.end as u64);
            fields.u32(run.region.0).u64(start).u64(end).u64(run.exclusive_ns.cast_unsigned())
        });
        let fields = put_optional_table(fields, LINK_TABLE, part.links.as_deref());
        let fields = put_optional_table(fields, TASK_TABLE, part.tasks.as_deref());
        let fields = put_optional_table(fields, ASYNC_TABLE, part.async_calls.as_deref());
        let fields = put_optional_table(fields, POLL_TABLE, part.polls.as_deref());
        let fields = put_table(fields, WAIT_TABLE, &part.waits);
        let fields = put(fields, statistics, put_statistics);
        put(fields, has_column, |fields, &has| fields.u32(has.into())).0
    }

    /// The share in such bytes; `None` where they make no sense.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Share> {
        let mut fields = FieldReader(bytes);
        let path = fields.text()?.into();
        let (info, profile) = (info(&mut fields)?, profile(&mut fields)?);
        let regions = profile.regions.len();
        let linked = list(&mut fields, |fields| paths(fields, regions))?.pop();
        let runs = list(&mut fields, |fields| {
            let region = RegionId(fields.u32().filter(|&region| (region as usize) < regions)?);
            let events = fields.u64()? as usize..fields.u64()? as usize;
            Some(RegionRun { region, events, exclusive_ns: signed(fields)? })
        })?;
        let links = optional_table(&mut fields, LINK_TABLE)?;
        let tasks = optional_table(&mut fields, TASK_TABLE)?;
        let async_calls = optional_table(&mut fields, ASYNC_TABLE)?;
        let polls = optional_table(&mut fields, POLL_TABLE)?;
        let waits = table(&mut fields, WAIT_TABLE)?;
        let statistics = list(&mut fields, statistics)?;
        let has_column = list(&mut fields, |fields| Some(fields.u32()? != 0))?;
        let part = Part { path, info, profile, linked, runs, links, tasks, async_calls, polls, waits };
        (fields.0.is_empty() && statistics.len() == part.runs.len()).then_some(Share {
            part,
            statistics,
            has_column,
        })
    }
}

/// Their number, then each.
fn put<T>(fields: Fields, items: &[T], item: impl FnMut(Fields, &T) -> Fields) -> Fields {
    items.iter().fold(fields.u32(u32::try_from(items.len()).expect("fewer than 2^32")), item)
}

fn list<'a, T>(
    fields: &mut FieldReader<'a>,
    mut item: impl FnMut(&mut FieldReader<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    (0..fields.u32()?).map(|_| item(fields)).collect()
}

fn signed(fields: &mut FieldReader<'_>) -> Option<i64> {
    fields.u64().map(u64::cast_signed)
}

fn put_info(fields: Fields, info: &Info) -> Fields {
    let fields = fields.u32(info.rank).u32(info.ranks).u32(info.pid).u32(info.parent_pid);
    let fields = put(fields, &info.args, |fields, text| fields.text(text)).text(&info.host);
    let fields = fields.u64(info.wall_start_ns.cast_unsigned()).text(&info.runtime_version);
    let fields = fields.text(&info.clock).u32(info.region_cost_ps).u32(info.sealed.into());
    let fields = put(fields, &info.clock_offsets, |fields, offset| {
        let numbers = [offset.at_ns, offset.offset_ns, offset.uncertainty_ns];
        numbers.iter().fold(fields, |fields, ns| fields.u64(ns.cast_unsigned()))
    });
    fields.u64(info.damaged)
}

fn info(fields: &mut FieldReader<'_>) -> Option<Info> {
    Some(Info {
        rank: fields.u32()?,
        ranks: fields.u32()?,
        pid: fields.u32()?,
        parent_pid: fields.u32()?,
        args: list(fields, FieldReader::text)?,
        host: fields.text()?,
        wall_start_ns: signed(fields)?,
        runtime_version: fields.text()?,
        clock: fields.text()?,
        region_cost_ps: fields.u32()?,
        sealed: fields.u32()? != 0,
        clock_offsets: list(fields, |fields| {
            let (at_ns, offset_ns, uncertainty_ns) = (signed(fields)?, signed(fields)?, signed(fields)?);
            Some(ClockOffset { at_ns, offset_ns, uncertainty_ns })
        })?,
        damaged: fields.u64()?,
    })
}

/// All but collective calls.
fn put_profile(fields: Fields, profile: &Profile) -> Fields {
    let fields = put(fields.u32(profile.rank), &profile.regions, |fields, region| {
        fields.text(&region.name).text(&region.file).u32(region.line)
    });
    let fields = put(fields, &profile.lanes, |fields, lane| {
        let fields = fields.text(&lane.name).u64(lane.os_thread);
        let fields = fields.u64(lane.first_ns.cast_unsigned()).u64(lane.last_ns.cast_unsigned());
        put_optional_ns(fields.u32(lane.ended.into()), lane.cpu_ns)
    });
    let fields = put_paths(fields, &profile.paths).u64(profile.lost_calls).u64(profile.open_calls);
    let fields = put_optional_ns(fields.u64(profile.faulty_calls), profile.timeline_end_ns);
    let fields = put(fields, &profile.messages, |fields, row| {
        let fields = fields.u32(row.path.0).u32(row.kind as u32);
        let fields = put(fields, row.peer.as_slice(), |fields, &peer| fields.u32(peer));
        let sizes = row.sizes;
        fields.u64(sizes.messages).u64(sizes.bytes).u64(sizes.min_bytes).u64(sizes.max_bytes)
    });
    fields.u64(profile.start_ns.cast_unsigned()).u64(profile.end_ns.cast_unsigned())
}

fn profile(fields: &mut FieldReader<'_>) -> Option<Profile> {
    let rank = fields.u32()?;
    let regions = list(fields, |fields| {
        Some(Region { name: fields.text()?, file: fields.text()?, line: fields.u32()? })
    })?;
    let lanes = list(fields, |fields| {
        Some(Lane {
            name: fields.text()?,
            os_thread: fields.u64()?,
            first_ns: signed(fields)?,
            last_ns: signed(fields)?,
            ended: fields.u32()? != 0,
            cpu_ns: optional_ns(fields)?,
        })
    })?;
    Some(Profile {
        rank,
        paths: paths(fields, regions.len())?,
        regions,
        lanes,
        lost_calls: fields.u64()?,
        open_calls: fields.u64()?,
        faulty_calls: fields.u64()?,
        timeline_end_ns: optional_ns(fields)?,
        messages: list(fields, |fields| {
            let (path, kind) = (PathId(fields.u32()?), *MessageKind::ALL.get(fields.u32()? as usize)?);
            let peer = list(fields, FieldReader::u32)?.pop();
            let (messages, bytes) = (fields.u64()?, fields.u64()?);
            let sizes = MessageSizes { messages, bytes, min_bytes: fields.u64()?, max_bytes: fields.u64()? };
            Some(Messages { path, kind, peer, sizes })
        })?,
        collectives: Vec::new(),
        start_ns: signed(fields)?,
        end_ns: signed(fields)?,
    })
}

fn put_optional_ns(fields: Fields, ns: Option<i64>) -> Fields {
    put(fields, ns.as_slice(), |fields, ns| fields.u64(ns.cast_unsigned()))
}

fn optional_ns(fields: &mut FieldReader<'_>) -> Option<Option<i64>> {
    Some(list(fields, signed)?.pop())
}

fn put_paths(fields: Fields, paths: &PathTree) -> Fields {
    let rows = paths.nodes().iter().map(|node| PathRow::new(0, node.region.0, node));
    put_table(fields, PATH_TABLE, &rows.collect::<Vec<_>>())
}

fn paths(fields: &mut FieldReader<'_>, regions: usize) -> Option<PathTree> {
    let mut paths = PathTree::default();
    for row in table(fields, PATH_TABLE)? {
        let parent = u32::try_from(row.parent).ok();
        let is_sound = parent.is_none_or(|parent| (parent as usize) < paths.nodes().len());
        if !is_sound || row.region as usize >= regions {
            return None;
        }
        let parent = parent.map(PathId);
        let path = paths.step(parent, RegionId(row.region));
        paths.add_totals(path, &row.totals(parent));
    }
    Some(paths)
}

fn put_statistics(fields: Fields, statistics: &Statistics) -> Fields {
    let Statistics { total_ns, min_ns, max_ns, first_ns, last_ns, start_min_ns, end_max_ns, .. } =
        *statistics;
    let numbers = [total_ns, min_ns, max_ns, first_ns, last_ns, start_min_ns, end_max_ns];
    let fields = numbers.iter().fold(fields, |fields, ns| fields.u64(ns.cast_unsigned()));
    let fields = fields.u64(statistics.gpu_count).u64(statistics.gpu_total_ns.cast_unsigned());
    fields.u64(statistics.mean_ns.to_bits()).u64(statistics.m2_ns2.to_bits())
}

fn statistics(fields: &mut FieldReader<'_>) -> Option<Statistics> {
    Some(Statistics {
        total_ns: signed(fields)?,
        min_ns: signed(fields)?,
        max_ns: signed(fields)?,
        first_ns: signed(fields)?,
        last_ns: signed(fields)?,
        start_min_ns: signed(fields)?,
        end_max_ns: signed(fields)?,
        gpu_count: fields.u64()?,
        gpu_total_ns: signed(fields)?,
        mean_ns: f64::from_bits(fields.u64()?),
        m2_ns2: f64::from_bits(fields.u64()?),
    })
}

fn put_optional_table<T>(fields: Fields, columns: &[Column<T>], rows: Option<&[T]>) -> Fields {
    put(fields, rows.as_slice(), |fields, rows| put_table(fields, columns, rows))
}

fn optional_table<T: Default>(fields: &mut FieldReader<'_>, columns: &[Column<T>]) -> Option<Option<Vec<T>>> {
    Some(list(fields, |fields| table(fields, columns))?.pop())
}

/// Row by row.
fn put_table<T>(fields: Fields, columns: &[Column<T>], rows: &[T]) -> Fields {
    put(fields, rows, |fields, row| {
        columns.iter().fold(fields, |fields, column| match &column.field {
            Field::U32(get, _) => fields.u32(get(row)),
            Field::U64(get, _) => fields.u64(get(row)),
            Field::I64(get, _) => fields.u64(get(row).cast_unsigned()),
            Field::I8(get, _) => fields.u32(get(row).cast_unsigned().into()),
            Field::Text(get, _) => fields.text(&get(row)),
        })
    })
}

fn table<T: Default>(fields: &mut FieldReader<'_>, columns: &[Column<T>]) -> Option<Vec<T>> {
    list(fields, |fields| {
        let mut row = T::default();
        for column in columns {
            match &column.field {
                Field::U32(_, set) => set(&mut row, fields.u32()?),
                Field::U64(_, set) => set(&mut row, fields.u64()?),
                Field::I64(_, set) => set(&mut row, signed(fields)?),
                Field::I8(_, set) => set(&mut row, u8::try_from(fields.u32()?).ok()?.cast_signed()),
                Field::Text(_, set) => set(&mut row, fields.text()?).ok()?,
            }
        }
        Some(row)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merged::{AsyncRow, LinkRow, PollRow, TaskRow, WaitRow};

    fn paths() -> PathTree {
        let mut paths = PathTree::default();
        let outer = paths.step(None, RegionId(0));
        let inner = paths.step(Some(outer), RegionId(1));
        paths.add_call(inner, 30, 30, false);
        paths.add_call(inner, 10, 10, true);
        paths.add_call(outer, 100, 60, false);
        paths
    }

    fn share() -> Share {
        let region = |name: &str, line| Region { name: name.into(), file: "src/main.rs".into(), line };
        let lane = |cpu_ns: Option<i64>| Lane {
            name: "mäin".into(),
            os_thread: 7,
            first_ns: -1,
            last_ns: 9,
            ended: cpu_ns.is_some(),
            cpu_ns,
        };
        let message = |peer| Messages {
            path: PathId(1),
            kind: MessageKind::Collective,
            peer,
            sizes: MessageSizes::one(8),
        };
        let profile = Profile {
            rank: 3,
            regions: vec![region("outer", 0), region("", 4)],
            lanes: vec![lane(None), lane(Some(5))],
            paths: paths(),
            lost_calls: 1,
            open_calls: 2,
            faulty_calls: 3,
            timeline_end_ns: Some(-4),
            messages: vec![message(None), message(Some(9))],
            collectives: Vec::new(),
            start_ns: 5,
            end_ns: 6,
        };
        let info = Info {
            rank: 3,
            ranks: 4,
            args: vec!["program".into(), String::new()],
            clock: "tsc".into(),
            sealed: true,
            clock_offsets: vec![ClockOffset { at_ns: 1, offset_ns: -2, uncertainty_ns: 3 }],
            ..Info::default()
        };
        let part = Part {
            path: "out/rank3.scope".into(),
            info,
            profile,
            linked: Some(paths()),
            runs: vec![RegionRun { region: RegionId(1), events: 0..2, exclusive_ns: -7 }],
            links: Some(vec![LinkRow { rank: 3, call_id: 1, started_by: 0 }]),
            tasks: Some(vec![TaskRow { rank: 3, name: "task 1".into(), ..TaskRow::default() }]),
            async_calls: Some(vec![AsyncRow { rank: 3, cancelled: 1, ..AsyncRow::default() }]),
            polls: Some(Vec::<PollRow>::new()),
            waits: vec![WaitRow { rank: 2, path: 8, caused_ns: 11, ..WaitRow::default() }],
        };
        let events = Events {
            start_ns: vec![4, 9],
            duration_ns: vec![3, 1],
            task_ids: Some(vec![0, -1]),
            ..Events::default()
        };
        Share::new(part, &events)
    }

    #[test]
    fn bytes_come_back() {
        let share = share();
        assert_eq!(share.has_column, [false, false, false, true, true, false]);
        let back = Share::from_bytes(&share.to_bytes()).unwrap();
        assert_eq!(format!("{back:?}"), format!("{share:?}"));
    }

    #[test]
    fn damaged_bytes_do_no_harm() {
        let bytes = share().to_bytes();
        for len in 0..bytes.len() {
            assert!(Share::from_bytes(&bytes[..len]).is_none(), "{len} bytes");
        }
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x80;
            Share::from_bytes(&flipped);
        }
    }
}
