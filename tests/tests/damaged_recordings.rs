//! A recording that is cut anywhere, or has any byte changed, is recovered up to there or refused
//! with one clear message: no panic, no hang, no allocation beyond what the file's size explains.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use cargo_scope::collect::{self, RunInfo};
use scope_runtime::profile::LaneId;
use scope_runtime::recording::{Call, Recording};

/// Cut or changed recordings, all kinds together.
const MUTATIONS: usize = 10_000;
/// Bytes in one allocation; a recording of these has 2 MiB.
const LARGEST_ALLOCATION: usize = 8 << 20;

struct Largest;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Largest {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Largest = Largest;

/// Kinds of recordings and what makes them: the program's argument and `SCOPE_EVENT_LIMIT`.
const KINDS: [(&str, &str, &str); 5] = [
    ("sealed", "sealed", "1GiB"),
    ("killed", "killed", "1GiB"),
    ("sessions", "sessions", "1GiB"),
    ("totals only", "sealed", "0"),
    ("limited", "long", "10kB"),
];

#[test]
fn damage_is_recovered_from_or_refused() {
    let home = tempfile::tempdir().unwrap();
    let damage = &|number: usize| {
        let (kind, argument, limit) = KINDS[number];
        let folder = home.path().join(kind);
        let mut program = Command::new(env!("CARGO_BIN_EXE_small_recording"));
        program.arg(argument).env("SCOPE_OUTPUT", &folder).env("SCOPE_EVENT_LIMIT", limit);
        program.status().unwrap();
        let mut damaged = Damaged::new(kind, folder.join("rank0.scope"));
        let mut random = Random(number as u64);
        let share = MUTATIONS / KINDS.len();
        damaged.cut(&mut random, share / 4);
        (0..share - share / 4).for_each(|_| damaged.change_a_byte(&mut random));
    };
    std::thread::scope(|scope| (0..KINDS.len()).for_each(|kind| _ = scope.spawn(move || damage(kind))));
    let largest = LARGEST.load(Relaxed);
    assert!(largest < LARGEST_ALLOCATION, "{largest} bytes at once");
}

/// A recording that is damaged and repaired, again and again.
struct Damaged {
    kind: &'static str,
    path: PathBuf,
    file: File,
    bytes: Vec<u8>,
    /// Places that are not 0, where most of the meaning is.
    filled: Vec<usize>,
    /// Where blocks begin, whose checksums tell of damage.
    blocks: usize,
    /// Of threads and regions.
    names: Vec<String>,
    calls: HashSet<Finished>,
}

/// A finished call: thread and region, as far as their names are known, start and end.
type Finished = (Option<usize>, Option<usize>, i64, i64);

impl Damaged {
    fn new(kind: &'static str, path: PathBuf) -> Damaged {
        let bytes = fs::read(&path).unwrap();
        let filled = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
        let file = File::options().write(true).open(&path).unwrap();
        let mut names = Vec::new();
        let calls = read(&path, |name| {
            let known = names.iter().position(|known| known == name);
            Some(known.unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            }))
        });
        let calls = calls.expect("it is whole").into_iter().collect();
        // Behind the header, the slots for totals and the first chunks.
        let blocks = 4096 + (512 << 10) + (1 << 20);
        assert!(bytes.len() > blocks);
        Damaged { kind, path, file, bytes, filled, blocks, names, calls }
    }

    /// What is there grows with the length.
    fn cut(&mut self, random: &mut Random, cuts: usize) {
        let mut lengths: Vec<_> = (0..cuts).map(|_| self.place(random)).chain([self.bytes.len()]).collect();
        lengths.sort_unstable();
        let mut before = 0;
        for length in lengths.into_iter() {
            self.file.set_len(length as u64).unwrap();
            let calls = self.read().unwrap_or_default();
            self.check_known(&calls, &format!("cut to {length} bytes"));
            // Where the begin of a session is lost, so is what came after it.
            let grows = calls.len() >= before || self.kind == "sessions";
            assert!(grows, "{}: {length} bytes: {} after {before}", self.kind, calls.len());
            before = calls.len();
            self.file.write_all_at(&self.bytes[length..], length as u64).unwrap();
        }
        assert_eq!(before, self.calls.len(), "{}", self.kind);
    }

    fn change_a_byte(&mut self, random: &mut Random) {
        let at = self.place(random);
        let bits = 1 + random.below(255) as u8;
        self.file.write_all_at(&[self.bytes[at] ^ bits], at as u64).unwrap();
        let calls = self.read().unwrap_or_default();
        if at >= self.blocks {
            self.check_known(&calls, &format!("byte {at} changed by {bits:#x}"));
        }
        self.file.write_all_at(&self.bytes[at..=at], at as u64).unwrap();
    }

    fn read(&self) -> Option<Vec<Finished>> {
        read(&self.path, |name| self.names.iter().position(|known| known == name))
    }

    /// Calls that are told as finished did finish, at these times.
    fn check_known(&self, calls: &[Finished], damage: &str) {
        for call in calls.iter().filter(|call| call.0.is_some() && call.1.is_some()) {
            assert!(self.calls.contains(call), "{}: {damage}: {call:?}", self.kind);
        }
    }

    fn place(&self, random: &mut Random) -> usize {
        if random.below(4) == 0 {
            return random.below(self.bytes.len());
        }
        self.filled[random.below(self.filled.len())]
    }
}

/// The finished calls of a recording as far as it can be read; `None` where it is refused.
fn read(path: &Path, mut known: impl FnMut(&str) -> Option<usize>) -> Option<Vec<Finished>> {
    let recording = match Recording::open(path) {
        Ok(recording) => recording,
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("rank0.scope") && text.lines().count() == 1, "{text}");
            return None;
        }
    };
    let (lanes, regions) = (&recording.profile().lanes, &recording.profile().regions);
    let regions: Vec<_> = regions.iter().map(|region| known(&region.name)).collect();
    let mut finished = Vec::new();
    for (lane, id) in lanes.iter().zip((0..).map(LaneId)) {
        let calls = recording.calls(id);
        let thread = known(&lane.name);
        let call = |call: &Call| (thread, regions[call.region.0 as usize], call.start_ns, call.end_ns);
        finished.extend(calls.iter().filter(|call| !call.open).map(call));
    }
    if let Err(error) = collect::merge(&[(path, recording)], &RunInfo::default()) {
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
    Some(finished)
}

/// SplitMix64: the same numbers on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % bound as u64) as usize
    }
}
