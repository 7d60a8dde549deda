//! MPI programs (feature `mpi`): calls of MPI are regions by themselves, and when MPI ends the ranks put
//! their totals together.
//!
//! The functions `MPI_*` are defined here, in front of the library's, which go by the names `PMPI_*` too:
//! MPI foresees this for profilers. So it works with every binding, and with C code in the program; calls from
//! Fortran are led here besides.
//!
//! Nothing here waits for a rank that does not come: what ranks tell each other goes over a communicator
//! of their own, and whoever waits longer than a deadline gives up with one line.

mod call;
mod calls;
mod calls_of_4;
mod clocks;
mod collectives;
mod combine;
mod communicators;
mod exchange;
mod fortran;
mod job;
#[cfg(feature = "mpio")]
mod profile;
mod receives;
mod requests;

pub use job::totals;
