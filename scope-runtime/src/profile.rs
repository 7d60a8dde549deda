//! What one rank recorded: its regions, lanes and totals, as values.
//!
//! A [`Profile`] is made by replaying a recording, inside the program at finalize or later by
//! `cargo scope`; it holds no event, so its size does not depend on the length of the run. Only
//! [`Profile::collectives`] does, which a program does not keep of itself.

use crate::totals::{PathId, PathTree};

/// Index of a region in [`Profile::regions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u32);

/// Index of a lane in [`Profile::lanes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u32);

/// A named place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The name that users see, unique within a profile.
    pub name: String,
    /// Source file as the compiler named it; empty when unknown.
    pub file: String,
    /// 1-based line; 0 when unknown.
    pub line: u32,
}

/// One sequential flow of control: a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Name of the thread; empty when it has none.
    pub name: String,
    /// Thread id given by the operating system; 0 when unknown.
    pub os_thread: u64,
    /// First time seen on this lane, ns on the recording clock.
    pub first_ns: i64,
    /// Last time seen on this lane, ns on the recording clock.
    pub last_ns: i64,
    /// Whether the thread had ended when recording ended.
    pub ended: bool,
    /// CPU time of the thread in ns at its end; `None` where it had not ended.
    pub cpu_ns: Option<i64>,
}

/// What one rank recorded.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// MPI rank, 0 outside MPI.
    pub rank: u32,
    /// Regions that have at least one call, in order of first call.
    pub regions: Vec<Region>,
    /// Lanes in order of their start.
    pub lanes: Vec<Lane>,
    /// Totals per call path, over all lanes together.
    pub paths: PathTree,
    /// Calls that could not be kept; 0 in a complete profile.
    pub lost_calls: u64,
    /// Calls still open when recording ended, cut at that time and counted.
    pub open_calls: u64,
    /// Calls whose end lay before their start (a clock that stepped back); kept with 0 ns.
    pub faulty_calls: u64,
    /// Where the timeline ends, ns on the recording clock: calls that began later are in the totals
    /// only (the event limit was met, the disk was full, or no events were wanted). `None` when all
    /// calls are in it.
    pub timeline_end_ns: Option<i64>,
    /// What was sent, received, read and written, per path, kind and peer, in this order.
    pub messages: Vec<Messages>,
    /// Collective calls, lane by lane, as far as the timeline goes; none in what a program makes of its own
    /// recording, where they would take memory.
    pub collectives: Vec<CollectiveCall>,
    /// First and last time of the recording, ns on the recording clock.
    pub start_ns: i64,
    /// See [`Profile::start_ns`].
    pub end_ns: i64,
}

/// What became of the bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageKind {
    /// Sent to a peer, or put into its memory.
    Sent,
    /// Received from a peer, or got from its memory.
    Received,
    /// Handed into a collective operation, or taken from one that has a single source, the peer.
    Collective,
    /// Written to a file.
    Written,
    /// Read from a file.
    Read,
}

impl MessageKind {
    /// All, in their order.
    pub const ALL: [MessageKind; 5] = [
        MessageKind::Sent,
        MessageKind::Received,
        MessageKind::Collective,
        MessageKind::Written,
        MessageKind::Read,
    ];
}

/// The messages of one kind that calls on one path exchanged with one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// Call path, in [`Profile::paths`].
    pub path: PathId,
    /// What became of them.
    pub kind: MessageKind,
    /// Rank of the peer in all ranks of the job; `None` where there is no single one.
    pub peer: Option<u32>,
    /// How many, and what they hold.
    pub sizes: MessageSizes,
}

/// Number and sizes of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSizes {
    /// Number of messages.
    pub messages: u64,
    /// Sum of their bytes.
    pub bytes: u64,
    /// Bytes of the smallest.
    pub min_bytes: u64,
    /// Bytes of the largest.
    pub max_bytes: u64,
}

impl Default for MessageSizes {
    fn default() -> MessageSizes {
        MessageSizes { messages: 0, bytes: 0, min_bytes: u64::MAX, max_bytes: 0 }
    }
}

impl MessageSizes {
    /// Adds others.
    pub fn add(&mut self, other: &MessageSizes) {
        self.messages = self.messages.saturating_add(other.messages);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.min_bytes = self.min_bytes.min(other.min_bytes);
        self.max_bytes = self.max_bytes.max(other.max_bytes);
    }

    /// One message.
    pub(crate) fn one(bytes: u64) -> MessageSizes {
        MessageSizes { messages: 1, bytes, min_bytes: bytes, max_bytes: bytes }
    }
}

/// A call of a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveCall {
    /// Call path, in [`Profile::paths`].
    pub path: PathId,
    /// The communicator: the same number on all of its ranks.
    pub communicator: u32,
    /// Number of the operation on the communicator, from 0; the same on all of its ranks.
    pub number: u32,
    /// Start, ns on the recording clock.
    pub start_ns: i64,
    /// End, ns on the recording clock.
    pub end_ns: i64,
}

impl Profile {
    /// A copy without the collective calls, of which there may be many.
    #[cfg(feature = "profile-file")]
    pub(crate) fn without_collectives(&self) -> Profile {
        Profile {
            rank: self.rank,
            regions: self.regions.clone(),
            lanes: self.lanes.clone(),
            paths: self.paths.clone(),
            messages: self.messages.clone(),
            collectives: Vec::new(),
            ..*self
        }
    }

    /// The regions that have calls cut at the end of recording, in the order of [`Profile::regions`].
    pub fn open_regions(&self) -> Vec<&Region> {
        let mut ids: Vec<_> =
            self.paths.nodes().iter().filter(|path| path.open > 0).map(|path| path.region).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.iter().map(|RegionId(id)| &self.regions[*id as usize]).collect()
    }
}
