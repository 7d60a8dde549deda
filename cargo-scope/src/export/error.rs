//! Why an export failed.

use std::io;
use std::path::PathBuf;

use scope_runtime::call_stack::NestingError;

use crate::hdf5;
use crate::units;

/// The variable that says where temporary files go.
const SORT_REMEDY: &str =
    if cfg!(unix) { "name a folder with room by TMPDIR" } else { "name a folder with room by TMP" };

/// Why an export failed, in one line for the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to export from.
    #[error("no profile was given")]
    NoRuns,
    /// Ranks that are none.
    #[error("`{text}` is no list of ranks: write `0,2-4` or `all`")]
    BadRanks {
        /// What was given.
        text: String,
    },
    /// A rank that the run did not have.
    #[error("there is no rank {rank}: the profile has {ranks} rank(s), counted from 0")]
    InvalidRank {
        /// The rank.
        rank: u32,
        /// Number of ranks.
        ranks: u32,
    },
    /// A filter that is no regular expression.
    #[error("`{pattern}` is no regular expression: {source}")]
    BadPattern {
        /// What was given.
        pattern: String,
        /// What is wrong with it.
        source: Box<regex::Error>,
    },
    /// The filters leave nothing.
    #[error("none of the {regions} region(s) matches the filters, which apply at the start of a name")]
    NoRegions {
        /// Number of regions in the profile.
        regions: usize,
    },
    /// The profile has no calls to make a tree from.
    #[error(
        "the profile has totals per region only, not which region called which: `cargo scope inspect` shows them; \
         to draw call paths, record again with events (scope-profiler: without its aggregation mode)"
    )]
    TotalsOnly,
    /// Columns that no tree can be made from.
    #[error("rank {rank}: {source}")]
    Calls {
        /// The rank.
        rank: u32,
        /// The cause.
        source: NestingError,
    },
    /// Calls that could not be read.
    #[error(transparent)]
    Read(#[from] hdf5::Error),
    /// Calls that stand in the file in no order, and could not be sorted.
    #[error(
        "failed to sort the calls {}in a temporary file in `{}`, which takes {}: {source}; {}",
        profile.as_ref().map(|path| format!("of `{}` ", path.display())).unwrap_or_default(),
        folder.display(), units::bytes(*bytes), SORT_REMEDY
    )]
    Sort {
        /// The profile, where it is in a file.
        profile: Option<PathBuf>,
        /// Where the temporary file was to be.
        folder: PathBuf,
        /// What it takes.
        bytes: u64,
        /// The cause.
        source: io::Error,
    },
    /// A file that could not be written; what was there before is as it was.
    #[error("failed to write `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// One of the above, in one of the runs.
    #[error("{label}: {source}")]
    Run {
        /// Its position among the runs.
        run: usize,
        /// Label of the run.
        label: String,
        /// The cause.
        source: Box<Error>,
    },
}

impl Error {
    /// Whether the text says by itself what it is about, and not only of a run.
    pub(crate) fn names_its_subject(&self) -> bool {
        match self {
            Error::NoRuns
            | Error::BadRanks { .. }
            | Error::BadPattern { .. }
            | Error::Read(_)
            | Error::Sort { .. }
            | Error::Write { .. }
            | Error::Run { .. } => true,
            Error::InvalidRank { .. } | Error::NoRegions { .. } | Error::TotalsOnly | Error::Calls { .. } => {
                false
            }
        }
    }

    /// Says which run it was, where the text does not.
    pub(super) fn in_run(self, run: usize, label: &str) -> Error {
        if self.names_its_subject() {
            return self;
        }
        Error::Run { run, label: label.to_string(), source: Box::new(self) }
    }
}
