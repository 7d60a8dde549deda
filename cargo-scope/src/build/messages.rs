//! Follows a build through cargo's JSON messages: what was built, and what the compiler said.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::Context;
use cargo_metadata::diagnostic::{Diagnostic, DiagnosticLevel};
use cargo_metadata::{Artifact, Message};

use super::CargoOptions;
use super::commands::cannot_start;

/// Runs a command of cargo that builds, and gives its status and what it built.
pub(super) fn follow(
    mut command: Command,
    options: &CargoOptions,
) -> anyhow::Result<(ExitStatus, Vec<Artifact>)> {
    command.arg(message_format(options)).stdout(Stdio::piped());
    command.env_remove("SCOPE_OUTPUT");
    let mut child = command.spawn().with_context(|| cannot_start(&command))?;
    let messages = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut said = Said { wants_json: options.wants_json(), ..Said::default() };
    let mut artifacts = Vec::new();
    for line in messages.lines() {
        let line = line.context("failed to read the messages of `cargo build`")?;
        // A line that is no message is what a procedural macro printed.
        match Message::parse_stream(line.as_bytes()).next() {
            Some(Ok(Message::CompilerArtifact(artifact))) => artifacts.push(artifact),
            Some(Ok(Message::CompilerMessage(message))) => said.take(message.message),
            _ => {}
        }
        said.keep(line);
    }
    let status = child.wait().context("failed to wait for `cargo build`")?;
    if !status.success() {
        said.show();
    }
    Ok((status, artifacts))
}

/// JSON for us; what the compiler said comes in it as the user wants to see it.
fn message_format(options: &CargoOptions) -> String {
    let given = options.message_format.iter().flat_map(|formats| formats.split(','));
    let short = given.clone().any(|format| format == "short" || format == "json-diagnostic-short");
    let plain =
        options.wants_json() && !given.clone().any(|format| format == "json-diagnostic-rendered-ansi");
    let mut format = "--message-format=json".to_string();
    if short {
        format.push_str(",json-diagnostic-short");
    }
    if !plain {
        format.push_str(",json-diagnostic-rendered-ansi");
    }
    format
}

/// What the compiler said. Cargo repeats warnings when it runs what was built, so they are shown
/// here only when nothing runs; and so are messages that the user wants as JSON. Errors are shown at once.
#[derive(Debug, Default)]
struct Said {
    wants_json: bool,
    json: Vec<String>,
    warnings: Vec<String>,
    seen: HashSet<String>,
}

impl Said {
    fn keep(&mut self, line: String) {
        self.json.extend(self.wants_json.then_some(line));
    }

    fn take(&mut self, diagnostic: Diagnostic) {
        let Some(text) = diagnostic.rendered else { return };
        // One file may be compiled into several targets.
        if self.wants_json || !self.seen.insert(text.clone()) {
            return;
        }
        match diagnostic.level {
            DiagnosticLevel::Error | DiagnosticLevel::Ice => show(&text),
            _ => self.warnings.push(text),
        }
    }

    fn show(self) {
        self.warnings.iter().for_each(|text| show(text));
        let mut stdout = io::stdout().lock();
        for line in &self.json {
            // Whoever reads has seen enough.
            let _ = writeln!(stdout, "{line}");
        }
    }
}

/// Writes what the compiler said, coloured where stderr is.
fn show(text: &str) {
    // A closed stderr is no reason to fail.
    let _ = anstream::stderr().lock().write_all(text.as_bytes()).and_then(|()| io::stderr().flush());
}
