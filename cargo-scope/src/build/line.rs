//! A command line for cargo in the making.

use std::ffi::OsString;

/// Words of a command line.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(pub(super) Vec<OsString>);

impl Line {
    pub(super) fn flag(&mut self, name: &str, given: bool) -> &mut Line {
        self.0.extend(given.then(|| name.into()));
        self
    }

    /// `name=value` for each value, so that a value may begin with a dash or be empty.
    pub(super) fn many<V: Into<OsString>>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = V>,
    ) -> &mut Line {
        for value in values {
            let mut word = OsString::from(name);
            word.push("=");
            word.push(value.into());
            self.0.push(word);
        }
        self
    }

    /// The same for an option that may be given without a value, for which an empty one stands.
    pub(super) fn many_or_bare(&mut self, name: &str, values: &[String]) -> &mut Line {
        for value in values {
            if value.is_empty() {
                self.flag(name, true);
            } else {
                self.many(name, [value]);
            }
        }
        self
    }
}
