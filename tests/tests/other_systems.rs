//! The variant of the runtime for systems other than Linux, on Linux: `--cfg scope_plain_buffers`
//! chooses it. Events are then in plain memory, which is copied into the recording.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

use tests::outputs::Run;
use tests::package::{Package, empty_folder};
use tests::subcommand;

const SOURCE: &str = r#"
use std::time::Duration;

#[scope_runtime::scope]
fn turn() {}

fn turns(count: u32) {
    (0..count).for_each(|_| turn());
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        // More than a chunk for each, and than the pool has at first.
        Some("threads") => std::thread::scope(|scope| {
            (0..24).for_each(|_| {
                scope.spawn(|| turns(10_000));
            });
        }),
        Some("exit") => {
            turns(100);
            scope_runtime::region!("open");
            std::process::exit(5);
        }
        Some("abort") => {
            turns(100);
            // Longer than the time between two copies.
            std::thread::sleep(Duration::from_millis(500));
            std::process::abort();
        }
        _ => {}
    }
}
"#;

fn run(word: &str) -> Run {
    let package = Package::new("plain-buffers", SOURCE, &[]);
    let folder = empty_folder(&format!("plain-buffers-{word}"));
    let mut command = package.cargo_scope(&["run", "-o"]);
    command.arg(&folder).args(["--", word]);
    command.env("RUSTFLAGS", "--cfg scope_plain_buffers");
    // What the other packages share must not be built anew for them.
    command.env("CARGO_TARGET_DIR", subcommand::scratch().join("build-plain-buffers"));
    Run::start(&mut command, folder)
}

#[test]
fn threads_are_recorded_whole() {
    let run = run("threads").expect_status(0);
    assert_eq!(run.check_outputs().counts(), BTreeMap::from([("turn", 240_000)]));
}

#[test]
fn an_exit_seals_the_recording() {
    let run = run("exit").expect_status(5);
    assert_eq!(run.check_outputs().counts(), BTreeMap::from([("turn", 100), ("open", 1)]));
    assert!(!run.folder.join("recordings").exists(), "{}", run.stderr);
}

#[test]
fn a_program_that_dies_leaves_what_was_copied() {
    let run = run("abort");
    assert_eq!(run.status.signal(), Some(6), "{}", run.stderr);
    assert_eq!(run.check_outputs().counts(), BTreeMap::from([("turn", 100)]));
}
