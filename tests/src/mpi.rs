//! The programs of `tests/mpi`, built with each MPI that the tests are to use, and run on several ranks by its
//! launcher.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Mutex;
use std::time::Duration;

use scope_runtime::profile::Profile;
use scope_runtime::recording::Recording;

use crate::package::empty_folder;
use crate::{subcommand, tools};

/// Seconds after which a job is taken for one that hangs.
const LIMIT: &str = "60";
/// How often a job is started whose end is a matter of chance.
const TRIES: usize = 5;

/// An MPI whose tools have names like `mpicc.FAMILY`, as Debian has them.
pub struct Mpi {
    /// `openmpi` or `mpich`.
    pub family: String,
    programs: PathBuf,
}

/// Does `work` with each MPI that `SCOPE_TEST_MPI` names; with none of them, says so, where it does not.
pub fn with_each(work: impl Fn(&Mpi)) {
    let Ok(families) = std::env::var("SCOPE_TEST_MPI") else {
        eprintln!("left out: needs SCOPE_TEST_MPI");
        return;
    };
    for family in families.split_whitespace() {
        eprintln!("with {family}:");
        work(&Mpi::of(family));
    }
}

impl Mpi {
    /// The MPI, with all programs built, which is done once.
    fn of(family: &str) -> Mpi {
        build(family, &["--bins"]);
        Mpi { family: family.into(), programs: build_folder(family).join("debug") }
    }

    /// The MPI with the program of `tests/mpi` that has the feature `mpio`, which needs a parallel HDF5 of this
    /// MPI.
    pub fn with_parallel_hdf5(&self) -> &Mpi {
        build(&self.family, &["--features", "mpio", "--bin", "writes_profile"]);
        self
    }

    /// A built program of `tests/mpi`.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// Compiles files of `tests/mpi` with these flags; gives the program, or the library.
    pub fn compile(&self, name: &str, flags: &[&str], files: &[&str]) -> PathBuf {
        let result = self.program(name);
        let is_fortran = files.iter().any(|file| file.ends_with(".F90"));
        let compiler = self.tool(if is_fortran { "mpifort" } else { "mpicc" });
        let files = files.iter().map(|file| folder().join(file));
        tools::succeed(Command::new(compiler).arg("-o").arg(&result).args(files).args(flags));
        result
    }

    /// The runtime as a library of its own.
    pub fn runtime_library(&self) -> PathBuf {
        let arguments =
            ["rustc", "--quiet", "-p", "scope-runtime", "--features", "mpi", "--crate-type", "cdylib"];
        tools::succeed(cargo(&self.family, subcommand::workspace()).args(arguments));
        self.programs.join("libscope_runtime.so")
    }

    /// `cargo scope ARGUMENTS` in `tests/mpi`.
    pub fn cargo_scope(&self, arguments: &[&str]) -> Command {
        let mut command = subcommand::cargo_with_scope();
        self.adapt(command.arg("scope").args(arguments).current_dir(folder()));
        command
    }

    /// The launcher, as `--launcher` takes it.
    pub fn launcher(&self) -> String {
        let kill = "timeout --kill-after=10";
        format!("{kill} {LIMIT} {}", self.tool("mpirun"))
    }

    fn tool(&self, name: &str) -> String {
        format!("{name}.{}", self.family)
    }

    fn adapt(&self, command: &mut Command) {
        set_build_environment(command, &self.family);
        // Tests may run in a container, as its only user, with fewer processors than ranks.
        let variables = ["ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe"];
        command.envs(variables.map(|name| (format!("OMPI_{name}"), "1")));
    }

    /// A job of so many ranks, without recording.
    pub fn job<S: AsRef<OsStr>>(&self, ranks: usize, program: &Path, arguments: &[S]) -> Command {
        let mut command = Command::new("timeout");
        subcommand::without_traces_of_the_test(&mut command);
        self.adapt(&mut command);
        command.args(self.launcher().split(' ').skip(1));
        command.args(["-n", &ranks.to_string()]).arg(program).args(arguments);
        command
    }

    /// Runs a job of a program with recording on, with `settings` as variables besides.
    pub fn record<S: AsRef<OsStr>>(
        &self,
        ranks: usize,
        program: &str,
        arguments: &[S],
        settings: &[(&str, &str)],
    ) -> Job {
        let mut command = self.job(ranks, &self.program(program), arguments);
        command.envs(settings.iter().copied());
        let arguments: String =
            arguments.iter().map(|text| format!("-{}", file_name(text.as_ref()))).collect();
        self.start(&mut command, &format!("{program}-{ranks}{arguments}"))
    }

    /// The same for a job that must end as it does without recording.
    ///
    /// After a rank has failed, launchers are not of one mind: the status is that of this rank or of one that
    /// was killed for it, and now and then Open MPI's hangs. So this is tried several times. That of MPICH
    /// is the bits of all ranks' together, of those too that were killed for it and are gone by then.
    pub fn record_as_bare<S: AsRef<OsStr>>(
        &self,
        ranks: usize,
        program: &str,
        arguments: &[S],
        settings: &[(&str, &str)],
    ) -> Job {
        let mut endings = (Vec::new(), Vec::new());
        for _ in 0..TRIES {
            endings.0.push(run(&mut self.job(ranks, &self.program(program), arguments)).status);
            let job = self.record(ranks, program, arguments, settings);
            let is_that_of = |bare: &ExitStatus| {
                let codes = bare.code().zip(job.status.code()).filter(|_| self.family == "mpich");
                let and_killed = |(bare, code)| bare | libc::SIGKILL == code | libc::SIGKILL;
                *bare == job.status || codes.is_some_and(and_killed)
            };
            if !job.hangs() && endings.0.iter().any(is_that_of) {
                return job;
            }
            endings.1.push((job.status, job.stderr));
        }
        panic!("without recording: {:?}; with it: {:#?}", endings.0, endings.1);
    }

    /// A folder for outputs that is not there yet, and that no other test has.
    pub fn empty_folder(&self, name: &str) -> PathBuf {
        let test = std::thread::current().name().unwrap_or_default().replace("::", "-");
        empty_folder(&format!("mpi/{}/{test}/{name}", self.family))
    }

    /// Runs a job with recording on, into an empty folder that is called after `name`.
    pub fn start(&self, command: &mut Command, name: &str) -> Job {
        let folder = self.empty_folder(name);
        let mut job = run(command.env("SCOPE_OUTPUT", &folder));
        job.folder = folder;
        job
    }
}

fn file_name(text: &OsStr) -> String {
    Path::new(text).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Runs a job to its end, one at a time: ranks that wait keep processors busy.
pub fn run(command: &mut Command) -> Job {
    static RUNNING: Mutex<()> = Mutex::new(());
    let _running = RUNNING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let output = tools::output(command);
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    Job { status: output.status, stdout, stderr, folder: PathBuf::new() }
}

/// A job that has ended.
pub struct Job {
    /// That of the launcher.
    pub status: ExitStatus,
    /// Standard output of all ranks.
    pub stdout: String,
    /// Standard error of all ranks.
    pub stderr: String,
    /// The recordings.
    pub folder: PathBuf,
}

impl Job {
    /// Whether it had to be ended from outside, which `timeout` tells.
    pub fn hangs(&self) -> bool {
        self.status.code() == Some(124) || self.status.signal() == Some(libc::SIGKILL)
    }

    /// The job, which must have ended well.
    #[track_caller]
    pub fn expect_success(self) -> Job {
        assert!(self.status.success(), "{}\n{}\n{}", self.status, self.stdout, self.stderr);
        self
    }

    /// Waits until the processes of the ranks are gone: those that a launcher has killed may live longer than it.
    pub fn wait_for_processes(&self, recordings: &[Recording]) {
        // SAFETY: signal 0 only asks.
        let is_there = |pid: u32| unsafe { libc::kill(pid.cast_signed(), 0) } == 0;
        for _ in 0..500 {
            if !recordings.iter().any(|recording| is_there(recording.info().pid)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The recording of a rank.
    #[track_caller]
    pub fn recording(&self, rank: usize) -> Recording {
        let file = self.folder.join(format!("rank{rank}.scope"));
        Recording::open(&file).unwrap_or_else(|error| panic!("{error}\n{}", self.stderr))
    }

    /// The recordings of so many ranks; there are no others.
    #[track_caller]
    pub fn recordings(&self, ranks: usize) -> Vec<Recording> {
        let files = std::fs::read_dir(&self.folder).unwrap().count();
        assert_eq!(files, ranks, "recordings in {}", self.folder.display());
        let recordings: Vec<Recording> = (0..ranks).map(|rank| self.recording(rank)).collect();
        for (rank, recording) in (0..).zip(&recordings) {
            assert_eq!((recording.info().rank, recording.info().ranks), (rank, ranks as u32));
        }
        recordings
    }
}

/// Number of calls by path, whose names have ` > ` between them.
pub fn calls(profile: &Profile) -> BTreeMap<String, u64> {
    paths(profile).into_iter().zip(profile.paths.nodes().iter().map(|path| path.calls)).collect()
}

/// The paths of a profile, in their order, as text.
pub fn paths(profile: &Profile) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for path in profile.paths.nodes() {
        let name = &profile.regions[path.region.0 as usize].name;
        let text = path.parent.map(|parent| format!("{} > {name}", texts[parent.0 as usize]));
        texts.push(text.unwrap_or_else(|| name.clone()));
    }
    texts
}

/// The package of the programs.
pub fn folder() -> PathBuf {
    tools::in_tests("mpi")
}

fn build_folder(family: &str) -> PathBuf {
    subcommand::scratch().join(format!("mpi-{family}"))
}

fn cargo(family: &str, folder: &Path) -> Command {
    let mut cargo = subcommand::cargo();
    set_build_environment(cargo.current_dir(folder), family);
    cargo
}

/// Builds programs, once in a test program.
fn build(family: &str, arguments: &[&str]) {
    static BUILT: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut built = BUILT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if built.insert(format!("{family} {arguments:?}")) {
        tools::succeed(cargo(family, &folder()).args(["build", "--quiet"]).args(arguments));
    }
}

fn set_build_environment(command: &mut Command, family: &str) {
    command.env("CARGO_TARGET_DIR", build_folder(family)).env("MPICC", format!("mpicc.{family}"));
    // Where Debian has the HDF5 that is parallel by this MPI.
    let hdf5 = format!("/usr/lib/{}-linux-gnu/hdf5/{family}", std::env::consts::ARCH);
    command.env("HDF5_DIR", hdf5);
}
