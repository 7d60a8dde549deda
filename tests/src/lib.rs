//! What several tests need: `cargo scope` as users start it, small packages to run it on, its
//! outputs as values, and the tools that look at them from outside.

pub mod annotate;
pub mod call_tree;
pub mod mpi;
pub mod outputs;
pub mod package;
pub mod subcommand;
pub mod tools;
