//! Lines for the user on stderr, which is the program's too.

use std::fmt::Arguments;
use std::io::Write;

/// Writes one line, marked as ours. A closed stderr is no reason to fail.
pub fn note(text: Arguments<'_>) {
    let _ = writeln!(anstream::stderr().lock(), "scope: {text}");
}

/// Writes a line as cargo writes its own: a bold green verb, then what it is about.
pub fn status(verb: &str, text: Arguments<'_>) {
    let _ = writeln!(anstream::stderr().lock(), "\x1b[1m\x1b[92m{verb:>12}\x1b[0m {text}");
}
