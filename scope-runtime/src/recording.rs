//! The recording of one rank (`rank<N>.scope`): reading it back, sealed or not.
//!
//! Reading takes what is there: blocks with sound checksums, and the chunks that a killed process
//! left in the pool. Nothing in the file is trusted: sizes and offsets are checked against its
//! length, and a damaged piece costs no more than itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::clock::{ClockKind, ClockPair, TickScale};
use crate::format::{
    self, BLOCK_ALIGN, BLOCK_HEAD, BlockHead, CHUNK_BYTES, CHUNK_PAYLOAD, EVENTS_HEAD, FieldReader, Header,
    MAX_SEGMENTS, PAGE, kind,
};
use crate::pack;
use crate::profile::{Lane, LaneId, Profile, RegionId};
use crate::regions::Regions;
use crate::replay::{ChunkWords, Cut, LaneEnd, Replay, SessionEdge, Visitor};
use crate::totals::{PathId, PathTree};

/// A recording that was opened for reading.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: File,
    info: Info,
    regions: Regions,
    lanes: Vec<RawLane>,
    scale: TickScale,
    session_edges: Vec<SessionEdge>,
    /// Where calls that are still open are cut.
    cut_ticks: u64,
    profile: Profile,
}

/// What the head of a recording says about the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// MPI rank, 0 outside MPI.
    pub rank: u32,
    /// Number of ranks as the launcher gave it; 1 outside MPI.
    pub ranks: u32,
    /// Process id.
    pub pid: u32,
    /// Arguments of the program, its own name first.
    pub args: Vec<String>,
    /// Wall clock at the start, ns since the Unix epoch.
    pub wall_start_ns: i64,
    /// Version of scope-runtime that recorded.
    pub runtime_version: String,
    /// Name of the clock: `tsc`, `cntvct` or `monotonic`.
    pub clock: String,
    /// Whether the program ended its recording itself.
    pub sealed: bool,
    /// Pieces whose checksum does not fit, and which are left out.
    pub damaged: u64,
}

/// One call, in the order of entry on its lane. Times in ns on the recording clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Region.
    pub region: RegionId,
    /// Start.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// Position of the enclosing call in the same lane's calls.
    pub parent: Option<u32>,
    /// Cut at the end of recording.
    pub open: bool,
}

/// Why a recording cannot be read.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    problem: Problem,
}

#[derive(Debug)]
enum Problem {
    Io(io::Error),
    NotARecording,
    Version(u32),
    DamagedHead,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match &self.problem {
            Problem::Io(error) => write!(f, "failed to read `{path}`: {error}"),
            Problem::NotARecording => write!(f, "`{path}` is not a recording of scope-runtime"),
            Problem::Version(version) => write!(
                f,
                "`{path}` is a recording of format version {version}, this program reads version {}: \
                 use a cargo-scope of the same version as the program's scope-runtime",
                format::FORMAT_VERSION
            ),
            Problem::DamagedHead => {
                write!(f, "the head of the recording `{path}` is damaged; it cannot be read")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Problem::Io(error)
    }
}

#[derive(Debug, Default)]
struct RawLane {
    name: String,
    os_thread: u64,
    start_ticks: u64,
    /// By sequence number.
    chunks: BTreeMap<u64, RawChunk>,
}

/// Where a chunk's words are. A block has all words of its chunk: it was written when the chunk
/// was given back.
#[derive(Debug)]
enum RawChunk {
    /// In a block: offset and head.
    Block(u64, BlockHead),
    /// In the pool, copied when the recording was opened, since a live program goes on writing.
    Pool(Vec<u8>),
}

impl RawChunk {
    /// Appends the chunk's words and gives its depth and base; `None` when it is damaged.
    fn unpack(&self, file: &File, bytes: &mut Vec<u8>, words: &mut Vec<u64>) -> Option<(u64, u64)> {
        let payload = match self {
            RawChunk::Pool(payload) => payload.as_slice(),
            RawChunk::Block(at, head) => read_payload(file, *at, head, bytes)?,
        };
        let (head, tail) = payload.split_at_checked(EVENTS_HEAD)?;
        let mut head = FieldReader(head);
        match self {
            RawChunk::Pool(_) => {
                words.extend(tail.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)))
            }
            RawChunk::Block(..) => {
                pack::unpack(tail.as_chunks().0.iter().map(|item| u32::from_le_bytes(*item)), words);
            }
        }
        Some((head.u64()?, head.u64()?))
    }
}

impl Recording {
    /// Opens a recording and totals it.
    ///
    /// # Errors
    /// When the file cannot be read, is none of ours, or has another format version. Damage
    /// beyond the head is no error: it is counted in [`Info::damaged`].
    pub fn open(path: &Path) -> Result<Recording, Error> {
        let fail = |problem| Error { path: path.to_owned(), problem };
        let file = File::open(path).map_err(|error| fail(error.into()))?;
        Recording::read(file, path).map_err(fail)
    }

    /// Reads an open recording, which may still be written to.
    pub(crate) fn from_file(file: File, path: &Path) -> Result<Recording, Error> {
        Recording::read(file, path).map_err(|problem| Error { path: path.to_owned(), problem })
    }

    fn read(file: File, path: &Path) -> Result<Recording, Problem> {
        let len = file.metadata()?.len();
        let head = Head::read(&file, len)?;
        let mut recording = Recording {
            path: path.to_owned(),
            file,
            info: head.info,
            regions: Regions::default(),
            lanes: Vec::new(),
            scale: TickScale::between(head.first, head.last),
            session_edges: Vec::new(),
            cut_ticks: head.last.ticks,
            profile: Profile::default(),
        };
        let mut pieces = Pieces::default();
        // The pool first: a chunk that a live program writes out meanwhile is found as a block.
        for &(at, chunks) in &head.segments {
            pieces.read_pool(&recording.file, at, chunks)?;
        }
        pieces.read_blocks(&recording.file, len, &head.segments, &mut recording.info)?;
        recording.regions = Regions::resolve(pieces.regions);
        recording.lanes = pieces.lanes.into_values().collect();
        recording.session_edges = pieces.session_edges;
        recording.session_edges.sort_unstable();
        recording.total(head.lost_calls, head.first);
        Ok(recording)
    }

    /// What the head of the recording says.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Regions, lanes and totals.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(crate) fn into_profile(self) -> Profile {
        self.profile
    }

    /// The calls of one lane in order of entry, parents before children. Events that cannot be
    /// read any more are left out, as when the recording was opened.
    pub fn calls(&self, lane: LaneId) -> Vec<Call> {
        let Some(raw) = self.lanes.get(lane.0 as usize) else { return Vec::new() };
        let collector = CallCollector { recording: self, calls: Vec::new(), open: Vec::new() };
        self.replay(raw, collector).0.calls
    }

    fn replay<V: Visitor>(&self, lane: &RawLane, visitor: V) -> (V, LaneEnd, u64) {
        let mut replay = Replay::new(visitor, self.scale, &self.session_edges);
        let mut damaged = 0;
        let (mut bytes, mut words) = (Vec::new(), Vec::new());
        for (&sequence, chunk) in &lane.chunks {
            words.clear();
            match chunk.unpack(&self.file, &mut bytes, &mut words) {
                Some((depth, base)) => replay.chunk(&ChunkWords { sequence, depth, base, words: &words }),
                None => damaged += 1,
            }
        }
        let (visitor, end) = replay.finish(self.cut_ticks);
        (visitor, end, damaged)
    }

    /// Fills the profile.
    fn total(&mut self, lost_calls: u64, first: ClockPair) {
        let mut profile = Profile { rank: self.info.rank, lost_calls, ..Profile::default() };
        let mut tree = PathTree::default();
        let mut last_ticks = self.cut_ticks;
        let mut damaged = 0;
        for raw in &self.lanes {
            let totaller = Totaller { regions: &self.regions, tree, open: Vec::new(), cut: 0 };
            let (totaller, end, damaged_chunks) = self.replay(raw, totaller);
            damaged += damaged_chunks;
            tree = totaller.tree;
            profile.open_calls += totaller.cut;
            profile.faulty_calls += end.faulty;
            last_ticks = last_ticks.max(end.last_ticks);
            let first_ticks = end.first_ticks.unwrap_or(raw.start_ticks).min(raw.start_ticks);
            profile.lanes.push(Lane {
                name: raw.name.clone(),
                os_thread: raw.os_thread,
                first_ns: self.scale.ns(first_ticks),
                last_ns: self.scale.ns(end.last_ticks.max(first_ticks)),
                ended: end.cpu_ns.is_some(),
                cpu_ns: end.cpu_ns.and_then(|ns| i64::try_from(ns).ok()),
            });
        }
        self.info.damaged += damaged;
        profile.start_ns = first.ns;
        profile.end_ns = self.scale.ns(last_ticks);
        profile.paths = self.regions.keep_called(tree);
        profile.regions = self.regions.called().to_vec();
        self.profile = profile;
    }
}

/// Reads the payload of a block, if its checksum fits.
fn read_payload<'b>(file: &File, at: u64, head: &BlockHead, bytes: &'b mut Vec<u8>) -> Option<&'b [u8]> {
    bytes.resize(head.len as usize, 0);
    file.read_exact_at(bytes, at + BLOCK_HEAD as u64).ok()?;
    (crc32fast::hash(bytes) == head.payload_crc).then_some(bytes)
}

/// Adds the calls of a lane to a tree of paths. Region ids in it are those of [`Regions`].
struct Totaller<'a> {
    regions: &'a Regions,
    tree: PathTree,
    open: Vec<OpenPath>,
    cut: u64,
}

struct OpenPath {
    path: PathId,
    start_ns: i64,
    children_ns: i64,
}

impl Visitor for Totaller<'_> {
    fn enter(&mut self, region: u32, at_ns: i64) {
        let parent = self.open.last().map(|open| open.path);
        let path = self.tree.step(parent, self.regions.id(region));
        self.open.push(OpenPath { path, start_ns: at_ns, children_ns: 0 });
    }

    fn leave(&mut self, at_ns: i64, cut: Cut) {
        let Some(call) = self.open.pop() else { return };
        let duration_ns = at_ns - call.start_ns;
        let open = cut == Cut::Open;
        self.tree.add_call(call.path, duration_ns, duration_ns - call.children_ns, open);
        self.cut += u64::from(open);
        if let Some(parent) = self.open.last_mut() {
            parent.children_ns += duration_ns;
        }
    }
}

struct CallCollector<'a> {
    recording: &'a Recording,
    calls: Vec<Call>,
    open: Vec<u32>,
}

impl Visitor for CallCollector<'_> {
    fn enter(&mut self, region: u32, at_ns: i64) {
        let region = self.recording.regions.called_id(region);
        let parent = self.open.last().copied();
        self.open.push(u32::try_from(self.calls.len()).expect("fewer than 2^32 calls on a lane"));
        self.calls.push(Call { region, start_ns: at_ns, end_ns: at_ns, parent, open: false });
    }

    fn leave(&mut self, at_ns: i64, cut: Cut) {
        let Some(call) = self.open.pop() else { return };
        let call = &mut self.calls[call as usize];
        (call.end_ns, call.open) = (at_ns, cut == Cut::Open);
    }
}

/// What the header says, checked against the file's length.
struct Head {
    info: Info,
    first: ClockPair,
    last: ClockPair,
    lost_calls: u64,
    segments: Vec<(u64, u64)>,
}

impl Head {
    fn read(file: &File, len: u64) -> Result<Head, Problem> {
        let mut bytes = vec![0; PAGE as usize];
        let there = usize::try_from(len.min(PAGE)).expect("a page fits");
        file.read_exact_at(&mut bytes[..there], 0)?;
        if bytes[..format::MAGIC.len()] != format::MAGIC {
            return Err(Problem::NotARecording);
        }
        let u32_at = |at: usize| FieldReader(&bytes[at..]).u32().unwrap_or(0);
        let u64_at = |at: usize| FieldReader(&bytes[at..]).u64().unwrap_or(0);
        let pair_at = |at: usize| ClockPair { ticks: u64_at(at), ns: u64_at(at + 8).cast_signed() };
        let crc = crc32fast::hash(&bytes[..format::FIXED_LEN]);
        if there < size_of::<Header>() || u32_at(std::mem::offset_of!(Header, fixed_crc)) != crc {
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
            wall_start_ns: u64_at(std::mem::offset_of!(Header, wall_start_ns)).cast_signed(),
            clock: clock.name().to_owned(),
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
            .filter(|&(at, chunks)| {
                let end = chunks.checked_mul(CHUNK_BYTES as u64).and_then(|size| size.checked_add(at));
                at >= PAGE && at % PAGE == 0 && end.is_some_and(|end| end <= len)
            })
            .collect();
        segments.sort_unstable();
        let lost_calls = u64_at(std::mem::offset_of!(Header, lost_calls));
        Ok(Head { info, first, last, lost_calls, segments })
    }
}

/// The pieces of a file as they are found.
#[derive(Default)]
struct Pieces {
    regions: BTreeMap<u32, crate::regions::Defined>,
    lanes: BTreeMap<u32, RawLane>,
    session_edges: Vec<SessionEdge>,
}

impl Pieces {
    fn read_pool(&mut self, file: &File, at: u64, chunks: u64) -> io::Result<()> {
        let mut bytes = vec![0; CHUNK_BYTES];
        for number in 0..chunks {
            let at = at + number * CHUNK_BYTES as u64;
            file.read_exact_at(&mut bytes, at)?;
            let mut again = [0; CHUNK_PAYLOAD];
            file.read_exact_at(&mut again, at)?;
            let mut head = FieldReader(&bytes);
            let (owner, _, sequence) = (head.u32().unwrap_or(0), head.u32(), head.u64().unwrap_or(0));
            // A live program may have given the chunk to another lane while it was read; its
            // events are in a block then.
            if owner == 0 || again != bytes[..CHUNK_PAYLOAD] {
                continue;
            }
            let payload = &bytes[CHUNK_PAYLOAD..];
            let words = payload[EVENTS_HEAD..].as_chunks::<8>().0;
            let filled = words.iter().position(|word| *word == [0; 8]).unwrap_or(words.len());
            if filled > 0 {
                let payload = payload[..EVENTS_HEAD + filled * 8].to_vec();
                self.lanes.entry(owner - 1).or_default().chunks.insert(sequence, RawChunk::Pool(payload));
            }
        }
        Ok(())
    }

    fn read_blocks(
        &mut self,
        file: &File,
        len: u64,
        segments: &[(u64, u64)],
        info: &mut Info,
    ) -> io::Result<()> {
        let mut window = Window { file, start: 0, bytes: Vec::new() };
        let mut at = PAGE;
        let mut pools = segments.iter().peekable();
        let mut was_block = true;
        while at + BLOCK_HEAD as u64 <= len {
            if let Some(&&(pool, chunks)) = pools.peek()
                && at >= pool
            {
                at = at.max(pool + chunks * CHUNK_BYTES as u64);
                pools.next();
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
    fn read_block(
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
        let sound = crc32fast::hash(payload) == head.payload_crc;
        Ok(sound.then(|| self.take_block(head, payload, info)).flatten())
    }

    fn take_block(&mut self, head: &BlockHead, payload: &[u8], info: &mut Info) -> Option<()> {
        let mut fields = FieldReader(payload);
        match head.kind {
            kind::INFO => {
                info.runtime_version = fields.text()?;
                info.args = (0..fields.u32()?).map_while(|_| fields.text()).collect();
            }
            kind::REGION => {
                self.regions.insert(head.subject, crate::regions::Defined::read(&mut fields)?);
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
            _ => {}
        }
        Some(())
    }
}

/// A part of a file in memory, so that many small blocks are read at once.
struct Window<'a> {
    file: &'a File,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    const SIZE: u64 = 1 << 20;

    /// `len` bytes at `at`, which lie before `file_len`.
    fn slice(&mut self, at: u64, len: usize, file_len: u64) -> io::Result<&[u8]> {
        let inside = at >= self.start && at + len as u64 <= self.start + self.bytes.len() as u64;
        if !inside {
            let size = Self::SIZE.max(len as u64).min(file_len - at);
            self.bytes.resize(usize::try_from(size).map_err(io::Error::other)?, 0);
            self.start = at;
            self.file.read_exact_at(&mut self.bytes, at)?;
        }
        let from = (at - self.start) as usize;
        Ok(&self.bytes[from..from + len])
    }
}
