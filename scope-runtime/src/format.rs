//! The bytes of a recording (`rank<N>.scope`), for the side that writes and the side that reads.
//!
//! ```text
//! header   4096 bytes, mapped while the program runs
//! ...      pieces in the order in which they were allocated, each 32-byte aligned:
//!          pool segments (page-aligned, listed in the header; mapped while the program runs)
//!          blocks        (a 32-byte head and a payload, both with a checksum)
//! ```
//!
//! A pool segment is a run of chunks; a chunk holds the newest events of one lane. When a chunk
//! is full its events are appended as a block and it is used again, so an event is in a chunk, in
//! a block, or for a moment in both: `(lane, sequence)` tells that they are the same, and the
//! block counts. All numbers are little-endian.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// First bytes of every recording.
pub(crate) const MAGIC: [u8; 8] = *b"SCOPEREC";
/// Version of the layout described here; a reader refuses any other.
pub const FORMAT_VERSION: u32 = 3;
/// Size of the header, and the alignment of pool segments.
pub(crate) const PAGE: u64 = 4096;
/// Alignment of blocks.
pub(crate) const BLOCK_ALIGN: u64 = 32;

/// Value of [`Header::state`] while a process may still write.
pub(crate) const STATE_OPEN: u32 = 0;
/// Value of [`Header::state`] once the program has ended the recording.
pub(crate) const STATE_SEALED: u32 = 1;

/// Offset of the first slot and size of each, from [`Header::totals`]; 0 and 0 when there are none.
pub(crate) fn totals_slots(word: u64) -> (u64, u64) {
    let (at, bits) = (word / PAGE * PAGE, word % PAGE);
    if at == 0 || bits >= 48 { (0, 0) } else { (at, 1 << bits) }
}

/// How many segments the pool can have; each adds a quarter of what there is, up to the share of the live threads.
pub(crate) const MAX_SEGMENTS: usize = 160;

/// The head of the file as it is mapped. Written by atomics: other threads read it while it
/// changes, and a killed process leaves it as it is.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: [u8; 8],
    pub(crate) version: u32,
    pub(crate) clock: u32,
    pub(crate) pid: u32,
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
    /// CRC-32 of everything above.
    pub(crate) fixed_crc: u32,
    /// [`STATE_OPEN`] or [`STATE_SEALED`].
    pub(crate) state: AtomicU32,
    /// Number of entries of `segments` in use.
    pub(crate) segment_count: AtomicU32,
    /// Offset at which the next piece is allocated.
    pub(crate) end: AtomicU64,
    /// Calls that could not be kept.
    pub(crate) lost_calls: AtomicU64,
    /// Which of `beats` was written last: its index + 1; 0 before the first.
    pub(crate) last_beat: AtomicU32,
    /// What entering and leaving a region cost when recording began, in ps; 0 before it was measured.
    pub(crate) region_cost_ps: AtomicU32,
    /// Calls in totals that were kept in place of events; see [`Header::totals`].
    pub(crate) folded_calls: AtomicU64,
    /// Offset of the two slots for totals blocks, a multiple of [`PAGE`], plus the binary logarithm
    /// of a slot's size.
    pub(crate) totals: AtomicU64,
    /// Wall clock at the start, ns since the Unix epoch.
    pub(crate) wall_start_ns: AtomicU64,
    /// Ticks and monotonic ns at the start.
    pub(crate) first_pair: [AtomicU64; 2],
    /// Ticks and monotonic ns at the newest signs of life, in turn.
    pub(crate) beats: [[AtomicU64; 2]; 2],
    /// Offset and number of chunks of each pool segment.
    pub(crate) segments: [[AtomicU64; 2]; MAX_SEGMENTS],
    /// Number of the process that started this one; 0 when unknown.
    pub(crate) parent_pid: AtomicU32,
}

const _: () = assert!(size_of::<Header>() <= PAGE as usize);
/// Length of the part that [`Header::fixed_crc`] covers.
pub(crate) const FIXED_LEN: usize = std::mem::offset_of!(Header, fixed_crc);

/// Size of a chunk with its head.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;
/// Items in a chunk.
pub(crate) const CHUNK_ITEMS: usize = (CHUNK_BYTES - 32) / 4;

/// The newest events of one lane. `items` (`pack.rs`) is filled from the front; where the next item
/// would begin stands a 0.
#[repr(C)]
pub(crate) struct Chunk {
    /// Lane number plus 1; 0 in a chunk that belongs to nobody.
    pub(crate) owner: AtomicU32,
    pub(crate) reserved: AtomicU32,
    /// Counts the chunks of the lane, from 0.
    pub(crate) sequence: AtomicU64,
    /// Regions open on the lane when the chunk began, so that a reader knows the depth even where
    /// an earlier chunk is missing. From here on the bytes are the payload of an events block.
    pub(crate) depth: AtomicU64,
    /// Ticks that those of the events are relative to.
    pub(crate) base: AtomicU64,
    pub(crate) items: [AtomicU32; CHUNK_ITEMS],
}

const _: () = assert!(size_of::<Chunk>() == CHUNK_BYTES);
/// Where the payload of an events block begins in a chunk, and its length without items.
pub(crate) const CHUNK_PAYLOAD: usize = std::mem::offset_of!(Chunk, depth);
pub(crate) const EVENTS_HEAD: usize = std::mem::offset_of!(Chunk, items) - CHUNK_PAYLOAD;

/// A word: ticks since the base in the upper 40 bits, a code in the lower 24.
pub(crate) const CODE_BITS: u32 = 24;
/// Ticks from here on do not fit a word; see [`code::REBASE`].
pub(crate) const MAX_TICKS: u64 = 1 << (64 - CODE_BITS);
/// Set in every second word of a two-word event.
pub(crate) const PAYLOAD: u64 = 1 << 63;

/// The codes of events.
pub(crate) mod code {
    /// Two words: regions end until as many are open as the second word says.
    pub(crate) const CLOSE_TO: u64 = 2;
    /// Two words: the thread ends; the second word is its CPU time in ns.
    pub(crate) const LANE_END: u64 = 3;
    /// Two words: ticks are relative to the second word from here on.
    pub(crate) const REBASE: u64 = 4;
    /// Two words: the first poll of an instance of an async region begins; the second word is its
    /// number and region, see [`instance_word`].
    pub(crate) const FIRST_POLL: u64 = 5;
    /// Two words: the poll ends of the instance whose number the second word gives, and so many frames are
    /// open after that, see [`instance_word`]; regions that are open in it are set aside.
    pub(crate) const POLL_END: u64 = 7;
    /// Two words: the instance that is being polled has completed; it began at the ticks in the
    /// second word.
    pub(crate) const COMPLETED: u64 = 8;
    /// The same for one that was dropped before it completed.
    pub(crate) const CANCELLED: u64 = 9;
    /// Two words: the regions that were set aside at the end of the last poll of this instance go on; the
    /// second word is its number and how many they are.
    pub(crate) const RESUME: u64 = 10;
    /// Two words: the instance whose first poll just began was made at the position in the second
    /// word, see [`position`](super::position).
    pub(crate) const LINK: u64 = 11;
    /// Two words: what is entered from here on with nothing around it was started at the position in
    /// the second word; 0 for none.
    pub(crate) const LINKED: u64 = 12;
    /// Two words: the innermost frame, a part of a span, ends, and the span may go on in a later part;
    /// the second word is its number as an instance, with code 0. As [`LEAVE`] it is the last part.
    pub(crate) const PART_END: u64 = 13;
    /// Two words: a later part of a span begins; the second word is its number and region.
    pub(crate) const PART_BEGIN: u64 = 14;
    /// Two words: the part that is the innermost frame comes after one that ended at the ticks in the
    /// second word.
    pub(crate) const SINCE: u64 = 15;
    /// Two words: the instance whose first poll just began opens the task to which its executor gives
    /// the number in the second word.
    pub(crate) const TASK: u64 = 16;
    /// Two words: the innermost call, a collective one, is done; the second word is its communicator and
    /// its number there, 32 bits each.
    pub(crate) const COLLECTIVE: u64 = 17;
    /// As are all up to [`LAST_MESSAGE`], without a time: the innermost call moved a message of the kind that
    /// the code less this one says. In place of ticks it has peer and size, see
    /// [`message_word`](super::message_word).
    pub(crate) const MESSAGE: u64 = 18;
    pub(crate) const LAST_MESSAGE: u64 = MESSAGE + 4;
    /// Two words: a later poll begins, or the drop of an instance that had not completed. Next to the codes
    /// of regions, as is the following one, so that one subtraction makes a short code of any (`pack.rs`).
    pub(crate) const POLL: u64 = FIRST_REGION - 2;
    /// The innermost open region ends.
    pub(crate) const LEAVE: u64 = FIRST_REGION - 1;
    /// Codes from here on enter the region of that number less this one.
    pub(crate) const FIRST_REGION: u64 = 256;
    /// Codes from here on begin the first part of a span of that region.
    pub(crate) const FIRST_SPAN: u64 = 1 << (super::CODE_BITS - 1);
    /// Regions that a code can name; all further ones share the last.
    pub(crate) const MAX_REGIONS: u64 = FIRST_SPAN - FIRST_REGION;
}

/// Whether an event of this code has a second word.
#[inline]
pub(crate) fn has_payload(code: u64) -> bool {
    code == code::POLL || (code::CLOSE_TO..=code::COLLECTIVE).contains(&code)
}

/// An instance of an async region in one word: its number in the upper bits; below the region's code, or a
/// number of frames.
pub(crate) fn instance_word(number: u64, low: u64) -> u64 {
    number << CODE_BITS | low.min((1 << CODE_BITS) - 1)
}

/// Both numbers in such a word.
pub(crate) fn instance_of(word: u64) -> (u64, u64) {
    (word >> CODE_BITS, word & ((1 << CODE_BITS) - 1))
}

/// Bits of a message's word for its size.
const SIZE_BITS: u32 = 39;
/// Peers from here on cannot be told apart from none.
const MAX_PEERS: u32 = (1 << (63 - SIZE_BITS)) - 1;

/// Peer and size of a message in one word. Sizes from 512 GiB on are one byte less than that.
#[cfg_attr(not(any(test, feature = "mpi")), allow(dead_code))]
pub(crate) fn message_word(peer: Option<u32>, bytes: u64) -> u64 {
    let peer = peer.filter(|&peer| peer < MAX_PEERS).map_or(0, |peer| u64::from(peer) + 1);
    peer << SIZE_BITS | bytes.min((1 << SIZE_BITS) - 1)
}

/// Peer and size in such a word.
pub(crate) fn message_of(word: u64) -> (Option<u32>, u64) {
    let peer = (word >> SIZE_BITS).checked_sub(1).map(|peer| peer as u32);
    (peer, word & ((1 << SIZE_BITS) - 1))
}

/// Bits of a position for the item in its chunk, and for the chunk of its lane.
const ITEM_BITS: u32 = 14;
const SEQUENCE_BITS: u32 = 30;
const _: () = assert!(CHUNK_ITEMS < 1 << ITEM_BITS);

/// A place between two events of a lane: lane, chunk and how many items of that come before. `None`
/// where the numbers are too large.
pub(crate) fn position(lane: u32, sequence: u64, items: usize) -> Option<u64> {
    let fits = u64::from(lane) < 1 << (63 - SEQUENCE_BITS - ITEM_BITS) && sequence < 1 << SEQUENCE_BITS;
    fits.then(|| (u64::from(lane) << SEQUENCE_BITS | sequence) << ITEM_BITS | items as u64)
}

/// Lane, chunk and items of a position.
pub(crate) fn parts_of(position: u64) -> (u32, u64, usize) {
    let items = position & ((1 << ITEM_BITS) - 1);
    let sequence = position >> ITEM_BITS & ((1 << SEQUENCE_BITS) - 1);
    ((position >> (ITEM_BITS + SEQUENCE_BITS)) as u32, sequence, items as usize)
}

/// How many instances a recording can tell apart; further ones are not recorded.
pub(crate) const MAX_INSTANCES: u64 = 1 << (63 - CODE_BITS);

/// The head of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHead {
    pub(crate) kind: u32,
    /// Lane number, or region number, or 0, as the kind says.
    pub(crate) subject: u32,
    /// Length of the payload in bytes.
    pub(crate) len: u32,
    pub(crate) sequence: u64,
    pub(crate) payload_crc: u32,
}

/// The kinds of blocks.
pub(crate) mod kind {
    /// Text fields about the process.
    pub(crate) const INFO: u32 = 1;
    /// Definition of a region; subject = its number.
    pub(crate) const REGION: u32 = 2;
    /// Start of a lane; subject = its number.
    pub(crate) const LANE: u32 = 3;
    /// Depth, base ticks and items of a chunk, as they lay there; subject = lane, sequence = the chunk's.
    pub(crate) const EVENTS: u32 = 4;
    /// End of a session by call: ticks after which what was open is cut.
    pub(crate) const SESSION_END: u32 = 5;
    /// Begin of a session that is not the first: its ticks.
    pub(crate) const SESSION_BEGIN: u32 = 6;
    /// The moment, ticks and ns, that makes ticks into ns together with the first: totals were shown
    /// that were made with it.
    pub(crate) const SCALE: u32 = 8;
    /// A comparison with rank 0's clock: own ns, ns that rank 0's clock is ahead, and the uncertainty.
    pub(crate) const CLOCK_OFFSET: u32 = 9;
    /// Totals of the lanes that keep no events any more, in one of the two slots; sequence = how
    /// many such blocks were written. Number of lanes, then number, length and fold of each, then
    /// the blocks that could not be appended.
    pub(crate) const TOTALS: u32 = 7;
}

/// Whether a checksum is the one that was written. A fuzzer cannot guess any, and is to get behind them.
pub(crate) fn is_sound(checksum: u32, written: u32) -> bool {
    cfg!(fuzzing) || checksum == written
}

const BLOCK_MAGIC: [u8; 4] = *b"SCBK";
pub(crate) const BLOCK_HEAD: usize = 32;

impl BlockHead {
    /// The head of a block of `kind` with this payload.
    pub(crate) fn of(kind: u32, subject: u32, sequence: u64, payload: &[&[u8]]) -> BlockHead {
        let mut crc = crc32fast::Hasher::new();
        payload.iter().for_each(|part| crc.update(part));
        let len = payload.iter().map(|part| part.len()).sum::<usize>();
        let len = u32::try_from(len).expect("a block is shorter than 4 GiB");
        BlockHead { kind, subject, len, sequence, payload_crc: crc.finalize() }
    }

    /// The bytes of the head.
    pub(crate) fn to_bytes(self) -> [u8; BLOCK_HEAD] {
        let mut bytes = [0; BLOCK_HEAD];
        bytes[0..4].copy_from_slice(&BLOCK_MAGIC);
        bytes[4..8].copy_from_slice(&self.kind.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.subject.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.len.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..28]);
        bytes[28..32].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The head in these bytes, if there is a sound one.
    pub(crate) fn from_bytes(bytes: &[u8; BLOCK_HEAD]) -> Option<BlockHead> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        if bytes[0..4] != BLOCK_MAGIC || !is_sound(crc32fast::hash(&bytes[..28]), u32_at(28)) {
            return None;
        }
        Some(BlockHead {
            kind: u32_at(4),
            subject: u32_at(8),
            len: u32_at(12),
            sequence: u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes")),
            payload_crc: u32_at(24),
        })
    }

    /// Bytes from this head to the next piece.
    pub(crate) fn span(&self) -> u64 {
        (BLOCK_HEAD as u64 + u64::from(self.len)).next_multiple_of(BLOCK_ALIGN)
    }
}

/// Writes the fields of a payload one after the other.
#[derive(Default)]
pub(crate) struct Fields(pub(crate) Vec<u8>);

impl Fields {
    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Their number as a u32, then the numbers.
    pub(crate) fn u64s(self, values: &[u64]) -> Self {
        let fields = self.u32(u32::try_from(values.len()).expect("fewer than 2^32 numbers"));
        values.iter().fold(fields, |fields, &value| fields.u64(value))
    }

    /// Its length as a u32, then the text.
    pub(crate) fn text(self, value: &str) -> Self {
        let mut fields = self.u32(u32::try_from(value.len()).expect("a text is shorter than 4 GiB"));
        fields.0.extend(value.as_bytes());
        fields
    }
}

/// Reads what [`Fields`] wrote; `None` where the bytes end too early or are no UTF-8.
pub(crate) struct FieldReader<'a>(pub(crate) &'a [u8]);

impl<'a> FieldReader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn u64s(&mut self) -> Option<Vec<u64>> {
        let len = self.u32()? as usize;
        let bytes = self.take(len.checked_mul(8)?)?;
        Some(bytes.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect())
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        let len = self.u32()? as usize;
        String::from_utf8(self.take(len)?.to_vec()).ok()
    }
}

/// Events in their long form, as tests write them down.
#[cfg(test)]
pub(crate) mod events {
    use super::{CODE_BITS, PAYLOAD, code, instance_word};

    pub(crate) fn event(code: u64, at: u64) -> u64 {
        at << CODE_BITS | code
    }

    /// An event of two words.
    pub(crate) fn two(code: u64, payload: u64, at: u64) -> [u64; 2] {
        [event(code, at), PAYLOAD | payload]
    }

    pub(crate) fn enter(region: u64, at: u64) -> u64 {
        event(code::FIRST_REGION + region, at)
    }

    pub(crate) fn leave(at: u64) -> u64 {
        event(code::LEAVE, at)
    }

    pub(crate) fn span(region: u64, at: u64) -> u64 {
        event(code::FIRST_SPAN + region, at)
    }

    pub(crate) fn end_of_part(instance: u64, at: u64) -> [u64; 2] {
        two(code::PART_END, instance_word(instance, 0), at)
    }

    pub(crate) fn later_part(instance: u64, region: u64, since: u64, at: u64) -> Vec<u64> {
        let word = instance_word(instance, code::FIRST_SPAN + region);
        [two(code::PART_BEGIN, word, at), two(code::SINCE, since, at)].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_head_comes_back_and_a_flipped_bit_is_seen() {
        let head = BlockHead::of(kind::EVENTS, 7, 9, &[b"abc", b"defg"]);
        assert_eq!(head.len, 7);
        assert_eq!(head.span(), 64);
        let bytes = head.to_bytes();
        assert_eq!(BlockHead::from_bytes(&bytes), Some(head));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(BlockHead::from_bytes(&flipped), None, "bit {bit}");
        }
    }

    #[test]
    fn messages_come_back_as_far_as_they_fit() {
        let last = MAX_PEERS - 1;
        for (peer, bytes) in [(None, 0), (Some(0), 7), (Some(last), (1 << SIZE_BITS) - 1)] {
            assert_eq!(message_of(message_word(peer, bytes)), (peer, bytes));
            assert_eq!(message_word(peer, bytes) >> 63, 0);
        }
        assert_eq!(message_of(message_word(Some(last + 1), u64::MAX)), (None, (1 << SIZE_BITS) - 1));
    }

    #[test]
    fn fields_come_back_and_end_where_the_bytes_end() {
        let bytes = Fields::default().u32(3).u64(4).text("äöü").0;
        let mut reader = FieldReader(&bytes);
        assert_eq!((reader.u32(), reader.u64()), (Some(3), Some(4)));
        assert_eq!(reader.text().as_deref(), Some("äöü"));
        assert_eq!(reader.u32(), None);
        assert_eq!(FieldReader(&[255, 255, 255, 255, 0]).text(), None);
    }
}
