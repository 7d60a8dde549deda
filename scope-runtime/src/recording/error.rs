//! Why a recording cannot be read.

use std::io;
use std::path::PathBuf;

use crate::format;

/// Why a recording cannot be read.
#[derive(Debug)]
pub struct Error {
    pub(super) path: PathBuf,
    pub(super) problem: Problem,
}

#[derive(Debug)]
pub(super) enum Problem {
    Io(io::Error),
    NotARecording,
    Version(u32),
    DamagedHead,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match &self.problem {
            Problem::Io(error) => write!(f, "failed to read `{path}`: {error}"),
            Problem::NotARecording => write!(f, "`{path}` is not a recording of scope-runtime"),
            Problem::Version(version) => write!(
                f,
                "`{path}` is a recording of format version {version}, this program reads version {}: \
                 use a cargo-scope of the same version as the program's scope-runtime",
                format::FORMAT_VERSION
            ),
            Problem::DamagedHead => {
                write!(f, "the head of the recording `{path}` is damaged; it cannot be read")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Problem::Io(error)
    }
}
