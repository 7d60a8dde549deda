//! Region names as text that is safe to show: on a terminal, in XML, in folded stacks.
//!
//! A name is any string. What cannot be shown is written as an escape, so that two different
//! names always stay different: a backslash is doubled, hence a single one begins an escape.

use std::borrow::Cow;
use std::fmt::Write;

/// Stands for the empty name; no other name becomes this, since it holds a single backslash.
const EMPTY: &str = "\\(no name)";

/// `name` without characters that control a terminal, turn the direction of text, break a line,
/// or are forbidden in XML; injective.
///
/// ```
/// assert_eq!(scope_runtime::names::visible("Grid::step"), "Grid::step");
/// assert_eq!(scope_runtime::names::visible("red\u{1b}[31m\n"), "red\\x1b[31m\\n");
/// ```
pub fn visible(name: &str) -> Cow<'_, str> {
    escape(name, |_| false)
}

/// `name` as one frame of a folded stack: as [`visible`], and without what folded text gives a
/// meaning (`;`, a `#` in front, spaces at the ends, a number at the end); injective.
///
/// # Examples
/// ```
/// assert_eq!(scope_runtime::names::folded("halo exchange"), "halo exchange");
/// assert_ne!(scope_runtime::names::folded("a;b"), "a;b");
/// ```
pub fn folded(name: &str) -> Cow<'_, str> {
    let text = name.trim_end();
    let end = text.len();
    // ` 42` at the end would be read as a count.
    let number = text.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let count_at = if number.len() < end && number.ends_with(' ') { number.len() - 1 } else { end };
    let start = name.len() - name.trim_start().len();
    escape(name, |(at, c)| {
        c == ';'
            || (at == 0 && c == '#')
            || (c.is_whitespace() && (at < start || at >= end || at == count_at))
    })
}

/// `a`, `b`, `c` and 4 more.
pub fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let shown: Vec<String> = names.take(SHOWN).map(|name| format!("`{}`", visible(name))).collect();
    let list = shown.join(", ");
    if more == 0 { list } else { format!("{list} and {more} more") }
}

/// Writes characters that are not fit to be shown, and those for which `also` holds (given their
/// byte offset), as escapes.
fn escape(name: &str, also: impl Fn((usize, char)) -> bool) -> Cow<'_, str> {
    if name.is_empty() {
        return EMPTY.into();
    }
    if !name.char_indices().any(|(at, c)| c == '\\' || !is_showable(c) || also((at, c))) {
        return name.into();
    }
    let mut text = String::with_capacity(name.len() + 8);
    for (at, c) in name.char_indices() {
        match c {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if is_showable(c) && !also((at, c)) => text.push(c),
            c if c.is_ascii() => write!(text, "\\x{:02x}", u32::from(c)).expect("a String takes all"),
            c => write!(text, "\\u{{{:x}}}", u32::from(c)).expect("a String takes all"),
        }
    }
    text.into()
}

fn is_showable(c: char) -> bool {
    let breaks_line = matches!(c, '\u{2028}' | '\u{2029}');
    let turns_text =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let nonexistent = matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe;
    !(c.is_control() || breaks_line || turns_text || nonexistent || c == '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_stay() {
        for name in ["step", "<Grid<[f64; 3]> as Solve>::step", "测试 🚲", "e\u{301}", " spaces "] {
            assert_eq!(visible(name), name);
        }
    }

    #[test]
    fn what_cannot_be_shown_is_escaped() {
        assert_eq!(visible("\u{1b}[31m\0\n\r\t"), r"\x1b[31m\x00\n\r\t");
        assert_eq!(visible("\u{fffe}\u{85}\u{202e}"), r"\u{fffe}\u{85}\u{202e}");
        assert_eq!(visible(r"a\n"), r"a\\n");
        assert_eq!(visible(""), r"\(no name)");
        assert_eq!(visible(r"\(no name)"), r"\\(no name)");
    }

    #[test]
    fn long_lists_are_cut() {
        let many: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        let text = listed(many.iter().map(String::as_str));
        assert!(text.starts_with("`0`, `1`") && text.ends_with("`7` and 2 more"), "{text}");
    }

    #[test]
    fn folded_frames_keep_their_borders() {
        assert_eq!(folded("semi;colon"), r"semi\x3bcolon");
        assert_eq!(folded("ends in a number 42"), r"ends in a number\x2042");
        assert_eq!(folded("42"), "42");
        assert_eq!(folded("# starts"), r"\x23 starts");
        assert_eq!(folded(" a b "), r"\x20a b\x20");
        assert_eq!(folded("   "), r"\x20\x20\x20");
        assert_eq!(folded("a 1 "), r"a\x201\x20");
    }
}
