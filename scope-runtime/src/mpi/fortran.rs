//! Calls from Fortran. The libraries for Fortran call functions by the names `PMPI_*`, so that those defined
//! here are passed by: Open MPI's always, MPICH's in the binding `mpi_f08`, where no buffer is given. When the
//! program starts, such calls of these libraries are led here; what they are given is in C by then, whichever
//! of the bindings (`mpif.h`, `mpi`, `mpi_f08`) they come from.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod elf;

use super::call::Function;
use super::{calls, job, receives};
use elf::Redirection;

/// Every function that is defined in front of the library's.
fn functions() -> impl Iterator<Item = &'static Function> {
    let tables = [
        calls::MESSAGES,
        calls::COLLECTIVES,
        calls::NEIGHBOURS,
        calls::COMMUNICATORS,
        calls::WINDOWS,
        calls::FILES,
        calls::OTHERS,
        job::BEGIN_AND_END,
        receives::RECEIVES,
    ];
    tables.into_iter().flatten()
}

/// Led here before the program begins.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = redirect;

/// Libraries for Fortran: of Open MPI, and of MPICH and its kin.
const LIBRARIES: [&str; 4] = ["libmpi_mpifh", "libmpi_usempi", "libmpichf", "libmpifort"];

extern "C" fn redirect() {
    let functions = functions().map(|function| (function.name.as_bytes(), function.own as usize)).collect();
    Redirection { libraries: &LIBRARIES, functions }.apply();
}
