//! The rows as aligned text.

use scope_runtime::totals::PathTotals;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::rows::{Rows, Shown};
use super::{Layout, Paint};
use crate::names::visible;
use crate::paths::NamedPaths;
use crate::units::{count, duration, share};

const HEADS: [&str; 8] = ["calls", "inclusive", BUSY, SELF, "share", "mean", "min", "max"];
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

/// The table of `rows`.
pub(super) fn render(paths: &NamedPaths, rows: &Rows, layout: &Layout) -> String {
    let any = |holds: fn(&PathTotals) -> bool| {
        rows.shown.iter().any(|row| holds(&paths.paths.nodes()[row.path.0 as usize]))
    };
    let marks = any(|node| node.open > 0);
    let waited = any(|node| node.wall_ns != node.inclusive_ns);
    let mut heads: Vec<_> = HEADS.iter().filter(|&&head| waited || head != BUSY).collect();
    let line = |row| line(paths, row, rows.total_ns, marks, waited, layout);
    let lines: Vec<_> = rows.shown.iter().map(line).collect();
    let name_width = lines.iter().map(|line| line.branch.width() + line.name.width());
    let name_width = name_width.chain(["call path".len()]).max().unwrap_or(0);
    let widest = |(column, head): (usize, &&&str)| {
        lines.iter().map(|line| line.cells[column].len()).chain([head.len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = heads.iter().enumerate().map(widest).collect();
    let paint = Paint { color: layout.color };
    let hot = heads.iter().position(|&&head| head == SELF).unwrap_or(0);
    let mut heads: Vec<String> = heads.drain(..).map(|head| head.to_string()).collect();
    if marks {
        // The mark of a cut call stands to the right of the digits.
        heads[0].push(' ');
    }
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

fn line(paths: &NamedPaths, row: &Shown, total_ns: i64, marks: bool, waited: bool, layout: &Layout) -> Line {
    let node = &paths.paths.nodes()[row.path.0 as usize];
    let branch = branch(&row.continues);
    let room = layout.max_name_width.saturating_sub(branch.width()).max(16);
    Line {
        name: shorten(&visible(paths.name(node.region)), room),
        branch,
        cells: numbers(node, total_ns, marks, waited),
        hot: total_ns > 0 && node.self_ns as f64 >= HOT_PART * total_ns as f64,
    }
}

fn numbers(node: &PathTotals, total_ns: i64, marks: bool, waited: bool) -> Vec<String> {
    let mark = match (marks, node.open) {
        (false, _) => "",
        (true, 0) => " ",
        (true, _) => "*",
    };
    let calls = i64::try_from(node.calls).unwrap_or(i64::MAX).max(1);
    let mut cells = vec![format!("{}{mark}", count(node.calls)), duration(node.wall_ns)];
    cells.extend(waited.then(|| duration(node.inclusive_ns)));
    cells.extend([
        duration(node.self_ns),
        share(node.inclusive_ns, total_ns),
        duration(node.wall_ns / calls),
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
