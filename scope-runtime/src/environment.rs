//! What the environment asks for: the `SCOPE_*` variables and the launcher's rank.

use std::ffi::OsString;
use std::path::PathBuf;

/// Where a process stands in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
}

/// What the recorder needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) place: Place,
    /// Bytes of events after which totals only are kept; 0 keeps no events at all.
    pub(crate) event_limit: u64,
}

/// Bytes of events that a rank keeps unless told otherwise.
const DEFAULT_EVENT_LIMIT: u64 = 1 << 30;

/// The settings in the environment.
///
/// # Errors
/// When a variable cannot be read: a line that names it, its value and the remedy.
pub(crate) fn settings() -> Result<Settings, String> {
    settings_from(&variable)
}

/// Checks the variables that decide how a program that is started here would record: `SCOPE_TOTALS_ONLY`,
/// `SCOPE_EVENT_LIMIT`, `SCOPE_MPI` and the rank of a launcher.
///
/// # Errors
/// The line that the program would print before it runs unrecorded: the variable, its value and the remedy.
pub fn check_environment() -> Result<(), String> {
    settings().map(drop)
}

/// The text of a variable, unset and empty being the same; one that is no Unicode comes with replacement
/// characters, and so is refused where a number is wanted.
fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(|value| value.to_string_lossy().into_owned())
}

fn settings_from(variable: &dyn Fn(&str) -> Option<String>) -> Result<Settings, String> {
    let totals_only = switch(variable, "SCOPE_TOTALS_ONLY")?.unwrap_or(false);
    let event_limit = match variable("SCOPE_EVENT_LIMIT") {
        Some(text) => parse_size(&text).ok_or_else(|| {
            format!("SCOPE_EVENT_LIMIT is `{text}`: give a number of bytes, as in 64MiB, 2GiB or 1000000")
        })?,
        None => DEFAULT_EVENT_LIMIT,
    };
    Ok(Settings { place: place_from(variable)?, event_limit: if totals_only { 0 } else { event_limit } })
}

/// A variable that is 0 or 1; unset and empty are the same.
fn switch(variable: &dyn Fn(&str) -> Option<String>, name: &str) -> Result<Option<bool>, String> {
    match variable(name).as_deref() {
        None | Some("") => Ok(None),
        Some("0") => Ok(Some(false)),
        Some("1") => Ok(Some(true)),
        Some(other) => Err(format!("{name} is `{other}`: give 0 or 1")),
    }
}

/// How long a rank waits for others when MPI ends, unless told otherwise.
#[cfg(feature = "mpi")]
pub(crate) const MPI_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// How long a rank waits for others when MPI ends: `SCOPE_MPI_TIMEOUT`, in seconds.
#[cfg(feature = "mpi")]
pub(crate) fn mpi_timeout() -> Result<std::time::Duration, String> {
    let Some(text) = variable("SCOPE_MPI_TIMEOUT").filter(|text| !text.is_empty()) else {
        return Ok(MPI_TIMEOUT);
    };
    let seconds = text.parse().ok().filter(|seconds| (0.0..=1e6).contains(seconds));
    let seconds =
        seconds.ok_or_else(|| format!("SCOPE_MPI_TIMEOUT is `{text}`: give a number of seconds"))?;
    Ok(std::time::Duration::from_secs_f64(seconds))
}

/// A variable of the environment that is 0 or 1.
#[cfg(any(feature = "hdf5", feature = "mpi"))]
pub(crate) fn is_on(name: &str) -> Result<Option<bool>, String> {
    switch(&variable, name)
}

/// A number of bytes, with or without one of the units B, KiB, MiB, GiB, TiB, kB, MB, GB, TB.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// The folder for recordings, where `SCOPE_OUTPUT` turns recording on.
pub(crate) fn output_folder() -> Option<PathBuf> {
    std::env::var_os("SCOPE_OUTPUT").filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The folder for recordings of a program that began recording itself.
pub(crate) fn default_folder() -> PathBuf {
    let program = std::env::args_os().next().map(PathBuf::from);
    let stem = program.as_deref().and_then(|path| path.file_stem()).map(OsString::from);
    let mut name = stem.unwrap_or_else(|| "program".into());
    name.push(format!("-{}", std::process::id()));
    PathBuf::from("scope").join(name)
}

/// Variables in which launchers give the rank and the number of ranks.
const LAUNCHERS: [(&str, &str); 7] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    (SLURM_RANK, "SLURM_STEP_NUM_TASKS"),
    ("ALPS_APP_PE", "ALPS_APP_SIZE"),
    ("PALS_RANKID", "PALS_SIZE"),
];
const SLURM_RANK: &str = "SLURM_PROCID";

/// Rank 0 of 1 unless a launcher says otherwise. `SCOPE_MPI=0` makes us not ask; `SCOPE_MPI=1`
/// makes us believe Slurm's rank wherever it is.
fn place_from(variable: &dyn Fn(&str) -> Option<String>) -> Result<Place, String> {
    let alone = Place { rank: 0, ranks: 1 };
    let by_hand = switch(variable, "SCOPE_MPI")?;
    if by_hand == Some(false) {
        return Ok(alone);
    }
    let number = |name: &str| match variable(name) {
        None => Ok(None),
        Some(text) => match text.parse::<u32>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("{name} is `{text}`, not a number: unset it or set SCOPE_MPI=0")),
        },
    };
    for (rank_name, size_name) in LAUNCHERS {
        if rank_name == SLURM_RANK && by_hand.is_none() && !is_under_srun(variable) {
            continue;
        }
        if let Some(rank) = number(rank_name)? {
            // PMIx gives a rank and leaves the size to others.
            let sizes = LAUNCHERS.iter().filter(|(rank, _)| *rank != SLURM_RANK || is_under_srun(variable));
            let mut sizes = sizes.map(|(_, size)| number(size));
            let size = match number(size_name)? {
                Some(size) => size,
                None => sizes.find_map(Result::transpose).transpose()?.unwrap_or(1),
            };
            let ranks = size.max(rank.saturating_add(1));
            return Ok(Place { rank, ranks });
        }
    }
    Ok(alone)
}

/// Whether the process is a task of a step that `srun` began. In an allocation and in a batch script
/// the rank is there too, always 0; their steps, if any, have numbers from the upper end.
fn is_under_srun(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    /// `SLURM_MAX_NORMAL_STEP_ID` of slurm.h.
    const LAST_STEP: u32 = 0xffff_fff0;
    let step = variable("SLURM_STEP_ID").and_then(|text| text.parse::<u32>().ok());
    step.is_some_and(|step| step <= LAST_STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_in(variables: &[(&str, &str)]) -> Result<Place, String> {
        place_from(&|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn the_rank_is_the_launchers() {
        assert_eq!(place_in(&[]), Ok(Place { rank: 0, ranks: 1 }));
        let open_mpi = [("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "4")];
        assert_eq!(place_in(&open_mpi), Ok(Place { rank: 2, ranks: 4 }));
        assert_eq!(place_in(&[("PMI_RANK", "3")]), Ok(Place { rank: 3, ranks: 4 }));
        assert_eq!(place_in(&[("SLURM_PROCID", "3")]), Ok(Place { rank: 0, ranks: 1 }));
        let pmix = [("PMIX_RANK", "0"), ("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "8")];
        assert_eq!(place_in(&pmix), Ok(Place { rank: 0, ranks: 8 }));
        let srun = [("SLURM_PROCID", "3"), ("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "8")];
        assert_eq!(place_in(&srun), Ok(Place { rank: 3, ranks: 8 }));
        for (rank, size) in LAUNCHERS.into_iter().filter(|(rank, _)| *rank != SLURM_RANK) {
            assert_eq!(place_in(&[(rank, "1"), (size, "3")]), Ok(Place { rank: 1, ranks: 3 }), "{rank}");
        }
    }

    #[test]
    fn a_script_in_an_allocation_is_no_rank_unless_the_user_says_so() {
        // The step ids of an interactive step and of a batch script, and none.
        for step in ["4294967290", "4294967291", ""] {
            let script = [("SLURM_PROCID", "0"), ("SLURM_STEP_ID", step), ("SLURM_STEP_NUM_TASKS", "4")];
            assert_eq!(place_in(&script), Ok(Place { rank: 0, ranks: 1 }), "{step}");
            let by_hand = [&[("SCOPE_MPI", "1")], &script[..]].concat();
            assert_eq!(place_in(&by_hand), Ok(Place { rank: 0, ranks: 4 }), "{step}");
        }
    }

    #[test]
    fn unreadable_values_are_named() {
        assert!(place_in(&[("PMI_RANK", "x")]).unwrap_err().contains("PMI_RANK is `x`"));
        assert!(place_in(&[("SCOPE_MPI", "yes")]).unwrap_err().contains("SCOPE_MPI is `yes`"));
        assert_eq!(place_in(&[("SCOPE_MPI", "0"), ("PMI_RANK", "x")]), Ok(Place { rank: 0, ranks: 1 }));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("64MiB"), Some(64 << 20));
        assert_eq!(parse_size(" 2 GB "), Some(2_000_000_000));
        assert_eq!(parse_size("17"), Some(17));
        for wrong in ["", "MiB", "-1", "1.5GiB", "1 mib", "99999999999TiB"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn settings_name_what_cannot_be_read() {
        let read = |name: &'static str, value: &'static str| {
            settings_from(&move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(read("SCOPE_TOTALS_ONLY", "1").map(|s| s.event_limit), Ok(0));
        assert_eq!(read("SCOPE_EVENT_LIMIT", "1KiB").map(|s| s.event_limit), Ok(1024));
        assert!(read("SCOPE_EVENT_LIMIT", "lots").unwrap_err().contains("SCOPE_EVENT_LIMIT is `lots`"));
        assert!(read("SCOPE_TOTALS_ONLY", "yes").unwrap_err().contains("SCOPE_TOTALS_ONLY is `yes`"));
    }
}
