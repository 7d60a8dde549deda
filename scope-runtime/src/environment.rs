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

/// The text of a variable; one that is no Unicode comes with replacement characters, and so is
/// refused where a number is wanted.
fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
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
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("ALPS_APP_PE", "ALPS_APP_SIZE"),
    ("PALS_RANKID", "PALS_SIZE"),
];

/// Rank 0 of 1 unless a launcher says otherwise; `SCOPE_MPI=0` makes us not ask.
fn place_from(variable: &dyn Fn(&str) -> Option<String>) -> Result<Place, String> {
    let alone = Place { rank: 0, ranks: 1 };
    if switch(variable, "SCOPE_MPI")? == Some(false) {
        return Ok(alone);
    }
    let number = |name: &str| match variable(name) {
        None => Ok(None),
        Some(text) => match text.parse::<u32>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(format!("{name} is `{text}`, not a number: unset it or set SCOPE_MPI=0")),
        },
    };
    // Inside an allocation, but not under srun, SLURM_PROCID is there too (0) and says nothing;
    // a rank that srun gave comes with the id of its step's task.
    let under_srun =
        variable("SLURM_STEP_ID").is_some() && variable("SLURM_STEP_ID").as_deref() != Some("4294967290");
    for (rank_name, size_name) in LAUNCHERS {
        if rank_name.starts_with("SLURM") && !under_srun {
            continue;
        }
        if let Some(rank) = number(rank_name)? {
            let ranks = number(size_name)?.unwrap_or(1).max(rank.saturating_add(1));
            return Ok(Place { rank, ranks });
        }
    }
    Ok(alone)
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
        let srun = [("SLURM_PROCID", "3"), ("SLURM_STEP_ID", "0"), ("SLURM_NTASKS", "8")];
        assert_eq!(place_in(&srun), Ok(Place { rank: 3, ranks: 8 }));
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
