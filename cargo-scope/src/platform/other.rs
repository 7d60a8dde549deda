//! Systems without signals and without links that everybody may make, such as Windows.
//!
//! A program that ends has a status and nothing else; Ctrl-C goes to it and ends us too, and its recordings
//! are there for `cargo scope collect`. `latest` is not made: readers take the highest number.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

use crate::program::{Ran, Recipient};

pub(crate) fn signal_of(_: ExitStatus) -> Option<i32> {
    None
}

pub(crate) fn signal_name(_: i32) -> Option<&'static str> {
    None
}

/// Does nothing: no program ends by a signal.
pub(crate) fn raise(_: i32) {}

pub(crate) fn run(command: &mut Command, _: Recipient) -> io::Result<Ran> {
    Ok(Ran::Ended(command.status()?.into()))
}

/// Does nothing.
pub(crate) fn link_folder(_: &str, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Not known, so no.
pub(crate) fn is_running(_: u32, _: i64) -> bool {
    false
}
