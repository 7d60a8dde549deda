//! Builds the program that `cargo run` would run, through cargo, and starts it through cargo.
//!
//! Two steps. First `cargo build --message-format=json`, without `SCOPE_OUTPUT` in the environment
//! (a build script may have regions too): it shows cargo's messages and progress, and its answer
//! tells which program it is, where it was built, and whether scope-runtime is linked into it.
//! Then `cargo run` with the user's own options, which finds everything fresh and replaces itself
//! by the program: so the choice of the target, runners, `[env]`, library paths, working
//! directory, arguments and status (a signal too) are cargo's own, not an imitation.
//!
//! `cargo run` alone would not do: it mixes its JSON messages into the program's stdout, and a
//! failed build looks like a failed program. The first step alone would not either: what cargo
//! adds to a program's environment cannot be asked for, nor can the runner on a stable toolchain.

mod options;
mod target;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::Context;
use cargo_metadata::diagnostic::DiagnosticLevel;
use cargo_metadata::{Artifact, Message, Metadata, MetadataCommand};

pub use self::options::CargoOptions;
use self::target::Selection;

/// The cargo to use: what cargo itself, or the user, put into `CARGO`.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").filter(|path| !path.is_empty()).unwrap_or_else(|| "cargo".into()))
}

/// What came of building.
#[derive(Debug)]
pub enum Outcome {
    /// The program is there.
    Built(Box<Built>),
    /// Cargo failed, and said why.
    Failed(ExitStatus),
    /// No target, or several: `cargo run` has the words for it.
    NoSingleTarget,
}

/// A program that was built.
#[derive(Debug)]
pub struct Built {
    /// Name of the target, such as the binary's.
    pub name: String,
    /// Path of the program, from cargo's message.
    pub executable: PathBuf,
    /// Target directory of the build.
    pub target_directory: PathBuf,
    /// Root folder of the package.
    pub package_root: PathBuf,
    /// The scope-runtime crates that were built for it.
    pub runtimes: Vec<Runtime>,
}

/// A scope-runtime that takes part in a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Its version; empty when cargo's package id does not say it.
    pub version: String,
    /// Whether it was built with the feature `off`, which removes all recording.
    pub off: bool,
}

/// Builds the program that `cargo run` with these options would run.
///
/// # Errors
/// When cargo cannot be started, or does not speak JSON as expected.
pub fn build(options: &CargoOptions) -> anyhow::Result<Outcome> {
    let metadata = match read_metadata(options)? {
        Ok(metadata) => metadata,
        Err(status) => return Ok(Outcome::Failed(status)),
    };
    let Some(selection) = target::select(options, &metadata) else { return Ok(Outcome::NoSingleTarget) };
    let (status, artifacts) = build_selection(options, &selection)?;
    if !status.success() {
        return Ok(Outcome::Failed(status));
    }
    let Some(program) = target::single_program(&artifacts) else { return Ok(Outcome::NoSingleTarget) };
    let executable = program.executable.clone().unwrap_or_default().into_std_path_buf();
    let manifest = program.manifest_path.clone().into_std_path_buf();
    Ok(Outcome::Built(Box::new(Built {
        name: program.target.name.clone(),
        executable,
        target_directory: target_directory(options, &metadata)?,
        package_root: manifest.parent().unwrap_or(&manifest).to_path_buf(),
        runtimes: artifacts.iter().filter_map(runtime).collect(),
    })))
}

/// The command that runs the program, to be used after [`build`].
///
/// With `quiet`, cargo says nothing that it said while building.
pub fn run_command(options: &CargoOptions, args: &[OsString], quiet: bool) -> Command {
    let mut command = cargo();
    command.arg("run").args(options.for_run());
    if quiet && !options.quiet && options.verbose == 0 {
        command.arg("--quiet");
    }
    command.arg("--").args(args);
    command
}

/// The workspace, without dependencies; the status where cargo refuses, having said why.
fn read_metadata(options: &CargoOptions) -> anyhow::Result<Result<Metadata, ExitStatus>> {
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--format-version=1"]).args(options.for_metadata());
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().with_context(|| cannot_start(&command))?;
    if !output.status.success() {
        return Ok(Err(output.status));
    }
    let text = String::from_utf8(output.stdout).context("`cargo metadata` gave no UTF-8")?;
    Ok(Ok(MetadataCommand::parse(text).context("failed to understand the answer of `cargo metadata`")?))
}

fn cannot_start(command: &Command) -> String {
    let program = command.get_program().display();
    format!("failed to start `{program}`: install cargo, or set CARGO to its path")
}

/// `--target-dir` comes first, as with cargo, whose metadata knows the other ways to set it.
fn target_directory(options: &CargoOptions, metadata: &Metadata) -> anyhow::Result<PathBuf> {
    match &options.target_dir {
        Some(dir) => std::path::absolute(dir).with_context(|| format!("failed to use `{}`", dir.display())),
        None => Ok(metadata.target_directory.clone().into_std_path_buf()),
    }
}

fn build_selection(
    options: &CargoOptions,
    selection: &Selection,
) -> anyhow::Result<(ExitStatus, Vec<Artifact>)> {
    let mut command = cargo();
    command.arg("build").args(options.for_build(selection));
    command.arg("--message-format=json-diagnostic-rendered-ansi").stdout(Stdio::piped());
    command.env_remove("SCOPE_OUTPUT");
    let mut child = command.spawn().with_context(|| cannot_start(&command))?;
    let messages = child.stdout.take().expect("stdout is piped");
    let mut held_back = HeldBack::default();
    let mut artifacts = Vec::new();
    for message in Message::parse_stream(BufReader::new(messages)) {
        match message.context("failed to understand the messages of `cargo build`")? {
            Message::CompilerArtifact(artifact) => artifacts.push(artifact),
            Message::CompilerMessage(message) => held_back.take(message.message),
            _ => {}
        }
    }
    let status = child.wait().context("failed to wait for `cargo build`")?;
    if !status.success() {
        held_back.show();
    }
    Ok((status, artifacts))
}

/// Warnings of a build: `cargo run` repeats them when all goes well, so they are shown here only
/// when it does not. Errors are shown at once.
#[derive(Debug, Default)]
struct HeldBack {
    texts: Vec<String>,
    seen: HashSet<String>,
}

impl HeldBack {
    fn take(&mut self, diagnostic: cargo_metadata::diagnostic::Diagnostic) {
        let Some(text) = diagnostic.rendered else { return };
        // One file may be compiled into several targets.
        if !self.seen.insert(text.clone()) {
            return;
        }
        match diagnostic.level {
            DiagnosticLevel::Error | DiagnosticLevel::Ice => show(&text),
            _ => self.texts.push(text),
        }
    }

    fn show(self) {
        self.texts.iter().for_each(|text| show(text));
    }
}

/// Writes what the compiler said, coloured only on a terminal.
fn show(text: &str) {
    // A closed stderr is no reason to fail.
    let _ = anstream::stderr().lock().write_all(text.as_bytes()).and_then(|()| io::stderr().flush());
}

/// Is it scope-runtime? By the name of its library, which a renamed dependency keeps.
fn runtime(artifact: &Artifact) -> Option<Runtime> {
    if artifact.target.name.replace('-', "_") != "scope_runtime" {
        return None;
    }
    let id = &artifact.package_id.repr;
    let version = id.rsplit(['#', '@']).next().filter(|text| text.starts_with(|c: char| c.is_ascii_digit()));
    Some(Runtime {
        version: version.unwrap_or_default().to_string(),
        off: artifact.features.iter().any(|feature| feature == "off"),
    })
}
