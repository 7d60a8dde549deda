//! What comes after `--` is the program's, and so are its three streams (case cli-02).

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::auxiliary::{Project, run};

const ECHO: &str = include_str!("../../../tests/cases/cli-02_program_arguments.rs");

#[test]
fn arguments_are_untouched() {
    let project = Project::plain("echo", ECHO);
    let prints = |args: &[&str], expected: &str| {
        run(&mut project.cargo_scope(args)).prints(expected);
    };
    prints(&["run", "--", "a", "b"], "[a]\n[b]\n");
    prints(&["run", "--", "scope", "run"], "[scope]\n[run]\n");
    prints(&["run", "--release", "--", "--release"], "[--release]\n");
    prints(&["run", "--", "--bin", "x", "--help", "-V"], "[--bin]\n[x]\n[--help]\n[-V]\n");
    prints(&["run", "--", "--message-format=json"], "[--message-format=json]\n");
    prints(&["run", "--", "", "two words", "*"], "[]\n[two words]\n[*]\n");
    prints(&["run", "--", "--", "a", "--"], "[--]\n[a]\n[--]\n");
    prints(&["run"], "");
    run(project.binary().args(["scope", "run", "--", "a", "b"])).prints("[a]\n[b]\n");
    run(project.binary().args(["run", "--", "a", "b"])).prints("[a]\n[b]\n");
    let broken = OsStr::from_bytes(b"\xff");
    run(project.cargo_scope(&["run", "--"]).arg(broken)).prints("[\u{fffd}]\n");
}

#[test]
fn help_and_version_are_our_own() {
    let project = Project::plain("helpless", "fn main() {}");
    let text = |args: &[&str], word: &str| {
        let ran = run(&mut project.cargo_scope(args)).ends_with(0);
        assert!(ran.stdout.contains(word), "{ran:#?}");
    };
    text(&["--help"], "Usage: cargo scope [OPTIONS] <COMMAND>");
    text(&["run", "--help"], "Usage: cargo scope run [OPTIONS] [ARGS]...");
    text(&["--version"], concat!("cargo-scope ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn streams_and_working_directory_are_the_programs() {
    let main = r#"
        fn main() {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).unwrap();
            print!("{}|{line}", std::env::current_dir().unwrap().file_name().unwrap().display());
            eprintln!("from the program");
        }
    "#;
    let project = Project::plain("streams", main);
    project.write("below/here.txt", "");
    let mut command = project.cargo_scope(&["run", "-q"]);
    command.current_dir(project.path("below"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"typed\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "below|typed\n");
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("from the program\nscope: no profile"));
}
