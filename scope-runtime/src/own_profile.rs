//! The feature `hdf5`: at its end the program makes `profile.h5` of its recording itself.
//!
//! Only a program of one rank does: what several have recorded is for `cargo scope collect`, or for all of
//! them together (`mpi/profile.rs`).

use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::collect::{RunInfo, with_merger};
use crate::profile_file::{ProfileWriter, SystemHdf5};
use crate::recording::Recording;
use crate::{environment, os};

/// Whether this process is none to write a profile: a fork, in which another thread of the parent may have
/// held the lock of HDF5, which nobody will give back, or one that has written with others already.
static IS_LEFT: AtomicBool = AtomicBool::new(false);

/// Has this process leave its profile to others.
pub(crate) fn leave_to_others() {
    IS_LEFT.store(true, Relaxed);
}

/// Whether this process writes its profile. What is wrong with the wish is told.
pub(crate) fn is_wanted() -> bool {
    !IS_LEFT.load(Relaxed)
        && wish().unwrap_or_else(|problem| {
            crate::report(format_args!("{problem}; no profile is written"));
            false
        })
}

/// Whether a profile is wished for: `SCOPE_HDF5=0` says no, as `cargo scope run` does.
pub(crate) fn wish() -> Result<bool, String> {
    environment::is_on("SCOPE_HDF5").map(|wanted| wanted.unwrap_or(true))
}

/// Writes the profile of a recording beside it, if it is of a job of one rank and has calls. What goes wrong
/// is told in one line; the recording is there all the same.
pub(crate) fn write(recording: &Recording) {
    if recording.info().ranks > 1 || recording.profile().paths.nodes().is_empty() {
        return;
    }
    let path = beside(recording.path());
    if let Err(problem) = attempt(&path, || write_profile(recording, &path)) {
        report_failure(&problem, &path);
    }
}

/// Tells what went wrong with a profile.
pub(crate) fn report_failure(problem: &str, path: &Path) {
    let folder = path.parent().unwrap_or(path).display();
    crate::report(format_args!("{problem}; `cargo scope collect {folder}` makes the profile"));
}

/// `profile.h5` for `rank<N>.scope`, `profile.<pid>.<k>.h5` for `rank<N>.<pid>.<k>.scope`: no process
/// replaces the profile of another one.
pub(crate) fn beside(recording: &Path) -> PathBuf {
    let name = recording.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let further = name.split_once('.').map(|(_, further)| format!(".{further}")).unwrap_or_default();
    recording.with_file_name(format!("profile{further}.h5"))
}

/// Does a part of the work on the file that is to be at `path`. Neither a panic nor the signal of a file size
/// limit ends a program that is ending well.
pub(crate) fn attempt<T>(path: &Path, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let mut outcome = Err(format!("failed to write `{}`", path.display()));
    // Where a signal came, it is taken back, for which the error has to be the one that comes with it.
    let _ = os::without_file_size_signal(|| {
        if let Ok(done) = catch_unwind(AssertUnwindSafe(work)) {
            outcome = done;
        }
        outcome.as_ref().map(drop).map_err(|_| std::io::Error::from_raw_os_error(libc::EFBIG))
    });
    outcome
}

/// What is known of a run whose program makes its profile itself.
pub(crate) fn run_info() -> Result<RunInfo, String> {
    Ok(RunInfo::by_hand(environment::is_on("SCOPE_PRIVATE")?.unwrap_or(false)))
}

fn write_profile(recording: &Recording, path: &Path) -> Result<(), String> {
    let run = run_info()?;
    let written = with_merger(|mut merger| {
        let mut file = ProfileWriter::<SystemHdf5>::create(path)?;
        merger.add(recording.path(), recording, &mut file)?;
        file.finish(&merger.finish(&run)?)?;
        Ok(())
    });
    written.map_err(|error| error.to_string())
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
