//! The `cargo scope` subcommand.
fn main() {}
