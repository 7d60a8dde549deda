//! What can go wrong with writing a profile file, in words for its user.

use std::path::{Path, PathBuf};

use super::check::Mistake;

/// Why a profile file could not be written. Every message names the file, and the object in it where
/// there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("failed to {action} `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried: `create`, `rename`.
        action: &'static str,
        /// The answer.
        source: std::io::Error,
    },
    /// The profile contradicts itself, so nothing was written.
    #[error("failed to write `{}`: the profile's {object} {cause}", path.display())]
    Inconsistent {
        /// The file to be written.
        path: PathBuf,
        /// Dataset that the mistake would be in.
        object: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Writing failed half-way; a previous file stays as it was.
    #[error("failed to write {object} of `{}`: {cause}", path.display())]
    Write {
        /// The file to be written.
        path: PathBuf,
        /// Dataset or group.
        object: String,
        /// What the HDF5 library said.
        cause: String,
    },
}

impl Error {
    pub(super) fn io(path: &Path, action: &'static str, source: std::io::Error) -> Error {
        Error::Io { path: path.to_path_buf(), action, source }
    }

    /// Of giving a complete file the name `path`.
    pub(crate) fn rename(path: &Path, source: std::io::Error) -> Error {
        Error::io(path, "rename a finished file to", source)
    }

    pub(super) fn inconsistent(path: &Path, mistake: Mistake) -> Error {
        Error::Inconsistent { path: path.to_path_buf(), object: mistake.object, cause: mistake.cause }
    }

    pub(super) fn write(path: &Path, object: &str, cause: String) -> Error {
        Error::Write { path: path.to_path_buf(), object: object.to_string(), cause }
    }
}
