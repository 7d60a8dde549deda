//! Runs the user's program as if nobody stood in between, and ends as it ended.

use std::io;
use std::process::{Command, ExitStatus};

use crate::platform;

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
        match (status.code(), platform::signal_of(status)) {
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
    match platform::signal_name(signal) {
        Some(name) => format!("signal {signal} ({name})"),
        None => format!("signal {signal}"),
    }
}

impl Ending {
    /// Success of a program is ours only if we did our part; its failure always is.
    ///
    /// # Examples
    /// ```
    /// use cargo_scope::program::Ending;
    ///
    /// assert_eq!(Ending::Status(0).or_failure(true), Ending::Status(1));
    /// assert_eq!(Ending::Status(3).or_failure(true), Ending::Status(3));
    /// ```
    pub fn or_failure(self, ours: bool) -> Ending {
        if ours && self == Ending::Status(0) { Ending::Status(1) } else { self }
    }

    /// Ends this process in the same way. A signal leaves no core file: the program's own, if
    /// it made one, is the interesting one.
    pub fn end(self) -> ! {
        match self {
            Ending::Status(code) => std::process::exit(code),
            Ending::Signal(signal) => {
                platform::raise(signal);
                std::process::exit(128 + signal)
            }
        }
    }
}

/// What a signal is for that was sent to us alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// The process that was started: it is, or becomes, the program.
    Program,
    /// That process and those that it started: cargo runs several programs and stays.
    CargoAndPrograms,
}

/// What came of running a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// It ended so.
    Ended(Ending),
    /// The user has interrupted us twice and waits no longer, though it may still run. We end so.
    Abandoned(Ending),
}

/// Runs `command` to its end with our stdin, stdout, stderr and working directory.
///
/// Ctrl-C goes from the terminal to the program and to us alike; the program decides what to do,
/// and we go on to write its profile. After a second one we wait no longer. What was sent to us alone, by
/// `kill` or a batch system, is meant for the whole job, and is passed on to `recipient`.
///
/// # Errors
/// When the command cannot be started or waited for.
pub fn run(command: &mut Command, recipient: Recipient) -> io::Result<Ran> {
    platform::run(command, recipient)
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
