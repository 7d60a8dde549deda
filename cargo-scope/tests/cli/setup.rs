//! Commands that prepare things: `init`, `env`, `completions`, `man`, and what `--version` tells.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::auxiliary::{Project, calls, listing, run};

const MAIN: &str = "#[scope_runtime::scope]\nfn work() {}\nfn main() { work() }\n";

#[test]
fn init_adds_the_dependency_and_nothing_else() {
    let project = Project::plain("fresh", "fn main() {}\n");
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("scope-runtime");
    let before = fs::read_to_string(project.path("Cargo.toml")).unwrap();
    let mut command = project.cargo_scope(&["init", "--offline", "--path"]);
    let ran = run(command.arg(&runtime)).ends_with(0);
    assert!(
        ran.stdout.starts_with("use scope_runtime::scope;") && ran.stdout.contains("#[scope]"),
        "{ran:#?}"
    );
    let after = fs::read_to_string(project.path("Cargo.toml")).unwrap();
    let added: Vec<_> = after.lines().filter(|line| !before.lines().any(|old| old == *line)).collect();
    let [line] = added[..] else { panic!("{after}") };
    assert!(
        line.starts_with("scope-runtime = {") && before.lines().all(|old| after.contains(old)),
        "{after}"
    );
    assert_eq!(listing(&project.path("src")), ["main.rs"]);
    assert_eq!(fs::read_to_string(project.path("src/main.rs")).unwrap(), "fn main() {}\n");
    run(&mut project.cargo_scope(&["init", "--offline", "--path", "nowhere"])).ends_with(101).says("nowhere");
    // Nobody has downloaded it: where cargo looks there is none.
    let mut command = project.cargo_scope(&["init", "--offline"]);
    run(command.env("CARGO_HOME", project.path("home"))).ends_with(101).says("--path FOLDER/scope-runtime");
}

#[test]
fn env_records_by_hand_in_a_shell() {
    let project = Project::with_runtime("in-shell", MAIN);
    project.write("it's here/file", "");
    let scope = project.cargo_scope(&["--version"]);
    assert!(scope.get_program().to_str().unwrap().contains("cargo"));
    let script = "eval \"$(cargo scope env -o rec)\" && cargo run -q && cargo scope collect rec\n\
                  eval \"$(cargo scope env --totals-only)\" && echo \"$SCOPE_OUTPUT $SCOPE_TOTALS_ONLY\"\n";
    let mut shell = project.command("sh");
    shell.args(["-ec", script]).current_dir(project.path("it's here"));
    let ran = run(&mut shell).ends_with(0);
    assert_eq!(calls(&project.path("it's here/rec")), [("work".to_string(), 1)]);
    assert!(ran.stdout.ends_with("it's here/scope/1 1\n"), "{}", ran.stdout);
    assert!(!project.path("it's here/scope").exists(), "printing makes no folder");
}

#[test]
fn completions_and_manual_pages_are_written() {
    let project = Project::plain("helped", "fn main() {}");
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let ran = run(&mut project.cargo_scope(&["completions", shell])).ends_with(0);
        assert!(ran.stdout.contains("totals-only") && ran.stdout.contains("cargo-scope"), "{shell}");
    }
    run(&mut project.cargo_scope(&["completions", "tcsh"])).ends_with(2).says("tcsh");
    let ran = run(&mut project.cargo_scope(&["man"])).ends_with(0);
    assert!(ran.stdout.starts_with(".") && ran.stdout.contains("cargo\\-scope"), "{}", ran.stdout);
    run(&mut project.cargo_scope(&["man", "pages/man1"])).ends_with(0);
    let pages = listing(&project.path("pages/man1"));
    assert!(
        pages.contains(&"cargo-scope.1".into()) && pages.contains(&"cargo-scope-run.1".into()),
        "{pages:?}"
    );
    run(&mut project.cargo_scope(&["man", "Cargo.toml"])).ends_with(1).says("`Cargo.toml`");
}

#[test]
fn the_versions_that_must_fit_are_told() {
    let project = Project::plain("versions", "fn main() {}");
    let ran = run(&mut project.cargo_scope(&["--version"])).ends_with(0);
    let version = env!("CARGO_PKG_VERSION");
    let recording = format!("format version {}", scope_runtime::FORMAT_VERSION);
    for part in [&format!("scope-runtime: {version}"), &recording, "profile.h5: schema 3"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let ran = run(&mut project.cargo_scope(&["-V"])).ends_with(0);
    assert_eq!(ran.stdout, format!("cargo-scope {version}\n"));
}

#[test]
fn nobody_has_to_read_what_is_printed() {
    let project = Project::plain("unread", "fn main() {}");
    let script =
        "cargo scope completions bash >&- && cargo scope man >&- ; cargo scope completions zsh | true";
    let mut shell = project.command("sh");
    let ran = run(shell.args(["-c", script]).stdin(Stdio::null()));
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
}
