//! The pieces of a recording: chunks in the pool, blocks, totals. Nothing is trusted but what has a
//! sound checksum, or is a chunk that a program was writing to.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use crate::clock::ClockPair;
use crate::fold::Fold;
use crate::format::{
    self, BLOCK_ALIGN, BLOCK_HEAD, BlockHead, CHUNK_BYTES, CHUNK_PAYLOAD, EVENTS_HEAD, FieldReader, PAGE,
    kind,
};
use crate::os;
use crate::pack::{Word, Words};
use crate::recording::{ClockOffset, Info};
use crate::regions::Defined;
use crate::replay::{ChunkWords, Replay, SessionEdge};

#[derive(Debug, Default)]
pub(super) struct RawLane {
    pub(super) name: String,
    pub(super) os_thread: u64,
    pub(super) start_ticks: u64,
    /// By sequence number.
    pub(super) chunks: BTreeMap<u64, RawChunk>,
    /// The payload of its totals, where the lane kept no events from some chunk on.
    pub(super) fold: Option<Vec<u8>>,
}

/// Where a chunk's events are. A block has all events of its chunk: it was written when the chunk
/// was given back.
#[derive(Debug)]
pub(super) enum RawChunk {
    /// In a block: offset and head.
    Block(u64, BlockHead),
    /// In the pool, copied when the recording was opened, since a live program goes on writing.
    Pool(Vec<u8>),
}

impl RawChunk {
    /// The chunk's words; `None` when it is damaged. `bytes` is room that is used again.
    pub(super) fn words<'b>(
        &'b self,
        sequence: u64,
        file: &File,
        bytes: &'b mut Vec<u8>,
    ) -> Option<ChunkWords<impl Iterator<Item = Word> + 'b>> {
        let payload = match self {
            RawChunk::Pool(payload) => payload.as_slice(),
            RawChunk::Block(at, head) => read_payload(file, *at, head, bytes)?,
        };
        let (head, items) = payload.split_at_checked(EVENTS_HEAD)?;
        let mut head = FieldReader(head);
        let (depth, base) = (head.u64()?, head.u64()?);
        let items = items.as_chunks().0.iter().map(|item| u32::from_le_bytes(*item));
        Some(ChunkWords { sequence, depth, base, words: Words::of(items) })
    }
}

impl RawLane {
    /// Bytes of its events.
    pub(super) fn event_bytes(&self) -> u64 {
        let bytes = |chunk: &RawChunk| match chunk {
            RawChunk::Block(_, head) => u64::from(head.len),
            RawChunk::Pool(payload) => payload.len() as u64,
        };
        self.chunks.values().map(bytes).sum()
    }

    /// Ticks of its last event; 0 without one.
    pub(super) fn last_ticks(&self, file: &File) -> u64 {
        let mut bytes = Vec::new();
        let mut replay = Replay::new((), &[]);
        if let Some((&sequence, chunk)) = self.chunks.last_key_value()
            && let Some(words) = chunk.words(sequence, file, &mut bytes)
        {
            replay.chunk(words);
        }
        let folded = self.fold(&[]).map_or(0, |fold| fold.last_ticks());
        replay.last_ticks().max(folded)
    }

    pub(super) fn fold(&self, edges: &[SessionEdge]) -> Option<Fold> {
        // It was read once before it was put here.
        self.fold.as_ref().and_then(|bytes| Fold::from_fields(&mut FieldReader(bytes), edges))
    }
}

/// Reads the payload of a block, if its checksum fits.
fn read_payload<'b>(file: &File, at: u64, head: &BlockHead, bytes: &'b mut Vec<u8>) -> Option<&'b [u8]> {
    bytes.resize(head.len as usize, 0);
    os::read_exact_at(file, bytes, at + BLOCK_HEAD as u64).ok()?;
    format::is_sound(crc32fast::hash(bytes), head.payload_crc).then_some(bytes)
}

/// Fills `bytes` from the file, with zeros behind its last whole item.
fn read_as_far(file: &File, at: u64, bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match os::read_at(file, &mut bytes[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if filled < bytes.len() {
        bytes[filled / 4 * 4..].fill(0);
    }
    Ok(())
}

/// The pieces of a file as they are found.
#[derive(Default)]
pub(super) struct Pieces {
    pub(super) regions: BTreeMap<u32, Defined>,
    pub(super) lanes: BTreeMap<u32, RawLane>,
    pub(super) session_edges: Vec<SessionEdge>,
    /// The moment that makes ticks into ns, where the program has said so.
    pub(super) scale: Option<ClockPair>,
}

impl Pieces {
    pub(super) fn read_pool(&mut self, file: &File, at: u64, chunks: u64) -> io::Result<()> {
        let mut bytes = vec![0; CHUNK_BYTES];
        for number in 0..chunks {
            let at = at + number * CHUNK_BYTES as u64;
            read_as_far(file, at, &mut bytes)?;
            let mut again = [0; CHUNK_PAYLOAD];
            read_as_far(file, at, &mut again)?;
            let mut head = FieldReader(&bytes);
            let (owner, _, sequence) = (head.u32().unwrap_or(0), head.u32(), head.u64().unwrap_or(0));
            // A live program may have given the chunk to another lane while it was read; its
            // events are in a block then.
            if owner == 0 || again != bytes[..CHUNK_PAYLOAD] {
                continue;
            }
            let payload = &bytes[CHUNK_PAYLOAD..];
            if payload[EVENTS_HEAD..EVENTS_HEAD + 4] != [0; 4] {
                let filled = payload.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                // A half of the last word may be 0.
                let payload = payload[..(filled.next_multiple_of(4) + 8).min(payload.len())].to_vec();
                self.lanes.entry(owner - 1).or_default().chunks.insert(sequence, RawChunk::Pool(payload));
            }
        }
        Ok(())
    }

    /// Reads the newer sound one of the two copies of totals; gives the calls in it.
    pub(super) fn read_totals(&mut self, file: &File, (at, size): (u64, u64), info: &mut Info) -> u64 {
        let mut newest: Option<(u64, Vec<u8>)> = None;
        for slot in (0..2).filter(|_| size > 0) {
            let at = at + slot * size;
            let mut bytes = [0; BLOCK_HEAD];
            let head =
                os::read_exact_at(file, &mut bytes, at).ok().and_then(|()| BlockHead::from_bytes(&bytes));
            let Some(head) = head.filter(|head| u64::from(head.len) + BLOCK_HEAD as u64 <= size) else {
                continue;
            };
            let mut payload = Vec::new();
            let is_newer = newest.as_ref().is_none_or(|&(number, _)| number < head.sequence);
            if head.kind == kind::TOTALS && is_newer && read_payload(file, at, &head, &mut payload).is_some()
            {
                newest = Some((head.sequence, payload));
            }
        }
        newest.and_then(|(_, payload)| self.take_totals(&payload, info)).unwrap_or(0)
    }

    fn take_totals(&mut self, payload: &[u8], info: &mut Info) -> Option<u64> {
        let mut fields = FieldReader(payload);
        let mut calls = 0_u64;
        for _ in 0..fields.u32()? {
            let (lane, len) = (fields.u32()?, fields.u32()? as usize);
            let fold = fields.0.get(..len)?;
            fields.0 = &fields.0[len..];
            calls = Fold::from_fields(&mut FieldReader(fold), &[])?.calls().saturating_add(calls);
            self.lanes.entry(lane).or_default().fold = Some(fold.to_vec());
        }
        // Behind them stand the blocks for which there was no room elsewhere.
        while let Some((bytes, rest)) = fields.0.split_first_chunk() {
            let head = BlockHead::from_bytes(bytes)?;
            let payload = rest.get(..head.len as usize)?;
            self.take_block(&head, payload, info)?;
            fields.0 = &rest[payload.len()..];
        }
        Some(calls)
    }

    /// Reads all blocks. `mapped` are the offsets and lengths of what holds none, in order.
    pub(super) fn read_blocks(
        &mut self,
        file: &File,
        len: u64,
        mapped: &[(u64, u64)],
        info: &mut Info,
    ) -> io::Result<()> {
        let mut window = Window { file, start: 0, bytes: Vec::new() };
        let mut at = PAGE;
        let mut mapped = mapped.iter().peekable();
        let mut was_block = true;
        while at + BLOCK_HEAD as u64 <= len {
            if let Some(&&(from, size)) = mapped.peek()
                && at >= from
            {
                at = at.max(from + size);
                mapped.next();
                continue;
            }
            let bytes: [u8; BLOCK_HEAD] =
                window.slice(at, BLOCK_HEAD, len)?.try_into().expect("as many as asked");
            match BlockHead::from_bytes(&bytes) {
                Some(head) if at + BLOCK_HEAD as u64 + u64::from(head.len) <= len => {
                    info.damaged += u64::from(self.read_block(&mut window, at, &head, len, info)?.is_none());
                    at += head.span();
                    was_block = true;
                }
                // A hole (a block that was not finished, a page boundary) or damage: go on at the
                // next place where a block can be. Damage counts once, however long.
                _ => {
                    info.damaged += u64::from(was_block && bytes != [0; BLOCK_HEAD]);
                    was_block = bytes == [0; BLOCK_HEAD];
                    at += BLOCK_ALIGN;
                }
            }
        }
        Ok(())
    }

    /// `None` when the block is damaged.
    pub(super) fn read_block(
        &mut self,
        window: &mut Window<'_>,
        at: u64,
        head: &BlockHead,
        len: u64,
        info: &mut Info,
    ) -> io::Result<Option<()>> {
        if head.kind == kind::EVENTS {
            // Its payload is checked when it is replayed.
            let chunks = &mut self.lanes.entry(head.subject).or_default().chunks;
            chunks.insert(head.sequence, RawChunk::Block(at, *head));
            return Ok(Some(()));
        }
        let payload = window.slice(at + BLOCK_HEAD as u64, head.len as usize, len)?;
        let sound = format::is_sound(crc32fast::hash(payload), head.payload_crc);
        Ok(sound.then(|| self.take_block(head, payload, info)).flatten())
    }

    pub(super) fn take_block(&mut self, head: &BlockHead, payload: &[u8], info: &mut Info) -> Option<()> {
        let mut fields = FieldReader(payload);
        match head.kind {
            kind::INFO => {
                info.runtime_version = fields.text()?;
                info.args = (0..fields.u32()?).map_while(|_| fields.text()).collect();
                // What an earlier version has recorded ends here.
                info.host = fields.text().unwrap_or_default();
            }
            kind::REGION => {
                self.regions.insert(head.subject, Defined::read(&mut fields)?);
            }
            kind::LANE => {
                let lane = self.lanes.entry(head.subject).or_default();
                (lane.start_ticks, lane.os_thread, lane.name) =
                    (fields.u64()?, fields.u64()?, fields.text()?);
            }
            kind::SESSION_END | kind::SESSION_BEGIN => {
                let begins = head.kind == kind::SESSION_BEGIN;
                self.session_edges.push(SessionEdge { ticks: fields.u64()?, begins });
            }
            kind::SCALE => {
                let pair = ClockPair { ticks: fields.u64()?, ns: fields.u64()?.cast_signed() };
                self.scale.get_or_insert(pair);
            }
            kind::CLOCK_OFFSET => {
                let mut number = || fields.u64().map(u64::cast_signed);
                let (at_ns, offset_ns, uncertainty_ns) = (number()?, number()?, number()?);
                info.clock_offsets.push(ClockOffset { at_ns, offset_ns, uncertainty_ns });
            }
            _ => {}
        }
        Some(())
    }
}

/// A part of a file in memory, so that many small blocks are read at once. It grows as long as what
/// is asked for lies close together: of large blocks only the heads are looked at.
pub(super) struct Window<'a> {
    file: &'a File,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    const SMALLEST: u64 = 4096;
    const LARGEST: u64 = 1 << 20;

    /// `len` bytes at `at`, which lie before `file_len`.
    pub(super) fn slice(&mut self, at: u64, len: usize, file_len: u64) -> io::Result<&[u8]> {
        let inside = at >= self.start && at + len as u64 <= self.start + self.bytes.len() as u64;
        if !inside {
            let before = self.bytes.len() as u64;
            let goes_on = at >= self.start && at < self.start + 2 * before;
            let size = if goes_on { (2 * before).min(Self::LARGEST) } else { Self::SMALLEST };
            let size = size.max(len as u64).min(file_len - at);
            self.bytes.resize(usize::try_from(size).map_err(io::Error::other)?, 0);
            self.start = at;
            os::read_exact_at(self.file, &mut self.bytes, at)?;
        }
        let from = (at - self.start) as usize;
        Ok(&self.bytes[from..from + len])
    }
}
