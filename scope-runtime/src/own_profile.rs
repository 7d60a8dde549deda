//! The feature `hdf5`: at its end the program makes `profile.h5` of its recording itself.
//!
//! Only a program of one rank does: what several have recorded is for `cargo scope collect`.

use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::collect::{Merger, RunInfo};
use crate::profile_file::{ProfileWriter, SystemHdf5};
use crate::recording::Recording;
use crate::{environment, os};

/// Whether this process is a fork. There another thread of the parent may have held the lock of HDF5, which
/// nobody will give back.
static IS_FORK: AtomicBool = AtomicBool::new(false);

/// Has a forked child leave its profile to others.
pub(crate) fn leave_to_others() {
    IS_FORK.store(true, Relaxed);
}

/// Whether this process writes its profile: `SCOPE_HDF5=0` says no, as `cargo scope run` does.
pub(crate) fn is_wanted() -> bool {
    let wanted = environment::is_on("SCOPE_HDF5").unwrap_or_else(|problem| {
        crate::report(format_args!("{problem}; no profile is written"));
        Some(false)
    });
    wanted.unwrap_or(true) && !IS_FORK.load(Relaxed)
}

/// Writes the profile of a recording beside it, if it is of a job of one rank and has calls. What goes wrong
/// is told in one line; the recording is there all the same.
pub(crate) fn write(recording: &Recording) {
    if recording.info().ranks > 1 || recording.profile().paths.nodes().is_empty() {
        return;
    }
    let path = beside(recording.path());
    // A panic must not become an abort of a program that is ending well.
    let problem = match catch_unwind(AssertUnwindSafe(|| write_to(recording, &path))) {
        Ok(Ok(())) => return,
        Ok(Err(problem)) => problem,
        Err(_) => format!("failed to write `{}`", path.display()),
    };
    let folder = path.parent().unwrap_or(&path).display();
    crate::report(format_args!("{problem}; `cargo scope collect {folder}` makes the profile"));
}

/// `profile.h5` for `rank<N>.scope`, `profile.<pid>.<k>.h5` for `rank<N>.<pid>.<k>.scope`: no process
/// replaces the profile of another one.
fn beside(recording: &Path) -> PathBuf {
    let name = recording.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let further = name.split_once('.').map(|(_, further)| format!(".{further}")).unwrap_or_default();
    recording.with_file_name(format!("profile{further}.h5"))
}

fn write_to(recording: &Recording, path: &Path) -> Result<(), String> {
    let private = environment::is_on("SCOPE_PRIVATE")?.unwrap_or(false);
    let mut outcome = Ok(());
    // The signal of a file size limit would end the program. Where one came, it is taken back, for which
    // the error has to be the one that comes with it.
    let _ = os::without_file_size_signal(|| {
        outcome = write_profile(recording, private, path);
        outcome.as_ref().map(drop).map_err(|_| std::io::Error::from_raw_os_error(libc::EFBIG))
    });
    outcome
}

fn write_profile(recording: &Recording, private: bool, path: &Path) -> Result<(), String> {
    let mut merger = Merger::default();
    let piece = merger.add(recording.path(), recording).map_err(|error| error.to_string())?;
    let mut file = ProfileWriter::<SystemHdf5>::create(path).map_err(|error| error.to_string())?;
    file.append(&merger.rows()[piece.rows], &piece.events).map_err(|error| error.to_string())?;
    drop(piece.events);
    let profile = merger.finish(&RunInfo::by_hand(private)).map_err(|error| error.to_string())?;
    file.finish(&profile).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_named_as_recordings_are() {
        let name = |recording: &str| beside(Path::new(recording)).display().to_string();
        assert_eq!(name("out/rank0.scope"), "out/profile.h5");
        assert_eq!(name("out/rank0.4711.2.scope"), "out/profile.4711.2.h5");
    }
}
