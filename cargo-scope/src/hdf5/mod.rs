//! `profile.h5`: HDF5 schema 3 of scope-profiler 0.7.5, written and read.
//!
//! [`write()`] takes a [`MergedProfile`] to a file, [`ProfileWriter`] one whose events come in pieces;
//! [`read`] brings one back, from files of the Python package too (schemas 1 to 3). The layout, and what is
//! written where, is in scope-runtime, for this library and the system's.

mod calls;
#[cfg(test)]
mod calls_tests;
mod chunks;
#[cfg(test)]
mod damaged_tests;
mod error;
mod headers;
#[cfg(test)]
mod placing_tests;
mod pure;
mod read;
mod schema1;
mod source;
#[cfg(test)]
mod tests;
mod values;

use std::path::Path;

pub use calls::FileCalls;
pub use error::Error;
pub use pure::RustHdf5;
pub use read::{read, read_again, read_totals};
pub use scope_runtime::profile_file::Error as WriteError;
pub use scope_runtime::profile_file::layout::SCHEMA as SCHEMA_VERSION;
pub(crate) use scope_runtime::profile_file::publish;
use scope_runtime::profile_file::{self, check, layout};

use crate::merged::MergedProfile;

/// The library that writes.
#[cfg(not(feature = "hdf5"))]
type Writing = RustHdf5;
/// The library that writes.
#[cfg(feature = "hdf5")]
type Writing = profile_file::SystemHdf5;

/// A profile file whose events come in pieces, so that they are never in memory all at once.
pub type ProfileWriter = profile_file::ProfileWriter<Writing>;

/// Writes `profile` to `path`, by renaming a complete temporary sibling.
///
/// Names that no row refers to are left out. Event columns are compressed from 1 MiB on.
///
/// # Errors
/// When the profile contradicts itself or the file cannot be written. A previous file at `path`
/// then stays as it was, and nothing is left beside it.
///
/// # Examples
/// ```
/// use cargo_scope::hdf5;
/// use cargo_scope::merged::{MergedProfile, MetadataValue};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("profile.h5");
/// let label = ("label".to_string(), MetadataValue::Text("heat".into()));
/// hdf5::write(&MergedProfile { metadata: vec![label], ..MergedProfile::default() }, &path)?;
/// let profile = hdf5::read(&path)?;
/// assert_eq!(profile.metadata_value("label"), Some(&MetadataValue::Text("heat".into())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write(profile: &MergedProfile, path: &Path) -> Result<(), WriteError> {
    profile_file::write::<Writing>(profile, path)
}
