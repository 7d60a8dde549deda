//! The folder that a run writes to: numbered below the target directory, or chosen by the user.
//!
//! ```text
//! target/scope/heat/7/                 a run; `target/scope/heat/latest -> 7`
//!     recordings/                      while the program runs: its rank<N>.scope
//!     recordings/new/                  the outputs, until all of them are complete
//!     profile.h5  profile_rank0.prof  flamegraph_rank0.svg
//! ```
//!
//! Outputs are made in `recordings/new` and moved up once all are there; only then are those of an
//! earlier run removed that have no successor. So a run that fails leaves the previous one alone.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::results::PROFILE_FILE;
use crate::{platform, recordings};

/// Numbered folders of one target that are kept unless the user says otherwise.
pub const KEPT_RUNS: u64 = 10;
/// Name of the folder that a run records to.
pub const RECORDINGS: &str = "recordings";
/// Name of the link to the newest run.
const LATEST: &str = "latest";

/// Why an output folder could not be used.
#[derive(Debug, thiserror::Error)]
#[error("failed to {action} `{}`: {source}; choose a place for the outputs with `-o DIR`", path.display())]
pub struct Error {
    path: PathBuf,
    action: &'static str,
    source: io::Error,
}

fn failed<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
    move |source| Error { path: path.to_path_buf(), action, source }
}

/// Where one run writes.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    recordings: PathBuf,
    /// Number of the run, in a series of numbered ones, and how many of those are kept.
    number: Option<(u64, u64)>,
    /// Whether this run made the folder, and may take it away again.
    created: bool,
    /// Tells other runs that a numbered folder is in use.
    in_use: Option<File>,
}

impl OutputFolder {
    /// A new numbered folder in `series`, the folder of all runs of a target; older ones than the
    /// last `keep` are removed when it is published, but not recordings that no profile was made of.
    ///
    /// # Errors
    /// When the folder cannot be made.
    ///
    /// # Examples
    /// ```
    /// use cargo_scope::outputs::{KEPT_RUNS, OutputFolder};
    ///
    /// let home = tempfile::tempdir()?;
    /// let series = home.path().join("scope/heat");
    /// let folder = OutputFolder::numbered(&series, KEPT_RUNS)?;
    /// std::fs::write(folder.staging()?.join("profile.h5"), "")?;
    /// assert_eq!(folder.publish()?, [series.join("1/profile.h5")]);
    /// folder.remove_recordings()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn numbered(series: &Path, keep: u64) -> Result<OutputFolder, Error> {
        let series = absolute(series)?;
        let mut number = next_number(&series);
        loop {
            fs::create_dir_all(&series).map_err(failed("make the folder", &series))?;
            let path = series.join(number.to_string());
            match fs::create_dir(&path) {
                Ok(()) => {
                    let in_use = lock(&path);
                    let recordings = make_recordings(&path)?;
                    let number = Some((number, keep));
                    return Ok(OutputFolder { path, recordings, number, created: true, in_use });
                }
                // Another run was faster.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                // Another run took the empty series away.
                Err(error) if error.kind() == ErrorKind::NotFound => (),
                Err(error) => return Err(failed("make the folder", &path)(error)),
            }
        }
    }

    /// The folder `path`, made where it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made or written to.
    pub fn at(path: &Path) -> Result<OutputFolder, Error> {
        let path = absolute(path)?;
        let created = !path.is_dir();
        fs::create_dir_all(&path).map_err(failed("make the folder", &path))?;
        let recordings = make_recordings(&path)?;
        Ok(OutputFolder { path, recordings, number: None, created, in_use: None })
    }

    /// An absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A fresh folder for the recordings of this run; absolute, since the program may change its
    /// working directory.
    pub fn recordings(&self) -> &Path {
        &self.recordings
    }

    /// A folder for outputs that are not complete yet, on the same file system.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn staging(&self) -> Result<PathBuf, Error> {
        let path = self.recordings.join("new");
        fs::create_dir_all(&path).map_err(failed("make the folder", &path))?;
        Ok(path)
    }

    /// Puts the staged files into the folder, removes those of an earlier run that have no
    /// successor, and points `latest` here. Gives the files in order of their names.
    ///
    /// # Errors
    /// When a file cannot be moved; the rest then stays where it is.
    pub fn publish(&self) -> Result<Vec<PathBuf>, Error> {
        // Two runs with one `-o` would otherwise mix their files.
        let _one_at_a_time = if self.in_use.is_none() { lock_waiting(&self.path) } else { None };
        let staging = self.staging()?;
        let names = names_in(&staging).map_err(failed("read the folder", &staging))?;
        for name in &names {
            let to = self.path.join(name);
            fs::rename(staging.join(name), &to).map_err(failed("write", &to))?;
        }
        remove_stale(&self.path, &names)?;
        let _ = fs::remove_dir(&staging);
        if let Some((number, keep)) = self.number {
            let series = self.path.parent().unwrap_or(&self.path);
            point_latest(series, number)?;
            remove_old_runs(series, keep);
        }
        Ok(names.iter().map(|name| self.path.join(name)).collect())
    }

    /// Removes the recordings: their contents are in the profile.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn remove_recordings(&self) -> Result<(), Error> {
        fs::remove_dir_all(&self.recordings).map_err(failed("remove", &self.recordings))
    }

    /// Takes the folder for new files away, if it is empty.
    pub fn unstage(&self) {
        let _ = fs::remove_dir(self.recordings.join("new"));
    }

    /// Takes away what this run made, as far as it is empty.
    pub fn discard(self) {
        self.unstage();
        let _ = fs::remove_dir(&self.recordings);
        if self.created && fs::remove_dir(&self.path).is_ok() && self.number.is_some() {
            // The folders above, where they were made for this run.
            let above = self.path.ancestors().skip(1).take(2);
            let _ = above.map(fs::remove_dir).take_while(Result::is_ok).count();
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(failed("find the folder", path))
}

/// Makes `recordings`, or `recordings-2` and so on where an earlier run left its own.
fn make_recordings(folder: &Path) -> Result<PathBuf, Error> {
    for attempt in 1.. {
        let name = if attempt == 1 { RECORDINGS.to_string() } else { format!("{RECORDINGS}-{attempt}") };
        let path = folder.join(name);
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => (),
            Err(error) => return Err(failed("make the folder", &path)(error)),
        }
    }
    unreachable!("there are more numbers than files")
}

fn names_in(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}

/// Whether a file of this name is an output that each run writes anew.
fn is_output(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let rank = |prefix: &str, suffix: &str| {
        let number = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    name == "flamegraph.svg" || rank("profile_rank", ".prof") || rank("flamegraph_rank", ".svg")
}

fn remove_stale(folder: &Path, new: &[std::ffi::OsString]) -> Result<(), Error> {
    for name in names_in(folder).map_err(failed("read the folder", folder))? {
        if is_output(&name) && !new.contains(&name) {
            let path = folder.join(name);
            fs::remove_file(&path).map_err(failed("remove the outdated", &path))?;
        }
    }
    Ok(())
}

/// The numbers of the runs in a series, ascending.
fn numbers_in(series: &Path) -> Vec<u64> {
    let names = names_in(series).unwrap_or_default();
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Points `latest` to run `number`, unless a newer run did so already.
fn point_latest(series: &Path, number: u64) -> Result<(), Error> {
    let link = series.join(LATEST);
    let present = fs::read_link(&link).ok().and_then(|to| to.to_str()?.parse::<u64>().ok());
    if present.is_some_and(|present| present > number && series.join(present.to_string()).is_dir()) {
        return Ok(());
    }
    // Renamed into place, so that there is a `latest` at every moment.
    let fresh = series.join(format!(".{LATEST}-{number}"));
    let _ = fs::remove_file(&fresh);
    platform::link_folder(&number.to_string(), &fresh).map_err(failed("make the link", &fresh))?;
    match fs::rename(&fresh, &link) {
        // A system without links has made none.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        renamed => renamed.map_err(failed("make the link", &link)),
    }
}

/// Removes all but the newest runs; one that is still going on stays, as do all where folders
/// cannot be locked, and recordings that no profile was made of. What cannot be removed now is tried again
/// by the next run.
fn remove_old_runs(series: &Path, keep: u64) {
    let runs = numbers_in(series).into_iter().rev().map(|number| series.join(number.to_string()));
    let old = runs.filter(|run| !has_only_recordings(run)).skip(keep.try_into().unwrap_or(usize::MAX));
    for path in old {
        if let Some(_locked) = lock(&path) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn has_only_recordings(run: &Path) -> bool {
    let from = run.join(RECORDINGS);
    let has_profile = [run, &from].iter().any(|folder| folder.join(PROFILE_FILE).exists());
    !has_profile && recordings::find(&from).is_ok_and(|found| !found.chosen.is_empty())
}

/// Whether the folder is that of a run that is still going on.
pub fn is_in_use(folder: &Path) -> bool {
    let file = File::open(folder);
    file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// The profile written last below `scope`, the folder of all series of a target directory: of each
/// series the one in `latest`, or else of the highest number.
pub fn newest_profile(scope: &Path) -> Option<PathBuf> {
    let series = names_in(scope).unwrap_or_default();
    let profiles = series.iter().filter_map(|name| {
        let series = scope.join(name);
        let numbers = numbers_in(&series).into_iter().rev().map(|number| number.to_string());
        let runs = std::iter::once(LATEST.to_string()).chain(numbers);
        let path = runs.map(|run| series.join(run).join(PROFILE_FILE)).find(|path| path.is_file())?;
        let written = fs::metadata(&path).and_then(|metadata| metadata.modified());
        Some((written.unwrap_or(SystemTime::UNIX_EPOCH), path))
    });
    profiles.max().map(|(_, path)| path)
}

/// The number behind those of the folders in `series`.
pub fn next_number(series: &Path) -> u64 {
    numbers_in(series).last().map_or(1, |last| last.saturating_add(1))
}

/// Locks a folder until the file is dropped, where the file system can.
fn lock(folder: &Path) -> Option<File> {
    let file = File::open(folder).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

fn lock_waiting(folder: &Path) -> Option<File> {
    let file = File::open(folder).ok()?;
    file.lock().ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_outputs(folder: &OutputFolder, names: &[&str]) {
        let staging = folder.staging().unwrap();
        names.iter().for_each(|name| fs::write(staging.join(name), name).unwrap());
        folder.publish().unwrap();
        folder.remove_recordings().unwrap();
    }

    #[test]
    fn the_last_ten_runs_are_kept_and_latest_is_the_newest() {
        let home = tempfile::tempdir().unwrap();
        let series = home.path().join("scope/heat");
        let busy = OutputFolder::numbered(&series, KEPT_RUNS).unwrap();
        for _ in 0..12 {
            write_outputs(&OutputFolder::numbered(&series, KEPT_RUNS).unwrap(), &["profile.h5"]);
        }
        let expected: Vec<u64> = [1].into_iter().chain(4..=13).collect();
        assert_eq!(numbers_in(&series), expected, "run 1 goes on");
        write_outputs(&busy, &["profile.h5"]);
        assert_eq!(fs::read_link(series.join(LATEST)).unwrap(), Path::new("13"));
        drop(busy);
        write_outputs(&OutputFolder::numbered(&series, KEPT_RUNS).unwrap(), &["profile.h5"]);
        assert_eq!(numbers_in(&series), (5..=14).collect::<Vec<_>>());
    }

    #[test]
    fn a_run_is_in_use_until_it_ends() {
        let home = tempfile::tempdir().unwrap();
        let run = OutputFolder::numbered(&home.path().join("heat"), KEPT_RUNS).unwrap();
        let path = run.path().to_path_buf();
        assert!(is_in_use(&path) && !is_in_use(home.path()) && !is_in_use(&home.path().join("none")));
        drop(run);
        assert!(!is_in_use(&path));
    }

    #[test]
    fn as_many_runs_are_kept_as_were_asked_for() {
        let home = tempfile::tempdir().unwrap();
        let series = home.path().join("heat");
        for _ in 0..4 {
            write_outputs(&OutputFolder::numbered(&series, KEPT_RUNS).unwrap(), &["profile.h5"]);
        }
        write_outputs(&OutputFolder::numbered(&series, 2).unwrap(), &["profile.h5"]);
        assert_eq!(numbers_in(&series), [4, 5]);
    }

    #[test]
    fn recordings_without_a_profile_are_kept() {
        let home = tempfile::tempdir().unwrap();
        let series = home.path().join("heat");
        let record = || {
            let folder = OutputFolder::numbered(&series, 1).unwrap();
            fs::write(folder.recordings().join("rank0.scope"), "recorded").unwrap();
            folder
        };
        drop(record());
        for _ in 0..3 {
            let folder = record();
            let staging = folder.staging().unwrap();
            fs::write(staging.join(PROFILE_FILE), "").unwrap();
            folder.publish().unwrap();
        }
        assert_eq!(numbers_in(&series), [1, 4]);
    }

    #[test]
    fn the_newest_profile_is_that_of_the_last_run_of_all_programs() {
        let home = tempfile::tempdir().unwrap();
        let scope = home.path().join("scope");
        assert_eq!(newest_profile(&scope), None);
        for (name, seconds) in [("zebra", 10), ("heat", 30), ("heat", 20)] {
            let folder = OutputFolder::numbered(&scope.join(name), KEPT_RUNS).unwrap();
            write_outputs(&folder, &["profile.h5"]);
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            File::options()
                .write(true)
                .open(folder.path().join("profile.h5"))
                .unwrap()
                .set_modified(time)
                .unwrap();
        }
        assert_eq!(newest_profile(&scope), Some(scope.join("heat/latest/profile.h5")));
        fs::remove_file(scope.join("heat/latest")).unwrap();
        assert_eq!(newest_profile(&scope), Some(scope.join("heat/2/profile.h5")), "without links");
    }

    #[test]
    fn runs_at_the_same_time_get_different_numbers() {
        let home = tempfile::tempdir().unwrap();
        let series = home.path().join("heat");
        let claim = || (0..20).map(|_| OutputFolder::numbered(&series, KEPT_RUNS).unwrap().number.unwrap().0);
        let mut numbers: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| claim().collect::<Vec<_>>())).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=80).collect::<Vec<_>>());
    }

    #[test]
    fn stale_outputs_go_and_other_files_stay() {
        let home = tempfile::tempdir().unwrap();
        let first = ["profile.h5", "profile_rank0.prof", "profile_rank1.prof", "flamegraph.svg"];
        write_outputs(&OutputFolder::at(home.path()).unwrap(), &first);
        for foreign in ["notes.txt", "profile_rankx.prof", "flamegraph_rank.svg"] {
            fs::write(home.path().join(foreign), "mine").unwrap();
        }
        OutputFolder::at(home.path()).unwrap().discard();
        assert!(home.path().join("profile_rank1.prof").exists(), "a run that failed removes nothing");
        write_outputs(&OutputFolder::at(home.path()).unwrap(), &["profile.h5", "profile_rank0.prof"]);
        let left = names_in(home.path()).unwrap();
        let expected =
            ["flamegraph_rank.svg", "notes.txt", "profile.h5", "profile_rank0.prof", "profile_rankx.prof"];
        assert_eq!(left, expected);
    }

    #[test]
    fn a_discarded_run_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        OutputFolder::numbered(&home.path().join("scope/heat"), KEPT_RUNS).unwrap().discard();
        assert!(names_in(home.path()).unwrap().is_empty());
        OutputFolder::at(&home.path().join("out")).unwrap().discard();
        assert!(names_in(home.path()).unwrap().is_empty());
    }

    #[test]
    fn recordings_left_by_an_earlier_run_are_not_touched() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("recordings")).unwrap();
        let folder = OutputFolder::at(home.path()).unwrap();
        assert_eq!(folder.recordings(), home.path().join("recordings-2"));
    }
}
