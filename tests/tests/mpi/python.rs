//! The profile of a job in scope-profiler: `inspect` and `export prof` with all ranks, and the same numbers.

use std::process::Command;

use tests::{mpi, tools};

use crate::cases::collect;

#[test]
fn scope_profiler_opens_the_profile_of_four_ranks_and_agrees() {
    let Some(python) = tools::python() else { return };
    mpi::with_each(|mpi| {
        let options = ["--cells", "24", "--steps", "60"];
        let job = mpi.record(4, "heat_mpi", &options, &[]).expect_success();
        let run = collect(mpi, &job, "collected").expect_status(0);
        let profile = run.folder.join("profile.h5");
        let scope_profiler = |arguments: &[&str]| {
            let mut command = Command::new(&python);
            command.args(["-m", "scope_profiler"]).args(arguments).arg(&profile);
            tools::succeed(command.args(["--ranks", "0-3"]))
        };
        let inspected = scope_profiler(&["inspect"]);
        assert!(inspected.contains("4 rank(s)") && inspected.contains("MPI_Allreduce"), "{inspected}");
        let theirs = mpi.empty_folder("theirs");
        scope_profiler(&["export", "prof", "-o", theirs.to_str().unwrap()]);
        for rank in 0..4 {
            let file = format!("profile_rank{rank}.prof");
            let files = [run.folder.join(&file), theirs.join(&file)];
            tools::run_python(&python, "compare_prof.py", &files.each_ref().map(|file| file.as_path()));
        }
    });
}
