//! The `cargo scope` subcommand.

use anyhow::Result;
use cargo_scope::cli::{Cli, Command};
use cargo_scope::program::Ending;
use cargo_scope::{commands, run, say};

fn main() {
    let ending = command(Cli::from_command_line().command).unwrap_or_else(|error| {
        say::error(&error);
        Ending::Status(1)
    });
    ending.end()
}

fn command(command: Command) -> Result<Ending> {
    match command {
        Command::Run(options) => return run::run(&options),
        Command::Collect(options) => commands::collect(&options)?,
        Command::Inspect(options) => commands::inspect(&options)?,
        Command::Export(options) => commands::export(&options)?,
    }
    Ok(Ending::Status(0))
}
