//! Starting a program on several ranks: the launcher of an MPI, as a runner for cargo.
//!
//! `-n 4` makes cargo run `mpirun -n 4 target/debug/program ARGS`. The launcher takes the place of a
//! runner in the project's configuration, which is most often one itself.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use crate::build::{self, Built, CargoOptions};

/// Launchers that are looked for in `PATH`, in this order.
const KNOWN: [&str; 3] = ["mpirun", "mpiexec", "srun"];

/// A command that starts a program on several ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    words: Vec<String>,
}

impl Launcher {
    /// The launcher that `--launcher` and `-n` ask for, if they do.
    ///
    /// # Errors
    /// When the command cannot be split into words or is no program, or no launcher is installed.
    pub fn choose(command: Option<&str>, ranks: Option<u32>) -> anyhow::Result<Option<Launcher>> {
        let mut words = match command {
            Some(command) => {
                let words = split(command)?;
                ensure!(is_program(&words[0]), "there is no program `{}` to start ranks with", words[0]);
                words
            }
            None if ranks.is_some() => vec![find()?],
            None => return Ok(None),
        };
        if let Some(ranks) = ranks {
            let place = place_of_options(&words);
            words.splice(place..place, ["-n".to_string(), ranks.to_string()]);
        }
        Ok(Some(Launcher { words }))
    }

    /// The command in words, as the user would type it.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The setting of cargo's configuration that makes this the runner, with `variables` passed on
    /// to ranks on other hosts.
    ///
    /// # Errors
    /// When the project's runner is written in a way that this one cannot stand in for.
    pub fn as_runner(
        &self,
        options: &CargoOptions,
        built: &Built,
        variables: &[&str],
    ) -> anyhow::Result<OsString> {
        let triple = match &built.triple {
            Some(triple) => triple.clone(),
            None => host()?,
        };
        let mut words = self.words.clone();
        let place = place_of_options(&words);
        words.splice(place..place, self.pass_on(variables));
        let setting = |value: String| OsString::from(format!("target.\"{triple}\".runner={value}"));
        let list = setting(serde_json::to_string(&words).context("failed to write the runner")?);
        if build::accepts(options, std::slice::from_ref(&list))? {
            return Ok(list);
        }
        // Cargo replaces a text by a text only, which it splits at spaces.
        let text = setting(serde_json::to_string(&words.join(" ")).context("failed to write the runner")?);
        let splits_right = words.iter().all(|word| !word.contains(char::is_whitespace));
        if splits_right && build::accepts(options, std::slice::from_ref(&text))? {
            return Ok(text);
        }
        bail!(
            "failed to put `{}` in the place of the runner of the project; write that one as a list \
             (`runner = [\"command\", \"argument\"]`) in cargo's configuration",
            words.join(" ")
        )
    }

    /// Open MPI gives ranks on other hosts no variables but those that are named; MPICH and Slurm
    /// pass on all of them.
    fn pass_on(&self, variables: &[&str]) -> Vec<String> {
        let may_be_open_mpi = is_called(&self.words[0], &["mpirun", "mpiexec", "orterun"]);
        if may_be_open_mpi && is_open_mpi(&self.words[0]) {
            variables.iter().flat_map(|variable| ["-x".to_string(), variable.to_string()]).collect()
        } else {
            Vec::new()
        }
    }
}

/// Where options are put in: right behind a launcher that is known, since what it starts may follow, such as
/// `env` or `valgrind`; else at the end.
fn place_of_options(words: &[String]) -> usize {
    if is_called(&words[0], &["mpirun", "mpiexec", "orterun", "prterun", "srun"]) { 1 } else { words.len() }
}

/// Whether the name of the program starts with one of these.
fn is_called(program: &str, names: &[&str]) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    names.iter().any(|start| name.starts_with(start))
}

fn split(command: &str) -> anyhow::Result<Vec<String>> {
    match shlex::split(command) {
        Some(words) if !words.is_empty() => Ok(words),
        Some(_) => bail!("--launcher is empty: give a command, such as `mpirun --bind-to core`"),
        None => bail!("failed to split --launcher `{command}` into words: a quote is open at its end"),
    }
}

/// The first known launcher in `PATH`.
fn find() -> anyhow::Result<String> {
    match KNOWN.iter().find(|name| is_program(name)) {
        Some(name) => Ok(name.to_string()),
        None => bail!(
            "failed to find a launcher for -n: none of {} is in PATH; install Open MPI or MPICH, load its \
             module, or name a command with --launcher",
            KNOWN.join(", ")
        ),
    }
}

/// Whether `name` is a path to a file, or a file in a folder of `PATH`.
fn is_program(name: &str) -> bool {
    let file = format!("{}{}", name.trim_end_matches(EXE_SUFFIX), EXE_SUFFIX);
    if Path::new(name).components().count() > 1 {
        return Path::new(&file).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(&file).is_file())
}

fn is_open_mpi(launcher: &str) -> bool {
    let output = Command::new(launcher).arg("--version").stdin(Stdio::null()).output();
    output.is_ok_and(|output| {
        let text = String::from_utf8_lossy(&output.stdout);
        text.contains("Open MPI") || text.contains("OpenRTE")
    })
}

/// The triple of this machine, from the compiler that cargo uses.
fn host() -> anyhow::Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&rustc)
        .arg("-vV")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to start `{}`", rustc.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_string).with_context(|| format!("`{} -vV` names no host", rustc.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str, ranks: Option<u32>) -> Vec<String> {
        Launcher::choose(Some(command), ranks).unwrap().unwrap().words
    }

    #[test]
    fn a_launcher_is_split_as_a_shell_does() {
        assert_eq!(words("sh --label 'a b'", Some(4)), ["sh", "--label", "a b", "-n", "4"]);
        assert_eq!(words("/bin/sh -n 2", None), ["/bin/sh", "-n", "2"]);
        assert_eq!(Launcher::choose(None, None).unwrap(), None);
    }

    #[test]
    fn options_go_to_the_launcher_and_not_to_what_it_starts() {
        let words = |command: &str| command.split(' ').map(str::to_string).collect::<Vec<_>>();
        assert_eq!(place_of_options(&words("/opt/bin/mpirun.openmpi env A=1")), 1);
        assert_eq!(place_of_options(&words("ssh host mpirun")), 3);
    }

    #[test]
    fn a_launcher_that_is_no_command_is_refused() {
        let refused = |command| Launcher::choose(Some(command), None).unwrap_err().to_string();
        assert!(refused(" ").contains("--launcher is empty"));
        assert!(refused("mpirun 'x").contains("`mpirun 'x`"));
        assert!(refused("no-such-launcher -x").contains("no program `no-such-launcher`"));
        assert!(refused("./no/sh").contains("no program `./no/sh`"));
    }
}
