//! MPI is begun, used and ended by Fortran code in a shared library.

#[path = "../other_code.rs"]
mod other_code;

fn main() {
    other_code::run();
}
