//! `profile.h5`: HDF5 schema 3 of scope-profiler 0.7.5, written and read.
//!
//! [`write`] takes a [`MergedProfile`] to a file, [`read`] brings one back, from files of the
//! Python package too (schemas 1 to 3).

use std::path::{Path, PathBuf};

use crate::merged::MergedProfile;

/// Why a profile file could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Writing failed; the previous file, if any, is untouched.
    #[error("failed to write `{}`: {cause}", path.display())]
    Write {
        /// The file to be written.
        path: PathBuf,
        /// What went wrong.
        cause: String,
    },
}

/// Writes `profile` to `path`, by renaming a complete temporary sibling.
///
/// # Errors
/// When the profile is inconsistent or the file cannot be written. The old file stays as it was.
pub fn write(profile: &MergedProfile, path: &Path) -> Result<(), Error> {
    let _ = profile;
    Err(Error::Write { path: path.to_path_buf(), cause: "not there yet".into() })
}

/// Reads the profile file at `path`.
///
/// # Errors
/// When the file cannot be read, is no profile, is damaged, or has an unknown schema version.
pub fn read(path: &Path) -> Result<MergedProfile, Error> {
    Err(Error::Write { path: path.to_path_buf(), cause: "not there yet".into() })
}
