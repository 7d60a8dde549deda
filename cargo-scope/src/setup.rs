//! The commands that prepare things: `init`, `env`, `completions`, `man`.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;

use crate::cli::{Cli, CompletionsOptions, EnvOptions, InitOptions, ManOptions};
use crate::program::Ending;
use crate::{build, outputs, record, say, shell};

/// The two lines that a program needs.
const WHAT_TO_WRITE: &str = "\
use scope_runtime::scope; // at the top of a file

#[scope] // above each function that matters
";

/// Adds scope-runtime to a package through `cargo add`, whose ending is ours.
///
/// # Errors
/// When cargo cannot be started, or the lines cannot be printed.
pub fn init(options: &InitOptions) -> anyhow::Result<Ending> {
    let mut command = build::cargo();
    command.arg("add");
    match &options.path {
        Some(path) => command.arg("--path").arg(path),
        None => command.arg(concat!("scope-runtime@", env!("CARGO_PKG_VERSION"))),
    };
    for feature in &options.features {
        command.arg("--features").arg(feature);
    }
    if let Some(package) = &options.package {
        command.arg("--package").arg(package);
    }
    if let Some(manifest) = &options.manifest_path {
        command.arg("--manifest-path").arg(manifest);
    }
    if options.offline {
        command.arg("--offline");
    }
    let ending = record::run_unrecorded(&mut command)?;
    if ending == Ending::Status(0) {
        print(WHAT_TO_WRITE.as_bytes())?;
        say::note(format_args!("write these lines, then `cargo scope run`"));
    } else if options.path.is_none() {
        say::note(format_args!(
            "scope-runtime {} was looked for where cargo looks; to take it from a folder: `--path FOLDER/scope-runtime`",
            env!("CARGO_PKG_VERSION")
        ));
    }
    Ok(ending)
}

/// Prints shell lines that turn recording on.
///
/// # Errors
/// When the folder has no absolute path, or the lines cannot be printed.
pub fn env(options: &EnvOptions) -> anyhow::Result<()> {
    let folder = match &options.output {
        Some(folder) => folder.clone(),
        // A new one each time: recordings of two runs in one folder could not be told apart.
        None => Path::new("scope").join(outputs::next_number(Path::new("scope")).to_string()),
    };
    let folder =
        std::path::absolute(&folder).with_context(|| format!("failed to use `{}`", folder.display()))?;
    let folder = folder.to_str().with_context(|| {
        format!("failed to print `{}`: it is no Unicode; choose another folder with -o", folder.display())
    })?;
    let mut lines = format!("export SCOPE_OUTPUT={}\n", shell::word(folder));
    if options.totals_only {
        lines.push_str("export SCOPE_TOTALS_ONLY=1\n");
    }
    lines.push_str(&format!("# after the program has ended: cargo scope collect {}\n", shell::word(folder)));
    print(lines.as_bytes())
}

/// Prints the completions of a shell.
///
/// # Errors
/// When they cannot be printed.
pub fn completions(options: &CompletionsOptions) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "cargo-scope", &mut text);
    print(&text)
}

/// Prints the manual page, or writes those of all commands to a folder.
///
/// # Errors
/// When a page cannot be written.
pub fn man(options: &ManOptions) -> anyhow::Result<()> {
    let Some(folder) = &options.folder else {
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page).context("failed to make the manual page")?;
        return print(&page);
    };
    let failed = || format!("failed to write manual pages to `{}`", folder.display());
    std::fs::create_dir_all(folder).with_context(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(failed)?;
    say::status("Wrote", format_args!("manual pages to {}", folder.display()));
    Ok(())
}

/// Writes to stdout. Whoever reads may have seen enough, as with `| head`.
fn print(text: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("failed to print"),
    }
}
