//! One way to end per row of the table in `tests/tests/endings.rs`, which says what must hold.
//!
//! The first argument names the row. Four threads make 200,000 calls each; what they have made is
//! also counted in a mapped file (`ENDINGS_TALLY`), which stays when the process is killed.

use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use scope_runtime::scope;

const THREADS: usize = 4;
const CALLS: u64 = 200_000;
/// Place in the tally after those of the threads.
const DEEP: usize = THREADS;

fn main() -> Result<(), Box<dyn Error>> {
    let row = std::env::args().nth(1).expect("the row comes first");
    match row.as_str() {
        "few-calls" | "child" => {
            (0..1_000).for_each(|_| in_child());
            return Ok(());
        }
        "at-exit" => at_exit(),
        "starts-itself-first" => start_itself(),
        "not-writable" => put_a_file_in_place_of_the_folder(),
        _ => {}
    }
    counters();
    run(&row)
}

#[scope]
fn run(row: &str) -> Result<(), Box<dyn Error>> {
    match row {
        "return" | "not-writable" => join(start(Then::End)),
        "error" => {
            join(start(Then::End));
            Err("no such luck")?;
        }
        "panic-main" => {
            join(start(Then::End));
            panic!("on purpose");
        }
        "panic-thread" => {
            let failed = start(Then::Panic).into_iter().filter_map(|thread| thread.join().err()).count();
            assert_eq!(failed, THREADS);
        }
        "panic-abort" => {
            stay();
            panic!("on purpose");
        }
        "exit" => {
            stay();
            std::process::exit(7);
        }
        "abort" => {
            stay();
            std::process::abort();
        }
        "sigint" => killed_by(libc::SIGINT),
        "sigterm" => killed_by(libc::SIGTERM),
        "sigkill" => killed_by(libc::SIGKILL),
        "sigsegv" => {
            stay();
            // SAFETY: none: this is the fault that the row is about.
            unsafe { black_box(std::ptr::without_provenance_mut::<u64>(8)).write_volatile(1) };
        }
        "stack-overflow" => {
            stay();
            let deep = thread::Builder::new().name("deep".into()).stack_size(1 << 20);
            let _ = deep.spawn(|| deeper(0)).unwrap().join();
        }
        "memory-limit" => {
            stay();
            limit(libc::RLIMIT_AS, 2 << 30);
            use_up_memory();
        }
        "oom-kill" => {
            stay();
            let group = std::fs::File::options().write(true).open(std::env::var("ENDINGS_CGROUP")?);
            group?.write_all(std::process::id().to_string().as_bytes())?;
            use_up_memory();
        }
        "threads-running" => go_on(),
        "detached-thread" => {
            let inside = Arc::new(Barrier::new(2));
            let reached = inside.clone();
            thread::spawn(move || {
                scope_runtime::region!("detached");
                inside.wait();
                sleep_for_ever()
            });
            reached.wait();
            join(start(Then::End));
        }
        "thread-local" => join(start(Then::Destroy)),
        "at-exit" => {
            at_exit();
            join(start(Then::End));
        }
        "fork" => {
            let threads = start(Then::End);
            fork();
            (0..1_000).for_each(|_| in_parent());
            join(threads);
        }
        "exec" => {
            stay();
            use std::os::unix::process::CommandExt;
            return Err(Command::new("sh").args(["-c", "echo executed; exit 5"]).exec().into());
        }
        "starts-itself" => {
            let threads = start(Then::End);
            start_itself();
            (0..1_000).for_each(|_| in_parent());
            join(threads);
        }
        "starts-itself-first" => {
            (0..1_000).for_each(|_| in_parent());
            join(start(Then::End));
        }
        "descriptors-closed" => {
            let others = close_descriptors();
            join(start(Then::End));
            for mut file in others {
                assert_eq!(std::io::Read::read(&mut file, &mut [0])?, 0, "something was written");
            }
        }
        "file-size-limit" => {
            limit(libc::RLIMIT_FSIZE, 3 << 20);
            join(start(Then::End));
        }
        "folder-removed" => {
            let threads = start(Then::End);
            let recordings = std::env::var("SCOPE_OUTPUT")?;
            std::fs::remove_dir_all(std::path::Path::new(&recordings).parent().unwrap())?;
            join(threads);
        }
        other => panic!("no row {other}"),
    }
    Ok(())
}

/// All but the first calls of a thread take their time, so that those who go on do not make more
/// than can be looked at.
#[scope]
fn call(n: u64) -> u64 {
    if n >= CALLS {
        thread::sleep(Duration::from_micros(20));
    }
    black_box(n)
}

#[scope]
fn in_child() {}

#[scope]
fn in_parent() {}

#[scope]
fn deeper(depth: u64) -> u64 {
    tally(DEEP, depth + 1);
    black_box(deeper(depth + 1)) + 1
}

/// What a thread does when it has made its calls.
#[derive(Clone)]
enum Then {
    End,
    Panic,
    /// Waits for the others, then stays in its region.
    Stay(Arc<Barrier>),
    /// Makes more calls.
    GoOn,
    /// Has a region in a thread-local's destructor.
    Destroy,
}

fn start(then: Then) -> Vec<JoinHandle<()>> {
    let start = |number| {
        let then = then.clone();
        thread::Builder::new().name(format!("worker {number}")).spawn(move || worker(number, then)).unwrap()
    };
    (0..THREADS).map(start).collect()
}

#[scope]
fn worker(number: usize, then: Then) {
    let calls = if matches!(then, Then::GoOn) { u64::MAX } else { CALLS };
    if matches!(then, Then::Destroy) {
        LAST.with(|_| ());
    }
    for n in 0..calls {
        call(n);
        tally(number, n + 1);
    }
    match then {
        Then::Panic => panic!("on purpose"),
        Then::Stay(reached) => {
            reached.wait();
            sleep_for_ever()
        }
        _ => {}
    }
}

fn join(threads: Vec<JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// All calls are made, and the threads are still in their regions.
fn stay() {
    let reached = Arc::new(Barrier::new(THREADS + 1));
    start(Then::Stay(reached.clone()));
    reached.wait();
}

/// Each thread has made half of its calls or more, and goes on.
fn go_on() {
    start(Then::GoOn);
    while (0..THREADS).any(|number| tallied(number) < CALLS / 2) {
        thread::sleep(Duration::from_millis(1));
    }
}

fn killed_by(signal: libc::c_int) {
    go_on();
    // A test that runs in the background may have been started with SIGINT ignored.
    // SAFETY: the default effect of a signal, which is then sent to this process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::kill(libc::getpid(), signal);
    }
    sleep_for_ever()
}

fn sleep_for_ever() -> ! {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

struct Last;

impl Drop for Last {
    fn drop(&mut self) {
        scope_runtime::region!("closing");
    }
}

thread_local!(static LAST: Last = const { Last });

fn at_exit() {
    extern "C" fn late() {
        scope_runtime::region!("late");
    }
    // SAFETY: registers a function that lives as long as the program.
    assert_eq!(unsafe { libc::atexit(late) }, 0);
}

fn put_a_file_in_place_of_the_folder() {
    let folder = std::env::var("SCOPE_OUTPUT").unwrap();
    std::fs::remove_dir(&folder).unwrap();
    std::fs::write(&folder, "no folder").unwrap();
}

fn fork() {
    // SAFETY: the child goes on with regions and a normal exit, which is what the row is about.
    let child = unsafe { libc::fork() };
    if child == 0 {
        (0..1_000).for_each(|_| in_child());
        std::process::exit(3);
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(libc::WEXITSTATUS(status), 3);
}

fn start_itself() {
    let status = Command::new(std::env::current_exe().unwrap()).arg("child").status().unwrap();
    assert!(status.success());
}

/// As a daemon does; gives empty files that have some of the descriptors' numbers now.
fn close_descriptors() -> Vec<std::fs::File> {
    // SAFETY: the counters are mapped, and nothing else here has a descriptor.
    assert_eq!(unsafe { libc::close_range(3, u32::MAX, 0) }, 0);
    let path = std::env::var("ENDINGS_TALLY").unwrap() + ".others";
    let open = |_| std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    (0..8).map(open).collect()
}

fn limit(resource: libc::__rlimit_resource_t, value: u64) {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: reads a value that lives here.
    assert_eq!(unsafe { libc::setrlimit(resource, &limit) }, 0);
}

fn use_up_memory() {
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(vec![1_u8; 16 << 20]));
    }
}

/// The counters in the mapped file, one for each thread and one for the recursion.
fn counters() -> &'static [AtomicU64; THREADS + 1] {
    static ADDRESS: AtomicU64 = AtomicU64::new(0);
    if ADDRESS.load(SeqCst) == 0 {
        let path = std::env::var("ENDINGS_TALLY").expect("the test names a file");
        let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
        let (length, access) = (4096, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a fresh mapping of a file of this length.
        let address = unsafe {
            use std::os::fd::AsRawFd;
            libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(address, libc::MAP_FAILED);
        ADDRESS.store(address.expose_provenance() as u64, SeqCst);
    }
    // SAFETY: the mapping stays, is aligned and holds atomics only.
    unsafe { &*std::ptr::with_exposed_provenance(ADDRESS.load(SeqCst) as usize) }
}

fn tally(place: usize, count: u64) {
    counters()[place].store(count, SeqCst);
}

fn tallied(place: usize) -> u64 {
    counters()[place].load(SeqCst)
}
