//! The recordings of a run: finding them, opening them, and saying what they lack.

mod by_program;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use scope_runtime::profile::Profile;
use scope_runtime::recording::{Info, Recording};

pub use self::by_program::{OfProgram, by_program};
use crate::collect::{Merger, RunInfo, with_merger};
use crate::hdf5::ProfileWriter;
use crate::merged::MergedProfile;
use crate::names::listed;
use crate::platform;
use crate::program::Ending;
use crate::units::counted;

/// What lies in a folder of recordings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// One per rank, in order of rank.
    pub chosen: Vec<PathBuf>,
    /// Further ones of a rank: of child processes, or of a second copy of the runtime.
    pub others: Vec<PathBuf>,
    /// Number of processes that could not make one, and said so.
    pub failures: u64,
}

impl Found {
    /// All of them.
    pub fn all(&self) -> Vec<PathBuf> {
        [self.chosen.as_slice(), &self.others].concat()
    }
}

/// Finds the recordings in `folder`. The first one of a rank is mostly `rank<N>.scope`; further
/// processes of that rank have their process id in the name. Where one of these has started the process that was
/// the first to record, it is the program all the same.
///
/// # Errors
/// When the folder cannot be read.
pub fn find(folder: &Path) -> anyhow::Result<Found> {
    let unreadable = || format!("failed to read the folder `{}`", folder.display());
    let mut found = Found::default();
    let mut by_rank: BTreeMap<u32, Vec<(Vec<u64>, PathBuf)>> = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        if let Some((rank, numbers)) = path.file_name().and_then(order) {
            by_rank.entry(rank).or_default().push((numbers, path));
        } else if path.extension().is_some_and(|extension| extension == "unrecorded") {
            found.failures += 1;
        }
    }
    for mut of_rank in by_rank.into_values() {
        of_rank.sort_unstable();
        let is_alone = of_rank.len() == 1;
        let with_info = |(_, path): (Vec<u64>, PathBuf)| {
            let info =
                if is_alone { Info::default() } else { Recording::read_head(&path).unwrap_or_default() };
            (path, info)
        };
        let mut of_rank: Vec<_> = of_rank.into_iter().map(with_info).collect();
        starters_first(&mut of_rank);
        let mut paths = of_rank.into_iter().map(|(path, _)| path);
        found.chosen.extend(paths.next());
        found.others.extend(paths);
    }
    Ok(found)
}

/// Puts the processes that one of the others has started behind all that none has; otherwise they keep their order.
fn starters_first(recordings: &mut [(PathBuf, Info)]) {
    let pids: HashSet<u32> = recordings.iter().map(|(_, info)| info.pid).collect();
    // 0 stands for what is not known.
    recordings.sort_by_key(|(_, info)| info.parent_pid != 0 && pids.contains(&info.parent_pid));
}

/// Rank, then process id and number, from `rank<N>.scope` or `rank<N>.<pid>.<k>.scope`.
fn order(name: &OsStr) -> Option<(u32, Vec<u64>)> {
    let middle = name.to_str()?.strip_prefix("rank")?.strip_suffix(".scope")?;
    let mut numbers = middle.split('.');
    let rank = numbers.next()?.parse().ok()?;
    Some((rank, numbers.map(|number| number.parse().ok()).collect::<Option<_>>()?))
}

/// What was recorded, and what there is to say about it.
pub struct Collected {
    /// All ranks that could be read, without their events.
    pub profile: MergedProfile,
    /// The file that has the events, to be finished with the profile.
    pub file: ProfileWriter,
    /// Lines for the user, each a sentence of its own.
    pub notes: Vec<String>,
    /// Whether something is missing that the recordings may still hold.
    pub incomplete: bool,
    /// Versions of scope-runtime that recorded.
    pub versions: Vec<String>,
}

/// Merges one recording of each rank into a file that is to be at `into`, one after the other, so that
/// no more than one rank is in memory, and of its calls those of chunks that lack some. A recording that
/// cannot be read is noted, and the others count; `others` are further ones of ranks, which are only named.
/// How the program ended explains why a recording was not ended by it.
///
/// # Errors
/// When they contradict each other, or the file cannot be written.
pub fn merge(
    paths: &[PathBuf],
    others: &[PathBuf],
    run: &RunInfo,
    ending: Option<Ending>,
    into: &Path,
) -> anyhow::Result<Collected> {
    let (merger, file, mut notes, mut cuts, mut incomplete) = with_merger(|mut merger| {
        let mut file = ProfileWriter::create(into)?;
        let (mut notes, mut cuts, mut incomplete) = (Vec::new(), Vec::new(), false);
        for path in paths {
            let recording = match Recording::open(path) {
                Ok(recording) => recording,
                Err(error) => {
                    notes.push(error.to_string());
                    incomplete = true;
                    continue;
                }
            };
            incomplete |= describe(path, &recording, ending, &mut notes);
            cuts.extend(cut_timeline(recording.profile()));
            merger.add(path, &recording, &mut file)?;
        }
        Ok((merger, file, notes, cuts, incomplete))
    })?;
    missing_ranks(&merger, paths, &mut notes);
    if let Some(first) = others.first() {
        let names = listed(others.iter().map(|path| file_name(path)));
        let process = if others.len() == 1 { "a further process" } else { "further processes" };
        let folder = first.parent().unwrap_or(first).display();
        let how = "moved to a folder of its own, each makes a profile";
        notes.push(format!("recordings of {process} are not in this profile: {names} in `{folder}`; {how}"));
        incomplete = true;
    }
    let versions = merger.infos().map(|info| info.runtime_version.clone()).collect();
    let profile = merger.finish(run)?;
    if profile.rows.iter().any(|row| !row.events.is_empty()) {
        notes.append(&mut cuts);
    } else if !cuts.is_empty() {
        notes.push("only totals were kept, no single calls: counts and times are complete".into());
    }
    Ok(Collected { profile, file, notes, incomplete, versions })
}

/// The line to write where scope-runtime has another version than this command.
pub fn other_versions<'a>(versions: impl IntoIterator<Item = &'a str>) -> Option<String> {
    const OURS: &str = env!("CARGO_PKG_VERSION");
    let mut others: Vec<&str> = versions.into_iter().filter(|&version| version != OURS).collect();
    others.sort_unstable();
    others.dedup();
    (!others.is_empty()).then(|| {
        let theirs = others.join(" and ");
        format!(
            "the program has scope-runtime {theirs}, this is cargo-scope {OURS}: use the same version of both"
        )
    })
}

/// Names the ranks that the launcher started and that left nothing, not even what cannot be read.
fn missing_ranks(merger: &Merger, paths: &[PathBuf], notes: &mut Vec<String>) {
    let size = merger.infos().map(|info| info.ranks).max().unwrap_or(0);
    let named = paths.iter().filter_map(|path| Some(order(path.file_name()?)?.0));
    let there: HashSet<u32> = merger.infos().map(|info| info.rank).chain(named).collect();
    let missing: Vec<String> =
        (0..size).filter(|rank| !there.contains(rank)).map(|rank| rank.to_string()).collect();
    if !missing.is_empty() {
        let ranks = listed(missing.iter().map(String::as_str));
        notes.push(format!("no recording of rank {ranks} of {size}: no region ran there"));
    }
}

/// Adds what has to be said about one recording; true when it may hold more than was read.
fn describe(path: &Path, recording: &Recording, ending: Option<Ending>, notes: &mut Vec<String>) -> bool {
    let (info, profile) = (recording.info(), recording.profile());
    let rank = format!("rank {}", info.rank);
    let may_run = !info.sealed && info.is_of_this_host();
    let running = may_run && platform::is_running(info.pid, info.wall_start_ns);
    if running {
        let pid = info.pid;
        notes.push(format!("{rank}: process {pid} is still recording; this is what it did so far"));
    } else if !info.sealed {
        let how = match ending {
            Some(ending @ Ending::Signal(_)) => format!("{ending} before it ended its recording"),
            _ => "the program did not end its recording".into(),
        };
        let calls = profile.paths.nodes().iter().map(|path| path.calls).sum::<u64>();
        let finished = calls.saturating_sub(profile.open_calls);
        let finished = counted(finished, "finished call was", "finished calls were");
        notes.push(format!("{rank}: {how}; {finished} recovered, {}", cut_calls(profile)));
    }
    if profile.lost_calls > 0 {
        notes.push(format!("{rank}: {} calls could not be kept and are missing", profile.lost_calls));
    }
    if profile.faulty_calls > 0 {
        notes.push(format!(
            "{rank}: {} calls ended before they began (the clock stepped back); they count with 0 ns",
            profile.faulty_calls
        ));
    }
    if info.damaged > 0 {
        let (path, pieces) = (path.display(), info.damaged);
        let pieces = counted(pieces, "damaged piece", "damaged pieces");
        notes.push(format!("{rank}: {pieces} of `{path}` left out"));
    }
    running || info.damaged > 0
}

/// What is to say where the timeline of a rank ends before its totals.
fn cut_timeline(profile: &Profile) -> Option<String> {
    let first_ns = profile.lanes.iter().map(|lane| lane.first_ns).min().unwrap_or(profile.start_ns);
    let end_ns = profile.timeline_end_ns.filter(|&end_ns| end_ns > first_ns)?;
    Some(format!(
        "rank {}: the timeline ends after {}, where the event limit was met or the disk was full; counts and \
         times are complete (SCOPE_EVENT_LIMIT=4GiB keeps more events)",
        profile.rank,
        crate::units::duration(end_ns - profile.start_ns)
    ))
}

/// Which calls were cut.
fn cut_calls(profile: &Profile) -> String {
    let regions = profile.open_regions();
    if regions.is_empty() {
        return "no region was open".into();
    }
    let calls = counted(profile.open_calls, "open call", "open calls");
    let open = listed(regions.iter().map(|region| region.name.as_str()));
    format!("{calls} cut at its last sign of life: {open}")
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_recording_per_rank_is_chosen() {
        let home = tempfile::tempdir().unwrap();
        let names = [
            "rank10.scope",
            "rank0.77.0.scope",
            "rank2.scope",
            "rank0.scope",
            "rank0.9.1.scope",
            "rank.scope",
        ];
        names.iter().for_each(|name| fs::write(home.path().join(name), "").unwrap());
        fs::write(home.path().join("rank3.scope.txt"), "").unwrap();
        let found = find(home.path()).unwrap();
        let names_of =
            |paths: &[PathBuf]| paths.iter().map(|path| file_name(path).to_owned()).collect::<Vec<_>>();
        assert_eq!(names_of(&found.chosen), ["rank0.scope", "rank2.scope", "rank10.scope"]);
        assert_eq!(names_of(&found.others), ["rank0.9.1.scope", "rank0.77.0.scope"]);
    }

    #[test]
    fn who_starts_others_comes_before_them() {
        let info = |pid, parent_pid| Info { pid, parent_pid, ..Info::default() };
        let mut all =
            [(7, 5), (8, 0), (0, 0), (5, 2), (6, 7)].map(|(pid, parent)| (PathBuf::new(), info(pid, parent)));
        starters_first(&mut all);
        assert_eq!(all.map(|(_, info)| info.pid), [8, 0, 5, 7, 6]);
    }

    #[test]
    fn versions_that_differ_are_told_once() {
        assert_eq!(other_versions([env!("CARGO_PKG_VERSION")]), None);
        let line = other_versions(["0.0.7", env!("CARGO_PKG_VERSION"), "0.0.7"]).unwrap();
        assert!(line.starts_with("the program has scope-runtime 0.0.7, this is cargo-scope"), "{line}");
    }
}
