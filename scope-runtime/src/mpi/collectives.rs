//! What a rank hands into a collective operation, in bytes.
//!
//! Only arguments that count on the calling rank are looked at: the others may be anything. Where two
//! groups talk to each other there is only the region.

use std::ffi::{c_int, c_void};

use mpi_sys::{
    MPI_Comm, MPI_Datatype, PMPI_Cartdim_get, PMPI_Comm_rank, PMPI_Comm_size,
    PMPI_Dist_graph_neighbors_count, PMPI_Graph_neighbors_count, PMPI_Topo_test, RSMPI_CART,
    RSMPI_DIST_GRAPH, RSMPI_GRAPH,
};

use super::call::{list, message, size};
use super::communicators::{is_inter, peers};
use crate::profile::MessageKind;

/// A number of items, of 32 bits or large.
pub(super) trait Items: Copy + Default + Into<i64> {}

impl<T: Copy + Default + Into<i64>> Items for T {}

/// Records bytes that all ranks share.
pub(super) fn shared(comm: MPI_Comm, bytes: u64) {
    if !is_inter(comm) {
        message(MessageKind::Collective, None, bytes);
    }
}

/// Records bytes that go to one rank or come from it, the peer of all others.
pub(super) fn with_root(comm: MPI_Comm, root: c_int, bytes: u64) {
    if !is_inter(comm) {
        message(MessageKind::Collective, peers(comm).in_world(root), bytes);
    }
}

/// Records what is gathered on one rank: the part of this one, which has it in the receive buffer where
/// the send buffer says so.
pub(super) fn gathered<C: Items>(
    comm: MPI_Comm,
    root: c_int,
    (buffer, count, datatype): (*const c_void, C, MPI_Datatype),
    own: (C, MPI_Datatype),
) {
    if !is_inter(comm) {
        let (count, datatype) = in_use(buffer, (count, datatype), own);
        message(MessageKind::Collective, peers(comm).in_world(root), size(count, datatype));
    }
}

/// Records what is scattered from one rank: the part of this one, which stays in the send buffer where the
/// receive buffer says so.
pub(super) fn scattered<C: Items>(
    comm: MPI_Comm,
    root: c_int,
    own: (C, MPI_Datatype),
    (buffer, count, datatype): (*mut c_void, C, MPI_Datatype),
) {
    gathered(comm, root, (buffer, count, datatype), own);
}

/// Records what a rank hands in, `parts` times: the bytes of its send buffer or, where that is the receive
/// buffer, of that one.
pub(super) fn handed_in<C: Items>(
    comm: MPI_Comm,
    (buffer, count, datatype): (*const c_void, C, MPI_Datatype),
    other: (C, MPI_Datatype),
    parts: c_int,
) {
    if !is_inter(comm) {
        let (count, datatype) = in_use(buffer, (count, datatype), other);
        message(MessageKind::Collective, None, size(count, datatype) * u64::try_from(parts).unwrap_or(0));
    }
}

/// The same for a part of another size to each rank.
///
/// # Safety
/// The lists have as many items as the communicator has ranks, as far as they count.
pub(super) unsafe fn handed_in_parts<C: Items>(
    comm: MPI_Comm,
    (buffer, counts, datatype): (*const c_void, *const C, MPI_Datatype),
    other: (*const C, MPI_Datatype),
) {
    if !is_inter(comm) {
        let (counts, datatype) = in_use(buffer, (counts, datatype), other);
        // SAFETY: the caller vouches for it.
        message(MessageKind::Collective, None, unsafe { sum_of(counts, datatype, others(comm)) });
    }
}

/// The same for parts of other types too.
///
/// # Safety
/// As above.
pub(super) unsafe fn handed_in_types<C: Items>(
    comm: MPI_Comm,
    (buffer, counts, datatypes): (*const c_void, *const C, *const MPI_Datatype),
    other: (*const C, *const MPI_Datatype),
) {
    if !is_inter(comm) {
        let (counts, datatypes) = in_use(buffer, (counts, datatypes), other);
        // SAFETY: the caller vouches for it.
        message(MessageKind::Collective, None, unsafe { sum_of_types(counts, datatypes, others(comm)) });
    }
}

/// What the arguments of a buffer say, or those of the other one where it stands for that.
fn in_use<T>(buffer: *const c_void, own: T, other: T) -> T {
    if is_in_place(buffer) { other } else { own }
}

/// Count and type of this rank's part in lists that count only where the buffer is in place, and 0 where
/// it is not.
///
/// # Safety
/// As above.
pub(super) unsafe fn own_part<C: Items>(
    comm: MPI_Comm,
    buffer: *const c_void,
    counts: *const C,
    datatype: MPI_Datatype,
) -> (C, MPI_Datatype) {
    if !is_in_place(buffer) || is_inter(comm) {
        return (C::default(), datatype);
    }
    let mut rank = 0;
    // SAFETY: the communicator was given to MPI; the rest is ours.
    unsafe { PMPI_Comm_rank(comm, &raw mut rank) };
    // SAFETY: the caller vouches for it.
    let counts = unsafe { list(counts, rank + 1) };
    (counts.last().copied().unwrap_or_default(), datatype)
}

/// The bytes in buffers of these counts.
///
/// # Safety
/// There are as many counts as `parts` says.
pub(super) unsafe fn sum_of(counts: *const impl Items, datatype: MPI_Datatype, parts: c_int) -> u64 {
    // SAFETY: the caller vouches for it.
    let counts = unsafe { list(counts, parts) };
    let items: u64 = counts.iter().map(|&count| u64::try_from(count.into()).unwrap_or(0)).sum();
    if items == 0 { 0 } else { items * size(1, datatype) }
}

/// The bytes in buffers of these counts and types.
///
/// # Safety
/// There are as many of both as `parts` says.
pub(super) unsafe fn sum_of_types(
    counts: *const impl Items,
    datatypes: *const MPI_Datatype,
    parts: c_int,
) -> u64 {
    // SAFETY: the caller vouches for it.
    let (counts, datatypes) = unsafe { (list(counts, parts), list(datatypes, parts)) };
    counts.iter().zip(datatypes).map(|(&count, &datatype)| size(count, datatype)).sum()
}

/// Number of ranks of a communicator.
pub(super) fn others(comm: MPI_Comm) -> c_int {
    let mut size = 0;
    // SAFETY: the communicator was given to MPI; the rest is ours.
    unsafe { PMPI_Comm_size(comm, &raw mut size) };
    size
}

/// Number of neighbours that a rank sends to.
pub(super) fn neighbours(comm: MPI_Comm) -> c_int {
    let (mut topology, mut count) = (0, 0);
    // SAFETY: the communicator was given to MPI, and is asked for the topology that it has; the
    // constants are set when the library is loaded; the rest is ours.
    unsafe {
        PMPI_Topo_test(comm, &raw mut topology);
        if topology == RSMPI_CART {
            PMPI_Cartdim_get(comm, &raw mut count);
            count *= 2;
        } else if topology == RSMPI_GRAPH {
            let mut rank = 0;
            PMPI_Comm_rank(comm, &raw mut rank);
            PMPI_Graph_neighbors_count(comm, rank, &raw mut count);
        } else if topology == RSMPI_DIST_GRAPH {
            let (mut sources, mut weighted) = (0, 0);
            PMPI_Dist_graph_neighbors_count(comm, &raw mut sources, &raw mut count, &raw mut weighted);
        }
    }
    count
}

/// Whether a buffer stands for the other one: `MPI_IN_PLACE` of either library, which is no address.
fn is_in_place(buffer: *const c_void) -> bool {
    buffer.addr() == 1 || buffer.addr() == usize::MAX
}
