//! Commands that start from files of an earlier run.

use std::fs;

use crate::auxiliary::{Project, calls, listing, run};

const PROGRAM: &str = "
    #[scope_runtime::scope]
    fn inner() {}
    #[scope_runtime::scope]
    fn outer() { inner(); inner(); }
    fn main() { outer(); }
";

#[test]
fn a_profile_can_be_looked_at_again() {
    let project = Project::with_runtime("stored", PROGRAM);
    run(&mut project.cargo_scope(&["run", "-o", "out"])).ends_with(0);
    let shown = run(&mut project.cargo_scope(&["inspect", "out"])).ends_with(0);
    assert!(shown.stdout.contains("outer") && !shown.stdout.contains('\x1b'), "{}", shown.stdout);
    run(&mut project.cargo_scope(&["export", "prof", "out/profile.h5", "-o", "prof"])).ends_with(0);
    assert_eq!(listing(&project.path("prof")), ["profile_rank0.prof"]);
    run(&mut project.cargo_scope(&["export", "flame", "out", "-o", "svg", "--include", "out"])).ends_with(0);
    assert_eq!(listing(&project.path("svg")), ["flamegraph_rank0.svg"]);
    run(&mut project.cargo_scope(&["inspect", "nowhere.h5"])).ends_with(1).says("nowhere.h5");
}

#[test]
fn recordings_made_by_hand_are_collected() {
    let project = Project::with_runtime("by-hand", PROGRAM);
    let mut cargo = project.command(crate::auxiliary::cargo());
    run(cargo.args(["run", "-q"]).env("SCOPE_OUTPUT", project.path("rec"))).ends_with(0);
    run(&mut project.cargo_scope(&["collect", "rec"])).ends_with(0);
    assert_eq!(calls(&project.path("rec")), [("outer".to_string(), 1), ("inner".to_string(), 2)]);
    assert!(listing(&project.path("rec")).contains(&"rank0.scope".to_string()), "recordings stay");
    fs::create_dir(project.path("empty")).unwrap();
    run(&mut project.cargo_scope(&["collect", "empty"])).ends_with(1).says("no recording");
    assert!(listing(&project.path("empty")).is_empty());
    run(&mut project.cargo_scope(&["collect", "missing"])).ends_with(1).says("missing");
}

#[test]
fn without_a_path_the_latest_run_counts() {
    let project = Project::with_runtime("latest", PROGRAM);
    let scope = |args: &[&str]| {
        let mut command = project.cargo_scope(args);
        command.env("CARGO_TARGET_DIR", project.path("built here"));
        command
    };
    run(&mut scope(&["inspect"]))
        .ends_with(1)
        .says("built here/scope`: run the program by `cargo scope run`");
    run(&mut scope(&["run", "--keep", "1"])).ends_with(0);
    run(&mut scope(&["run", "--keep", "1"])).ends_with(0);
    assert_eq!(listing(&project.path("built here/scope/latest")), ["2", "latest"], "--keep 1");
    let shown = run(&mut scope(&["inspect"])).ends_with(0).says("scope/latest/latest/profile.h5");
    assert!(shown.stdout.contains("outer"), "{}", shown.stdout);
    // Exports go where the user stands: a part must not take the place of the run's own outputs.
    project.write("elsewhere/file", "");
    let mut export = scope(&["export", "flame", "--include", "inner"]);
    run(export.current_dir(project.path("elsewhere"))).ends_with(0);
    assert_eq!(listing(&project.path("elsewhere")), ["file", "flamegraph_rank0.svg"]);
    let outside = tempfile::tempdir().unwrap();
    let mut inspect = project.cargo_scope(&["inspect"]);
    run(inspect.current_dir(outside.path())).ends_with(1).says("no PROFILE was given");
}
