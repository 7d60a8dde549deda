//! The status of the program is ours, and its profile is written however it ends (case cli-03).

use std::fs;

use crate::auxiliary::{Project, calls, listing, run};

const ATTEMPT: &str = include_str!("../../../tests/cases/cli-03_status_of_the_program.rs");

#[test]
fn the_status_is_the_programs() {
    let project = Project::with_runtime("attempt", ATTEMPT);
    for (word, status) in [("ok", 0), ("three", 3), ("panic", 101), ("kill", 137)] {
        let out = project.path(word);
        let args = ["run", "-o", word, "--", word];
        let ran = run(&mut project.cargo_scope(&args)).ends_with(status);
        assert_eq!(ran.stdout, "");
        assert_eq!(calls(&out), [("attempt".to_string(), 1)], "{word}");
        let expected = ["flamegraph_rank0.svg", "profile.h5", "profile_rank0.prof"];
        assert_eq!(listing(&out), expected, "{word}");
        assert_eq!(ran.stderr.contains("signal 9 (SIGKILL)"), word == "kill", "{}", ran.stderr);
    }
}

#[test]
fn a_failed_build_writes_nothing() {
    let project = Project::with_runtime("broken", ATTEMPT);
    run(&mut project.cargo_scope(&["run", "-o", "out"])).ends_with(0);
    let before = fs::read(project.path("out/profile.h5")).unwrap();
    project.write("src/main.rs", "fn unused() {}\nfn main() { let x: u8 = \"text\"; }\n");
    let ran = run(&mut project.cargo_scope(&["run", "-o", "out"])).ends_with(101).says("mismatched types");
    assert!(!ran.stderr.contains("scope:"), "{}", ran.stderr);
    assert_eq!(fs::read(project.path("out/profile.h5")).unwrap(), before);
    run(&mut project.cargo_scope(&["run", "-o", "fresh"])).ends_with(101);
    assert!(!project.path("fresh").exists());
}

#[test]
fn warnings_are_shown_once() {
    let project = Project::plain("warned", "fn unused_thing() {}\nfn main() {}\n");
    let ran = run(&mut project.cargo_scope(&["run"])).ends_with(0);
    assert_eq!(ran.stderr.matches("function `unused_thing` is never used").count(), 1, "{}", ran.stderr);
    let failing = "fn main() { let unused_value = 1; let _: u8 = \"\"; }\n";
    project.write("src/main.rs", failing);
    let ran = run(&mut project.cargo_scope(&["run"])).ends_with(101);
    assert_eq!(ran.stderr.matches("mismatched types").count(), 1, "{}", ran.stderr);
}

#[test]
fn a_program_without_scope_runtime_is_told_what_to_do() {
    let project = Project::plain("unmarked", "fn main() { std::process::exit(4) }");
    run(&mut project.cargo_scope(&["run", "-o", "out"])).ends_with(4).says("cargo scope init");
    assert!(!project.path("out").exists());
    let project = Project::with_runtime("unused", "fn main() { let _s = scope_runtime::init(); }");
    let ran = run(&mut project.cargo_scope(&["run", "-o", "out"]))
        .ends_with(0)
        .says("no region of `unused` was recorded");
    assert_eq!(ran.stderr.matches("scope: ").count(), 1, "{}", ran.stderr);
    assert!(calls(&project.path("out")).is_empty(), "it recorded, so it has a profile");
}

#[test]
fn a_folder_that_cannot_be_made_stops_before_the_program_runs() {
    let project = Project::with_runtime("no-folder", ATTEMPT);
    let ran = run(&mut project.cargo_scope(&["run", "-o", "Cargo.toml/out", "--", "three"])).ends_with(1);
    let ran = ran.says("Cargo.toml/out");
    assert_eq!(ran.stderr.matches("scope: ").count(), 1, "{}", ran.stderr);
}

#[test]
fn a_variable_that_cannot_be_read_stops_before_the_program_runs() {
    let project = Project::plain("unread", "fn main() { println!(\"ran\"); }\n");
    for command in ["run", "test"] {
        let mut scope = project.cargo_scope(&[command]);
        let ran = run(scope.env("SCOPE_EVENT_LIMIT", "lots")).ends_with(1);
        assert!(ran.says("SCOPE_EVENT_LIMIT is `lots`: give a number of bytes").stdout.is_empty());
    }
}

/// Cannot record, of which only it knows.
const UNRECORDED: &str = "
    #[scope_runtime::scope]
    fn step() {}
    fn main() {
        // SAFETY: there is no other thread.
        unsafe { std::env::set_var(\"SCOPE_EVENT_LIMIT\", \"lots\") };
        step();
        std::process::exit(std::env::args().nth(1).map_or(0, |status| status.parse().unwrap()));
    }
    #[test]
    fn main_ends() {
        main();
    }
";

#[test]
fn a_run_that_cannot_be_recorded_fails() {
    let project = Project::with_runtime("unrecorded", UNRECORDED);
    for (args, status) in
        [(&["run", "-o", "out"][..], 1), (&["run", "-o", "out", "--", "3"], 3), (&["test"], 1)]
    {
        let ran = run(&mut project.cargo_scope(args)).ends_with(status);
        let ran = ran.says("SCOPE_EVENT_LIMIT is `lots`").says("1 process could not be recorded");
        assert!(!ran.stderr.contains("nothing to show"), "{}", ran.stderr);
        assert!(!project.path("out").exists() && !project.path("target/scope").exists());
    }
}

/// Starts itself once, which cannot record then.
const PARTLY: &str = "
    #[scope_runtime::scope]
    fn step() {}
    fn main() {
        step();
        if std::env::args().len() == 1 {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            assert!(child.arg(\"child\").env(\"SCOPE_EVENT_LIMIT\", \"lots\").status().unwrap().success());
        }
    }
";

#[test]
fn a_run_of_which_a_process_cannot_be_recorded_fails_and_has_the_others() {
    let project = Project::with_runtime("partly", PARTLY);
    let ran = run(&mut project.cargo_scope(&["run", "-o", "out"])).ends_with(1);
    ran.says("1 process could not be recorded");
    assert_eq!(calls(&project.path("out")), [("step".to_string(), 1)]);
}

/// Closes its standard output before it records, and prints.
const CLOSED: &str = "
    unsafe extern \"C\" {
        fn close(descriptor: i32) -> i32;
    }
    fn main() {
        // SAFETY: nothing prints meanwhile.
        unsafe { close(1) };
        {
            scope_runtime::region!(\"work\");
        }
        println!(\"lost\");
    }
";

#[test]
#[cfg(unix)]
fn what_is_printed_to_a_closed_stream_is_not_in_the_recording() {
    let project = Project::with_runtime("closed", CLOSED);
    run(&mut project.cargo_scope(&["run", "-o", "out"])).ends_with(0);
    assert_eq!(calls(&project.path("out")), [("work".to_string(), 1)]);
}

#[test]
fn recordings_of_child_processes_are_named_and_kept() {
    let project =
        Project::with_runtime("forking", include_str!("../../../tests/cases/exit-02_fork_then_exit.rs"));
    let ran = run(&mut project.cargo_scope(&["run", "-o", "out"])).ends_with(0);
    let names: Vec<_> = calls(&project.path("out")).into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"parent_only".into()) && !names.contains(&"child_only".into()), "{names:?}");
    let kept = listing(&project.path("out/recordings"));
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept.iter().any(|name| name != "rank0.scope" && ran.stderr.contains(name)), "{}", ran.stderr);
}

#[test]
fn a_runtime_that_is_turned_off_or_of_another_version_is_named() {
    let project = Project::with_other_runtime("turned-off", env!("CARGO_PKG_VERSION"), "[\"off\"]");
    let ran = run(&mut project.cargo_scope(&["run"])).ends_with(0).says("with its feature `off`");
    assert_eq!(ran.stderr.matches("scope: ").count(), 1, "{}", ran.stderr);
    let project = Project::with_other_runtime("outdated", "0.0.7", "[]");
    let both = format!("has scope-runtime 0.0.7, this is cargo-scope {}:", env!("CARGO_PKG_VERSION"));
    let ran = run(&mut project.cargo_scope(&["run"])).ends_with(0).says(&both);
    assert_eq!(ran.stderr.matches("use the same version").count(), 1, "{}", ran.stderr);
}

/// Copies its recording, so that there are two of one rank.
const TWICE: &str = "
    #[scope_runtime::scope]
    fn step() {}
    fn main() {
        step();
        let folder = std::path::PathBuf::from(std::env::var_os(\"SCOPE_OUTPUT\").unwrap());
        std::fs::copy(folder.join(\"rank0.scope\"), folder.join(\"rank1.scope\")).unwrap();
    }
";

#[test]
fn recordings_that_cannot_be_merged_stay_alone() {
    let project = Project::with_runtime("twice", TWICE);
    run(&mut project.cargo_scope(&["run", "-o", "out"])).ends_with(1).says("are both of rank 0");
    assert_eq!(listing(&project.path("out")), ["recordings"]);
    assert_eq!(listing(&project.path("out/recordings")), ["rank0.scope", "rank1.scope"]);
}
