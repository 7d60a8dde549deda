//! What can go wrong with reading a profile file, in words for its user.

use std::path::{Path, PathBuf};

/// Why a profile file could not be read. Every message names the file, the object
/// in it where there is one, and what can be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("failed to {action} `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The answer.
        source: std::io::Error,
    },
    /// A run has written a new file in place of the one that was begun with.
    #[error(
        "failed to read `{}`: another file was put in its place, or it was changed, while it was read; \
         run the command again", path.display()
    )]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// The file is no HDF5 file, or ends before its end.
    #[error(
        "failed to read `{}`: {cause}. It is no HDF5 file, or was cut off or damaged; \
         copy it again from where it was made, or repeat the run", path.display()
    )]
    NotHdf5 {
        /// The file.
        path: PathBuf,
        /// What the HDF5 reader said.
        cause: String,
    },
    /// An HDF5 file, but no profile.
    #[error(
        "failed to read `{}`: it has no {object}, so it is no profile of cargo-scope or scope-profiler \
         or lost a part; give the `profile.h5` of a run", path.display()
    )]
    NotAProfile {
        /// The file.
        path: PathBuf,
        /// Group or dataset that every profile has.
        object: String,
    },
    /// Written by a version that this one does not know.
    #[error(
        "failed to read `{}`: it says {attribute} = {found}, and this program knows {known}; \
         update cargo-scope, or write the file with an older version", path.display()
    )]
    UnknownVersion {
        /// The file.
        path: PathBuf,
        /// Root attribute that says the version or layout.
        attribute: &'static str,
        /// Its value.
        found: String,
        /// Values that are understood.
        known: &'static str,
    },
    /// A dataset has values of another kind than it has in any profile.
    #[error(
        "failed to read {object} of `{}`: it has {found} where {wanted} are right, so this is no profile of \
         cargo-scope or scope-profiler; give the `profile.h5` of a run", path.display()
    )]
    WrongType {
        /// The file.
        path: PathBuf,
        /// Dataset.
        object: String,
        /// What its values are.
        found: &'static str,
        /// What they are in a profile.
        wanted: &'static str,
    },
    /// A dataset is stored in a way that cannot be decoded here.
    #[error(
        "failed to read {object} of `{}`: {cause}; \
         rewrite the file with `h5repack -f SHUF -f GZIP=1 OLD NEW`", path.display()
    )]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Dataset.
        object: String,
        /// The filter or type that is not known.
        cause: String,
    },
    /// A dataset cannot be right.
    #[error(
        "failed to read {object} of `{}`: {cause}. The file is damaged or truncated; \
         copy it again from where it was made, or repeat the run", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Dataset, group or attribute.
        object: String,
        /// What is wrong with it.
        cause: String,
    },
}

impl Error {
    pub(super) fn io(path: &Path, action: &'static str, source: std::io::Error) -> Error {
        Error::Io { path: path.to_path_buf(), action, source }
    }

    pub(super) fn damaged(path: &Path, object: impl Into<String>, cause: impl ToString) -> Error {
        Error::Damaged { path: path.to_path_buf(), object: object.into(), cause: cause.to_string() }
    }
}
