//! Names of different things, which may have one name.

use std::collections::{HashMap, HashSet};

/// `names` with a number added, as `numbered` says, to each that was there before, so that all differ. A number
/// never makes a name that another one has by itself.
pub(crate) fn told_apart(mut names: Vec<String>, numbered: impl Fn(&str, u32) -> String) -> Vec<String> {
    let given: HashSet<String> = names.iter().cloned().collect();
    if given.len() == names.len() {
        return names;
    }
    let mut counts: HashMap<String, u32> = HashMap::with_capacity(given.len());
    for name in &mut names {
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        while *count > 1 {
            let candidate = numbered(name, *count);
            if !given.contains(&candidate) {
                *name = candidate;
                break;
            }
            *count += 1;
        }
    }
    names
}
