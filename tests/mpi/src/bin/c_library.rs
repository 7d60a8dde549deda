//! MPI is begun, used and ended by C code in a shared library.

#[path = "../c_code.rs"]
mod c_code;

fn main() {
    c_code::run();
}
