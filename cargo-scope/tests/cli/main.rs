//! `cargo scope` as users start it: the real binary on small crates in temporary folders.

mod auxiliary;
mod program_arguments;
mod runner;
mod selection;
mod signals;
mod status;
mod stored;
mod target_directory;
