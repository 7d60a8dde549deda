//! Labels of call paths: names from the top down, one reading per label, bounded in length.

use std::fmt::Write;
use std::sync::Arc;

use super::build::PathRow;
use crate::call_stack::PATH_SEPARATOR;

/// Labels are asked for in order of rows, parents before children.
pub(super) struct Labels<'a> {
    /// Names of the regions as they stand in labels.
    names: Vec<String>,
    rows: &'a [PathRow],
    /// Of each row so far, the first row of its path.
    tops: Vec<u32>,
    limit: usize,
}

impl<'a> Labels<'a> {
    pub(super) fn new(names: Vec<String>, rows: &'a [PathRow], limit: usize) -> Labels<'a> {
        Labels { names, rows, tops: Vec::with_capacity(rows.len()), limit }
    }

    /// The label of the next row, given that of its parent.
    pub(super) fn next(&mut self, parent_label: Option<&str>) -> Arc<str> {
        let at = self.tops.len();
        let row = &self.rows[at];
        let name = &self.names[row.region as usize];
        let (Some(parent), Some(parent_label)) = (row.parent, parent_label) else {
            self.tops.push(at as u32);
            return name.as_str().into();
        };
        self.tops.push(self.tops[parent as usize]);
        let whole = parent_label.len() + PATH_SEPARATOR.len() + name.len();
        if whole > self.limit {
            return self.shortened(at).into();
        }
        let mut label = String::with_capacity(whole);
        label.extend([parent_label, PATH_SEPARATOR, name]);
        label.into()
    }

    /// Top, mark and end of a path. The mark has the number of the path, so it is never the same;
    /// the end takes half of what is allowed, so that descendants are whole again for a while.
    fn shortened(&self, at: usize) -> String {
        let name = |at: usize| &*self.names[self.rows[at].region as usize];
        let mut end = vec![name(at)];
        let mut bytes = end[0].len();
        let mut above = self.rows[at].parent;
        while let Some(next) = above {
            bytes += PATH_SEPARATOR.len() + name(next as usize).len();
            if bytes > self.limit / 2 {
                break;
            }
            end.push(name(next as usize));
            above = self.rows[next as usize].parent;
        }
        let mut label = String::new();
        let top = name(self.tops[at] as usize);
        if top.len() <= self.limit / 4 {
            label.extend([top, PATH_SEPARATOR]);
        }
        let _ = write!(label, "… #{at}");
        end.iter().rev().for_each(|name| label.extend([PATH_SEPARATOR, name]));
        label
    }
}

/// A name as it stands in a label: a word of backslashes and `>` gets one more backslash.
pub(super) fn escaped(name: &str) -> String {
    let is_like_separator =
        |word: &str| word.strip_suffix('>').is_some_and(|slashes| slashes.bytes().all(|byte| byte == b'\\'));
    let words = name.split(' ').map(|word| match is_like_separator(word) {
        true => format!("\\{word}"),
        false => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_pose_as_paths() {
        assert_eq!(escaped("a > b"), r"a \> b");
        assert_eq!(escaped(r"a \> b"), r"a \\> b");
        assert_eq!(escaped(">"), r"\>");
        assert_eq!(escaped("Vec<u8> -> u8"), "Vec<u8> -> u8");
        assert_eq!(escaped(" two  spaces "), " two  spaces ");
    }

    #[test]
    fn deep_paths_have_bounded_labels() {
        let row = |at: u32| PathRow { parent: at.checked_sub(1), region: 0, sums: Default::default() };
        let rows: Vec<PathRow> = (0..10_000).map(row).collect();
        let mut labels = Labels::new(vec!["walk".to_owned()], &rows, 100);
        let mut all: Vec<String> = Vec::new();
        for at in 0..rows.len() {
            let label = labels.next(at.checked_sub(1).map(|parent: usize| &*all[parent]));
            assert!(label.len() <= 100, "{label}");
            all.push(label.to_string());
        }
        all.sort();
        all.dedup();
        assert_eq!(all.len(), rows.len());
    }
}
