//! When recording begins and ends: `init`, `finalize`, pausing, the end of the process, forks.
//!
//! A process has one recording. It begins with the first region under `SCOPE_OUTPUT` or with
//! `init`, and may hold several sessions. The hot path sees none of this but one state.

use std::cell::RefCell;
use std::fs;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Mutex, MutexGuard};

use crate::clock::ClockPair;
use crate::lane::{self, OFF, ON, SESSION, STARTING, STATE};
use crate::profile::Profile;
use crate::recorder::Recorder;
use crate::{cost, environment, os, region};

/// The extension of a file that says why a process has no recording.
const UNRECORDED: &str = "unrecorded";

/// The recorder of this process; null before recording began, and in a fresh fork.
static RECORDER: AtomicPtr<Recorder> = AtomicPtr::new(std::ptr::null_mut());

static CONTROL: Mutex<Control> =
    Mutex::new(Control { sessions: 0, hooked: false, folder: None, profile: None });

struct Control {
    /// Values of `init` that are alive.
    sessions: usize,
    /// Whether the handlers for exit and fork are in place.
    hooked: bool,
    /// Where recordings go, once it is decided.
    folder: Option<PathBuf>,
    /// What the last end of a session gave; `None` while one runs.
    profile: Option<Profile>,
}

fn control() -> MutexGuard<'static, Control> {
    crate::lock(&CONTROL)
}

/// Ends its session when dropped; see [`init`].
#[must_use = "the session ends when this is dropped; `let _ = ..` drops it at once"]
pub struct Session(());

impl Drop for Session {
    fn drop(&mut self) {
        let mut control = control();
        control.sessions = control.sessions.saturating_sub(1);
        if control.sessions == 0 {
            control.end();
        }
    }
}

/// Starts recording and ends it when the value is dropped.
///
/// Without it, a program started by `cargo scope run` (or with `SCOPE_OUTPUT` set to a folder)
/// records from its first region to its end. With it, recording ends at the drop of the outermost
/// value, and is on even without `SCOPE_OUTPUT`: the recording then goes to
/// `scope/<program>-<pid>/`, which one line on stderr says. A session begun later is added to the
/// same recording.
///
/// Problems are reported in one line on stderr; the program then runs unrecorded.
///
/// # Examples
/// ```
/// # let folder = std::env::temp_dir().join(format!("scope-init-{}", std::process::id()));
/// # unsafe { std::env::set_var("SCOPE_OUTPUT", &folder) };
/// let session = scope_runtime::init();
/// // ... regions entered here are recorded ...
/// drop(session);
/// assert!(folder.join("rank0.scope").exists());
/// # std::fs::remove_dir_all(folder).unwrap();
/// ```
pub fn init() -> Session {
    if cfg!(feature = "off") {
        return Session(());
    }
    let mut control = control();
    control.sessions += 1;
    // One that was begun goes on, and stays paused where it is.
    if current().is_none() || control.profile.is_some() {
        let folder = control.folder.take().or_else(environment::output_folder);
        let by_hand = folder.is_none();
        control.begin(folder.unwrap_or_else(environment::default_folder));
        if by_hand && let Some(recorder) = current() {
            let path = recorder.writer().path().display();
            crate::report(format_args!("recording to `{path}`; `cargo scope collect` makes the outputs"));
        }
    }
    Session(())
}

/// Ends recording and gives the profile of all that was recorded so far.
///
/// The recording is complete on disk when this returns. Regions that are open are cut at this
/// time; regions entered later are not recorded. Calling it again gives the same profile; a later
/// [`init`] goes on in the same recording. Without a recording the profile is empty.
///
/// # Examples
/// ```
/// # let folder = std::env::temp_dir().join(format!("scope-finalize-{}", std::process::id()));
/// # unsafe { std::env::set_var("SCOPE_OUTPUT", &folder) };
/// for _ in 0..3 {
///     scope_runtime::region!("step");
/// }
/// let profile = scope_runtime::finalize();
/// let step = &profile.paths.nodes()[0];
/// assert_eq!((step.calls, step.open), (3, 0));
/// println!("{} calls, {} ns", step.calls, step.inclusive_ns);
/// # std::fs::remove_dir_all(folder).unwrap();
/// ```
pub fn finalize() -> Profile {
    let mut control = control();
    control.end();
    control.profile.clone().unwrap_or_default()
}

/// Stops recording until [`resume`]: regions entered in between are not recorded, whenever they
/// end. Regions that are open go on.
///
/// # Examples
/// ```
/// scope_runtime::pause();
/// {
///     scope_runtime::region!("warm up"); // not recorded
/// }
/// scope_runtime::resume();
/// ```
pub fn pause() {
    // Where nothing was decided yet, that would be done by what is to be left out.
    recorder();
    let _control = control();
    let _ = STATE.compare_exchange(ON, OFF, Relaxed, Relaxed);
}

/// Goes on after [`pause`]. Does nothing where recording had not begun or has ended.
pub fn resume() {
    let control = control();
    if let Some(recorder) = current()
        && control.profile.is_none()
        && STATE.compare_exchange(OFF, ON, Relaxed, Relaxed).is_ok()
    {
        recorder.wake_drainer();
    }
}

/// The recorder, begun if the environment asks for one and nothing was decided yet.
pub(crate) fn recorder() -> Option<&'static Recorder> {
    if STATE.load(Relaxed) == STARTING {
        let mut control = control();
        // Another thread may have decided while we waited.
        if STATE.load(Relaxed) == STARTING {
            match control.folder.take().or_else(environment::output_folder) {
                Some(folder) if cfg!(not(feature = "off")) => control.begin(folder),
                _ => STATE.store(OFF, Relaxed),
            }
        }
    }
    current()
}

/// The recorder, where recording has begun; it may be paused.
pub(crate) fn current() -> Option<&'static Recorder> {
    // SAFETY: the pointer is null or was leaked by `Recorder::start`.
    unsafe { RECORDER.load(Acquire).as_ref() }
}

impl Control {
    /// Begins a session, with the recording if there is none yet.
    fn begin(&mut self, folder: PathBuf) {
        if current().is_none()
            && let Err(problem) = self.start_recorder(&folder)
        {
            crate::report(format_args!("{problem}; this run is not recorded"));
            lane::unrecorded(|| leave_word(&folder, &problem));
            STATE.store(OFF, Relaxed);
            return;
        }
        self.folder = Some(folder);
        let ended_before = self.profile.take().is_some();
        if let Some(recorder) = current() {
            recorder.writer().set_sealed(false);
            if ended_before {
                recorder.add_edge(true);
            }
            SESSION.fetch_add(1, Relaxed);
            STATE.store(ON, Release);
            recorder.wake_drainer();
        }
    }

    fn start_recorder(&mut self, folder: &Path) -> Result<(), String> {
        let settings = environment::settings()?;
        // The folder is kept absolute: a forked child may begin its recording after a chdir.
        let folder = std::path::absolute(folder).map_err(|error| error.to_string())?;
        let recorder = lane::unrecorded(|| Recorder::start(&folder, settings))
            .map_err(|error| format!("failed to make a recording in `{}`: {error}", folder.display()))?;
        RECORDER.store(std::ptr::from_ref(recorder).cast_mut(), Release);
        region::lock_registry().attach(recorder);
        if !std::mem::replace(&mut self.hooked, true) {
            os::at_exit(at_exit);
            os::at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
        }
        Ok(())
    }

    /// Ends the session, if one runs, and takes its profile.
    fn end(&mut self) {
        let Some(recorder) = current() else {
            // Nothing has begun; and from an explicit end on nothing begins by itself.
            let _ = STATE.compare_exchange(STARTING, OFF, Relaxed, Relaxed);
            return;
        };
        if self.profile.is_none() {
            note_cost(recorder);
            STATE.store(OFF, Relaxed);
            SESSION.fetch_add(1, Relaxed);
            recorder.add_edge(false);
            self.profile = Some(seal(recorder));
        }
    }
}

/// Writes why this process has no recording to where that would be, for who looks for it. Where nothing can
/// be written the line on stderr is all there is.
fn leave_word(folder: &Path, problem: &str) {
    let path = folder.join(format!("{}.{UNRECORDED}", std::process::id()));
    let _ = fs::create_dir_all(folder).and_then(|()| fs::write(path, format!("{problem}\n")));
}

fn seal(recorder: &'static Recorder) -> Profile {
    // What is open now is cut here: sealing takes time that is not the program's.
    recorder.writer().beat(ClockPair::now());
    recorder.settle();
    lane::unrecorded(|| crate::finalize::seal(recorder))
}

/// At the end of the process the recording is sealed but goes on: what later handlers and the
/// last destructors enter is still in it, and a reader counts it.
extern "C" fn at_exit() {
    let mut control = control();
    let Some(recorder) = current() else { return };
    recorder.stop_beats();
    if control.profile.is_none() {
        note_cost(recorder);
        control.profile = Some(seal(recorder));
    } else {
        // Threads that have ended since gave their chunks away, which may be in totals now.
        recorder.settle();
    }
    #[cfg(feature = "hdf5")]
    lane::unrecorded(|| crate::finalize::write_profile(recorder));
}

/// The drainer measures it at its start, for which a short program does not wait.
fn note_cost(recorder: &Recorder) {
    recorder.writer().set_region_cost(cost::region_ps());
}

// A fork copies one thread and all locks. They are held while it happens, so that none of them
// is in the hands of a thread that the child does not have.

struct Held {
    control: MutexGuard<'static, Control>,
    _names: region::NamesGuard,
    registry: MutexGuard<'static, region::Registry>,
}

thread_local! {
    /// What the forking thread holds. Without a destructor, so that a fork is possible at any time.
    static HELD: RefCell<ManuallyDrop<Option<Held>>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

extern "C" fn before_fork() {
    let held = Held { control: control(), _names: region::lock_names(), registry: region::lock_registry() };
    HELD.with(|slot| **slot.borrow_mut() = Some(held));
}

extern "C" fn after_fork_in_parent() {
    drop(HELD.with(|slot| slot.borrow_mut().take()));
}

/// The child records nothing into the recording of its parent: its first region begins one of
/// its own.
extern "C" fn after_fork_in_child() {
    lane::forget_parent();
    #[cfg(feature = "hdf5")]
    crate::own_profile::leave_to_others();
    SESSION.fetch_add(1, Relaxed);
    RECORDER.store(std::ptr::null_mut(), Release);
    let _ = STATE.compare_exchange(ON, STARTING, Relaxed, Relaxed);
    if let Some(mut held) = HELD.with(|slot| slot.borrow_mut().take()) {
        held.registry.detach();
        held.control.profile = None;
    }
}
