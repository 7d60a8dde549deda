//! The library behind the `cargo scope` subcommand.

pub mod merged;
