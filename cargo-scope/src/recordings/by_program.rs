//! Sorts the recordings of programs that ran one after the other in one folder.
//!
//! `cargo test` starts one program after the other with one environment. The first of a rank makes
//! `rank<N>.scope`, the next `rank<N>.<pid>.<k>.scope`; which program it was is in the recording.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use scope_runtime::recording::Info;

/// The recordings of one program.
#[derive(Debug, Default)]
pub struct OfProgram {
    /// The first of each rank.
    pub chosen: Vec<PathBuf>,
    /// Further ones of a rank, of child processes that are the same program.
    pub others: Vec<PathBuf>,
}

/// Gives each program its recordings, in the order of `executables`, and then what belongs to none:
/// programs that these have started.
///
/// The file name decides, which cargo makes unique: a launcher may give another path to it.
pub fn by_program(recordings: Vec<(PathBuf, Info)>, executables: &[&Path]) -> (Vec<OfProgram>, Vec<PathBuf>) {
    let mut programs: Vec<OfProgram> = executables.iter().map(|_| OfProgram::default()).collect();
    let mut foreign = Vec::new();
    let mut in_order = recordings;
    in_order.sort_by_key(|(_, info)| info.wall_start_ns);
    super::starters_first(&mut in_order);
    let mut ranks = HashSet::new();
    for (path, info) in in_order {
        let name = program_name(&info);
        match executables.iter().position(|executable| executable.file_name() == name.file_name()) {
            Some(index) if ranks.insert((index, info.rank)) => {
                programs[index].chosen.push(path);
            }
            Some(index) => programs[index].others.push(path),
            None => foreign.push(path),
        }
    }
    (programs, foreign)
}

fn program_name(info: &Info) -> &Path {
    Path::new(info.args.first().map_or("", String::as_str))
}
