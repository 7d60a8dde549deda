//! What differs between operating systems: signals, links to folders, whether a process lives.
//!
//! Both variants have the same functions; this and their files are the only ones that ask for the system.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use self::other::*;
#[cfg(unix)]
pub(crate) use self::unix::*;
