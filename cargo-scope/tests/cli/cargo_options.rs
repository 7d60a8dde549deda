//! Options and settings of cargo mean what they mean for cargo.

use std::fs;
use std::process::Command;

use crate::auxiliary::{Project, cargo, listing, run};

const HERE: &str = "fn main() { println!(\"here {}\", cfg!(special)); }\n";
const BROKEN: &str = "fn unused() {}\nfn main() { let _: u8 = \"text\"; }\n";

#[test]
fn they_reach_cargo() {
    let project = Project::plain("passed-on", HERE);
    let scope = |args: &[&str]| project.cargo_scope(&[&["run"], args].concat());
    run(&mut scope(&["--locked"])).ends_with(101).says("--locked");
    assert!(!project.path("Cargo.lock").exists());
    run(&mut scope(&["-j", "1"])).prints("here false\n");
    for options in [&["--locked"][..], &["--offline"], &["--frozen"], &["--ignore-rust-version"], &["-vv"]] {
        run(&mut scope(options)).prints("here false\n");
    }
    run(scope(&[]).env("RUSTFLAGS", "--cfg special")).prints("here true\n");
    run(&mut scope(&["--config", "build.rustflags=['--cfg', 'special']"])).prints("here true\n");
    run(&mut scope(&["-j", "no-number"])).ends_with(101).says("no-number");
    run(&mut scope(&["--profile", "nope"])).ends_with(101).says("nope");
}

#[test]
fn the_directory_is_changed_first() {
    let project = Project::plain("moved", HERE);
    let outside = project.path("..");
    let folder = project.path("");
    for words in [["-C", "FOLDER", "run"], ["run", "-C", "FOLDER"]] {
        let words = words.map(|word| if word == "FOLDER" { folder.to_str().unwrap() } else { word });
        run(project.cargo_scope(&words).current_dir(&outside)).prints("here false\n");
    }
    run(&mut project.cargo_scope(&["-C", "nowhere", "run"])).ends_with(1).says("`nowhere`");
}

#[test]
fn folders_may_have_any_name() {
    let project = Project::with_runtime("any-name", "#[scope_runtime::scope]\nfn main() {}\n");
    let inner = "Grüße an 'alle' $HOME\n\u{1f980}";
    for file in ["Cargo.toml", "Cargo.lock", "src/main.rs"] {
        project.write(&format!("{inner}/{file}"), &fs::read_to_string(project.path(file)).unwrap());
    }
    project.write(&format!("{inner}/below/file"), "");
    let mut command = project.cargo_scope(&["run", "-o", "ö ut"]);
    run(command.current_dir(project.path(inner).join("below"))).ends_with(0);
    let expected = ["flamegraph_rank0.svg", "profile.h5", "profile_rank0.prof"];
    assert_eq!(listing(&project.path(inner).join("below/ö ut")), expected);
}

/// Lines of stdout that are JSON objects, and the others.
fn json_lines(stdout: &str) -> (usize, Vec<&str>) {
    let (json, other): (Vec<_>, Vec<_>) = stdout.lines().partition(|line| line.starts_with("{\"reason\""));
    (json.len(), other)
}

#[test]
fn messages_come_in_the_format_that_was_asked_for() {
    let project = Project::plain("formatted", HERE);
    let output = |program: &mut Command| run(program.args(["run", "--message-format=json"]));
    let theirs = output(&mut project.command(cargo())).ends_with(0);
    let ours = output(project.command(cargo()).arg("scope")).ends_with(0);
    assert_eq!(json_lines(&ours.stdout), json_lines(&theirs.stdout));
    assert_eq!(json_lines(&ours.stdout).1, ["here false"]);
    project.write("src/main.rs", BROKEN);
    let ours = output(project.command(cargo()).arg("scope")).ends_with(101);
    assert!(
        ours.stdout.contains("mismatched types") && !ours.stderr.contains("mismatched types"),
        "{ours:#?}"
    );
    let ours = run(&mut project.cargo_scope(&["run", "--message-format", "short"])).ends_with(101);
    ours.says("src/main.rs:2:25: error[E0308]: mismatched types");
}

#[test]
fn colors_are_those_that_cargo_would_use() {
    let project = Project::plain("colored", BROKEN);
    let is_colored = |options: &[&str], variable: &str| {
        let mut command = project.cargo_scope(&[&["run"], options].concat());
        let ran = run(command.env("CARGO_TERM_COLOR", variable)).ends_with(101);
        let error = ran.stderr.lines().find(|line| line.contains("mismatched types")).unwrap().to_string();
        error.contains("\x1b[")
    };
    assert!(!is_colored(&[], "auto"));
    assert!(is_colored(&[], "always"));
    assert!(!is_colored(&["--color", "never"], "always"));
}
