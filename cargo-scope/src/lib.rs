//! The library behind the `cargo scope` subcommand.

pub mod build;
pub mod cli;
pub mod commands;
pub mod cost;
pub mod export;
pub mod flame;
pub mod hdf5;
pub mod imbalance;
pub mod launcher;
pub mod messages;
pub mod outputs;
pub mod paths;
mod platform;
pub mod program;
pub mod record;
pub mod recordings;
pub mod report;
pub mod results;
pub mod run;
pub mod say;
pub mod setup;
pub mod shell;
pub mod summary;
pub mod test;
mod told_apart;

use scope_runtime::units;
pub use scope_runtime::{collect, merged, names};
