//! Collective operations on all ranks, waiting and not, with buffers of their own and in place.

use std::ffi::{c_int, c_void};

use mpi::ffi::*;
use scope_runtime::scope;

use crate::tally::*;

const ROOT: c_int = 1;
/// Parts of ranks where they differ.
const COUNTS: [c_int; 4] = [1, 2, 3, 4];
const PLACES: [c_int; 4] = [0, 1, 3, 6];
/// The same number of numbers for each rank.
const SAME: [c_int; 4] = [2; 4];
const SAME_PLACES: [c_int; 4] = [0, 2, 4, 6];

/// Calls an operation in both forms. The arguments are those of the one that waits.
macro_rules! both {
    ($name:ident, $nonblocking:ident, ($($arg:expr),* $(,)?)) => {{
        call!($name($($arg),*));
        let mut request = no_request();
        call!($nonblocking($($arg,)* &mut request));
        call!(MPI_Wait(&mut request, no_status()));
    }};
}

pub(crate) fn all() {
    both!(MPI_Barrier, MPI_Ibarrier, (world()));
    broadcast();
    reductions();
    reductions_in_place();
    gather();
    gather_in_place();
    scatter();
    scatter_in_place();
    gather_for_all();
    gather_for_all_in_place();
    all_to_all();
    all_to_all_in_place();
    reduce_and_scatter();
    on_one_rank();
}

fn is_root() -> bool {
    rank() == ROOT
}

#[scope]
fn broadcast() {
    let mut data = if is_root() { [5; 5] } else { [0; 5] };
    both!(MPI_Bcast, MPI_Ibcast, (into(&mut data), 5, int(), ROOT, world()));
    assert_eq!(data, [5; 5]);
}

#[scope]
fn reductions() {
    let (own, mut sums) = ([rank(); 3], [0; 3]);
    both!(MPI_Reduce, MPI_Ireduce, (from(&own), into(&mut sums), 3, int(), sum(), ROOT, world()));
    assert_eq!(sums, if is_root() { [6; 3] } else { [0; 3] });
    both!(MPI_Allreduce, MPI_Iallreduce, (from(&own), into(&mut sums), 2, int(), sum(), world()));
    assert_eq!(sums[..2], [6; 2]);
    both!(MPI_Scan, MPI_Iscan, (from(&own), into(&mut sums), 1, int(), sum(), world()));
    assert_eq!(sums[0], [0, 1, 3, 6][rank() as usize]);
    sums[0] = 0;
    both!(MPI_Exscan, MPI_Iexscan, (from(&own), into(&mut sums), 1, int(), sum(), world()));
    assert_eq!(sums[0], [0, 0, 1, 3][rank() as usize]);
}

#[scope]
fn reductions_in_place() {
    let mut numbers = [1; 3];
    let send = if is_root() { in_place() } else { into(&mut numbers) };
    call!(MPI_Reduce(send, into(&mut numbers), 3, int(), sum(), ROOT, world()));
    assert_eq!(numbers, if is_root() { [4; 3] } else { [1; 3] });
    numbers = [1; 3];
    both!(MPI_Allreduce, MPI_Iallreduce, (in_place(), into(&mut numbers), 2, int(), sum(), world()));
    assert_eq!(numbers, [16, 16, 1]);
}

#[scope]
fn gather() {
    let own = [rank(); 4];
    let mut of_all = [-1; 10];
    both!(MPI_Gather, MPI_Igather, (from(&own), 2, int(), into(&mut of_all), 2, int(), ROOT, world()));
    if is_root() {
        assert_eq!(of_all, [0, 0, 1, 1, 2, 2, 3, 3, -1, -1]);
    }
    let (counts, places) = only_on_root();
    let count = COUNTS[rank() as usize];
    both!(
        MPI_Gatherv,
        MPI_Igatherv,
        (from(&own), count, int(), into(&mut of_all), counts, places, int(), ROOT, world())
    );
    if is_root() {
        assert_eq!(of_all, [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]);
    }
}

/// Lists that only the root looks at, and addresses of nothing elsewhere.
fn only_on_root() -> (*const c_int, *const c_int) {
    let nothing = std::ptr::without_provenance(8);
    if is_root() { (COUNTS.as_ptr(), PLACES.as_ptr()) } else { (nothing, nothing) }
}

#[scope]
fn gather_in_place() {
    let own = [rank(); 4];
    let mut of_all = [-1; 10];
    of_all[2..4].fill(rank());
    let mut send: *const c_void = if is_root() { in_place() } else { from(&own) };
    // What does not count may be anything.
    let (count, kind) = if is_root() { (-7, null_type()) } else { (2, int()) };
    let (receive, of_each) = if is_root() { (into(&mut of_all), 2) } else { (std::ptr::null_mut(), -7) };
    let their_kind = if is_root() { int() } else { null_type() };
    call!(MPI_Gather(send, count, kind, receive, of_each, their_kind, ROOT, world()));
    if is_root() {
        assert_eq!(of_all, [0, 0, 1, 1, 2, 2, 3, 3, -1, -1]);
        of_all[1..3].fill(1);
        send = in_place();
    }
    let (counts, places) = only_on_root();
    let count = if is_root() { -7 } else { COUNTS[rank() as usize] };
    call!(MPI_Gatherv(send, count, kind, receive, counts, places, their_kind, ROOT, world()));
    if is_root() {
        assert_eq!(of_all, [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]);
    }
}

fn null_type() -> MPI_Datatype {
    // SAFETY: a constant of the library.
    unsafe { RSMPI_DATATYPE_NULL }
}

#[scope]
fn scatter() {
    let parts = [0, 1, 1, 2, 2, 2, 3, 3, 3, 3];
    let mut own = [-1; 4];
    both!(MPI_Scatter, MPI_Iscatter, (from(&parts), 2, int(), into(&mut own), 2, int(), ROOT, world()));
    assert_eq!(own[..2], parts[2 * rank() as usize..][..2]);
    let (counts, places) = only_on_root();
    let count = COUNTS[rank() as usize];
    both!(
        MPI_Scatterv,
        MPI_Iscatterv,
        (from(&parts), counts, places, int(), into(&mut own), count, int(), ROOT, world())
    );
    assert_eq!(own[..count as usize], [rank(); 4][..count as usize]);
}

#[scope]
fn scatter_in_place() {
    let parts = [0, 1, 1, 2, 2, 2, 3, 3, 3, 3];
    let mut own = [-1; 4];
    let receive = if is_root() { in_place() } else { into(&mut own) };
    let (count, kind) = if is_root() { (-7, null_type()) } else { (2, int()) };
    let (send, each, their_kind) =
        if is_root() { (from(&parts), 2, int()) } else { (std::ptr::null(), -7, null_type()) };
    call!(MPI_Scatter(send, each, their_kind, receive, count, kind, ROOT, world()));
    let (counts, places) = only_on_root();
    let count = if is_root() { -7 } else { COUNTS[rank() as usize] };
    call!(MPI_Scatterv(send, counts, places, their_kind, receive, count, kind, ROOT, world()));
    if !is_root() {
        assert_eq!(own[..count as usize], [rank(); 4][..count as usize]);
    }
}

#[scope]
fn gather_for_all() {
    let own = [rank(); 4];
    let mut of_all = [-1; 10];
    both!(MPI_Allgather, MPI_Iallgather, (from(&own), 2, int(), into(&mut of_all), 2, int(), world()));
    assert_eq!(of_all, [0, 0, 1, 1, 2, 2, 3, 3, -1, -1]);
    let count = COUNTS[rank() as usize];
    both!(
        MPI_Allgatherv,
        MPI_Iallgatherv,
        (from(&own), count, int(), into(&mut of_all), COUNTS.as_ptr(), PLACES.as_ptr(), int(), world())
    );
    assert_eq!(of_all, [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]);
}

#[scope]
fn gather_for_all_in_place() {
    let mut of_all = [-1; 10];
    of_all[2 * rank() as usize..][..2].fill(rank());
    both!(MPI_Allgather, MPI_Iallgather, (in_place(), 0, null_type(), into(&mut of_all), 2, int(), world()));
    assert_eq!(of_all, [0, 0, 1, 1, 2, 2, 3, 3, -1, -1]);
    let (count, place) = (COUNTS[rank() as usize] as usize, PLACES[rank() as usize] as usize);
    of_all[place..][..count].fill(rank());
    both!(
        MPI_Allgatherv,
        MPI_Iallgatherv,
        (in_place(), 0, null_type(), into(&mut of_all), COUNTS.as_ptr(), PLACES.as_ptr(), int(), world())
    );
    assert_eq!(of_all, [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]);
}

/// Two numbers for each rank; then as many as the rank that gets them says; then by types too.
#[scope]
fn all_to_all() {
    let own = [rank(); 10];
    let mut of_all = [-1; 16];
    both!(MPI_Alltoall, MPI_Ialltoall, (from(&own), 2, int(), into(&mut of_all), 2, int(), world()));
    assert_eq!(of_all[..8], [0, 0, 1, 1, 2, 2, 3, 3]);
    let from_each = [rank() + 1; 4];
    let places = [0, 1, 2, 3].map(|rank_of| rank_of * (rank() + 1));
    let own_part = [COUNTS.as_ptr(), PLACES.as_ptr()];
    let theirs = [from_each.as_ptr(), places.as_ptr()];
    both!(
        MPI_Alltoallv,
        MPI_Ialltoallv,
        (
            from(&own),
            own_part[0],
            own_part[1],
            int(),
            into(&mut of_all),
            theirs[0],
            theirs[1],
            int(),
            world()
        )
    );
    let parts = of_all.chunks(rank() as usize + 1).take(4).enumerate();
    parts.for_each(|(rank, part)| assert!(part.iter().all(|&number| number == rank as i32)));
    let types = [int(); 4];
    let bytes = |places: [c_int; 4]| places.map(|place| 4 * place);
    let (own_bytes, their_bytes) = (bytes(PLACES), bytes(places));
    both!(
        MPI_Alltoallw,
        MPI_Ialltoallw,
        (
            from(&own),
            own_part[0],
            own_bytes.as_ptr(),
            types.as_ptr(),
            into(&mut of_all),
            theirs[0],
            their_bytes.as_ptr(),
            types.as_ptr(),
            world()
        )
    );
}

#[scope]
fn all_to_all_in_place() {
    let mut parts = [rank(); 8];
    both!(MPI_Alltoall, MPI_Ialltoall, (in_place(), 0, null_type(), into(&mut parts), 2, int(), world()));
    let nothing: *const c_int = std::ptr::null();
    call!(MPI_Alltoallv(
        in_place(),
        nothing,
        nothing,
        null_type(),
        into(&mut parts),
        SAME.as_ptr(),
        SAME_PLACES.as_ptr(),
        int(),
        world()
    ));
    call!(MPI_Alltoallw(
        in_place(),
        nothing,
        nothing,
        std::ptr::null(),
        into(&mut parts),
        SAME.as_ptr(),
        SAME_PLACES.map(|place| 4 * place).as_ptr(),
        [int(); 4].as_ptr(),
        world()
    ));
    // Four times back and forth.
    assert_eq!(parts, [rank(); 8]);
}

#[scope]
fn reduce_and_scatter() {
    let own = [1; 10];
    let mut sums = [0; 4];
    both!(
        MPI_Reduce_scatter,
        MPI_Ireduce_scatter,
        (from(&own), into(&mut sums), COUNTS.as_ptr(), int(), sum(), world())
    );
    let count = COUNTS[rank() as usize] as usize;
    assert_eq!(sums[..count], [4; 4][..count]);
    both!(
        MPI_Reduce_scatter_block,
        MPI_Ireduce_scatter_block,
        (from(&own), into(&mut sums), 2, int(), sum(), world())
    );
    assert_eq!(sums[..2], [4; 2]);
}

/// A communicator of one.
#[scope]
fn on_one_rank() {
    let mut sums = [0; 2];
    // SAFETY: a constant of the library.
    let alone = unsafe { RSMPI_COMM_SELF };
    call!(MPI_Allreduce(from(&[rank(); 2]), into(&mut sums), 2, int(), sum(), alone));
    assert_eq!(sums, [rank(); 2]);
    call!(MPI_Bcast(into(&mut sums), 2, int(), 0, alone));
}
