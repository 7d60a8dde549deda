//! Labels, file names, and files that appear complete or not at all.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::{Error, Run};
use crate::hdf5::publish::Temporary;
use crate::told_apart::told_apart;

/// What several runs are called.
pub(super) struct Names {
    /// A label for each run, all different.
    pub(super) labels: Vec<String>,
    /// A part of a file name for each run, all different; empty with one run.
    slugs: Vec<String>,
}

impl Names {
    /// Names for `runs`.
    ///
    /// # Errors
    /// When there are none.
    pub(super) fn of(runs: &[Run<'_>]) -> Result<Names, Error> {
        let labels: Vec<_> = runs.iter().map(|run| run.label.clone()).collect();
        let labels = told_apart(labels, |label, number| format!("{label} ({number})"));
        let slugs = match runs.len() {
            0 => return Err(Error::NoRuns),
            1 => vec![String::new()],
            _ => slugs(runs, &labels),
        };
        Ok(Names { labels, slugs })
    }

    /// `STEM[_SLUG][_rank<N>].SUFFIX` beside `path`.
    pub(super) fn file(&self, path: &Path, run: usize, rank: Option<u32>, suffix: &str) -> PathBuf {
        let mut name = path.file_stem().unwrap_or_default().to_os_string();
        if !self.slugs[run].is_empty() {
            name.push(format!("_{}", self.slugs[run]));
        }
        if let Some(rank) = rank {
            name.push(format!("_rank{rank}"));
        }
        name.push(".");
        name.push(path.extension().unwrap_or(suffix.as_ref()));
        path.with_file_name(name)
    }
}

/// A part of a file name for each run, with numbers where files of two of them, or of their ranks, would have
/// one name.
fn slugs(runs: &[Run<'_>], labels: &[String]) -> Vec<String> {
    let mut used = HashSet::new();
    let mut unused = |(run, label): (&Run<'_>, &String)| {
        let wanted = slug(label);
        let numbered = (2..).map(|number| format!("{wanted}_{number}"));
        let mut candidates = std::iter::once(wanted.clone()).chain(numbered);
        let names = |slug: &str| {
            // Some file systems take `A` and `a` for one name.
            let slug = slug.to_lowercase();
            let ranks = (0..run.profile.ranks()).map(|rank| format!("{slug}_rank{rank}"));
            ranks.chain([slug.clone()]).collect::<Vec<_>>()
        };
        let free = candidates.find(|slug| !names(slug).iter().any(|name| used.contains(name)));
        let free = free.unwrap_or_default();
        used.extend(names(&free));
        free
    };
    runs.iter().zip(labels).map(&mut unused).collect()
}

/// File names have a limit, of 255 bytes on most systems.
const MAX_SLUG_BYTES: usize = 120;

/// `label` with each run of characters other than letters, digits and `_.+-` as one `_`.
fn slug(label: &str) -> String {
    let mut slug = String::new();
    let mut in_gap = false;
    for c in label.chars() {
        let kept = c.is_alphanumeric() || "_.+-".contains(c);
        let c = if kept { c } else { '_' };
        if (kept || !in_gap) && slug.len() + c.len_utf8() <= MAX_SLUG_BYTES {
            slug.push(c);
        }
        in_gap = !kept;
    }
    let slug = slug.trim_matches('_');
    if slug.is_empty() { "run".into() } else { slug.into() }
}

/// Writes a file through a temporary one beside it; missing folders are made.
///
/// # Errors
/// When `write` or the operating system fails; a file that was there is then as it was.
pub(super) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<fs::File>) -> io::Result<()>,
) -> Result<(), Error> {
    let publish = || {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let temporary = Temporary::beside(path)?;
        let mut out = BufWriter::new(OpenOptions::new().write(true).open(temporary.path())?);
        write(&mut out)?;
        out.flush()?;
        temporary.publish(path)
    };
    publish().map_err(|source| Error::Write { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merged::{MergedProfile, Row};

    fn files(labels: &[&str]) -> Vec<String> {
        let profile = MergedProfile::default();
        let runs: Vec<_> =
            labels.iter().map(|label| Run { label: label.to_string(), profile: &profile }).collect();
        let names = Names::of(&runs).unwrap();
        (0..runs.len())
            .map(|run| names.file(Path::new("out/a.b.prof"), run, Some(3), "svg").display().to_string())
            .collect()
    }

    #[test]
    fn one_run_needs_no_slug() {
        assert_eq!(files(&["a b"]), ["out/a.b_rank3.prof"]);
        let profile = MergedProfile::default();
        let names = Names::of(&[Run { label: "x".into(), profile: &profile }]).unwrap();
        assert_eq!(names.file(Path::new("flame"), 0, None, "svg"), Path::new("flame.svg"));
    }

    #[test]
    fn labels_and_file_names_never_meet() {
        let labels = ["a b", "a_b", "a b", "a b (2)", "✓✓", "/", "A B"];
        let names = files(&labels);
        let expected = ["a_b", "a_b_2", "a_b_3", "a_b_2_2", "run", "run_2", "A_B_4"];
        assert_eq!(names.len(), names.iter().collect::<HashSet<_>>().len());
        assert_eq!(names[0], format!("out/a.b_{}_rank3.prof", expected[0]));
        assert_eq!(names[4], "out/a.b_run_rank3.prof");
        let labels: Vec<_> = labels.iter().map(|label| label.to_string()).collect();
        let labels = told_apart(labels, |label, number| format!("{label} ({number})"));
        assert_eq!(labels, ["a b", "a_b", "a b (3)", "a b (2)", "✓✓", "/", "A B"]);
    }

    #[test]
    fn the_file_of_a_rank_is_not_that_of_another_run() {
        let rows = vec![Row { rank: 1, ..Row::default() }];
        let profile = MergedProfile { rows, ..MergedProfile::default() };
        let labels = ["x_RANK1", "x", "x_rank0", "x_2_rank1", "x"];
        let runs: Vec<_> =
            labels.iter().map(|label| Run { label: label.to_string(), profile: &profile }).collect();
        let names = Names::of(&runs).unwrap();
        let file = |run, rank| names.file(Path::new("p"), run, rank, "svg").to_string_lossy().to_lowercase();
        let of_run = |run| [None, Some(0), Some(1)].map(|rank| file(run, rank));
        let all: HashSet<_> = (0..labels.len()).flat_map(of_run).collect();
        assert_eq!(all.len(), 3 * labels.len(), "{all:?}");
        assert_eq!(file(1, None), "p_x_2.svg");
    }

    #[test]
    fn slugs_keep_words() {
        assert_eq!(slug("-O3, été: 4__ranks!"), "-O3_été_4__ranks");
        assert_eq!(slug(&"x".repeat(1000)).len(), MAX_SLUG_BYTES);
    }

    #[test]
    fn a_failed_write_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/deep/file.txt");
        write_file(&path, |out| out.write_all(b"first")).unwrap();
        let error = write_file(&path, |_| Err(io::Error::other("no ink"))).unwrap_err();
        assert_eq!(error.to_string(), format!("failed to write `{}`: no ink", path.display()));
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
