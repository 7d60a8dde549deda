//! The library behind the `cargo scope` subcommand.

pub mod collect;
pub mod hdf5;
pub mod merged;
