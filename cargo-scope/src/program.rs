//! Runs the user's program as if nobody stood in between, and ends as it ended.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};

use libc::c_int;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this status.
    Status(i32),
    /// Of this signal.
    Signal(i32),
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Ending {
        match (status.code(), status.signal()) {
            (Some(code), _) => Ending::Status(code),
            (None, Some(signal)) => Ending::Signal(signal),
            (None, None) => Ending::Status(1),
        }
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Status(code) => write!(f, "the program ended with status {code}"),
            Ending::Signal(signal) => write!(f, "the program died of {}", signal_name(*signal)),
        }
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

impl Ending {
    /// Success of a program is ours only if we did our part; its failure always is.
    pub fn or_failure(self, ours: bool) -> Ending {
        if ours && self == Ending::Status(0) { Ending::Status(1) } else { self }
    }

    /// Ends this process in the same way. A signal leaves no core file: the program's own, if
    /// it made one, is the interesting one.
    pub fn end(self) -> ! {
        match self {
            Ending::Status(code) => std::process::exit(code),
            Ending::Signal(signal) => {
                raise(signal);
                std::process::exit(128 + signal)
            }
        }
    }
}

/// Raises `signal` on this process with its default effect.
fn raise(signal: c_int) {
    // SAFETY: plain system calls on values that live here; the handler that is replaced was
    // installed by this module or inherited.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        let mut only = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&mut only);
        libc::sigaddset(&mut only, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &only, std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// Runs `command` to its end with our stdin, stdout, stderr and working directory.
///
/// Ctrl-C goes from the terminal to the program and to us alike; the program decides what to do,
/// and we go on to write its profile. A second one ends us. SIGTERM and SIGHUP may be meant
/// for the whole job though sent to us alone, so they are passed on.
///
/// # Errors
/// When the command cannot be started or waited for.
pub fn run(command: &mut Command) -> io::Result<Ending> {
    handle(libc::SIGINT, on_interrupt);
    handle(libc::SIGQUIT, on_interrupt);
    handle(libc::SIGTERM, on_termination);
    handle(libc::SIGHUP, on_termination);
    let mut child = command.spawn()?;
    CHILD.store(child.id().cast_signed(), SeqCst);
    // A signal that came before the line above found no child to go to.
    if let missed @ 1.. = MISSED.swap(0, SeqCst) {
        pass_on(missed);
    }
    wait_unreaped(&child);
    CHILD.store(ENDED, SeqCst);
    Ok(child.wait()?.into())
}

/// Waits until `child` has ended, and leaves its process id taken, so that a signal passed on
/// meanwhile cannot hit a stranger.
fn wait_unreaped(child: &Child) {
    loop {
        // SAFETY: `info` is a valid place for the answer, and zero is a valid value of it.
        let answer = unsafe {
            let mut info = std::mem::zeroed::<libc::siginfo_t>();
            libc::waitid(libc::P_PID, child.id(), &mut info, libc::WEXITED | libc::WNOWAIT)
        };
        if answer == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

/// Process id of the program while it runs; 0 before, [`ENDED`] after.
static CHILD: AtomicI32 = AtomicI32::new(0);
const ENDED: i32 = -1;
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// A signal to pass on that came before the program was there.
static MISSED: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_interrupt(signal: c_int) {
    if INTERRUPTED.swap(true, SeqCst) {
        end_by(signal);
    }
}

extern "C" fn on_termination(signal: c_int) {
    match CHILD.load(SeqCst) {
        0 => MISSED.store(signal, SeqCst),
        ENDED => end_by(signal),
        _ => pass_on(signal),
    }
}

/// Sends `signal` to the program. Called in signal handlers.
fn pass_on(signal: c_int) {
    let child = CHILD.load(SeqCst);
    if child > 0 {
        // SAFETY: `kill` is safe to call anywhere; the id is of a child that was not reaped yet.
        unsafe { libc::kill(child, signal) };
    }
}

/// Takes effect when the handler returns. Called in signal handlers.
fn end_by(signal: c_int) {
    // SAFETY: both are async-signal-safe.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Installs `handler`, unless whoever started us had the signal ignored (`nohup`): the program
/// inherits that, and so do we. A program never inherits a handler.
fn handle(signal: c_int, handler: extern "C" fn(c_int)) {
    // SAFETY: the handlers of this module only touch atomics and async-signal-safe functions, and
    // `action` is fully initialised.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        if libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
        {
            return;
        }
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_failure_comes_first() {
        assert_eq!(Ending::Status(0).or_failure(true), Ending::Status(1));
        assert_eq!(Ending::Status(3).or_failure(true), Ending::Status(3));
        assert_eq!(Ending::Signal(9).or_failure(true), Ending::Signal(9));
        assert_eq!(Ending::Status(0).or_failure(false), Ending::Status(0));
    }

    #[test]
    fn endings_are_told_in_words() {
        assert_eq!(Ending::Signal(9).to_string(), "the program died of signal 9 (SIGKILL)");
        assert_eq!(Ending::Signal(64).to_string(), "the program died of signal 64");
    }
}
