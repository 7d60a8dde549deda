//! Who is who: ranks of a communicator as ranks of the job, and a number for each communicator that is
//! the same on all of its ranks, so that their calls can be compared afterwards.
//!
//! What is known of a communicator hangs from it as an attribute, and is gone with it.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use mpi_sys::{
    MPI_Comm, MPI_Group, PMPI_Comm_create_keyval, PMPI_Comm_get_attr, PMPI_Comm_group,
    PMPI_Comm_remote_group, PMPI_Comm_set_attr, PMPI_Comm_test_inter, PMPI_Group_free, PMPI_Group_size,
    PMPI_Group_translate_ranks, RSMPI_COMM_NULL, RSMPI_COMM_WORLD,
};

use super::requests::number_of;
use crate::lock;

/// The ranks of a communicator, as others see them.
#[derive(Clone)]
pub(super) enum Peers {
    /// Those of the job.
    World,
    Some(Arc<Known>),
}

impl Peers {
    /// The rank in the job; `None` for a process that is not in it.
    pub(super) fn in_world(&self, rank: c_int) -> Option<u32> {
        let rank = match self {
            Peers::World => rank,
            Peers::Some(known) => *known.ranks.get(usize::try_from(rank).ok()?)?,
        };
        u32::try_from(rank).ok()
    }

    fn collectives(&self) -> &AtomicU32 {
        static WORLD: AtomicU32 = AtomicU32::new(0);
        match self {
            Peers::World => &WORLD,
            Peers::Some(known) => &known.collectives,
        }
    }
}

/// What is known of a communicator other than that of all ranks.
pub(super) struct Known {
    /// The same number on all of its ranks.
    number: u32,
    /// The rank in the job of each rank one can send to; negative where it has none.
    ranks: Vec<c_int>,
    /// Whether it connects two groups.
    is_inter: bool,
    /// Collective calls so far.
    collectives: AtomicU32,
}

/// How many communicators had the same ranks so far, by a hash of those.
static SAME_RANKS: Mutex<Option<HashMap<u32, u32>>> = Mutex::new(None);

/// Which one of those with its ranks a communicator is that is being made, by its handle.
static BEGUN: Mutex<Option<HashMap<u64, u32>>> = Mutex::new(None);

/// The ranks of a communicator.
pub(super) fn peers(comm: MPI_Comm) -> Peers {
    // SAFETY: constants of the library, which are set when it is loaded.
    let (world, null) = unsafe { (RSMPI_COMM_WORLD, RSMPI_COMM_NULL) };
    if comm == world || comm == null {
        return Peers::World;
    }
    Peers::Some(known(comm).unwrap_or_else(|| register(comm)))
}

/// What was registered of a communicator.
fn known(comm: MPI_Comm) -> Option<Arc<Known>> {
    let mut known: *mut c_void = std::ptr::null_mut();
    let mut is_known = 0;
    // SAFETY: the communicator was given to MPI; the rest is ours.
    unsafe { PMPI_Comm_get_attr(comm, key(), (&raw mut known).cast(), &raw mut is_known) };
    if is_known == 0 {
        return None;
    }
    let known: *const Known = known.cast_const().cast();
    // SAFETY: the attribute is what `register` made, which sets it once. It holds a count of its own until
    // it is deleted with the communicator, which the caller still uses.
    unsafe {
        Arc::increment_strong_count(known);
        Some(Arc::from_raw(known))
    }
}

/// Learns of a communicator that was just made. All of its ranks do, in the same order.
pub(super) fn made(comm: *const MPI_Comm) {
    // SAFETY: a call of MPI that succeeded has written to it.
    let comm = unsafe { *comm };
    peers(comm);
}

/// Learns of a communicator with the ranks of `like` that is being made and may not be used yet: ranks may use
/// several such in another order than they have begun to make them.
pub(super) fn begun(comm: *const MPI_Comm, like: MPI_Comm) {
    let nth = next_of(hash_of(&ranks_in_world(like, is_inter(like))));
    // SAFETY: a call of MPI that succeeded has written to it.
    lock(&BEGUN).get_or_insert_default().insert(number_of(unsafe { *comm }), nth);
}

/// A communicator is freed, maybe before it was used.
pub(super) fn freed(comm: *const MPI_Comm) {
    if let Some(begun) = lock(&BEGUN).as_mut() {
        // SAFETY: it was given to MPI.
        begun.remove(&number_of(unsafe { *comm }));
    }
}

/// Communicator and number of a collective call that begins; `None` where there is nobody to wait for,
/// or no side that waits for the other.
pub(super) fn begin_collective(comm: MPI_Comm) -> Option<(u32, u32)> {
    let peers = peers(comm);
    let number = peers.collectives().fetch_add(1, Relaxed);
    match peers {
        Peers::World => Some((0, number)),
        Peers::Some(known) if known.is_inter || known.ranks.len() < 2 => None,
        Peers::Some(known) => Some((known.number, number)),
    }
}

fn register(comm: MPI_Comm) -> Arc<Known> {
    static REGISTERING: Mutex<()> = Mutex::new(());
    let _registering = lock(&REGISTERING);
    // Another thread may have been first: an attribute that is set again deletes what it was, which others
    // may be about to use.
    if let Some(known) = known(comm) {
        return known;
    }
    let is_inter = is_inter(comm);
    let ranks = ranks_in_world(comm, is_inter);
    let hash = hash_of(&ranks);
    let begun = lock(&BEGUN).as_mut().and_then(|begun| begun.remove(&number_of(comm)));
    let nth = begun.unwrap_or_else(|| next_of(hash));
    // 0 is the communicator of all ranks.
    let number = hash.wrapping_add(nth.wrapping_mul(0x9e37_79b1)) & (u32::MAX >> 1) | 1;
    let known = Arc::new(Known { number, ranks, is_inter, collectives: AtomicU32::new(0) });
    let attribute = Arc::into_raw(Arc::clone(&known)).cast_mut().cast();
    // SAFETY: the communicator takes the count of its own, which `forget` gives back.
    unsafe { PMPI_Comm_set_attr(comm, key(), attribute) };
    known
}

/// Whether a communicator connects two groups.
pub(super) fn is_inter(comm: MPI_Comm) -> bool {
    let mut is_inter = 0;
    // SAFETY: the communicator was given to MPI; the rest is ours.
    unsafe { PMPI_Comm_test_inter(comm, &raw mut is_inter) };
    is_inter != 0
}

fn hash_of(ranks: &[c_int]) -> u32 {
    crc32fast::hash(&ranks.iter().flat_map(|rank| rank.to_le_bytes()).collect::<Vec<_>>())
}

/// How many communicators have ranks with this hash, with one more.
fn next_of(hash: u32) -> u32 {
    let mut same = lock(&SAME_RANKS);
    let nth = same.get_or_insert_default().entry(hash).or_default();
    *nth += 1;
    *nth
}

/// Ranks in the job of those that a communicator sends to.
fn ranks_in_world(comm: MPI_Comm, is_inter: bool) -> Vec<c_int> {
    let group_of = |comm, remote: bool| {
        let mut group = std::mem::MaybeUninit::<MPI_Group>::uninit();
        // SAFETY: the communicator is one, and the call writes the group.
        unsafe {
            if remote {
                PMPI_Comm_remote_group(comm, group.as_mut_ptr());
            } else {
                PMPI_Comm_group(comm, group.as_mut_ptr());
            }
            group.assume_init()
        }
    };
    // SAFETY: the groups are freed once, after their last use; the lists have the length that is said.
    unsafe {
        let (mut theirs, mut world) = (group_of(comm, is_inter), group_of(RSMPI_COMM_WORLD, false));
        let mut size = 0;
        PMPI_Group_size(theirs, &raw mut size);
        let from: Vec<c_int> = (0..size).collect();
        let mut to = vec![-1; from.len()];
        PMPI_Group_translate_ranks(theirs, size, from.as_ptr(), world, to.as_mut_ptr());
        PMPI_Group_free(&raw mut theirs);
        PMPI_Group_free(&raw mut world);
        to
    }
}

/// The attribute's key.
fn key() -> c_int {
    static KEY: OnceLock<c_int> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the functions have the signatures that MPI wants, and live as long as the program.
        unsafe {
            PMPI_Comm_create_keyval(Some(do_not_copy), Some(forget), &raw mut key, std::ptr::null_mut())
        };
        key
    })
}

/// A copy of a communicator is another one.
unsafe extern "C" fn do_not_copy(
    _: MPI_Comm,
    _: c_int,
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_void,
    copied: *mut c_int,
) -> c_int {
    // SAFETY: MPI gives a place for the answer.
    unsafe { *copied = 0 };
    0
}

unsafe extern "C" fn forget(_: MPI_Comm, _: c_int, known: *mut c_void, _: *mut c_void) -> c_int {
    // SAFETY: the attribute is what `register` made, and is deleted once.
    drop(unsafe { Arc::<Known>::from_raw(known.cast_const().cast()) });
    0
}
