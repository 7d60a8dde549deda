//! The recording's file as the running program sees it: a mapped header and appended blocks.
//!
//! Space is handed out by one atomic counter in the header, so any thread can append at any
//! time without a lock. What was appended is safe against the end of the process.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::compiler_fence;
use std::sync::{Arc, Mutex};

use crate::clock::{ClockKind, ClockPair};
use crate::environment::Place;
use crate::format::{self, BLOCK_ALIGN, BLOCK_HEAD, BlockHead, Header, PAGE, kind};
use crate::os::{self, OwnFile};

/// Blocks up to this size are put together in memory and written at once.
const SMALL: usize = 4096;

pub(crate) struct Writer {
    file: Arc<OwnFile>,
    path: PathBuf,
    header: &'static Header,
    totals: Mutex<TotalsSlots>,
    /// Held while a sign of life is written.
    beating: Mutex<()>,
}

/// Two slots of `size` bytes each, one after the other.
struct TotalsSlots {
    address: Mapped,
    size: usize,
}

impl TotalsSlots {
    /// Writes a block, which has room, into the slot whose turn it is.
    fn write(&self, sequence: u64, payload: &[u8]) {
        let head = BlockHead::of(kind::TOTALS, 0, sequence, &[payload]).to_bytes();
        assert!(payload.len() + BLOCK_HEAD <= self.size);
        // SAFETY: the slot is mapped for good, is longer than head and payload, and is written under
        // the lock only. A head of zeros comes first: half a payload must not look like a whole one.
        unsafe {
            let slot = self.address.0.add((sequence % 2) as usize * self.size);
            slot.write_bytes(0, BLOCK_HEAD);
            compiler_fence(SeqCst);
            slot.add(BLOCK_HEAD).copy_from_nonoverlapping(payload.as_ptr(), payload.len());
            compiler_fence(SeqCst);
            slot.copy_from_nonoverlapping(head.as_ptr(), BLOCK_HEAD);
        }
    }

    /// Leaves nothing behind that a reader would take for a damaged block.
    fn clear(self) {
        // SAFETY: both slots are mapped for good, and written under the lock only.
        unsafe { self.address.0.write_bytes(0, 2 * self.size) };
    }
}

/// The address of a mapping that is never undone.
struct Mapped(*mut u8);

// SAFETY: the mapping belongs to no thread, and who writes to it holds a lock.
unsafe impl Send for Mapped {}

impl Writer {
    /// Creates the recording of this process in `folder`, which is made if need be.
    ///
    /// # Errors
    /// When the folder or the file cannot be made or has no room; nothing is left behind then.
    pub(crate) fn create(folder: &Path, place: Place, clock: ClockKind) -> io::Result<Writer> {
        std::fs::create_dir_all(folder)?;
        let (file, path) = create_exclusively(folder, place.rank)?;
        let prepared = OwnFile::new(file, &path).map(Arc::new).and_then(|file| {
            file.with(|file| os::reserve(file, 0, PAGE))?;
            file.with(|file| os::write_all_at(file, &fixed_head(place, clock), 0))?;
            let address = os::map_shared(&file, 0, PAGE as usize)?;
            Ok((file, address))
        });
        match prepared {
            Ok((file, address)) => {
                // SAFETY: the page is mapped for good and holds a header: atomics and numbers, for
                // which any bytes are a value; nothing writes to the parts that are not atomic.
                let header = unsafe { &*address.cast::<Header>() };
                header.end.store(PAGE, Relaxed);
                header.parent_pid.store(os::parent_pid(), Relaxed);
                let totals = Mutex::new(TotalsSlots { address: Mapped(std::ptr::null_mut()), size: 0 });
                Ok(Writer { file, path, header, totals, beating: Mutex::default() })
            }
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(error)
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn header(&self) -> &'static Header {
        self.header
    }

    pub(crate) fn file(&self) -> &Arc<OwnFile> {
        &self.file
    }

    /// Reserves `len` bytes at an offset that is a multiple of `align`.
    pub(crate) fn allocate(&self, len: u64, align: u64) -> u64 {
        let after = |end: u64| end.next_multiple_of(align);
        let take = |end: u64| Some((after(end) + len).next_multiple_of(BLOCK_ALIGN));
        let end = self.header.end.fetch_update(Relaxed, Relaxed, take).expect("the update is unconditional");
        after(end)
    }

    /// Gives back what was allocated and not used, unless something was allocated behind it since.
    pub(crate) fn free(&self, at: u64, len: u64) {
        let end = (at + len).next_multiple_of(BLOCK_ALIGN);
        let _ = self.header.end.compare_exchange(end, at, Relaxed, Relaxed);
    }

    /// Appends a block whose payload is the given parts.
    ///
    /// The head is written last, so that a block with a head is whole.
    pub(crate) fn append(&self, kind: u32, subject: u32, sequence: u64, parts: &[&[u8]]) -> io::Result<()> {
        let head = BlockHead::of(kind, subject, sequence, parts);
        let at = self.allocate(head.span(), BLOCK_ALIGN);
        let write = |file: &File| {
            if head.len as usize + BLOCK_HEAD <= SMALL {
                let mut bytes = head.to_bytes().to_vec();
                parts.iter().for_each(|part| bytes.extend_from_slice(part));
                return os::write_all_at(file, &bytes, at);
            }
            let mut offset = at + BLOCK_HEAD as u64;
            for part in parts {
                os::write_all_at(file, part, offset)?;
                offset += part.len() as u64;
            }
            os::write_all_at(file, &head.to_bytes(), at)
        };
        os::without_file_size_signal(|| self.file.with(write))
    }

    /// Writes a block into one of the two slots for totals, in turn; a kill leaves the other whole.
    /// The slots are mapped, so that a full disk or a limit met later does not matter.
    ///
    /// # Errors
    /// When the slots are too small and larger ones cannot be had; the old ones stay as they are.
    pub(crate) fn write_totals(&self, sequence: u64, payload: &[u8]) -> io::Result<()> {
        let needed = payload.len() + BLOCK_HEAD;
        let mut slots = crate::lock(&self.totals);
        if slots.size < needed {
            let (larger, place) = self.reserve_totals(needed)?;
            larger.write(sequence, payload);
            // Only now: until there is something in the new ones, the old ones count.
            self.header.totals.store(place, Release);
            std::mem::replace(&mut *slots, larger).clear();
        } else {
            slots.write(sequence, payload);
        }
        Ok(())
    }

    /// Makes room for totals of `needed` bytes, for the case that the disk is full later.
    pub(crate) fn prepare_totals(&self, needed: usize) -> io::Result<()> {
        let (slots, place) = self.reserve_totals(needed)?;
        self.header.totals.store(place, Release);
        *crate::lock(&self.totals) = slots;
        Ok(())
    }

    /// Two slots, and what the header is to say of them.
    fn reserve_totals(&self, needed: usize) -> io::Result<(TotalsSlots, u64)> {
        let size = needed.next_power_of_two().max(PAGE as usize);
        let at = self.allocate(2 * size as u64, PAGE);
        self.file.with(|file| os::reserve(file, at, 2 * size as u64))?;
        let address = os::map_shared(&self.file, at, 2 * size)?;
        Ok((TotalsSlots { address: Mapped(address), size }, at + u64::from(size.ilog2())))
    }

    /// Whether somebody has removed the file: what is written is lost with this process then.
    pub(crate) fn is_removed(&self) -> bool {
        self.file.is_removed()
    }

    /// Notes calls that went into totals.
    pub(crate) fn add_folded(&self, calls: u64) {
        self.header.folded_calls.fetch_add(calls, Relaxed);
    }

    /// Writes a sign of life: the newest moment known on both clocks.
    ///
    /// Two slots in turn, so that one is whole whenever the process is killed.
    pub(crate) fn beat(&self, now: ClockPair) {
        let _one_at_a_time = crate::lock(&self.beating);
        let slot = (self.header.last_beat.load(Relaxed) % 2) as usize;
        self.header.beats[slot][0].store(now.ticks, Relaxed);
        self.header.beats[slot][1].store(now.ns.cast_unsigned(), Relaxed);
        self.header.last_beat.store(slot as u32 + 1, Release);
        os::write_back();
    }

    /// Notes calls that could not be kept.
    pub(crate) fn add_lost(&self, calls: u64) {
        self.header.lost_calls.fetch_add(calls, Relaxed);
    }

    /// Notes what a region costs, in ps.
    pub(crate) fn set_region_cost(&self, cost_ps: u32) {
        self.header.region_cost_ps.store(cost_ps, Relaxed);
    }

    /// Says in the header whether the program has ended its recording.
    pub(crate) fn set_sealed(&self, sealed: bool) {
        let state = if sealed { format::STATE_SEALED } else { format::STATE_OPEN };
        self.header.state.store(state, Release);
        os::write_back();
    }
}

/// The first of `rank<N>.scope`, `rank<N>.<pid>.0.scope`, ... that does not exist yet.
fn create_exclusively(folder: &Path, rank: u32) -> io::Result<(File, PathBuf)> {
    let pid = std::process::id();
    let first = std::iter::once(format!("rank{rank}.scope"));
    let others = (0u32..).map(|k| format!("rank{rank}.{pid}.{k}.scope"));
    for name in first.chain(others) {
        let path = folder.join(name);
        match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            outcome => return Ok((outcome?, path)),
        }
    }
    unreachable!("the names do not end")
}

fn fixed_head(place: Place, clock: ClockKind) -> Vec<u8> {
    let mut head = format::MAGIC.to_vec();
    let numbers = [format::FORMAT_VERSION, clock as u32, std::process::id(), place.rank, place.ranks];
    numbers.iter().for_each(|number| head.extend(number.to_le_bytes()));
    debug_assert_eq!(head.len(), format::FIXED_LEN);
    head.extend(crc32fast::hash(&head).to_le_bytes());
    head
}
