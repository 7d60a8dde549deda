//! `cargo scope` as users start it: the real binary on small crates in temporary folders.

mod auxiliary;
mod cargo_options;
mod program_arguments;
mod ranks;
mod runner;
mod selection;
mod setup;
mod signals;
mod status;
mod stored;
mod target_directory;
mod test_targets;
