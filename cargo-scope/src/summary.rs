//! The table at the end of a run: a tree of call paths with calls and times, then the files.

use std::path::PathBuf;

use scope_runtime::profile::Profile;

use crate::merged::MergedProfile;
use crate::paths::NamedPaths;

/// What the table is made from. Times in ns.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The line above the table, such as `heat, 8 threads`; empty for none.
    pub title: String,
    /// Call paths, summed over all ranks that are shown.
    pub paths: NamedPaths,
    /// Calls that could not be kept.
    pub lost_calls: u64,
    /// Calls cut at the end of recording.
    pub open_calls: u64,
    /// Calls whose end lay before their start.
    pub faulty_calls: u64,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Writes ANSI styles; the caller knows whether the output is a terminal.
    pub color: bool,
    /// Most rows of call paths.
    pub max_rows: usize,
    /// Most levels of the tree.
    pub max_depth: usize,
    /// Most columns of the name, beyond which its middle is left out.
    pub max_name_width: usize,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout { color: false, max_rows: 40, max_depth: 16, max_name_width: 56 }
    }
}

impl Summary {
    /// The summary of recordings, one per rank.
    pub fn of_profiles<'a>(title: &str, profiles: impl IntoIterator<Item = &'a Profile>) -> Summary {
        let mut summary = Summary { title: title.to_string(), ..Summary::default() };
        let mut trees = Vec::new();
        for profile in profiles {
            summary.lost_calls += profile.lost_calls;
            summary.open_calls += profile.open_calls;
            summary.faulty_calls += profile.faulty_calls;
            trees.push(NamedPaths::of_profile(profile));
        }
        summary.paths = NamedPaths::merged(&trees);
        summary
    }

    /// The summary of a profile file with these call paths (see
    /// [`export::named_paths`](crate::export::named_paths)).
    pub fn of_merged(title: &str, profile: &MergedProfile, paths: NamedPaths) -> Summary {
        let _ = profile;
        Summary { title: title.to_string(), paths, ..Summary::default() }
    }

    /// The table as text, each line ended.
    pub fn render(&self, layout: &Layout) -> String {
        let _ = layout;
        String::new()
    }
}

impl OutputFile {
    /// A `.prof` file, which `snakeviz` opens.
    pub fn prof(path: PathBuf) -> OutputFile {
        OutputFile { path, opener: Some("snakeviz".into()) }
    }

    /// An SVG, which a browser opens.
    pub fn svg(path: PathBuf) -> OutputFile {
        OutputFile { path, opener: Some("xdg-open".into()) }
    }

    /// A profile file, which `cargo scope inspect` opens.
    pub fn hdf5(path: PathBuf) -> OutputFile {
        OutputFile { path, opener: Some("cargo scope inspect".into()) }
    }
}
