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

    /// `name=value` for each value, so that a value may begin with a dash; an empty value stands
    /// for an option given without one.
    pub(super) fn many<V: Into<OsString>>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = V>,
    ) -> &mut Line {
        for value in values {
            let value = value.into();
            let mut word = OsString::from(name);
            if !value.is_empty() {
                word.push("=");
                word.push(value);
            }
            self.0.push(word);
        }
        self
    }
}
