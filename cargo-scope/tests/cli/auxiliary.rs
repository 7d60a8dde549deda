//! Temporary crates, and a `cargo` that finds the binary under test as its subcommand.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const OURS: &str = env!("CARGO_MANIFEST_DIR");

/// A crate or workspace of its own.
pub(crate) struct Project {
    home: TempDir,
    /// Where it is built; tests that do not care share one, so that dependencies are built once.
    target: PathBuf,
}

impl Project {
    /// A copy of a folder in `tests/cases`, built below its own folder.
    pub(crate) fn of_case(name: &str) -> Project {
        let home = TempDir::new().unwrap();
        copy(&Path::new(OURS).join("../tests/cases").join(name), home.path());
        let target = home.path().join("target");
        Project { home, target }
    }

    /// A package with this `src/main.rs`, which has no dependencies.
    pub(crate) fn plain(name: &str, main: &str) -> Project {
        Project::package(name, main, "")
    }

    /// A package with this `src/main.rs`, which uses scope-runtime and libc.
    pub(crate) fn with_runtime(name: &str, main: &str) -> Project {
        let runtime = Path::new(OURS).parent().unwrap().join("scope-runtime");
        let dependencies = format!("libc = \"0.2\"\nscope-runtime = {{ path = {runtime:?} }}\n");
        let project = Project::package(name, main, &dependencies);
        // The versions that are here already: no test needs the network.
        let _ = fs::copy(Path::new(OURS).join("../Cargo.lock"), project.path("Cargo.lock"));
        project
    }

    /// A package whose dependency `scope-runtime` is a crate without code, of this version and with
    /// these features.
    pub(crate) fn with_other_runtime(name: &str, version: &str, features: &str) -> Project {
        let dependency = format!("scope-runtime = {{ path = \"runtime\", features = {features} }}\n");
        let project = Project::package(name, "use scope_runtime as _;\nfn main() {}\n", &dependency);
        let manifest = format!(
            "[package]\nname = \"scope-runtime\"\nversion = \"{version}\"\nedition = \"2021\"\n\n\
             [features]\noff = []\n"
        );
        project.write("runtime/Cargo.toml", &manifest);
        project.write("runtime/src/lib.rs", "");
        project
    }

    fn package(name: &str, main: &str, dependencies: &str) -> Project {
        let home = TempDir::new().unwrap();
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n\n\
             [profile.bench-like]\ninherits = \"release\"\n\n[features]\nextra = []\n\n\
             [dependencies]\n{dependencies}"
        );
        let project = Project { home, target: Path::new(env!("CARGO_TARGET_TMPDIR")).join("crates") };
        project.write("Cargo.toml", &manifest);
        project.write("src/main.rs", main);
        project
    }

    /// A path in the project.
    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.home.path().join(relative)
    }

    pub(crate) fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A file that can be started.
    pub(crate) fn write_script(&self, relative: &str, text: &str) {
        self.write(relative, text);
        let mut permissions = fs::metadata(self.path(relative)).unwrap().permissions();
        permissions.set_mode(0o755);
        fs::set_permissions(self.path(relative), permissions).unwrap();
    }

    /// Adds text to the end of a file.
    pub(crate) fn append(&self, relative: &str, text: &str) {
        self.write(relative, &(fs::read_to_string(self.path(relative)).unwrap() + text));
    }

    /// `cargo scope ARGS` in the project's folder.
    pub(crate) fn cargo_scope<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut command = self.command(cargo());
        command.arg("scope").args(args);
        command
    }

    /// The binary under test, started directly.
    pub(crate) fn binary(&self) -> Command {
        self.command(binary_path())
    }

    /// A command in the project's folder, in an environment without traces of this build.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.home.path());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let cargo = text.starts_with("CARGO") && !matches!(&*text, "CARGO" | "CARGO_HOME");
            if cargo || text.starts_with("SCOPE_") || text.starts_with("RUST_") || text == "RUSTFLAGS" {
                command.env_remove(&name);
            }
        }
        let bin = binary_path().parent().unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(bin.to_path_buf()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).unwrap());
        command.env("CARGO_TARGET_DIR", &self.target).env("CARGO_NET_OFFLINE", "true");
        command
    }
}

fn binary_path() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_cargo-scope"))
}

pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// The triple of this machine.
pub(crate) fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_string()
}

/// Runs `command`, and gives its output as text and its status as a shell shows it.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Ran {
    use std::os::unix::process::ExitStatusExt;
    let Output { status, stdout, stderr } = command.output().unwrap();
    let status = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { status, stdout: text(stdout), stderr: text(stderr) }
}

#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    #[track_caller]
    pub(crate) fn prints(self, stdout: &str) -> Ran {
        assert_eq!((self.stdout.as_str(), self.status), (stdout, 0), "{}", self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn ends_with(self, status: i32) -> Ran {
        assert_eq!(self.status, status, "{self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Ran {
        assert!(self.stderr.contains(text), "no `{text}` in:\n{}", self.stderr);
        self
    }
}

/// The calls of each region in the profile of `folder`.
#[track_caller]
pub(crate) fn calls(folder: &Path) -> Vec<(String, usize)> {
    let profile = cargo_scope::hdf5::read(&folder.join("profile.h5")).unwrap();
    let name = |row: &cargo_scope::merged::Row| profile.names[row.region as usize].clone();
    profile.rows.iter().map(|row| (name(row), row.events.len())).collect()
}

/// Names in a folder, sorted; none where it is not there.
pub(crate) fn listing(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}
