//! From profiles to `.prof` and SVG files: which ranks, which regions, which file names.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::flame::FlameOptions;
use crate::merged::MergedProfile;
use crate::paths::NamedPaths;

/// A profile and what it is called.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Label; the file's stem where the user gave none.
    pub label: String,
    /// The profile.
    pub profile: &'a MergedProfile,
}

/// Which part of a profile is exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Ranks.
    pub ranks: Ranks,
    /// Regular expressions, matched at the start of region names; empty keeps all.
    pub include: Vec<String>,
    /// Regular expressions, matched at the start of region names; they win over `include`.
    pub exclude: Vec<String>,
}

/// Ranks to export, parsed from text such as `0,2-4` or `all`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranks {
    /// Every rank of the profile.
    All,
    /// These, in ascending order without repeats.
    List(Vec<u32>),
}

impl Default for Ranks {
    /// Every rank: a rank that is not asked for is a surprise, one file more is none.
    fn default() -> Ranks {
        Ranks::All
    }
}

impl FromStr for Ranks {
    type Err = Error;

    fn from_str(text: &str) -> Result<Ranks, Error> {
        Err(Error::BadRanks { text: text.into() })
    }
}

/// How a `.prof` file is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfOptions {
    /// Name of the root entry; `None` takes `<LABEL rank N>`.
    pub root: Option<String>,
    /// One entry per call path; else one per region.
    pub call_paths: bool,
}

impl Default for ProfOptions {
    fn default() -> ProfOptions {
        ProfOptions { root: None, call_paths: true }
    }
}

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Ranks that are none.
    #[error("`{text}` is no list of ranks: write `0,2-4` or `all`")]
    BadRanks {
        /// What was given.
        text: String,
    },
    /// A file that could not be written; what was there before is as it was.
    #[error("failed to write `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Writes `STEM[_SLUG]_rank<N>.prof` beside `path` for each rank of each run; gives the paths.
///
/// # Errors
/// See [`Error`]; files written before the failing one stay.
pub fn export_prof(
    runs: &[Run<'_>],
    path: &Path,
    selection: &Selection,
    options: &ProfOptions,
) -> Result<Vec<PathBuf>, Error> {
    let _ = (runs, path, selection, options);
    Ok(Vec::new())
}

/// Writes `STEM[_SLUG]_rank<N>.svg` beside `path` for each rank of each run; gives the paths.
///
/// # Errors
/// See [`Error`]; files written before the failing one stay.
pub fn export_flame(
    runs: &[Run<'_>],
    path: &Path,
    selection: &Selection,
    options: &FlameOptions,
) -> Result<Vec<PathBuf>, Error> {
    let _ = (runs, path, selection, options);
    Ok(Vec::new())
}

/// Writes one flame graph of all selected ranks together, `STEM[_SLUG].svg`, for each run.
///
/// # Errors
/// See [`Error`]; files written before the failing one stay.
pub fn export_merged_flame(
    runs: &[Run<'_>],
    path: &Path,
    selection: &Selection,
    options: &FlameOptions,
) -> Result<Vec<PathBuf>, Error> {
    let _ = (runs, path, selection, options);
    Ok(Vec::new())
}

/// The call paths of the selected ranks and regions, added up.
///
/// # Errors
/// When the selection does not fit the profile, or its calls do not nest.
pub fn named_paths(profile: &MergedProfile, selection: &Selection) -> Result<NamedPaths, Error> {
    let _ = (profile, selection);
    Ok(NamedPaths::default())
}
