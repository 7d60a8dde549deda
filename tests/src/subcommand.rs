//! `cargo scope` built from this workspace, started as a user starts it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the member is in a workspace")
}

/// The binary `cargo-scope`, built at the first call.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        // With the whole workspace in view, features and so built crates are those of its tests.
        let build = ["build", "--workspace", "--bin=cargo-scope", "--message-format=json-render-diagnostics"];
        let built = cargo().args(build).current_dir(workspace()).stderr(Stdio::inherit()).output().unwrap();
        assert!(built.status.success(), "cargo-scope does not build");
        let messages = String::from_utf8(built.stdout).unwrap();
        let messages = messages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut executables =
            messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
        executables.next_back().expect("cargo names the binary that it built")
    })
}

/// Folder for what the tests make: packages, what is built from them, and outputs. It stays from
/// one run to the next, so that the dependencies of the packages are built once.
pub fn scratch() -> PathBuf {
    let target = binary().ancestors().nth(2).expect("the binary is in <target>/<profile>");
    target.join("tests")
}

/// Cargo with `cargo-scope` among its subcommands.
pub fn cargo_with_scope() -> Command {
    let mut cargo = cargo();
    let folder = binary().parent().unwrap().to_path_buf();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&path))).unwrap();
    cargo.env("PATH", path);
    cargo
}

/// Plain cargo.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    without_traces_of_the_test(&mut cargo);
    cargo
}

/// Takes away what cargo sets for a test and a user's shell has not: a build script or a program
/// could see it, and settings of a recording could come from around the test.
pub fn without_traces_of_the_test(command: &mut Command) {
    let set_by_cargo = ["CARGO_MANIFEST", "CARGO_PKG_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
    let ours = |name: &OsString| {
        let name = name.to_string_lossy();
        name == "CARGO"
            || set_by_cargo.iter().any(|start| name.starts_with(start))
            || (name.starts_with("SCOPE_") && !name.starts_with("SCOPE_TEST_"))
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| ours(name)) {
        command.env_remove(name);
    }
}
