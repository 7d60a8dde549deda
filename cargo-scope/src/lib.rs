//! The library behind the `cargo scope` subcommand.

pub mod build;
pub mod cli;
pub mod collect;
pub mod commands;
pub mod cost;
pub mod export;
pub mod flame;
pub mod hdf5;
pub mod merged;
pub mod names;
pub mod outputs;
pub mod paths;
pub mod program;
pub mod recordings;
pub mod results;
pub mod run;
pub mod say;
pub mod summary;
mod units;
