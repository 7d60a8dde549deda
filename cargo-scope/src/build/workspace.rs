//! What cargo knows about the workspace and the settings that hold there.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, bail};
use cargo_metadata::{Metadata, MetadataCommand};

use super::CargoOptions;
use super::commands::{cannot_start, cargo};
use super::line::Line;

/// The workspace, without dependencies; the status where cargo refuses, having said why.
pub(super) fn read(options: &CargoOptions) -> anyhow::Result<Result<Metadata, ExitStatus>> {
    let mut line = Line::default();
    options.add_workspace(&mut line);
    let mut command = metadata_command(line);
    command.stderr(Stdio::inherit());
    let output = command.output().with_context(|| cannot_start(&command))?;
    if !output.status.success() {
        return Ok(Err(output.status));
    }
    let text = String::from_utf8(output.stdout).context("`cargo metadata` gave no UTF-8")?;
    Ok(Ok(MetadataCommand::parse(text).context("failed to understand the answer of `cargo metadata`")?))
}

/// `--target-dir` comes first, as with cargo, whose metadata knows the other ways to set it.
pub(super) fn target_directory(options: &CargoOptions, metadata: &Metadata) -> anyhow::Result<PathBuf> {
    match &options.target_dir {
        Some(dir) => std::path::absolute(dir).with_context(|| format!("failed to use `{}`", dir.display())),
        None => Ok(metadata.target_directory.clone().into_std_path_buf()),
    }
}

/// The target directory of the workspace around the working directory.
///
/// # Errors
/// When there is none, or cargo cannot be started; cargo has then said why.
pub fn workspace_target_directory() -> anyhow::Result<PathBuf> {
    match read(&CargoOptions::default())? {
        Ok(metadata) => Ok(metadata.target_directory.into_std_path_buf()),
        Err(status) => bail!("`cargo metadata` ended with {status}"),
    }
}

/// Whether cargo would take these settings besides those of the project.
///
/// # Errors
/// When cargo cannot be started.
pub fn accepts(options: &CargoOptions, settings: &[OsString]) -> anyhow::Result<bool> {
    let mut line = Line::default();
    options.add_workspace(&mut line);
    line.many("--config", settings);
    let mut command = metadata_command(line);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command.status().with_context(|| cannot_start(&command))?.success())
}

fn metadata_command(line: Line) -> Command {
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--format-version=1"]).args(line.0).stdin(Stdio::null());
    command
}
