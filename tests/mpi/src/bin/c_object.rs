//! MPI is begun, used and ended by C code that is linked into the program.

#[path = "../c_code.rs"]
mod c_code;

fn main() {
    c_code::run();
}
