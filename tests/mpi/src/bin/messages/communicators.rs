//! Communicators with other ranks than those of the job, connected groups, and neighbours.

use std::ffi::c_int;

use mpi::ffi::*;
use scope_runtime::scope;

use crate::tally::*;

pub(crate) fn all() {
    let halves = halves();
    connected(halves);
    turned_round();
    copies();
    paused();
    neighbours();
    free(halves);
}

fn free(mut comm: MPI_Comm) {
    call!(MPI_Comm_free(&mut comm));
}

/// Even and odd ranks apart: 0 and 2, 1 and 3.
#[scope]
fn halves() -> MPI_Comm {
    let mut half = world();
    call!(MPI_Comm_split(world(), rank() % 2, rank(), &mut half));
    let mut data = [rank(); 3];
    if rank_in(half) == 0 {
        call!(MPI_Send(from(&data), 3, int(), 1, 0, half));
    } else {
        call!(MPI_Recv(into(&mut data), 3, int(), anybody(), 0, half, no_status()));
        assert_eq!(data, [rank() - 2; 3]);
    }
    call!(MPI_Bcast(into(&mut data), 2, int(), 1, half));
    // The communicator is freed while a receive on it is under way.
    let (mut copy, mut request) = (half, no_request());
    call!(MPI_Comm_dup(half, &mut copy));
    let other = 1 - rank_in(half);
    call!(MPI_Irecv(into(&mut data), 3, int(), other, 0, copy, &mut request));
    call!(MPI_Send(from(&[7; 1]), 1, int(), other, 0, copy));
    call!(MPI_Comm_free(&mut copy));
    call!(MPI_Wait(&mut request, no_status()));
    assert_eq!(data[0], 7);
    half
}

/// A call that one rank does not record; those after it belong together all the same.
#[scope]
fn paused() {
    #[scope]
    fn after() {
        call!(MPI_Barrier(world()));
    }
    if rank() == 0 {
        scope_runtime::pause();
        // SAFETY: MPI has begun.
        unsafe { MPI_Barrier(world()) };
        scope_runtime::resume();
    } else {
        call!(MPI_Barrier(world()));
    }
    after();
}

/// Two copies that are made at the same time, and that ranks use in one order or the other.
#[scope]
fn copies() {
    #[scope]
    fn first(mut copy: MPI_Comm) {
        call!(MPI_Barrier(copy));
        call!(MPI_Comm_free(&mut copy));
    }
    #[scope]
    fn second(mut copy: MPI_Comm) {
        call!(MPI_Barrier(copy));
        call!(MPI_Comm_free(&mut copy));
    }
    let (mut copies, mut requests) = ([world(); 2], [no_request(); 2]);
    call!(MPI_Comm_idup(world(), &mut copies[0], &mut requests[0]));
    call!(MPI_Comm_idup(world(), &mut copies[1], &mut requests[1]));
    call!(MPI_Waitall(2, requests.as_mut_ptr(), no_status()));
    let (one, other) = if rank() % 2 == 0 { (0, 1) } else { (1, 0) };
    call!(MPI_Ibarrier(copies[one], &mut requests[0]));
    call!(MPI_Ibarrier(copies[other], &mut requests[1]));
    call!(MPI_Waitall(2, requests.as_mut_ptr(), no_status()));
    first(copies[0]);
    second(copies[1]);
}

/// Each rank talks to its counterpart in the other half: 0 with 1, 2 with 3.
#[scope]
fn connected(half: MPI_Comm) {
    let mut both = half;
    call!(MPI_Intercomm_create(half, 0, world(), 1 - rank() % 2, 5, &mut both));
    let (own, mut theirs) = ([rank(); 2], [-1; 2]);
    let (mut request, other) = (no_request(), rank_in(half));
    call!(MPI_Irecv(into(&mut theirs), 2, int(), other, 0, both, &mut request));
    call!(MPI_Send(from(&own), 2, int(), other, 0, both));
    call!(MPI_Wait(&mut request, no_status()));
    assert_eq!(theirs, [rank() ^ 1; 2]);
    // From rank 0 to the odd ones.
    let root = match rank() {
        0 => MPI_ROOT as c_int,
        2 => nobody(),
        _ => 0,
    };
    let mut data = [rank()];
    call!(MPI_Bcast(into(&mut data), 1, int(), root, both));
    assert_eq!(data, [if rank() % 2 == 1 { 0 } else { rank() }]);
    call!(MPI_Barrier(both));
    // Even ranks first: 0, 2, 1, 3.
    let mut merged = both;
    call!(MPI_Intercomm_merge(both, rank() % 2, &mut merged));
    let mut of_second = [rank()];
    call!(MPI_Bcast(into(&mut of_second), 1, int(), 1, merged));
    assert_eq!(of_second, [2]);
    free(merged);
    free(both);
}

/// Ranks 3, 2 and 1 as ranks 0, 1 and 2.
#[scope]
fn turned_round() {
    let (mut all, mut group, mut comm) = (null_group(), null_group(), world());
    // SAFETY: makes a group of ranks that are there.
    unsafe {
        assert_eq!(MPI_Comm_group(world(), &mut all), 0);
        assert_eq!(MPI_Group_incl(all, 3, [3, 2, 1].as_ptr(), &mut group), 0);
    }
    call!(MPI_Comm_create(world(), group, &mut comm));
    // SAFETY: a constant of the library.
    assert_eq!(comm == unsafe { RSMPI_COMM_NULL }, rank() == 0);
    if rank() > 0 {
        let mut data = [rank()];
        match rank() {
            3 => call!(MPI_Ssend(from(&data), 1, int(), 2, 0, comm)),
            1 => call!(MPI_Recv(into(&mut data), 1, int(), 0, 0, comm, no_status())),
            _ => {}
        }
        call!(MPI_Bcast(into(&mut data), 1, int(), 1, comm));
        assert_eq!(data, [2]);
        free(comm);
    }
    // SAFETY: nothing uses the groups any more.
    unsafe {
        MPI_Group_free(&mut group);
        MPI_Group_free(&mut all);
    }
}

fn null_group() -> MPI_Group {
    // SAFETY: a constant of the library.
    unsafe { RSMPI_GROUP_NULL }
}

/// A ring, and then a square of two by two, of which each row is a communicator too.
#[scope]
fn neighbours() {
    let mut ring = world();
    call!(MPI_Cart_create(world(), 1, [4].as_ptr(), [1].as_ptr(), 0, &mut ring));
    let (own, mut theirs) = ([rank(); 6], [-1; 6]);
    call!(MPI_Neighbor_allgather(from(&own), 3, int(), into(&mut theirs), 3, int(), ring));
    assert_eq!(theirs, [[before(); 3], [next(); 3]].concat()[..]);
    call!(MPI_Neighbor_alltoall(from(&own), 2, int(), into(&mut theirs), 2, int(), ring));
    let mut request = no_request();
    call!(MPI_Ineighbor_alltoall(from(&own), 1, int(), into(&mut theirs), 1, int(), ring, &mut request));
    call!(MPI_Wait(&mut request, no_status()));
    let (counts, places) = ([1, 2], [0, 1]);
    let theirs_of = ([2, 1], [0, 2]);
    call!(MPI_Neighbor_alltoallv(
        from(&own),
        counts.as_ptr(),
        places.as_ptr(),
        int(),
        into(&mut theirs),
        theirs_of.0.as_ptr(),
        theirs_of.1.as_ptr(),
        int(),
        ring
    ));
    assert_eq!(theirs[..3], [before(), before(), next()]);
    free(ring);

    let (mut square, mut row) = (world(), world());
    call!(MPI_Cart_create(world(), 2, [2, 2].as_ptr(), [0, 0].as_ptr(), 0, &mut square));
    call!(MPI_Neighbor_alltoall(from(&own), 0, int(), into(&mut theirs), 0, int(), square));
    call!(MPI_Cart_sub(square, [0, 1].as_ptr(), &mut row));
    let mut data = [rank()];
    call!(MPI_Sendrecv_replace(
        into(&mut data),
        1,
        int(),
        1 - rank_in(row),
        0,
        1 - rank_in(row),
        0,
        row,
        no_status(),
    ));
    assert_eq!(data, [rank() ^ 1]);
    free(row);
    free(square);
}
