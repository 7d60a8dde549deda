//! The rows as aligned text.

use scope_runtime::profile::RegionId;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::columns::Column;
use super::rows::{Rows, Shown};
use super::{Layout, Paint};
use crate::export::CallStatistics;
use crate::names::visible;
use crate::paths::NamedPaths;

/// Self time from this part of the whole is worth a colour.
const HOT_PART: f64 = 0.1;

/// Between two columns.
const GAP: usize = 2;
/// A name has so much room at least.
const LEAST_NAME_WIDTH: usize = 12;
/// What is left out first where names have too little room.
const LESS_NEEDED: [Column; 5] =
    [Column::Min, Column::Max, Column::RankMin, Column::RankMax, Column::RankMean];
/// Names with less room, the tree beside them, are worse than a column less.
const GOOD_NAME_WIDTH: usize = 32;

struct Line {
    /// The lines of the tree.
    branch: String,
    name: String,
    cells: Vec<String>,
    hot: bool,
}

impl Line {
    /// Columns of the terminal that the tree takes.
    fn name_width(&self) -> usize {
        self.branch.width() + self.name.width()
    }

    /// Leaves out the middle of the name where it does not fit beside the lines of the tree.
    fn shorten(&mut self, room: usize) {
        self.name = shorten(&self.name, room.saturating_sub(self.branch.width()).max(LEAST_NAME_WIDTH));
    }
}

/// Marks behind numbers; each keeps its column free in the rows without it.
struct Marks<'a> {
    /// Whether any call that is shown was cut.
    cut: bool,
    /// By region, whether its calls are too short to be measured well.
    too_short: &'a [bool],
    any_too_short: bool,
}

impl Marks<'_> {
    fn of_calls(&self, row: &CallStatistics) -> &'static str {
        match (self.cut, row.open) {
            (false, _) => "",
            (true, 0) => " ",
            (true, _) => "*",
        }
    }

    fn of_mean(&self, region: RegionId) -> &'static str {
        match (self.any_too_short, self.is_too_short(region)) {
            (false, _) => "",
            (true, false) => " ",
            (true, true) => "~",
        }
    }

    fn is_too_short(&self, region: RegionId) -> bool {
        self.too_short.get(region.0 as usize) == Some(&true)
    }
}

/// What the rows of a table are taken from.
pub(super) struct Source<'a> {
    pub(super) paths: &'a NamedPaths,
    /// Of each path.
    pub(super) statistics: &'a [CallStatistics],
    /// By region, whether its calls are too short to be measured well.
    pub(super) too_short: &'a [bool],
}

/// The table of `rows`, and whether it marks any mean as too short.
pub(super) fn render(source: &Source<'_>, rows: &Rows, layout: &Layout) -> (String, bool) {
    let at = |row: &Shown| row.path.0 as usize;
    let shown = || rows.shown.iter().map(|row| &source.statistics[at(row)]);
    let regions = || rows.shown.iter().map(|row| source.paths.paths.nodes()[at(row)].region);
    let cut = shown().any(|row| row.open > 0);
    let mut marks = Marks { cut, too_short: source.too_short, any_too_short: false };
    marks.any_too_short = regions().any(|region| marks.is_too_short(region));
    let mut columns = layout.columns.clone().unwrap_or_else(|| {
        let waited = shown().any(|row| row.busy_ns != row.inclusive_ns);
        let usual = if layout.of_ranks { &Column::OF_RANKS[..] } else { &Column::USUAL[..] };
        usual.iter().copied().filter(|&column| waited || column != Column::Busy).collect()
    });
    let mut continues = Vec::new();
    let line = |row: &Shown| {
        continues.truncate(row.depth);
        continues.push(row.continues);
        line(source, row, branch(&continues), &columns, rows.total_ns, &marks)
    };
    let mut lines: Vec<_> = rows.shown.iter().map(line).collect();
    // Marks stand to the right of the digits.
    let is_marked =
        |column| (marks.cut && column == Column::Calls) || (marks.any_too_short && column == Column::Mean);
    let with_room =
        |&column: &Column| format!("{}{}", column.head(), if is_marked(column) { " " } else { "" });
    let widest = |(at, column): (usize, &Column)| {
        lines.iter().map(|line| line.cells[at].len()).chain([with_room(column).len()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = columns.iter().enumerate().map(widest).collect();
    let room_beside = |widths: &[usize]| {
        let numbers: usize = widths.iter().map(|width| GAP + width).sum();
        layout.width.map_or(usize::MAX, |width| usize::from(width).saturating_sub(numbers))
    };
    let wanted = lines.iter().map(Line::name_width).max().unwrap_or(0).min(GOOD_NAME_WIDTH);
    for less_needed in LESS_NEEDED {
        let at = columns.iter().position(|&column| column == less_needed);
        if let Some(at) = at.filter(|_| layout.columns.is_none() && room_beside(&widths) < wanted) {
            columns.remove(at);
            widths.remove(at);
            lines.iter_mut().for_each(|line| drop(line.cells.remove(at)));
        }
    }
    let room = room_beside(&widths).min(layout.max_name_width);
    lines.iter_mut().for_each(|line| line.shorten(room));
    let name_width = lines.iter().map(Line::name_width).chain([layout.head.len()]).max().unwrap_or(0);
    let paint = Paint { color: layout.color };
    let hot = columns.iter().position(|&column| column == Column::SelfTime);
    let heads: Vec<String> = columns.iter().map(with_room).collect();
    let head = format!("{:name_width$}{}", layout.head, cells(&heads, &widths).concat());
    let mut text = format!("{}\n", paint.strong(&head));
    for line in lines {
        let gap = " ".repeat(name_width - line.name_width());
        let mut cells = cells(&line.cells, &widths);
        if let Some(hot) = hot.filter(|_| line.hot) {
            cells[hot] = paint.hot(&cells[hot]);
        }
        text.push_str(&format!("{}{}{gap}{}\n", paint.faint(&line.branch), line.name, cells.concat()));
    }
    (text, marks.any_too_short && columns.contains(&Column::Mean))
}

fn cells(cells: &[String], widths: &[usize]) -> Vec<String> {
    cells.iter().zip(widths).map(|(cell, &width)| format!("{:GAP$}{cell:>width$}", "")).collect()
}

fn line(
    source: &Source<'_>,
    row: &Shown,
    branch: String,
    columns: &[Column],
    total_ns: i64,
    marks: &Marks<'_>,
) -> Line {
    let region = source.paths.paths.nodes()[row.path.0 as usize].region;
    let statistics = &source.statistics[row.path.0 as usize];
    let cell = |&column: &Column| {
        let mark = match column {
            Column::Calls => marks.of_calls(statistics),
            Column::Mean => marks.of_mean(region),
            _ => "",
        };
        format!("{}{mark}", column.cell(statistics, total_ns))
    };
    Line {
        name: visible(source.paths.name(region)).into_owned(),
        branch,
        cells: columns.iter().map(cell).collect(),
        hot: total_ns > 0 && statistics.self_ns as f64 >= HOT_PART * total_ns as f64,
    }
}

/// The lines of the tree before a name. `continues` says of each level, a root's being the first, whether a
/// later sibling is shown.
fn branch(continues: &[bool]) -> String {
    let [_root, above @ .., last] = continues else { return String::new() };
    let mut branch: String = above.iter().map(|&goes_on| if goes_on { "│  " } else { "   " }).collect();
    branch.push_str(if *last { "├─ " } else { "└─ " });
    branch
}

/// `name` in at most `room` columns: both ends tell more than either.
pub(super) fn shorten(name: &str, room: usize) -> String {
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
