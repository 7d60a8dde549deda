//! Small packages that a test writes, builds and runs, each with one program.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outputs::Run;
use crate::subcommand::{self, cargo, cargo_with_scope, scratch};
use crate::tools;

/// A package of its own, outside the workspace, that depends on scope-runtime by path.
pub struct Package {
    name: String,
    folder: PathBuf,
}

impl Package {
    /// The package of a case: `src/main.rs` is `tests/cases/<case>_*.rs` as it is.
    pub fn of_case(case: &str, dependencies: &[&str]) -> Package {
        Package::new(case, &case_source(case), dependencies)
    }

    /// The same with features of scope-runtime.
    pub fn of_case_with(case: &str, features: &[&str], dependencies: &[&str]) -> Package {
        Package::with_features(case, &case_source(case), features, dependencies)
    }

    /// A package with this program. `dependencies` are lines of the manifest.
    pub fn new(name: &str, source: &str, dependencies: &[&str]) -> Package {
        Package::with_features(name, source, &[], dependencies)
    }

    /// The same with features of scope-runtime.
    pub fn with_features(name: &str, source: &str, features: &[&str], dependencies: &[&str]) -> Package {
        let more = if features.is_empty() { String::new() } else { format!(", features = {features:?}") };
        let runtime = runtime("scope-runtime", &more);
        let dependencies = [&[runtime.as_str()], dependencies].concat();
        Package::of_files(name, "2021", &[("src/main.rs", source)], &dependencies)
    }

    /// A package of these files. `dependencies` are lines of the manifest, scope-runtime's included.
    ///
    /// Files are written only when they change, so that a second run builds nothing.
    pub fn of_files(name: &str, edition: &str, files: &[(&str, &str)], dependencies: &[&str]) -> Package {
        let folder = scratch().join("packages").join(name);
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"{edition}\"\n\n\
             [dependencies]\n{}\n\n[workspace]\n",
            dependencies.join("\n"),
        );
        write_if_changed(&folder.join("Cargo.toml"), manifest.as_bytes());
        for (file, text) in files {
            write_if_changed(&folder.join(file), text.as_bytes());
        }
        Package::of_folder(name, folder)
    }

    /// A workspace of the packages in the folders `members`, which are written by the caller.
    pub fn of_members(name: &str, members: &[&str]) -> Package {
        let folder = scratch().join("packages").join(name);
        let manifest = format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n");
        write_if_changed(&folder.join("Cargo.toml"), manifest.as_bytes());
        Package::of_folder(name, folder)
    }

    fn of_folder(name: &str, folder: PathBuf) -> Package {
        // The versions that the workspace has: cargo takes what fits and drops the rest, so
        // nothing is looked up.
        if !folder.join("Cargo.lock").exists() {
            std::fs::copy(subcommand::workspace().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        }
        Package { name: name.into(), folder }
    }

    /// The folder with the manifest.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `cargo ARGUMENTS` in the package.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        self.in_package(cargo(), arguments)
    }

    /// `cargo scope ARGUMENTS` in the package.
    pub fn cargo_scope(&self, arguments: &[&str]) -> Command {
        let mut cargo = cargo_with_scope();
        cargo.arg("scope");
        self.in_package(cargo, arguments)
    }

    /// `cargo-scope ARGUMENTS` in the package, without cargo around it.
    pub fn cargo_scope_itself(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(subcommand::binary());
        subcommand::without_traces_of_the_test(&mut command);
        self.in_package(command, arguments)
    }

    fn in_package(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.args(arguments).current_dir(&self.folder).env("CARGO_TARGET_DIR", build_folder());
        command
    }

    /// The program, built by plain `cargo build`.
    pub fn build(&self) -> PathBuf {
        tools::succeed(&mut self.cargo(&["build", "--quiet"]));
        build_folder().join("debug").join(&self.name)
    }

    /// The program, built by `cargo build --release`.
    pub fn build_optimised(&self) -> PathBuf {
        tools::succeed(&mut self.cargo(&["build", "--quiet", "--release"]));
        build_folder().join("release").join(&self.name)
    }

    /// Runs the program under `cargo scope run` with an empty folder for its outputs.
    pub fn run(&self, arguments: &[&str]) -> Run {
        let mut folder = self.name.clone();
        arguments.iter().for_each(|argument| folder += &format!("-{argument}"));
        let folder = empty_folder(&folder);
        let mut command = self.cargo_scope(&["run", "-o"]);
        command.arg(&folder).arg("--").args(arguments);
        Run::start(&mut command, folder)
    }
}

/// The line of a manifest that makes this workspace's scope-runtime a dependency called `name`;
/// `more` is more of the line.
pub fn runtime(name: &str, more: &str) -> String {
    let path = subcommand::workspace().join("scope-runtime");
    format!("{name} = {{ package = \"scope-runtime\", path = {path:?}{more} }}")
}

/// Where all packages are built, so that they share their dependencies.
fn build_folder() -> PathBuf {
    scratch().join("build")
}

/// A folder for outputs that is not there yet, below an existing one.
pub fn empty_folder(name: &str) -> PathBuf {
    let folder = scratch().join("outputs").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    folder
}

fn case_source(case: &str) -> String {
    let folder = tools::in_tests("cases");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let start = format!("{case}_");
    let is_case = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&start);
    let file = files.into_iter().find(is_case).unwrap_or_else(|| panic!("no case {case} in {folder:?}"));
    std::fs::read_to_string(file).unwrap()
}

/// Writes a file unless it has this content already, with the folders above it.
pub fn write_if_changed(file: &Path, content: &[u8]) {
    if std::fs::read(file).is_ok_and(|old| old == content) {
        return;
    }
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, content).unwrap();
}
