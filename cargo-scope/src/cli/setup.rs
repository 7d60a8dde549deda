//! Options of the commands that prepare things: `init`, `env`, `completions`, `man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Options of `init`.
#[derive(Debug, Args)]
#[command(after_help = "This is `cargo add scope-runtime`, with the version that this command reads.")]
pub struct InitOptions {
    /// Package to add it to
    #[arg(short, long, value_name = "SPEC")]
    pub package: Option<String>,
    /// Path to Cargo.toml
    #[arg(long, value_name = "PATH")]
    pub manifest_path: Option<PathBuf>,
    /// Folder of scope-runtime, where it does not come from a registry
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
    /// Features of scope-runtime to activate
    #[arg(short = 'F', long, value_name = "FEATURES")]
    pub features: Vec<String>,
    /// Run without accessing the network
    #[arg(long)]
    pub offline: bool,
}

/// Options of `env`.
#[derive(Debug, Args)]
#[command(after_help = "In a shell, or in the script of a job:\n\n    \
                        eval \"$(cargo scope env -o recordings)\"\n    \
                        srun ./program\n    \
                        cargo scope collect recordings")]
pub struct EnvOptions {
    /// Record to DIR [default: scope/NUMBER, a folder that is not there yet]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Keep exact totals per call path, but no timeline
    #[arg(long)]
    pub totals_only: bool,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsOptions {
    /// Shell to write them for
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
#[command(after_help = "To read it: `cargo scope man | man -l -`. To install all pages: \
                        `cargo scope man ~/.local/share/man/man1`.")]
pub struct ManOptions {
    /// Write the pages of all commands to DIR, one file each
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
}
