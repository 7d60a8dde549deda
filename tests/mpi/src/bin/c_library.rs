//! MPI is begun, used and ended by C code in a shared library.

#[path = "../other_code.rs"]
mod other_code;

fn main() {
    other_code::run();
}
