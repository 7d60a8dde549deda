//! Tools from outside that look at our outputs: Python, HDF5's own tools, Node with a browser.
//!
//! Each is named by a variable that `tests/run` exports. Without it a test says that it was left
//! out; when it is set and the tool is missing, the test fails.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A Python that has scope-profiler, h5py and snakeviz.
pub fn python() -> Option<PathBuf> {
    named_by("SCOPE_TEST_PYTHON")
}

/// HDF5's `h5dump`.
pub fn h5dump() -> Option<PathBuf> {
    named_by("SCOPE_TEST_H5DUMP")
}

/// Chromium.
pub fn browser() -> Option<PathBuf> {
    named_by("SCOPE_TEST_BROWSER")
}

/// Whether tests that take long, or much of the disk, are wanted.
pub fn has_time() -> bool {
    named_by("SCOPE_TEST_LONG").is_some()
}

/// Whether sources of other crates may be fetched, built and tested, which takes minutes.
pub fn registry() -> bool {
    named_by("SCOPE_TEST_REGISTRY").is_some()
}

fn named_by(variable: &str) -> Option<PathBuf> {
    let tool = std::env::var_os(variable).map(PathBuf::from);
    if tool.is_none() {
        eprintln!("left out: needs {variable}");
    }
    tool
}

/// Runs a command to its end, with nothing on its standard input.
///
/// # Panics
/// When it cannot be started.
pub fn output(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a command that must succeed, and gives its standard output.
///
/// # Panics
/// With all that it printed, when it fails.
pub fn succeed(command: &mut Command) -> String {
    let output = output(command);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}\n{stderr}", output.status);
    stdout.into_owned()
}

/// Runs `tests/data/SCRIPT` by `python`; it must succeed.
pub fn run_python(python: &Path, script: &str, arguments: &[&Path]) -> String {
    succeed(Command::new(python).arg(in_tests("data").join(script)).args(arguments))
}

/// Runs `tests/browser/SCRIPT` by Node, which finds the browser by `SCOPE_TEST_BROWSER`.
pub fn run_browser(script: &str, arguments: &[impl AsRef<OsStr>]) -> String {
    succeed(Command::new("node").arg(in_tests("browser").join(script)).args(arguments))
}

/// A file or folder of the member `tests`.
pub fn in_tests(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// snakeviz showing one file, until the value is dropped.
pub struct Snakeviz {
    server: Child,
    /// The page of the file.
    pub url: String,
}

impl Snakeviz {
    /// Starts the server on a free port and waits until it says where.
    ///
    /// # Panics
    /// When it ends without saying so, as it does for a file that is no profile.
    pub fn start(python: &Path, prof: &Path) -> Snakeviz {
        // The port is free again before the server takes it; should another program be faster,
        // snakeviz tries others by itself and prints the one that it got.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Command::new(python)
            .args(["-u", "-m", "snakeviz", "-s", "-H", "127.0.0.1", "-p", &port.to_string()])
            .arg(prof)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", python.display()));
        let lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let url = lines.map_while(Result::ok).find(|line| line.starts_with("http://"));
        Snakeviz { server, url: url.expect("snakeviz says where it listens") }
    }
}

impl Drop for Snakeviz {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
