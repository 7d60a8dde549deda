//! The header of a recording as a reader sees it: checked against the file's length.

use std::fs::File;

use crate::clock::{ClockKind, ClockPair};
use crate::format::{self, CHUNK_BYTES, FieldReader, Header, MAX_SEGMENTS, PAGE};
use crate::os;
use crate::recording::{Info, Problem};

/// What the header says, checked against the file's length.
pub(super) struct Head {
    pub(super) info: Info,
    pub(super) first: ClockPair,
    pub(super) last: ClockPair,
    pub(super) lost_calls: u64,
    pub(super) folded_calls: u64,
    /// Offset and size of the slots for totals.
    pub(super) totals: (u64, u64),
    pub(super) segments: Vec<(u64, u64)>,
}

impl Head {
    pub(super) fn read(file: &File, len: u64) -> Result<Head, Problem> {
        let mut bytes = vec![0; PAGE as usize];
        let there = usize::try_from(len.min(PAGE)).expect("a page fits");
        os::read_exact_at(file, &mut bytes[..there], 0)?;
        if bytes[..format::MAGIC.len()] != format::MAGIC {
            return Err(Problem::NotARecording);
        }
        let u32_at = |at: usize| FieldReader(&bytes[at..]).u32().unwrap_or(0);
        let u64_at = |at: usize| FieldReader(&bytes[at..]).u64().unwrap_or(0);
        let pair_at = |at: usize| ClockPair { ticks: u64_at(at), ns: u64_at(at + 8).cast_signed() };
        let crc = crc32fast::hash(&bytes[..format::FIXED_LEN]);
        let written = u32_at(std::mem::offset_of!(Header, fixed_crc));
        if there < size_of::<Header>() || !format::is_sound(crc, written) {
            return Err(Problem::DamagedHead);
        }
        let version = u32_at(std::mem::offset_of!(Header, version));
        if version != format::FORMAT_VERSION {
            return Err(Problem::Version(version));
        }
        let clock = match u32_at(std::mem::offset_of!(Header, clock)) {
            monotonic if monotonic == ClockKind::Monotonic as u32 => ClockKind::Monotonic,
            _ => ClockKind::Counter,
        };
        let info = Info {
            rank: u32_at(std::mem::offset_of!(Header, rank)),
            ranks: u32_at(std::mem::offset_of!(Header, ranks)),
            pid: u32_at(std::mem::offset_of!(Header, pid)),
            parent_pid: u32_at(std::mem::offset_of!(Header, parent_pid)),
            wall_start_ns: u64_at(std::mem::offset_of!(Header, wall_start_ns)).cast_signed(),
            clock: clock.name().to_owned(),
            region_cost_ps: u32_at(std::mem::offset_of!(Header, region_cost_ps)),
            sealed: u32_at(std::mem::offset_of!(Header, state)) == format::STATE_SEALED,
            ..Info::default()
        };
        let first = pair_at(std::mem::offset_of!(Header, first_pair));
        let last = match u32_at(std::mem::offset_of!(Header, last_beat)) {
            beat @ 1..=2 => pair_at(std::mem::offset_of!(Header, beats) + (beat as usize - 1) * 16),
            _ => first,
        };
        let count = u32_at(std::mem::offset_of!(Header, segment_count)) as usize;
        let segment = |number: usize| pair_at(std::mem::offset_of!(Header, segments) + number * 16);
        let mut segments: Vec<_> = (0..count.min(MAX_SEGMENTS))
            .map(|number| (segment(number).ticks, segment(number).ns.cast_unsigned()))
            .filter(|&(at, _)| at >= PAGE && at % PAGE == 0 && at < len)
            // Of a file that was cut, what is left of it.
            .map(|(at, chunks)| (at, chunks.min((len - at).div_ceil(CHUNK_BYTES as u64))))
            .collect();
        segments.sort_unstable();
        let lost_calls = u64_at(std::mem::offset_of!(Header, lost_calls));
        let folded_calls = u64_at(std::mem::offset_of!(Header, folded_calls));
        let totals = format::totals_slots(u64_at(std::mem::offset_of!(Header, totals)));
        let totals =
            if totals.0.checked_add(2 * totals.1).is_some_and(|end| end <= len) { totals } else { (0, 0) };
        Ok(Head { info, first, last, lost_calls, folded_calls, totals, segments })
    }
}
