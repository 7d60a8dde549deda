//! Signals reach the program, and its death by one is ours (case exit-03).

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::auxiliary::{Project, calls, listing};

const TERMINATED: &str = include_str!("../../../tests/cases/exit-03_terminated_from_outside.rs");

/// A command that runs, in a process group of its own as a shell would start it.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    /// Starts `command` and waits until the program has printed its first line.
    fn start(command: &mut Command) -> Running {
        Running::start_after(command, "ready\n")
    }

    /// Starts `command` and waits until it has printed a line that ends so.
    fn start_after(command: &mut Command, awaited: &str) -> Running {
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Tests that run in the background of a shell inherit that it ignores interrupts.
        // SAFETY: between fork and exec the closure calls `signal` alone, which is allowed there.
        unsafe {
            command.pre_exec(|| {
                for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            });
        }
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.ends_with(awaited) {
            line.clear();
            assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "it ended before `{awaited}`");
        }
        // Time for the first region.
        std::thread::sleep(Duration::from_millis(100));
        Running { child, stdout }
    }

    fn signal(&self, signal: i32, whole_group: bool) {
        let id = self.child.id().cast_signed();
        // SAFETY: the child was not waited for, so the id and the group are its own.
        unsafe { libc::kill(if whole_group { -id } else { id }, signal) };
    }

    /// Status as a shell shows it, the rest of stdout, and stderr.
    fn end(mut self) -> (i32, String, String) {
        let mut printed = String::new();
        self.stdout.read_to_string(&mut printed).unwrap();
        let output = self.child.wait_with_output().unwrap();
        let status = output.status.code().or(output.status.signal().map(|signal| signal + 128));
        (status.unwrap(), printed, String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn a_signal_to_us_is_passed_on() {
    let project = Project::with_runtime("terminated", TERMINATED);
    for (word, expected, printed) in [("plain", 143, ""), ("handler", 0, "own handler\n")] {
        let running = Running::start(&mut project.cargo_scope(&["run", "-o", word, "--", word]));
        running.signal(libc::SIGTERM, false);
        let (status, rest, stderr) = running.end();
        assert_eq!((status, rest.as_str()), (expected, printed), "{stderr}");
        assert_eq!(stderr.contains("`turn`"), word == "plain", "the open call is named: {stderr}");
        assert!(calls(&project.path(word))[0].1 > 0);
    }
}

#[test]
fn an_interrupt_ends_the_program_and_its_profile_is_written() {
    let project = Project::with_runtime("interrupted", TERMINATED);
    let running = Running::start(&mut project.cargo_scope(&["run", "-o", "out"]));
    running.signal(libc::SIGINT, true);
    let (status, _, stderr) = running.end();
    assert_eq!(status, 130, "{stderr}");
    assert!(calls(&project.path("out"))[0].1 > 0);
    assert!(!listing(&project.path("out")).contains(&"recordings".to_string()));
}

#[test]
fn an_interrupt_to_us_alone_is_passed_on() {
    let project = Project::with_runtime("asked", TERMINATED);
    let running = Running::start(&mut project.cargo_scope(&["run", "-o", "out"]));
    running.signal(libc::SIGINT, false);
    let (status, _, stderr) = running.end();
    assert_eq!(status, 130, "{stderr}");
    assert!(calls(&project.path("out"))[0].1 > 0);
}

#[test]
fn a_signal_to_us_reaches_the_tests_that_run() {
    let project = Project::with_runtime("terminated-test", "fn main() {}\n");
    let test = r#"
        use std::io::Write;

        #[scope_runtime::scope]
        fn turn() { std::thread::sleep(std::time::Duration::from_millis(20)) }

        #[test]
        fn endless() {
            // Past the capture of the test harness.
            writeln!(std::io::stdout(), "ready").unwrap();
            (0..3000).for_each(|_| turn());
        }
    "#;
    project.write("tests/it.rs", test);
    let mut command = project.cargo_scope(&["test", "it", "-q", "-o", "out", "--", "--nocapture"]);
    let running = Running::start_after(&mut command, "ready\n");
    running.signal(libc::SIGTERM, false);
    let (status, _, stderr) = running.end();
    assert_ne!(status, 0, "{stderr}");
    assert!(calls(&project.path("out"))[0].1 > 0, "{stderr}");
}

#[test]
fn a_second_interrupt_ends_us_at_once() {
    let main = r#"
        fn main() {
            unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
            println!("ready");
            // Ends when the test says so, at the latest with it.
            std::io::stdin().read_line(&mut String::new()).unwrap();
        }
    "#;
    let project = Project::with_runtime("stubborn", main);
    let mut command = project.cargo_scope(&["run"]);
    let mut running = Running::start(command.stdin(Stdio::piped()));
    let stdin = running.child.stdin.take();
    running.signal(libc::SIGINT, true);
    std::thread::sleep(Duration::from_millis(100));
    assert!(running.child.try_wait().unwrap().is_none(), "the first one is the program's");
    running.signal(libc::SIGINT, true);
    let status = running.child.wait().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGINT), "while the program goes on");
    drop(stdin);
    let mut said = String::new();
    running.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("cargo scope collect"), "{said}");
}

#[test]
fn a_program_that_dumps_core_leaves_one_core_and_not_ours() {
    let main = "#[scope_runtime::scope]\nfn work() {}\nfn main() { work(); std::process::abort() }\n";
    let project = Project::with_runtime("aborts", main);
    let mut shell = project.command("sh");
    // Where the limit cannot be raised there is no core at all.
    shell.args(["-c", "ulimit -c unlimited 2>/dev/null; exec cargo scope run -o out"]);
    let output = shell.output().unwrap();
    assert_eq!((output.status.signal(), output.status.core_dumped()), (Some(libc::SIGABRT), false));
    assert_eq!(calls(&project.path("out")), [("work".to_string(), 1)]);
    let cores = listing(&project.path("")).into_iter().filter(|name| name.starts_with("core"));
    assert!(cores.count() <= 1);
}
