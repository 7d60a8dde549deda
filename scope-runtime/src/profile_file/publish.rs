//! A file appears under its name complete, or not at all.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// A file beside its destination that is removed again unless it is published.
pub struct Temporary {
    path: PathBuf,
    published: bool,
}

impl Temporary {
    /// Creates an empty file in the folder of `destination`, under a name that nobody has.
    ///
    /// # Errors
    /// When the folder is not there or cannot be written.
    pub fn beside(destination: &Path) -> io::Result<Temporary> {
        for attempt in 0u32.. {
            // Not the destination's name with something added, which could be too long.
            let path = destination.with_file_name(format!(".scope-{}-{attempt}.tmp", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(_) => return Ok(Temporary { path, published: false }),
                // Left by a process of the same number that was killed: not ours to remove.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the file in the place of `destination`.
    ///
    /// # Errors
    /// When the operating system refuses; `destination` is then as it was.
    pub fn publish(mut self, destination: &Path) -> io::Result<()> {
        fs::rename(&self.path, destination)?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.published {
            // Nothing better can be done here, and the error that led here is on its way.
            let _ = fs::remove_file(&self.path);
        }
    }
}
