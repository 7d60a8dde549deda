//! Unix: signals by the calls of POSIX, and what Linux has beyond.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{SystemTime, UNIX_EPOCH};

use libc::{c_int, pid_t, sigset_t};

use crate::program::{Ending, Ran, Recipient};

pub(crate) fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

pub(crate) fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        _ => return None,
    })
}

/// Makes `link` point to `target`.
pub(crate) fn link_folder(target: &str, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// Whether a process with this id that was there at `since_ns` (ns since the Unix epoch) lives on this machine.
/// One that has ended and that nobody has asked for its status does not.
pub(crate) fn is_running(pid: u32, since_ns: i64) -> bool {
    let Ok(pid @ 1..) = pid_t::try_from(pid) else { return false };
    // SAFETY: signal 0 only asks.
    let is_there = unsafe { libc::kill(pid, 0) == 0 };
    is_there && !is_dead_or_another(pid, since_ns)
}

/// Whether only the status of a process is left, or it began later; `false` where the system does not say so in
/// files.
fn is_dead_or_another(pid: pid_t, since_ns: i64) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name of the program, in brackets, may hold any letter.
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    // The third field is the first one here; the 22nd is the begin, in ticks since the system began.
    let mut fields = rest.split(' ');
    let is_dead = matches!(fields.next(), Some("Z" | "X"));
    let begin = fields.nth(18).and_then(|ticks| ticks.parse::<f64>().ok());
    // SAFETY: a number is asked for.
    let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let uptime = std::fs::read_to_string("/proc/uptime");
    let uptime = uptime.ok().and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let begin = begin.zip(uptime).map(|(begin, up)| now.as_secs_f64() - up + begin / ticks_per_second);
    // Clocks may have been set meanwhile, if not by much.
    is_dead || begin.is_some_and(|begin| begin > since_ns as f64 / 1e9 + 60.0)
}

/// Raises `signal` on this process with its default effect.
pub(crate) fn raise(signal: c_int) {
    leave_no_core();
    // SAFETY: plain system calls on values that live here.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let only = set_of(&[signal]);
        libc::sigprocmask(libc::SIG_UNBLOCK, &only, std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// The program's core file, if it made one, is the interesting one.
fn leave_no_core() {
    // SAFETY: plain system calls on values that live here.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        // The limit does not hold where cores go to a program (a pipe in core_pattern).
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
    }
}

/// Runs `command`, and meanwhile passes signals on as [`Recipient`] says.
///
/// Signals are blocked here and taken one by one, in ordinary code: no handler runs, and none
/// comes between a question and its answer. That takes a process with one thread, as ours is until
/// the program has ended.
pub(crate) fn run(command: &mut Command, recipient: Recipient) -> io::Result<Ran> {
    let taken: Vec<c_int> = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP]
        .into_iter()
        // What whoever started us has had ignored (`nohup`), the program ignores too.
        .filter(|&signal| !is_ignored(signal))
        .collect();
    let set = set_of(&[taken.as_slice(), &[libc::SIGCHLD]].concat());
    let before = Masked::block(&set);
    let mask = before.0;
    // SAFETY: between fork and exec only `sigprocmask` is called, which is allowed there.
    unsafe {
        command.pre_exec(move || {
            libc::sigprocmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
            Ok(())
        });
    }
    let mut child = command.spawn()?;
    let mut interrupted = false;
    while !has_ended(&child)? {
        let Some((signal, sender)) = next_signal(&set) else { continue };
        if !taken.contains(&signal) {
            continue;
        }
        let interrupts = matches!(signal, libc::SIGINT | libc::SIGQUIT);
        if interrupts && std::mem::replace(&mut interrupted, true) {
            return Ok(Ran::Abandoned(Ending::Signal(signal)));
        }
        let from_terminal = interrupts && sender == Some(0);
        if !from_terminal {
            pass_on(signal, &child, recipient);
        }
    }
    // What ended the program may have come to us at the same time; from here on it ends us.
    discard_pending(&set);
    Ok(Ran::Ended(child.wait()?.into()))
}

/// Blocks signals until it is dropped.
struct Masked(sigset_t);

impl Masked {
    fn block(set: &sigset_t) -> Masked {
        let mut before = set_of(&[]);
        // SAFETY: both sets are initialised. SIGCHLD is set to its default effect, since a program
        // whose parent ignores it would leave no status.
        unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_BLOCK, set, &mut before);
        }
        Masked(before)
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        // SAFETY: the set came from `sigprocmask`.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

fn set_of(signals: &[c_int]) -> sigset_t {
    // SAFETY: zero is a valid value, and the set is initialised before it is added to.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for &signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

fn is_ignored(signal: c_int) -> bool {
    // SAFETY: `action` is a valid place for the answer, and zero is a valid value of it.
    unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Whether `child` has ended. Its process id stays taken, so that a signal that is passed on cannot
/// hit a stranger.
fn has_ended(child: &Child) -> io::Result<bool> {
    // SAFETY: `info` is a valid place for the answer, and zero is a valid value of it.
    let (answer, pid) = unsafe {
        let mut info = std::mem::zeroed::<libc::siginfo_t>();
        let options = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
        (libc::waitid(libc::P_PID, child.id(), &mut info, options), info.si_pid())
    };
    if answer == 0 { Ok(pid != 0) } else { Err(io::Error::last_os_error()) }
}

/// Waits for a signal of `set`. Gives it and the process that sent it: 0 for the terminal, `None` where
/// the system does not say.
#[cfg(target_os = "linux")]
fn next_signal(set: &sigset_t) -> Option<(c_int, Option<pid_t>)> {
    // SAFETY: `info` is a valid place for the answer, and zero is a valid value of it.
    let (signal, info) = unsafe {
        let mut info = std::mem::zeroed::<libc::siginfo_t>();
        (libc::sigwaitinfo(set, &mut info), info)
    };
    // SAFETY: every signal in the set comes with the sender's process id.
    (signal > 0).then(|| (signal, Some(unsafe { info.si_pid() })))
}

/// As above. That a signal came from the terminal is assumed for those that it sends.
#[cfg(not(target_os = "linux"))]
fn next_signal(set: &sigset_t) -> Option<(c_int, Option<pid_t>)> {
    let mut signal = 0;
    // SAFETY: `signal` is a valid place for the answer.
    let answer = unsafe { libc::sigwait(set, &mut signal) };
    let from_terminal = matches!(signal, libc::SIGINT | libc::SIGQUIT);
    (answer == 0).then_some((signal, from_terminal.then_some(0)))
}

/// Takes off the signals of `set` that have come.
fn discard_pending(set: &sigset_t) {
    while any_pending(set) {
        let mut signal = 0;
        // SAFETY: the set is initialised, and `signal` is a valid place for the answer.
        unsafe { libc::sigwait(set, &mut signal) };
    }
}

fn any_pending(set: &sigset_t) -> bool {
    const STANDARD_SIGNALS: std::ops::Range<c_int> = 1..32;
    let mut pending = set_of(&[]);
    // SAFETY: both sets are initialised.
    unsafe {
        libc::sigpending(&mut pending) == 0
            && STANDARD_SIGNALS
                .into_iter()
                .any(|signal| libc::sigismember(&pending, signal) == 1 && libc::sigismember(set, signal) == 1)
    }
}

fn pass_on(signal: c_int, child: &Child, recipient: Recipient) {
    let pid = child.id().cast_signed();
    let mut pids = match recipient {
        Recipient::Program => Vec::new(),
        Recipient::CargoAndPrograms => children_of(pid),
    };
    pids.push(pid);
    for pid in pids {
        // SAFETY: `kill` is safe to call; the child was not reaped yet.
        unsafe { libc::kill(pid, signal) };
    }
}

/// The processes that `pid` has started, as far as the system lists them.
fn children_of(pid: pid_t) -> Vec<pid_t> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use std::time::{SystemTime, UNIX_EPOCH};

    fn is_running(pid: u32) -> bool {
        super::is_running(pid, SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64)
    }

    #[test]
    fn a_process_that_began_later_is_another() {
        let an_hour_ago =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64 - 3_600_000_000_000;
        assert!(!super::is_running(std::process::id(), an_hour_ago) || !cfg!(target_os = "linux"));
        assert!(is_running(std::process::id()));
    }

    #[test]
    fn a_process_whose_status_nobody_has_asked_for_does_not_run() {
        assert!(is_running(std::process::id()));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(is_running(child.id()));
        drop(child.stdin.take());
        // It ends now, and stays until it is waited for.
        for _ in 0..1000 {
            if !is_running(child.id()) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(!is_running(child.id()));
        child.wait().unwrap();
    }
}
