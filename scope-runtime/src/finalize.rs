//! The end of a recording inside the program: the only file that sees both halves.
//!
//! The events are read back from the recording itself, as a reader elsewhere would, so that what
//! the program reports and what `cargo scope` makes of the file are the same.

use crate::lane;
use crate::profile::Profile;
use crate::recorder::Recorder;
use crate::recording::Recording;

/// Totals what was recorded so far and marks the recording as sealed.
///
/// Where the file cannot be read back, which is reported, the profile is empty and the recording
/// stays unsealed: nothing in it is lost.
pub(crate) fn seal(recorder: &Recorder) -> Profile {
    let writer = recorder.writer();
    let recording = writer
        .file()
        .try_clone()
        .map_err(|error| format!("failed to read `{}` back: {error}", writer.path().display()))
        .and_then(|file| {
            Recording::from_file(file, writer.path(), |work| lane::unrecorded(work))
                .map_err(|error| error.to_string())
        });
    match recording {
        Ok(recording) => {
            writer.set_sealed(true);
            let profile = recording.into_profile();
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
