//! Exact region profiler for Rust programs: recording, call stacks and totals inside the program.

pub mod profile;
pub mod recording;
pub mod totals;
