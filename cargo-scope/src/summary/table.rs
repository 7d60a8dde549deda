//! The rows as aligned text.

use scope_runtime::totals::PathTotals;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::rows::{Rows, Shown};
use super::{Layout, Paint};
use crate::names::visible;
use crate::paths::NamedPaths;
use crate::units::{count, duration, share};

const HEADS: [&str; 8] = [CALLS, "inclusive", BUSY, SELF, "share", MEAN, "min", "max"];
/// Heads of the column with a mark at cut calls, and of the one with a mark at regions that are too short.
const CALLS: &str = "calls";
const MEAN: &str = "mean";
/// Head of the column that is there only where calls did not run all of their time.
const BUSY: &str = "busy";
/// Head of the column that says where the time goes.
const SELF: &str = "self";
/// Self time from this part of the whole is worth a colour.
const HOT_PART: f64 = 0.1;

struct Line {
    /// The lines of the tree.
    branch: String,
    name: String,
    cells: Vec<String>,
    hot: bool,
}

/// Marks behind numbers; each keeps its column free in the rows without it.
struct Marks<'a> {
    /// Whether any call that is shown was cut.
    cut: bool,
    /// Whether any call that is shown did not run all of its time.
    waited: bool,
    /// By region, whether its calls are too short to be measured well.
    too_short: &'a [bool],
    any_too_short: bool,
}

impl Marks<'_> {
    fn of_calls(&self, node: &PathTotals) -> &'static str {
        match (self.cut, node.open) {
            (false, _) => "",
            (true, 0) => " ",
            (true, _) => "*",
        }
    }

    fn of_mean(&self, node: &PathTotals) -> &'static str {
        match (self.any_too_short, self.is_too_short(node)) {
            (false, _) => "",
            (true, false) => " ",
            (true, true) => "~",
        }
    }

    fn is_too_short(&self, node: &PathTotals) -> bool {
        self.too_short.get(node.region.0 as usize) == Some(&true)
    }
}

/// The table of `rows`; `too_short` marks regions.
pub(super) fn render(paths: &NamedPaths, rows: &Rows, too_short: &[bool], layout: &Layout) -> String {
    let shown = || rows.shown.iter().map(|row| &paths.paths.nodes()[row.path.0 as usize]);
    let cut = shown().any(|node| node.open > 0);
    let waited = shown().any(|node| node.wall_ns != node.inclusive_ns);
    let mut marks = Marks { cut, waited, too_short, any_too_short: false };
    marks.any_too_short = shown().any(|node| marks.is_too_short(node));
    let heads: Vec<_> = HEADS.iter().filter(|&&head| waited || head != BUSY).collect();
    let line = |row| line(paths, row, rows.total_ns, &marks, layout);
    let lines: Vec<_> = rows.shown.iter().map(line).collect();
    let name_width = lines.iter().map(|line| line.branch.width() + line.name.width());
    let name_width = name_width.chain(["call path".len()]).max().unwrap_or(0);
    let widest = |(column, head): (usize, &&&str)| {
        lines.iter().map(|line| line.cells[column].len()).chain([head.len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = heads.iter().enumerate().map(widest).collect();
    let paint = Paint { color: layout.color };
    let hot = heads.iter().position(|&&head| head == SELF).unwrap_or(0);
    // Marks stand to the right of the digits.
    let is_marked = |head: &str| (marks.cut && head == CALLS) || (marks.any_too_short && head == MEAN);
    let with_room = |head: &&str| if is_marked(head) { format!("{head} ") } else { head.to_string() };
    let heads: Vec<String> = heads.into_iter().map(with_room).collect();
    let head = format!("{:name_width$}{}", "call path", cells(&heads, &widths).concat());
    let mut text = format!("{}\n", paint.strong(&head));
    for line in lines {
        let gap = " ".repeat(name_width - line.branch.width() - line.name.width());
        let mut cells = cells(&line.cells, &widths);
        if line.hot {
            cells[hot] = paint.hot(&cells[hot]);
        }
        text.push_str(&format!("{}{}{gap}{}\n", paint.faint(&line.branch), line.name, cells.concat()));
    }
    text
}

fn cells(cells: &[String], widths: &[usize]) -> Vec<String> {
    cells.iter().zip(widths).map(|(cell, &width)| format!("  {cell:>width$}")).collect()
}

fn line(paths: &NamedPaths, row: &Shown, total_ns: i64, marks: &Marks<'_>, layout: &Layout) -> Line {
    let node = &paths.paths.nodes()[row.path.0 as usize];
    let branch = branch(&row.continues);
    let room = layout.max_name_width.saturating_sub(branch.width()).max(16);
    Line {
        name: shorten(&visible(paths.name(node.region)), room),
        branch,
        cells: numbers(node, total_ns, marks),
        hot: total_ns > 0 && node.self_ns as f64 >= HOT_PART * total_ns as f64,
    }
}

fn numbers(node: &PathTotals, total_ns: i64, marks: &Marks<'_>) -> Vec<String> {
    let calls = i64::try_from(node.calls).unwrap_or(i64::MAX).max(1);
    let mut cells = vec![format!("{}{}", count(node.calls), marks.of_calls(node)), duration(node.wall_ns)];
    cells.extend(marks.waited.then(|| duration(node.inclusive_ns)));
    cells.extend([
        duration(node.self_ns),
        share(node.inclusive_ns, total_ns),
        format!("{}{}", duration(node.wall_ns / calls), marks.of_mean(node)),
        duration(node.min_ns),
        duration(node.max_ns),
    ]);
    cells
}

fn branch(continues: &[bool]) -> String {
    let Some((&last, above)) = continues.split_last() else { return String::new() };
    let mut branch: String = above.iter().map(|&goes_on| if goes_on { "│  " } else { "   " }).collect();
    branch.push_str(if last { "├─ " } else { "└─ " });
    branch
}

/// `name` in at most `room` columns: both ends tell more than either.
fn shorten(name: &str, room: usize) -> String {
    if name.width() <= room {
        return name.to_string();
    }
    let half = (room - 1) / 2;
    let head = fitting(name.chars(), room - 1 - half);
    let tail: String = fitting(name.chars().rev(), half).chars().rev().collect();
    format!("{head}…{tail}")
}

fn fitting(letters: impl Iterator<Item = char>, mut room: usize) -> String {
    let fits = |c: &char| {
        let width = c.width().unwrap_or(0);
        let fits = width <= room;
        room = room.saturating_sub(width);
        fits
    };
    letters.take_while(fits).collect()
}
