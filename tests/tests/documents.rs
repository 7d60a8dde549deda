//! The documents say what is so: commands and code of the README run, ARCHITECTURE knows every file.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::outputs::files_below;
use tests::{subcommand, tools};

fn document(name: &str) -> String {
    fs::read_to_string(subcommand::workspace().join(name)).unwrap()
}

/// Paths in the first column of the tables, such as `os/linux.rs`, and those in the text beside them.
fn files_in_tables(architecture: &str) -> BTreeSet<&str> {
    let rows = architecture.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| row.split('`').skip(1).step_by(2)).filter(|word| word.ends_with(".rs")).collect()
}

#[test]
fn the_architecture_names_every_file_and_no_other() {
    let architecture = document("ARCHITECTURE.md");
    let named = files_in_tables(&architecture);
    let mut there = BTreeSet::new();
    for member in ["scope-macros", "scope-runtime", "cargo-scope"] {
        let sources = subcommand::workspace().join(member).join("src");
        for file in files_below(&sources) {
            there.insert(file.strip_prefix(&sources).unwrap().to_str().unwrap().to_string());
        }
    }
    let has_no_row = |name: &str| name == "lib.rs" || name.ends_with("tests.rs");
    let missing: Vec<_> =
        there.iter().filter(|name| !has_no_row(name) && !named.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "no row in ARCHITECTURE.md for {missing:?}");
    let gone: Vec<_> = named.iter().filter(|name| !there.contains(**name)).collect();
    assert!(gone.is_empty(), "rows in ARCHITECTURE.md without a file: {gone:?}");
}

/// A code block of a document.
struct Block {
    language: String,
    text: String,
}

fn blocks(document: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut parts = document.split("\n```");
    parts.next();
    while let Some(block) = parts.next() {
        let (language, text) = block.split_once('\n').unwrap();
        blocks.push(Block { language: language.into(), text: text.into() });
        parts.next().expect("every block ends");
    }
    blocks
}

/// The commands in the first column of the tables.
fn commands_in_tables(readme: &str) -> Vec<&str> {
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter(|row| row.starts_with("cargo ")).map(|row| row.split_once('`').unwrap().0).collect()
}

/// The shell of somebody who reads the README.
struct Reader {
    home: PathBuf,
}

impl Reader {
    /// `mpirun` starts one rank after the other, and `cargo install` installs what is built
    /// for the tests anyway, into a folder of its own.
    fn new() -> Reader {
        let home = subcommand::scratch().join("readme");
        fs::create_dir_all(home.join("bin")).unwrap();
        let mpirun = home.join("bin/mpirun");
        let script = "#!/bin/sh\n[ \"$1\" = -n ] || exit 0\nsize=$2\nshift 2\n\
                      for rank in $(seq 0 $((size - 1))); do\n    \
                      PMI_RANK=$rank PMI_SIZE=$size \"$@\" || exit\ndone\n";
        fs::write(&mpirun, script).unwrap();
        fs::set_permissions(&mpirun, fs::Permissions::from_mode(0o755)).unwrap();
        Reader { home }
    }

    /// The package `heat`, with this folder beside it.
    fn package(&self) -> PathBuf {
        let beside = self.home.join("scope");
        let _ = fs::remove_file(&beside);
        std::os::unix::fs::symlink(subcommand::workspace(), &beside).unwrap();
        let package = self.home.join("heat");
        let files = [
            (
                "Cargo.toml",
                "[package]\nname = \"heat\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
                 [[bench]]\nname = \"speed\"\nharness = false\n",
            ),
            ("src/main.rs", "fn main() {}\n"),
            ("tests/accuracy.rs", "#[scope_runtime::scope]\n#[test]\nfn slow() {}\n"),
            ("benches/speed.rs", "#[scope_runtime::scope]\nfn main() {}\n"),
        ];
        for (name, text) in files {
            let path = package.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let _ = fs::copy(subcommand::workspace().join("Cargo.lock"), package.join("Cargo.lock"));
        let _ = fs::remove_dir_all(package.join("recordings"));
        package
    }

    /// Types lines in a folder; they must succeed.
    fn types(&self, folder: &Path, lines: &str) -> String {
        let install = "cargo() { if [ \"$1\" = install ]; then command cargo \"$@\" --debug; \
                       else command cargo \"$@\"; fi; }\n";
        let cargo = subcommand::cargo_with_scope();
        let path = cargo.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap();
        let folders = ["bin", "install/bin"].map(|name| self.home.join(name));
        let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(path))).unwrap();
        let mut shell = Command::new("sh");
        subcommand::without_traces_of_the_test(&mut shell);
        shell.args(["-ec", &format!("{install}{lines}")]).current_dir(folder).env("PATH", path);
        shell.env("CARGO_INSTALL_ROOT", self.home.join("install")).env("CARGO_NET_OFFLINE", "true");
        tools::succeed(&mut shell)
    }
}

#[test]
fn what_the_readme_says_to_type_works() {
    let readme = document("README.md");
    let reader = Reader::new();
    let package = reader.package();
    let blocks = blocks(&readme);
    // The first command is for the folder of the README.
    let mut folder = subcommand::workspace();
    for block in &blocks {
        match block.language.as_str() {
            "sh" => {
                reader.types(folder, &block.text);
                folder = &package;
            }
            "rust" => fs::write(package.join("src/main.rs"), &block.text).unwrap(),
            // Real ranks are a matter of the test `mpi`.
            "text" | "sh mpi" => {}
            "python" => {
                if let Some(python) = tools::python() {
                    let printed =
                        tools::succeed(Command::new(python).current_dir(folder).args(["-c", &block.text]));
                    assert!(printed.ends_with(" ns is the mean of 1 calls\n"), "{printed}");
                }
            }
            other => panic!("what is a block of `{other}`?"),
        }
    }
    let outputs = package.join("target/scope/heat/latest");
    for file in ["profile.h5", "profile_rank0.prof", "flamegraph_rank0.svg", "flamegraph.svg"] {
        assert!(outputs.join(file).is_file(), "{file}");
        assert!(package.join("recordings").join(file).is_file(), "{file}");
    }
    let commands = commands_in_tables(&readme);
    assert!(commands.len() > 8, "{commands:?}");
    for command in commands {
        let command = if command == "cargo scope init" {
            // The crate itself is in no registry that a test could ask.
            "cargo scope init --path ../scope/scope-runtime"
        } else {
            command
        };
        reader.types(&package, command);
    }
}
