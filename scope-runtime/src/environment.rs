//! What the environment asks for: the `SCOPE_*` variables and the launcher's rank.

use std::ffi::OsString;
use std::path::PathBuf;

/// Where a process stands in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
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
///
/// # Errors
/// When a variable holds no number: a line that names it.
pub(crate) fn place() -> Result<Place, String> {
    place_from(|name| std::env::var(name).ok())
}

fn place_from(variable: impl Fn(&str) -> Option<String>) -> Result<Place, String> {
    let alone = Place { rank: 0, ranks: 1 };
    match variable("SCOPE_MPI").as_deref() {
        Some("0") => return Ok(alone),
        None | Some("" | "1") => {}
        Some(other) => return Err(format!("SCOPE_MPI is `{other}`: give 0 or 1")),
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
        place_from(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
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
}
