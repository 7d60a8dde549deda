//! Lines for the user on stderr, which is the program's too.

use std::fmt::Arguments;
use std::io::Write;
use std::path::Path;

use anstream::ColorChoice;
use clap_cargo::style::GOOD;

use crate::export::LeftOut;

/// Colours as cargo does it: `--color` first, then `CARGO_TERM_COLOR`, else on a terminal.
pub fn choose_color(given: Option<&str>) {
    let variable = std::env::var("CARGO_TERM_COLOR").ok();
    match given.or(variable.as_deref()) {
        Some("always") => ColorChoice::Always.write_global(),
        Some("never") => ColorChoice::Never.write_global(),
        _ => {}
    }
}

/// Writes one line, marked as ours. A closed stderr is no reason to fail.
pub fn note(text: Arguments<'_>) {
    line(&format!("scope: {text}\n"));
}

/// Writes what is missing from the figures of the profile at `path`.
pub fn left_out(path: &Path, lanes: &LeftOut) {
    lanes.lines().for_each(|line| note(format_args!("`{}`: {line}", path.display())));
}

/// Writes a line as cargo writes its own: a bold green verb, then what it is about.
pub fn status(verb: &str, text: Arguments<'_>) {
    line(&format!("{GOOD}{verb:>12}{GOOD:#} {text}\n"));
}

/// Writes a line at once, so that nothing of the program's comes in between.
fn line(text: &str) {
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Writes an error with its causes, leaving out a cause that the text before it repeats.
pub fn error(error: &anyhow::Error) {
    note(format_args!("error: {}", with_causes(error)));
}

fn with_causes(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| {
        let known = text.contains(&cause);
        match (text.is_empty(), known) {
            (true, _) => cause,
            (false, true) => text,
            (false, false) => format!("{text}: {cause}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn causes_are_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("failed to open `x`: {source}")]
        struct Telling {
            source: std::io::Error,
        }
        let source = std::io::Error::other("no room");
        let error = Err::<(), _>(Telling { source }).context("nothing was written").unwrap_err();
        assert_eq!(with_causes(&error), "nothing was written: failed to open `x`: no room");
    }
}
