//! A file that stays the one that was opened.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A file of the runtime in somebody else's program.
///
/// Programs close descriptors that they know nothing of, as daemons do, and open files of their own by the
/// same numbers, into which nothing of ours may get. So each use asks first which file it is, and opens ours
/// again where it is another one. In the moment from the question to the use another thread can still put
/// its file there; then what was done is done once more, to ours.
pub(crate) struct OwnFile {
    path: PathBuf,
    identity: Identity,
    file: Mutex<Arc<File>>,
}

impl OwnFile {
    /// Takes `file`, which has just been made at `path`.
    ///
    /// # Errors
    /// When the system does not say which file it is.
    pub(crate) fn new(file: File, path: &Path) -> io::Result<OwnFile> {
        let (path, identity) = (std::path::absolute(path)?, Identity::of(&file)?);
        Ok(OwnFile { path, identity, file: Mutex::new(Arc::new(beside_standard_streams(file)?)) })
    }

    /// What `work` does with the file.
    ///
    /// # Errors
    /// Those of `work`, and when the descriptor was closed and the file cannot be opened again.
    pub(crate) fn with<T>(&self, work: impl Fn(&File) -> io::Result<T>) -> io::Result<T> {
        let file = self.get()?;
        let done = work(&file);
        if self.is(&file) { done } else { work(&*self.get()?) }
    }

    fn get(&self) -> io::Result<Arc<File>> {
        let mut file = crate::lock(&self.file);
        if !self.is(&file) {
            let again = OpenOptions::new().read(true).write(true).open(&self.path)?;
            let again = beside_standard_streams(again)?;
            if !self.is(&again) {
                return Err(io::ErrorKind::NotFound.into());
            }
            // The descriptor is not ours to close any more.
            std::mem::forget(std::mem::replace(&mut *file, Arc::new(again)));
        }
        Ok(Arc::clone(&file))
    }

    fn is(&self, file: &File) -> bool {
        Identity::of(file).is_ok_and(|identity| identity == self.identity)
    }

    /// Whether the file has no name any more; `false` where that cannot be asked.
    pub(crate) fn is_removed(&self) -> bool {
        match self.get() {
            #[cfg(unix)]
            Ok(file) => file.metadata().is_ok_and(|file| std::os::unix::fs::MetadataExt::nlink(&file) == 0),
            #[cfg(not(unix))]
            Ok(_) => false,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// Which file it is: device and number there.
#[cfg(unix)]
#[derive(PartialEq, Eq)]
struct Identity(u64, u64);

#[cfg(unix)]
impl Identity {
    fn of(file: &File) -> io::Result<Identity> {
        use std::os::unix::fs::MetadataExt;
        let metadata = file.metadata()?;
        Ok(Identity(metadata.dev(), metadata.ino()))
    }
}

/// Elsewhere handles are not closed by their numbers.
#[cfg(not(unix))]
#[derive(PartialEq, Eq)]
struct Identity;

#[cfg(not(unix))]
impl Identity {
    fn of(_: &File) -> io::Result<Identity> {
        Ok(Identity)
    }
}

/// The file by a descriptor that is none of a standard stream: where a program has closed one, what it prints
/// would go into the file.
fn beside_standard_streams(file: File) -> io::Result<File> {
    #[cfg(unix)]
    if std::os::fd::AsRawFd::as_raw_fd(&file) <= libc::STDERR_FILENO {
        // A duplicate never is.
        return file.try_clone();
    }
    Ok(file)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_file_in_the_place_of_ours_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ours");
        let open = |path: &Path| {
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
        };
        let ours = OwnFile::new(open(&path), &path).unwrap();
        let others = open(&folder.path().join("others"));
        let number = ours.get().unwrap().as_raw_fd();
        // SAFETY: nobody else uses the descriptor; it is replaced, as after a close and an open.
        assert_eq!(unsafe { libc::dup2(others.as_raw_fd(), number) }, number);
        ours.with(|file| crate::os::write_all_at(file, b"text", 0)).unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), others.metadata().unwrap().len()), (b"text".to_vec(), 0));
        assert!(!ours.is_removed());
        // In the midst of it.
        ours.with(|file| {
            crate::os::write_all_at(file, b"more", 4)?;
            if others.metadata()?.len() == 0 {
                let number = file.as_raw_fd();
                // SAFETY: as above.
                assert_eq!(unsafe { libc::dup2(others.as_raw_fd(), number) }, number);
                crate::os::write_all_at(&others, b"theirs", 0)?;
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"textmore");
        assert_eq!(others.metadata().unwrap().len(), 6);
        std::fs::remove_file(&path).unwrap();
        assert!(ours.is_removed());
        let again = ours.get().unwrap().as_raw_fd();
        // SAFETY: as above.
        assert_eq!(unsafe { libc::dup2(others.as_raw_fd(), again) }, again);
        assert_eq!(ours.get().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(ours.is_removed());
    }
}
