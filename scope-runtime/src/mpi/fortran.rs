//! Calls from Fortran. The libraries for Fortran call functions by the names `PMPI_*`, so that those defined
//! here are passed by: Open MPI's always, MPICH's in the binding `mpi_f08`, where no buffer is given. When the
//! program starts, such calls of these libraries are led here; what they are given is in C by then, whichever
//! of the bindings (`mpif.h`, `mpi`, `mpi_f08`) they come from.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod elf;

use std::collections::HashMap;

use super::call::Function;
use super::{calls, calls_of_4, job, receives};
use elf::Redirection;

/// The address of every function that is defined in front of the library's, by the name of that.
fn functions() -> HashMap<&'static [u8], usize> {
    let tables = [
        calls::messages::plain::ALL,
        calls::messages::large::ALL,
        calls::MESSAGES,
        calls::collectives::plain::ALL,
        calls::collectives::large::ALL,
        calls::COLLECTIVES,
        calls::neighbours::plain::ALL,
        calls::neighbours::large::ALL,
        calls::COMMUNICATORS,
        calls::windows::plain::ALL,
        calls::windows::large::ALL,
        calls::WINDOWS,
        calls::files::plain::ALL,
        calls::files::large::ALL,
        calls::FILES,
        calls::others::plain::ALL,
        calls::others::large::ALL,
        calls::OTHERS,
        calls_of_4::messages::plain::ALL,
        calls_of_4::messages::large::ALL,
        calls_of_4::MESSAGES,
        calls_of_4::persistent::plain::ALL,
        calls_of_4::persistent::large::ALL,
        calls_of_4::PERSISTENT,
        calls_of_4::COMMUNICATORS,
        job::BEGIN_AND_END,
        receives::receives::plain::ALL,
        receives::receives::large::ALL,
        receives::RECEIVES,
    ];
    let address = |function: &Function| (function.name.as_bytes(), function.own as usize);
    tables.into_iter().flatten().map(address).collect()
}

/// Led here before the program begins.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = redirect;

/// Libraries for Fortran: of Open MPI, and of MPICH and its kin.
const LIBRARIES: [&str; 4] = ["libmpi_mpifh", "libmpi_usempi", "libmpichf", "libmpifort"];

extern "C" fn redirect() {
    Redirection { libraries: &LIBRARIES, functions }.apply();
}
