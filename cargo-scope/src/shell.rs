//! Text as a POSIX shell takes it.

use std::borrow::Cow;

/// `text` in a form that a shell takes for one word. A NUL, which no word has, stays as it is.
///
/// ```
/// assert_eq!(cargo_scope::shell::word("target/debug/heat"), "target/debug/heat");
/// assert_eq!(cargo_scope::shell::word("two words"), "'two words'");
/// ```
pub fn word(text: &str) -> String {
    shlex::try_quote(text).unwrap_or(Cow::Borrowed(text)).into_owned()
}
