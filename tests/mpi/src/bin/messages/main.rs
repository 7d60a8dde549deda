//! Four ranks make every kind of call that communicates, with sizes and peers that are known in advance and
//! stand in `tests/tests/mpi/messages.rs`. That what arrives is right is checked here.
//!
//! The first argument is a file for the calls that access files. Each rank prints which calls it has made,
//! one line for each function.

mod collective;
mod communicators;
mod nonblocking;
mod point_to_point;
mod remote;
mod tally;

use tally::{call, rank, world};

fn main() {
    let file = std::env::args().nth(1).expect("a file comes first");
    call!(MPI_Init(std::ptr::null_mut(), std::ptr::null_mut()));
    let mut ranks = 0;
    // SAFETY: MPI has begun.
    unsafe { mpi::ffi::MPI_Comm_size(world(), &mut ranks) };
    assert_eq!(ranks, 4);
    point_to_point::all();
    nonblocking::all();
    collective::all();
    communicators::all();
    remote::all(&file);
    let rank = rank();
    call!(MPI_Finalize());
    tally::print(rank);
}
