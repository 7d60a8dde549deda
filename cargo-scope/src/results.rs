//! What a run leaves: the profile, and everything that is made from it.

use std::path::PathBuf;

use anyhow::Context;

use crate::hdf5;
use crate::merged::MergedProfile;
use crate::outputs::OutputFolder;

/// Name of the profile in an output folder.
pub const PROFILE_FILE: &str = "profile.h5";

/// Files of a run, and the profile that they show.
#[derive(Debug)]
pub struct Written {
    /// The profile as read back from its file, so that what is shown is what the file says.
    pub profile: MergedProfile,
    /// The files, in order of their names.
    pub files: Vec<PathBuf>,
}

/// Writes `profile` and its exports to `folder`, all or none.
///
/// # Errors
/// When a file cannot be written, or the profile cannot be read back. Files of an earlier run
/// then stay.
pub fn write(profile: &MergedProfile, folder: &OutputFolder) -> anyhow::Result<Written> {
    let staging = folder.staging()?;
    let path = staging.join(PROFILE_FILE);
    hdf5::write(profile, &path)?;
    let profile = hdf5::read(&path).context("failed to read back the profile just written")?;
    let files = folder.publish()?;
    Ok(Written { profile, files })
}

/// Prints the summary and the files to stderr.
pub fn summarise(written: &Written) {
    for file in &written.files {
        crate::say::status("Wrote", format_args!("{}", file.display()));
    }
}
