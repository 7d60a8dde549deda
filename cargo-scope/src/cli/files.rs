//! Options of the commands that start from files: `collect`, `inspect`, `export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::export::Ranks;
use crate::summary::{Column, Order};

/// Options of `collect`.
#[derive(Debug, Args)]
pub struct CollectOptions {
    /// Folder with the recordings (`rank0.scope`, ...), or that of the run which made them
    #[arg(value_name = "DIR")]
    pub recordings: PathBuf,
    /// Write the outputs to DIR [default: the folder that is named]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Leave arguments and text of the source out of profile.h5
    #[arg(long)]
    pub private: bool,
}

/// Options of `inspect`.
#[derive(Debug, Args)]
pub struct InspectOptions {
    /// Profiles (`profile.h5`, or a folder with one), of cargo-scope or scope-profiler [default: that
    /// of the latest run of this cargo project]
    #[arg(value_name = "PROFILE")]
    pub profiles: Vec<PathBuf>,
    /// Show what measuring cost, and the regions that are too short for it
    #[arg(long, conflicts_with_all = ["flat", "sort", "columns", "top"])]
    pub cost: bool,
    /// Show what MPI did: messages by call path, waiting in collective calls, clocks of the ranks
    #[arg(long, conflicts_with_all = ["flat", "sort", "columns", "top", "cost", "json", "include", "exclude"])]
    pub mpi: bool,
    /// Show a row for each region, with its calls from everywhere, instead of the tree of call paths
    #[arg(long)]
    pub flat: bool,
    /// Order rows by this column, or by `name` or `start`; in the tree those below the same path
    /// [default: busy, which is inclusive time without what async calls waited]
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<Order>,
    /// Columns to show, with commas between them [default: the usual ones]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    pub columns: Option<Vec<Column>>,
    /// Show at most so many rows [default: 40 in the table, all as JSON]
    #[arg(long, value_name = "ROWS", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    /// Print metadata and all statistics as JSON
    #[arg(long, conflicts_with_all = ["cost", "columns"])]
    pub json: bool,
    /// What to show.
    #[command(flatten)]
    pub selection: SelectionOptions,
}

/// Options of `export`.
#[derive(Debug, Args)]
pub struct ExportOptions {
    /// What to write
    #[arg(value_enum, value_name = "KIND")]
    pub kind: ExportKind,
    /// Profiles (`profile.h5`, or a folder with one), of cargo-scope or scope-profiler [default: that
    /// of the latest run of this cargo project]
    #[arg(value_name = "PROFILE")]
    pub profiles: Vec<PathBuf>,
    /// Write the files to DIR [default: the working directory]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// What to write of it.
    #[command(flatten)]
    pub selection: SelectionOptions,
    /// One entry per region instead of one per call path; in a picture a frame as wide as the
    /// region's own time
    #[arg(long)]
    pub no_call_paths: bool,
    /// Name of the root entry, or of the frame below all others; `<LABEL rank N>` unless given, and
    /// `all` in a picture
    #[arg(long, value_name = "TEXT")]
    pub root: Option<String>,
    /// Label in titles, root entries and file names, once for each PROFILE [default: the label in
    /// the profile, else the stem of its name]
    #[arg(long, value_name = "TEXT")]
    pub label: Vec<String>,
    /// Width of the picture in pixels [default: the window's; 1200 where it is fixed] (flame)
    #[arg(long, value_name = "PIXELS", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(100..=100_000))]
    pub width: Option<u32>,
    /// Leave out frames narrower than this share of the whole, in percent (flame)
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true)]
    #[arg(value_parser = percent, default_value = "0.1")]
    pub threshold: f64,
    /// Keep the width of the picture where the window is wider or narrower (flame)
    #[arg(long)]
    pub fixed_width: bool,
    /// Write a picture without search and zoom (flame)
    #[arg(long)]
    pub no_javascript: bool,
}

/// What `export` can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportKind {
    /// `profile_rank<N>.prof`, for snakeviz and pstats
    Prof,
    /// `flamegraph_rank<N>.svg`, and `flamegraph.svg` of all ranks
    Flame,
}

/// Which ranks and regions count.
#[derive(Clone, Debug, Default, Args)]
pub struct SelectionOptions {
    /// Ranks to take: numbers and ranges such as `0,2-4`, or `all`
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub ranks: Ranks,
    /// Take only regions that match this regular expression at the start of their name
    #[arg(long, value_name = "REGEX")]
    pub include: Vec<String>,
    /// Leave out regions that match this regular expression at the start of their name
    #[arg(long, value_name = "REGEX")]
    pub exclude: Vec<String>,
    /// Count the time of async regions from begin to end, not only while they are polled
    #[arg(long)]
    pub wall: bool,
    /// With --wall, nest calls by their lane alone, as scope-profiler does
    #[arg(long, requires = "wall")]
    pub by_lane: bool,
    /// Put tasks and linked work below the region that started them
    #[arg(long, conflicts_with = "wall")]
    pub linked: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err(format!("`{text}` is no percentage; give a number from 0 to 100")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_percentages() {
        assert_eq!(percent("0.5%"), Ok(0.5));
        assert!(percent("-1").is_err() && percent("nan").is_err() && percent("101").is_err());
    }
}
