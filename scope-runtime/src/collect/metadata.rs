//! What is known about the run itself, for the file's metadata group.
//!
//! Keys that the Python package has keep its names, so that its reports show them in their place;
//! the others are ours.

use std::collections::BTreeSet;

use crate::profile::Profile;
use crate::recording::Info;

use super::RunInfo;
use crate::merged::MetadataValue::{self, Float, Integer, List, Text};

/// Entries per list: the file holds a list in one attribute, which ends at 64 KiB.
const LONGEST_LIST: usize = 4_000;

/// Describes the run whose ranks are `ranks`, in rank order; the first one speaks for all where
/// the file has room for one.
pub(super) fn describe(ranks: &[(&Info, &Profile)], run: &RunInfo) -> Vec<(String, MetadataValue)> {
    let mut entries = Entries(Vec::new());
    if let Some((info, profile)) = ranks.first() {
        entries.text("timestamp", utc_timestamp(info.wall_start_ns));
        entries.integer("start_time_ns", profile.start_ns);
        entries.integer("finalize_time_ns", profile.end_ns);
    }
    entries.optional("label", &run.label);
    entries.program(ranks, run);
    entries.machine(ranks);
    entries.ranks(ranks);
    entries.optional("ends_at", &run.ends_at.map(String::from));
    entries.0
}

struct Entries(Vec<(String, MetadataValue)>);

impl Entries {
    fn text(&mut self, key: &str, value: impl Into<String>) {
        self.0.push((key.into(), Text(value.into())));
    }

    fn optional(&mut self, key: &str, value: &Option<String>) {
        self.0.extend(value.clone().map(|value| (key.into(), Text(value))));
    }

    fn integer(&mut self, key: &str, value: i64) {
        self.0.push((key.into(), Integer(value)));
    }

    /// Nothing for an empty list.
    fn list(&mut self, key: &str, mut values: Vec<String>) {
        if values.len() > LONGEST_LIST {
            values.truncate(LONGEST_LIST);
            values.push("...[truncated]".into());
        }
        if !values.is_empty() {
            self.0.push((key.into(), List(values)));
        }
    }

    fn program(&mut self, ranks: &[(&Info, &Profile)], run: &RunInfo) {
        self.text("language", "rust");
        if let Some((info, _)) = ranks.first() {
            if let Some((program, arguments)) = info.args.split_first() {
                self.text("program", program.as_str());
                self.list("arguments", if run.private { Vec::new() } else { arguments.to_vec() });
            }
            self.text("clock", info.clock.as_str());
            self.text("scope_runtime_version", info.runtime_version.as_str());
        }
        if !run.private {
            self.list("command_line", run.command_line.clone());
        }
        self.text("scope_profiler_version", concat!("cargo-scope ", env!("CARGO_PKG_VERSION")));
        self.optional("rustc_version", &run.rustc_version);
        self.optional("build_profile", &run.build_profile);
        self.list("features", run.features.clone());
        self.optional("git_commit", &run.git_commit);
    }

    /// All but the names of hosts is of the machine that collects, which is where the program ran unless
    /// the recordings were carried elsewhere.
    fn machine(&mut self, ranks: &[(&Info, &Profile)]) {
        let threads = threads_per_rank();
        let size = mpi_size(ranks);
        self.text("platform", platform());
        self.text("chip_information", chip());
        let hosts: Vec<&str> = ranks.iter().map(|(info, _)| info.host.as_str()).collect();
        let distinct: BTreeSet<&str> = hosts.iter().copied().filter(|host| !host.is_empty()).collect();
        let first = hosts.first().filter(|host| !host.is_empty()).map(|host| host.to_string());
        self.optional("hostname", &first.or_else(|| system_file("/proc/sys/kernel/hostname")));
        self.integer("omp_num_threads", threads);
        self.integer("mpi_size", size);
        self.integer("total_cores", size.saturating_mul(threads));
        self.integer("num_nodes", distinct.len().max(1) as i64);
        if distinct.len() > 1 {
            self.list("rank_hosts", hosts.into_iter().map(String::from).collect());
        }
    }

    /// What went missing, and on which ranks.
    fn ranks(&mut self, ranks: &[(&Info, &Profile)]) {
        let sum = |count: fn(&Profile) -> u64| -> i64 {
            let counts = ranks.iter().map(|(_, profile)| count(profile));
            counts.fold(0u64, u64::saturating_add).try_into().unwrap_or(i64::MAX)
        };
        // Of the slowest machine; 0 where no program came to measure it.
        let cost_ps = ranks.iter().map(|(info, _)| info.region_cost_ps).max().unwrap_or(0);
        if cost_ps > 0 {
            let cost_ns = f64::from(cost_ps) / 1_000.0;
            let calls = |profile: &Profile| profile.paths.nodes().iter().map(|path| path.calls).sum();
            self.0.push(("region_cost_ns".into(), Float(cost_ns)));
            self.integer("measuring_ns", (cost_ns * sum(calls) as f64) as i64);
        }
        self.integer("open_calls", sum(|profile| profile.open_calls));
        let open = ranks.iter().flat_map(|(_, profile)| profile.open_regions());
        let open: BTreeSet<&str> = open.map(|region| region.name.as_str()).collect();
        self.list("open_regions", open.into_iter().map(String::from).collect());
        self.integer("lost_calls", sum(|profile| profile.lost_calls));
        self.integer("faulty_calls", sum(|profile| profile.faulty_calls));
        if let Some(end_ns) = ranks.iter().filter_map(|(_, profile)| profile.timeline_end_ns).min() {
            self.integer("timeline_end_ns", end_ns);
        }
        let damaged = ranks.iter().map(|(info, _)| info.damaged).fold(0u64, u64::saturating_add);
        if damaged > 0 {
            self.integer("damaged_pieces", damaged.try_into().unwrap_or(i64::MAX));
        }
        let unsealed = || ranks.iter().filter(|(info, _)| !info.sealed);
        self.list("unsealed_ranks", unsealed().map(|(info, _)| info.rank.to_string()).collect());
        // When their lanes were cut, on the clock of the calls.
        let cut_ns = unsealed().map(|(_, profile)| profile.end_ns.to_string());
        self.list("unsealed_ranks_cut_ns", cut_ns.collect());
        let mut there = ranks.iter().map(|(info, _)| info.rank).peekable();
        let missing = (0..mpi_size(ranks) as u32).filter(|rank| there.next_if_eq(rank).is_none());
        let missing = missing.take(LONGEST_LIST + 1);
        self.list("missing_ranks", missing.map(|rank| rank.to_string()).collect());
    }
}

/// Number of ranks: what the launcher said, or more when a higher rank is there.
fn mpi_size(ranks: &[(&Info, &Profile)]) -> i64 {
    let sizes = ranks.iter().map(|(info, _)| info.ranks.max(info.rank.saturating_add(1)));
    sizes.max().unwrap_or(1).into()
}

/// Threads that the environment asks for, by OpenMP's variable or rayon's; 1 without either.
fn threads_per_rank() -> i64 {
    let variables = ["OMP_NUM_THREADS", "RAYON_NUM_THREADS"].into_iter();
    let threads = variables.filter_map(|name| std::env::var(name).ok()).find_map(|value| {
        // For nested parallelism the variable is a list, outermost level first.
        value.split(',').next()?.trim().parse().ok().filter(|threads| *threads > 0)
    });
    threads.unwrap_or(1)
}

/// Operating system, its version, and architecture: `Linux-6.1.0-x86_64`.
fn platform() -> String {
    let name = system_file("/proc/sys/kernel/ostype").unwrap_or_else(|| std::env::consts::OS.into());
    let release = system_file("/proc/sys/kernel/osrelease").map(|release| format!("-{release}"));
    format!("{name}{}-{}", release.unwrap_or_default(), std::env::consts::ARCH)
}

fn chip() -> String {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let fields = processors.lines().filter_map(|line| line.split_once(':'));
    let model = fields.map(|(key, value)| (key.trim(), value.trim())).find(|(key, _)| *key == "model name");
    model.map_or(std::env::consts::ARCH, |(_, name)| name).into()
}

/// First line of a file of the kernel.
fn system_file(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().next().map(Into::into)
}

/// ISO 8601 in UTC, from ns since the Unix epoch: `2026-02-28T13:04:05.000006+00:00`.
fn utc_timestamp(unix_ns: i64) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let micros = unix_ns.rem_euclid(1_000_000_000) / 1_000;
    let (year, month, day) = civil_date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}+00:00")
}

/// Year, month and day of a day counted from 1970-01-01.
///
/// Counts years from March, so that the leap day is the last of a year: Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn civil_date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_iso_8601_in_utc() {
        assert_eq!(utc_timestamp(0), "1970-01-01T00:00:00.000000+00:00");
        assert_eq!(utc_timestamp(951_782_400_000_001_500), "2000-02-29T00:00:00.000001+00:00");
        assert_eq!(utc_timestamp(1_772_283_845_000_006_000), "2026-02-28T13:04:05.000006+00:00");
        assert_eq!(utc_timestamp(-1_000), "1969-12-31T23:59:59.999999+00:00");
    }

    #[test]
    fn ranks_are_told_by_what_they_lack_and_where_they_ran() {
        let info = |rank, sealed| Info { rank, ranks: 4, sealed, ..Info::default() };
        let profile = Profile { lost_calls: 2, open_calls: 1, start_ns: 5, end_ns: 9, ..Profile::default() };
        let (mut first, last) = (info(0, true), info(2, false));
        (first.host, first.region_cost_ps) = ("node1".into(), 30_500);
        let last = Info { host: "node2".into(), ..last };
        let mut profile = profile;
        let path = profile.paths.step(None, crate::profile::RegionId(0));
        profile.paths.add_call(path, 7, 7, false);
        let entries = describe(&[(&first, &profile), (&last, &profile)], &RunInfo::default());
        let value = |key: &str| entries.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
        assert_eq!(value("mpi_size"), Some(Integer(4)));
        assert_eq!(value("missing_ranks"), Some(List(vec!["1".into(), "3".into()])));
        assert_eq!(value("unsealed_ranks"), Some(List(vec!["2".into()])));
        assert_eq!(value("unsealed_ranks_cut_ns"), Some(List(vec!["9".into()])));
        assert_eq!(value("lost_calls"), Some(Integer(4)));
        assert_eq!(value("open_calls"), Some(Integer(2)));
        assert_eq!(value("start_time_ns"), Some(Integer(5)));
        assert_eq!(value("finalize_time_ns"), Some(Integer(9)));
        assert_eq!(value("label"), None);
        assert_eq!((value("num_nodes"), value("hostname")), (Some(Integer(2)), Some(Text("node1".into()))));
        assert_eq!(value("rank_hosts"), Some(List(vec!["node1".into(), "node2".into()])));
        // Two calls, one of each rank.
        assert_eq!((value("region_cost_ns"), value("measuring_ns")), (Some(Float(30.5)), Some(Integer(61))));
    }
}
