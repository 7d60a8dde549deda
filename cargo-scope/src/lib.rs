//! The library behind the `cargo scope` subcommand.

pub mod collect;
pub mod export;
pub mod flame;
pub mod hdf5;
pub mod merged;
pub mod names;
pub mod paths;
pub mod summary;
mod units;
