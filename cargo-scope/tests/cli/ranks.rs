//! Several ranks, by a launcher that stands in for that of an MPI, and by real ones.

use std::process::Command;

use crate::auxiliary::{Project, calls, host, listing, run};

/// Starts one rank after the other, and tells what it was given.
const LAUNCHER: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo 'mpirun (Open MPI) 4.1.4'; exit; fi
while :; do
    case "$1" in
        -n) size=$2; shift 2 ;;
        -x) passed="$passed $2"; shift 2 ;;
        *) break ;;
    esac
done
echo "$size ranks get$passed"
rank=0
status=0
while [ $rank -lt $size ]; do
    OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=$size "$@" || status=$?
    rank=$((rank + 1))
done
exit $status
"#;

const MAIN: &str = r#"
    #[scope_runtime::scope]
    fn work() {}

    fn main() {
        work();
        println!("rank {}", std::env::args().skip(1).collect::<String>());
        let rank = std::env::var("OMPI_COMM_WORLD_RANK").unwrap_or_default();
        std::process::exit(if rank == "1" { 3 } else { 0 })
    }
"#;

const OUTPUTS_OF_TWO: [&str; 6] = [
    "flamegraph.svg",
    "flamegraph_rank0.svg",
    "flamegraph_rank1.svg",
    "profile.h5",
    "profile_rank0.prof",
    "profile_rank1.prof",
];

/// One call of `work` on each rank.
fn works(ranks: usize) -> Vec<(String, usize)> {
    vec![("work".to_string(), 1); ranks]
}

/// A package with a launcher at `mpi folder/mpirun`.
fn project(name: &str) -> Project {
    let project = Project::with_runtime(name, MAIN);
    project.write_script("mpi folder/mpirun", LAUNCHER);
    project
}

/// `cargo scope ARGS`, with the launcher the first one in `PATH`.
fn with_launcher(project: &Project, args: &[&str]) -> Command {
    let mut command = project.cargo_scope(args);
    let path = command.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap();
    let folders = [project.path("mpi folder")].into_iter().chain(std::env::split_paths(path));
    let path = std::env::join_paths(folders).unwrap();
    command.env("PATH", path);
    command
}

#[test]
fn a_launcher_is_found_gets_our_variables_and_its_status_is_ours() {
    let project = project("launched");
    let mut command = with_launcher(&project, &["run", "-n", "2", "-o", "out", "--totals-only", "--", "x"]);
    let ran = run(command.env("SCOPE_EVENT_LIMIT", "1MiB")).ends_with(3).says("Running `mpirun -n 2 ");
    let variables = "SCOPE_OUTPUT SCOPE_MPI_TABLE SCOPE_HDF5 SCOPE_TOTALS_ONLY SCOPE_EVENT_LIMIT";
    assert_eq!(ran.stdout, format!("2 ranks get {variables}\nrank x\nrank x\n"), "{}", ran.stderr);
    assert_eq!(listing(&project.path("out")), OUTPUTS_OF_TWO);
    run(&mut with_launcher(&project, &["run", "-n", "2", "-o", "out", "--ranks", "1,7"]))
        .ends_with(3)
        .says("--ranks 1,7 names ranks that were not there (2 in all); taking 1");
    assert_eq!(calls(&project.path("out")), works(2), "the profile has all ranks");
    let of_rank_1 = ["flamegraph.svg", "flamegraph_rank1.svg", "profile.h5", "profile_rank1.prof"];
    assert_eq!(listing(&project.path("out")), of_rank_1);
}

/// The case `hdf5-03`: ranks that would share one file, outputs that a viewer has open and locked.
#[test]
fn locks_on_outputs_are_in_nobodys_way() {
    let project = project("locked");
    let scope = |locking: Option<&str>| {
        let mut command = with_launcher(&project, &["run", "-n", "4", "-o", "out"]);
        command.envs(locking.map(|value| ("HDF5_USE_FILE_LOCKING", value)));
        run(&mut command).ends_with(3);
        assert_eq!(calls(&project.path("out")), works(4), "{locking:?}");
    };
    [None, None, Some("TRUE"), Some("FALSE")].into_iter().for_each(scope);
    for lock in [std::fs::File::lock_shared, std::fs::File::lock] {
        let open = std::fs::File::open(project.path("out/profile.h5")).unwrap();
        lock(&open).unwrap();
        scope(Some("TRUE"));
    }
}

#[test]
fn a_launcher_takes_the_place_of_a_runner() {
    let project = project("replaced");
    let host = host();
    let launcher = format!("'{}'", project.path("mpi folder/mpirun").display());
    let scope = |args: &[&str]| {
        let args = [&["run", "-o", "out", "--launcher"], &[launcher.as_str()][..], args].concat();
        run(&mut project.cargo_scope(&args))
    };
    let list = "runner = [\"env\", \"VIA_RUNNER=yes\"]";
    for table in ["cfg(unix)", &host] {
        project.write(".cargo/config.toml", &format!("[target.'{table}']\n{list}\n"));
        let ran = scope(&["-n", "1"]).ends_with(0);
        assert_eq!(ran.stdout, "1 ranks get SCOPE_OUTPUT SCOPE_MPI_TABLE SCOPE_HDF5\nrank \n", "{table}");
    }
    let build = format!("[build]\ntarget = '{host}'\n[target.{host}]\n{list}\n");
    project.write(".cargo/config.toml", &build);
    scope(&["-n", "1"])
        .prints("1 ranks get SCOPE_OUTPUT SCOPE_MPI_TABLE SCOPE_HDF5\nrank \n")
        .says(&format!("{host}/debug/replaced"));
    // A text is replaced by a text only, and this launcher has a space in its path.
    project.write(".cargo/config.toml", &format!("[target.{host}]\nrunner = \"env VIA_RUNNER=yes\"\n"));
    scope(&["-n", "1"]).ends_with(1).says("write that one as a list");
    run(&mut project.cargo_scope(&["run", "-o", "out", "--launcher", "env VIA_LAUNCHER=1"]))
        .prints("rank \n");
}

#[test]
fn a_launcher_that_is_not_there_is_named_before_anything_is_built() {
    let project = Project::plain("no-launcher", "fn main() {}");
    let mut command = project.binary();
    command.env("PATH", project.path("empty"));
    run(command.args(["run", "-n", "2"])).ends_with(1).says("none of mpirun, mpiexec, srun is in PATH");
    run(&mut project.cargo_scope(&["run", "-n", "0"])).ends_with(2).says("-n <RANKS>");
    run(&mut project.cargo_scope(&["run", "--launcher", "no-such-launcher"]))
        .ends_with(1)
        .says("no-such-launcher");
}

/// Tests may run in a container, as its only user.
fn as_any_user(mut command: Command) -> Command {
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

#[test]
fn ranks_of_an_mpi_launcher_get_a_profile_each() {
    let Ok(families) = std::env::var("SCOPE_TEST_MPI") else {
        eprintln!("left out: SCOPE_TEST_MPI is not set");
        return;
    };
    let main = "#[scope_runtime::scope]\nfn work() {}\nfn main() { work(); println!(\"rank\"); }\n";
    let project = Project::with_runtime("ranks", main);
    for family in families.split_whitespace() {
        let oversubscribe = if family == "openmpi" { "\"--oversubscribe\", " } else { "" };
        let runner = format!("runner = [\"mpirun.{family}\", {oversubscribe}\"-n\", \"2\"]\n");
        project.write(".cargo/config.toml", &format!("[target.'cfg(unix)']\n{runner}"));
        run(&mut as_any_user(project.cargo_scope(&["run", "-o", family]))).prints("rank\nrank\n");
        assert_eq!(calls(&project.path(family)), works(2), "{family}");
        assert_eq!(listing(&project.path(family)), OUTPUTS_OF_TWO, "{family}");
        // Three ranks by the option, in the place of that runner.
        let launcher =
            format!("mpirun.{family}{}", if family == "openmpi" { " --oversubscribe" } else { "" });
        let args = ["run", "-o", family, "-n", "3", "--launcher", &launcher];
        run(&mut as_any_user(project.cargo_scope(&args))).prints("rank\nrank\nrank\n");
        assert_eq!(calls(&project.path(family)), works(3), "{family}");
    }
}
