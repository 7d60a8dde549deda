//! The dict itself: keys, entries, and their order.

use std::collections::HashMap;
use std::collections::hash_map;
use std::fmt;
use std::sync::Arc;

/// File of a function whose source is not known.
pub const PSEUDO_FILENAME: &str = "~";
/// Line of a function whose source is not known.
pub const PSEUDO_LINENO: i64 = 0;

/// What names a function; sorts by file, line, name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Source file, [`PSEUDO_FILENAME`] when unknown.
    pub file: Arc<str>,
    /// Line in it, [`PSEUDO_LINENO`] when unknown.
    pub line: i64,
    /// Name or label of the call path.
    pub name: Arc<str>,
}

impl fmt::Display for Key {
    /// As pstats prints it: `file:line(name)`, or the name alone without source.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if (&*self.file, self.line) != (PSEUDO_FILENAME, PSEUDO_LINENO) {
            return write!(f, "{}:{}({})", self.file, self.line, self.name);
        }
        match self.name.strip_prefix('<').and_then(|name| name.strip_suffix('>')) {
            Some(inner) => write!(f, "{{{inner}}}"),
            None => f.write_str(&self.name),
        }
    }
}

/// Calls of a function from one caller. Fields in the order of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Caller {
    /// Number of calls.
    pub nc: i64,
    /// Primitive calls among them.
    pub cc: i64,
    /// Self time in seconds.
    pub tt_s: f64,
    /// Inclusive time in seconds.
    pub ct_s: f64,
}

/// A function with its sums over all calls. Fields in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What names it.
    pub key: Key,
    /// Primitive calls.
    pub cc: i64,
    /// Number of calls.
    pub nc: i64,
    /// Self time in seconds.
    pub tt_s: f64,
    /// Inclusive time in seconds; a recursive function counts its outermost calls only.
    pub ct_s: f64,
    /// By caller, in insertion order; keys are different.
    pub callers: Vec<(Key, Caller)>,
}

/// Entries by key, in the order of their first insertion.
#[derive(Clone, Debug, Default)]
pub struct Pstats {
    entries: Vec<Entry>,
    places: HashMap<Key, u32>,
}

impl PartialEq for Pstats {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Pstats {
    /// All entries in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry with this key.
    pub fn get(&self, key: &Key) -> Option<&Entry> {
        self.places.get(key).map(|at| &self.entries[*at as usize])
    }

    pub(super) fn get_mut(&mut self, key: &Key) -> Option<&mut Entry> {
        self.places.get(key).map(|at| &mut self.entries[*at as usize])
    }

    /// Puts an entry last, or in the place of the one with the same key; gives its position.
    ///
    /// # Panics
    ///
    /// At 2^32 entries.
    pub fn insert(&mut self, entry: Entry) -> usize {
        match self.places.entry(entry.key.clone()) {
            hash_map::Entry::Occupied(at) => {
                let at = *at.get() as usize;
                self.entries[at] = entry;
                at
            }
            hash_map::Entry::Vacant(free) => {
                let at = self.entries.len();
                free.insert(u32::try_from(at).expect("fewer than 2^32 entries"));
                self.entries.push(entry);
                at
            }
        }
    }

    /// Gives the entry at `at` other callers; keys of callers must be different.
    pub(super) fn set_callers(&mut self, at: usize, callers: Vec<(Key, Caller)>) {
        self.entries[at].callers = callers;
    }

    pub(super) fn reserve(&mut self, more: usize) {
        self.entries.reserve(more);
        self.places.reserve(more);
    }
}
