//! The end of a recording inside the program: the only file that sees both halves.
//!
//! The events are read back from the recording itself, as a reader elsewhere would, so that what
//! the program reports and what `cargo scope` makes of the file are the same.

#[cfg(any(feature = "hdf5", all(feature = "mpi", not(feature = "off"))))]
use crate::clock::ClockPair;
#[cfg(any(feature = "hdf5", all(feature = "mpi", not(feature = "off"))))]
use crate::format::{Fields, kind};
use crate::lane;
#[cfg(feature = "hdf5")]
use crate::own_profile;
use crate::profile::Profile;
use crate::recorder::Recorder;
use crate::recording::Recording;

/// Totals what was recorded so far and marks the recording as sealed.
///
/// Where the file cannot be read back, which is reported, the profile is empty and the recording
/// stays unsealed: nothing in it is lost.
pub(crate) fn seal(recorder: &Recorder) -> Profile {
    let writer = recorder.writer();
    match read_back(recorder, false) {
        Ok(recording) => {
            let profile = recording.into_profile();
            writer.set_sealed(true);
            if writer.is_removed() {
                let calls = profile.paths.nodes().iter().map(|path| path.calls).sum::<u64>();
                let path = writer.path().display();
                crate::report(format_args!(
                    "`{path}` was removed while the program ran: the {calls} calls in it are lost"
                ));
            }
            profile
        }
        Err(problem) => {
            crate::report(format_args!("{problem}"));
            Profile::default()
        }
    }
}

/// Writes the profile of a recording that has been sealed and is still there. From now on ticks are ns by the same scale, so that
/// whatever is made of the recording later shows the same times.
#[cfg(feature = "hdf5")]
pub(crate) fn write_profile(recorder: &Recorder) {
    if recorder.writer().is_removed() || !own_profile::is_wanted() {
        return;
    }
    fix_scale(recorder);
    match read_back(recorder, false) {
        Ok(mut recording) => {
            recording.set_sealed();
            own_profile::write(&recording);
        }
        Err(problem) => crate::report(format_args!("{problem}")),
    }
}

/// Reads back what was recorded so far, while recording goes on; collective calls only where they are wanted.
/// From now on ticks are ns by the same scale, so that what has ended by now lasts as long in all that is
/// made of the recording.
#[cfg(all(feature = "mpi", not(feature = "off")))]
pub(crate) fn so_far(recorder: &Recorder, keeps_collectives: bool) -> Result<Recording, String> {
    fix_scale(recorder);
    read_back(recorder, keeps_collectives)
}

/// Has ticks be ns by the line through the begin and now.
#[cfg(any(feature = "hdf5", all(feature = "mpi", not(feature = "off"))))]
fn fix_scale(recorder: &Recorder) {
    let now = ClockPair::now();
    recorder.append(kind::SCALE, 0, &Fields::default().u64(now.ticks).u64(now.ns.cast_unsigned()).0);
    recorder.settle();
    recorder.writer().beat(now);
}

fn read_back(recorder: &Recorder, keeps_collectives: bool) -> Result<Recording, String> {
    let writer = recorder.writer();
    let file = writer.file().with(|file| file.try_clone());
    let file = file.map_err(|error| format!("failed to read `{}` back: {error}", writer.path().display()))?;
    let around = |work: &mut dyn FnMut()| lane::unrecorded(work);
    let recording = Recording::from_file(file, writer.path(), keeps_collectives, around);
    recording.map_err(|error| error.to_string())
}
