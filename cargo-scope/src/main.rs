//! The `cargo scope` subcommand.

use anyhow::{Context, Result};
use cargo_scope::cli::{Cli, Command};
use cargo_scope::program::Ending;
use cargo_scope::{commands, run, say, setup, test};

fn main() {
    let ending = start(Cli::from_command_line()).unwrap_or_else(|error| {
        say::error(&error);
        Ending::Status(1)
    });
    ending.end()
}

fn start(cli: Cli) -> Result<Ending> {
    say::choose_color(cli.command.color());
    if let Some(directory) = &cli.directory {
        let failed = || format!("failed to change to the directory `{}`", directory.display());
        std::env::set_current_dir(directory).with_context(failed)?;
    }
    command(cli.command)
}

fn command(command: Command) -> Result<Ending> {
    match command {
        Command::Run(options) => return run::run(&options),
        Command::Test(options) => return test::test(&options),
        Command::Bench(options) => return test::bench(&options),
        Command::Init(options) => return setup::init(&options),
        Command::Collect(options) => commands::collect(&options)?,
        Command::Inspect(options) => commands::inspect(&options)?,
        Command::Export(options) => commands::export(&options)?,
        Command::Env(options) => setup::env(&options)?,
        Command::Completions(options) => setup::completions(&options)?,
        Command::Man(options) => setup::man(&options)?,
    }
    Ok(Ending::Status(0))
}
