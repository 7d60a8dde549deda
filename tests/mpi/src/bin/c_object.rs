//! MPI is begun, used and ended by C code that is linked into the program.

#[path = "../other_code.rs"]
mod other_code;

fn main() {
    other_code::run();
}
