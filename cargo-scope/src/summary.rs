//! The table at the end of a run: a tree of call paths with calls and times, then the files.
//!
//! ```text
//! heat: 2 threads
//!
//! call path   calls  inclusive      self  share      mean       min       max
//! main            1    2.310 s  1.204 ms   100%   2.310 s   2.310 s   2.310 s
//! └─ sweep    1,200    2.309 s   2.309 s  99.9%  1.924 ms  1.873 ms  4.113 ms
//!
//! profile_rank0.prof  snakeviz target/scope/heat/1/profile_rank0.prof
//! ```

mod columns;
mod rows;
mod table;

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use scope_runtime::profile::Profile;
use scope_runtime::totals::PathId;
use unicode_width::UnicodeWidthStr;

pub use self::columns::{Column, Order};
use self::rows::Rows;
use self::table::Source;
use crate::cost::{LEAST_TIMES, RegionCost};
use crate::export::CallStatistics;
use crate::merged::{MergedProfile, MetadataValue};
use crate::names::{listed, visible};
use crate::paths::NamedPaths;
use crate::shell;
use crate::units::{counted, duration};

/// What the table is made from. Times in ns.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The line above the table, such as `heat, 8 threads`; empty for none.
    pub title: String,
    /// What is known about the run, as lines of key and value below the title.
    pub metadata: Vec<(String, String)>,
    /// Call paths, or regions as paths of one step, summed over all ranks that are shown.
    pub paths: NamedPaths,
    /// Statistics of each of them; `None` takes what the sums tell.
    pub statistics: Option<Vec<CallStatistics>>,
    /// Calls that could not be kept.
    pub lost_calls: u64,
    /// Calls cut at the end of recording.
    pub open_calls: u64,
    /// Names of their regions.
    pub open_regions: Vec<String>,
    /// Calls whose end lay before their start.
    pub faulty_calls: u64,
    /// What a region cost; `None` when unknown.
    pub cost: Option<RegionCost>,
    /// How the ranks differ, in lines.
    pub imbalance: Vec<String>,
    /// Files written, in the order in which they are named.
    pub files: Vec<OutputFile>,
}

/// A file that the run wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// Path, as a shell in the user's folder can use it.
    pub path: PathBuf,
    /// What opens it; `None` when the path says enough.
    pub opener: Option<String>,
}

/// How the table is laid out.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Writes ANSI styles; the caller knows whether the output is a terminal.
    pub color: bool,
    /// Most rows of call paths.
    pub max_rows: usize,
    /// Most levels of the tree.
    pub max_depth: usize,
    /// Most columns of the name, beyond which its middle is left out.
    pub max_name_width: usize,
    /// Columns of the terminal, where it is one: names get shorter, and what is least needed of the usual
    /// numbers is left out, such that lines fit.
    pub width: Option<u16>,
    /// A path with less than this part of the whole is shown without what is below it.
    pub least_part: f64,
    /// Head of the names.
    pub head: &'static str,
    /// The columns; `None` takes the usual ones.
    pub columns: Option<Vec<Column>>,
    /// Compares the ranks, where the usual columns are shown.
    pub of_ranks: bool,
    /// What orders the rows; `None` takes the sums of inclusive time.
    pub order: Option<Order>,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            color: false,
            max_rows: 40,
            max_depth: 16,
            max_name_width: 56,
            width: None,
            least_part: 0.001,
            head: "call path",
            columns: None,
            of_ranks: false,
            order: None,
        }
    }
}

impl Summary {
    /// The summary of recordings, one per rank.
    pub fn of_profiles<P: Borrow<Profile>>(title: &str, profiles: impl IntoIterator<Item = P>) -> Summary {
        let mut summary = Summary { title: title.to_string(), ..Summary::default() };
        let mut trees = Vec::new();
        for profile in profiles {
            let profile = profile.borrow();
            summary.lost_calls += profile.lost_calls;
            summary.open_calls += profile.open_calls;
            summary.open_regions.extend(profile.open_regions().iter().map(|region| region.name.clone()));
            summary.faulty_calls += profile.faulty_calls;
            trees.push(NamedPaths::of_profile(profile));
        }
        summary.open_regions.sort_unstable();
        summary.open_regions.dedup();
        summary.paths = NamedPaths::merged(&trees);
        summary
    }

    /// The summary of a profile file with these call paths (see
    /// [`export::named_paths`](crate::export::named_paths)).
    pub fn of_merged(title: &str, profile: &MergedProfile, paths: NamedPaths) -> Summary {
        let number =
            |key| profile.metadata_integer(key).and_then(|number| number.try_into().ok()).unwrap_or(0);
        Summary {
            title: title.to_string(),
            metadata: Vec::new(),
            paths,
            statistics: None,
            lost_calls: number("lost_calls"),
            open_calls: number("open_calls"),
            open_regions: match profile.metadata_value("open_regions") {
                Some(MetadataValue::List(names)) => names.clone(),
                _ => Vec::new(),
            },
            faulty_calls: number("faulty_calls"),
            cost: RegionCost::of(profile),
            imbalance: Vec::new(),
            files: Vec::new(),
        }
    }

    /// The table as text, each line ended.
    ///
    /// # Examples
    /// ```
    /// use cargo_scope::summary::{Layout, Summary};
    /// use scope_runtime::profile::RegionId;
    ///
    /// let mut summary = Summary::default();
    /// summary.paths.names = vec!["main".into()];
    /// let main = summary.paths.paths.step(None, RegionId(0));
    /// summary.paths.paths.add_call(main, 1_500_000, 1_500_000, false);
    /// let text = summary.render(&Layout::default());
    /// assert!(text.lines().nth(1).unwrap().starts_with("main") && text.contains("1.500 ms"));
    /// ```
    pub fn render(&self, layout: &Layout) -> String {
        let paint = Paint { color: layout.color };
        let mut text = String::new();
        if !self.title.is_empty() {
            text.push_str(&format!("{}\n\n", paint.strong(&visible(&self.title))));
        }
        self.render_metadata(&paint, &mut text);
        let statistics = self.statistics();
        let rows = self.rows(&statistics, layout);
        let marks_means = if rows.shown.is_empty() {
            text.push_str("There are no calls to show.\n");
            false
        } else {
            let too_short = self.cost.map_or(Vec::new(), |cost| cost.too_short(&self.paths, &statistics));
            let source = Source { paths: &self.paths, statistics: &statistics, too_short: &too_short };
            let (table, marks_means) = table::render(&source, &rows, layout);
            text.push_str(&table);
            marks_means
        };
        self.notes(&rows, &statistics, layout.head, marks_means)
            .iter()
            .for_each(|note| text.push_str(&format!("{}\n", paint.warning(note))));
        if !self.files.is_empty() {
            text.push('\n');
            self.render_files(&paint, &mut text);
        }
        text
    }

    /// The rows of the table with this layout, parents before children.
    pub(crate) fn shown(&self, layout: &Layout) -> Vec<(PathId, CallStatistics)> {
        let statistics = self.statistics();
        let rows = self.rows(&statistics, layout).shown;
        rows.iter().map(|row| (row.path, statistics[row.path.0 as usize].clone())).collect()
    }

    fn render_metadata(&self, paint: &Paint, text: &mut String) {
        let width = self.metadata.iter().map(|(key, _)| key.width()).max().unwrap_or(0);
        for (key, value) in &self.metadata {
            let gap = " ".repeat(width - key.width());
            let value = table::shorten(&visible(value), MAX_METADATA_WIDTH);
            text.push_str(&format!("{}{gap}  {value}\n", paint.faint(&visible(key))));
        }
        if !self.metadata.is_empty() {
            text.push('\n');
        }
    }

    /// Statistics of each path.
    fn statistics(&self) -> Cow<'_, [CallStatistics]> {
        match &self.statistics {
            Some(statistics) => Cow::Borrowed(statistics),
            None => self.paths.paths.nodes().iter().map(CallStatistics::of_path).collect(),
        }
    }

    fn rows(&self, statistics: &[CallStatistics], layout: &Layout) -> Rows {
        let places = match layout.order {
            Some(order) => order.places(&self.paths, statistics),
            None => columns::usual_places(&self.paths),
        };
        rows::choose(&self.paths, &places, layout)
    }

    /// What the reader must know about the numbers, and about the marks of means where there are some.
    fn notes(
        &self,
        rows: &Rows,
        statistics: &[CallStatistics],
        head: &str,
        marks_means: bool,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        if rows.left_out > 0 {
            let more = counted(rows.left_out, &format!("more {head}"), &format!("more {head}s"));
            let deepest = counted(rows.levels.into(), "level", "levels");
            let most = duration(rows.most_left_out_ns);
            let tree = if rows.levels > 1 { format!("; the tree has {deepest}") } else { String::new() };
            let waited = statistics.iter().any(|row| row.busy_ns != row.inclusive_ns);
            let busy = if waited { " busy" } else { "" };
            notes.push(format!("... {more} of up to {most}{busy}{tree}"));
        }
        notes.extend(self.imbalance.iter().cloned());
        if let Some(cost) = self.cost.filter(|_| !rows.shown.is_empty()) {
            notes.push(cost.in_all(&self.paths));
            if marks_means {
                let list = "`cargo scope inspect --cost` lists such regions";
                notes.push(format!("~ the mean is below {LEAST_TIMES} times that: {list}"));
            }
        }
        if self.open_calls > 0 {
            let calls = counted(self.open_calls, "call was", "calls were");
            let regions = match &self.open_regions[..] {
                [] => String::new(),
                names => format!(": {}", listed(names.iter().map(String::as_str))),
            };
            notes.push(format!("* {calls} still open at the end, and cut there{regions}"));
        }
        let cancelled = self.cancelled();
        if !cancelled.is_empty() {
            let calls =
                counted(cancelled.values().copied().fold(0, u64::saturating_add), "call was", "calls were");
            let regions = listed(cancelled.into_keys());
            notes.push(format!("{calls} dropped before completion: {regions}"));
        }
        if self.lost_calls > 0 {
            let calls = counted(self.lost_calls, "call is", "calls are");
            notes.push(format!("! {calls} missing: there was no room to record more"));
        }
        if self.faulty_calls > 0 {
            let calls = counted(self.faulty_calls, "call", "calls");
            notes.push(format!("! {calls} ended before the start (the clock stepped back), counted as 0 ns"));
        }
        notes
    }

    /// How many calls were dropped before their futures completed, by name of region.
    fn cancelled(&self) -> BTreeMap<&str, u64> {
        let mut cancelled = BTreeMap::new();
        for node in self.paths.paths.nodes().iter().filter(|node| node.cancelled > 0) {
            let calls: &mut u64 = cancelled.entry(self.paths.name(node.region)).or_default();
            *calls = calls.saturating_add(node.cancelled);
        }
        cancelled
    }

    /// One line per file: its name, and the command that opens it.
    fn render_files(&self, paint: &Paint, text: &mut String) {
        let shown = &self.files[..self.files.len().min(MAX_FILES)];
        let name = |file: &OutputFile| {
            let name = file.path.file_name().unwrap_or(file.path.as_os_str()).to_string_lossy().into_owned();
            visible(&name).into_owned()
        };
        let width = shown.iter().map(|file| name(file).width()).max().unwrap_or(0);
        for file in shown {
            let path = in_shell(&file.path.to_string_lossy());
            let command = file.opener.as_ref().map_or(path.clone(), |opener| format!("{opener} {path}"));
            let name = name(file);
            let gap = " ".repeat(width - name.width());
            text.push_str(&format!("{name}{gap}  {}\n", paint.command(&command)));
        }
        if let Some(more) = self.files.len().checked_sub(MAX_FILES).filter(|&more| more > 0) {
            text.push_str(&format!("... {} beside them\n", counted(more as u64, "more file", "more files")));
        }
    }
}

/// Most columns of a value of the metadata, beyond which its middle is left out.
const MAX_METADATA_WIDTH: usize = 96;
/// Most lines of files: a run of 1,000 ranks writes 2,000.
const MAX_FILES: usize = 12;

/// `path` as a shell takes it for one word. One that would control the terminal is shown, at the
/// price that it cannot be pasted.
fn in_shell(path: &str) -> String {
    if path.chars().any(char::is_control) { shell::word(&visible(path)) } else { shell::word(path) }
}

/// Styles, or none.
struct Paint {
    color: bool,
}

impl Paint {
    fn strong(&self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    fn faint(&self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    fn warning(&self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    fn hot(&self, text: &str) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    fn command(&self, text: &str) -> String {
        self.paint(AnsiColor::Cyan.on_default(), text)
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.color && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_string() }
    }
}

impl OutputFile {
    /// A `.prof` file, which `snakeviz` opens.
    pub fn prof(path: PathBuf) -> OutputFile {
        OutputFile { path, opener: Some("snakeviz".into()) }
    }

    /// An SVG, which a browser opens.
    pub fn svg(path: PathBuf) -> OutputFile {
        OutputFile { path, opener: Some("open in a browser:".into()) }
    }

    /// A profile file, which `cargo scope inspect` opens.
    pub fn hdf5(path: PathBuf) -> OutputFile {
        OutputFile { path, opener: Some("cargo scope inspect".into()) }
    }
}

#[cfg(test)]
mod tests;
