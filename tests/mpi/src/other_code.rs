//! MPI is begun, used and ended by code in another language, of which Rust knows nothing.

use std::ffi::c_int;

unsafe extern "C" {
    safe fn begin_mpi() -> c_int;
    safe fn pass_around() -> c_int;
    safe fn end_mpi() -> c_int;
}

#[scope_runtime::scope]
fn around() -> c_int {
    pass_around()
}

#[scope_runtime::scope]
fn afterwards() {}

pub fn run() {
    assert_eq!(begin_mpi(), 0);
    println!("the sum is {}", around());
    assert_eq!(end_mpi(), 0);
    afterwards();
}
