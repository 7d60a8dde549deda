//! A program with the feature `hdf5`: threads, tasks, links, odd names, more calls than a chunk has.
//!
//! The first argument says what else it does.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use scope_runtime::scope;

fn main() {
    let how = std::env::args().nth(1).unwrap_or_default();
    let _session = (how == "init").then(scope_runtime::init);
    if how == "hdf5-before" {
        leave_a_file_open();
    }
    run();
    match how.as_str() {
        "hdf5-after" => leave_a_file_open(),
        "finalize" => drop(scope_runtime::finalize()),
        "removed" => {
            scope_runtime::finalize();
            std::fs::remove_dir_all(std::env::var_os("SCOPE_OUTPUT").unwrap()).unwrap();
        }
        "fork" => fork(),
        "status" => std::process::exit(3),
        "nested" => scope_runtime::region!("open", { std::process::exit(0) }),
        "busy" => busy(),
        "limit" => limit_files(),
        _ => {}
    }
}

#[scope]
fn run() {
    let link = scope_runtime::link();
    let worker = std::thread::Builder::new().name("worker".into());
    let worker = worker.spawn(move || link.run(|| (0..40_000).for_each(|_| step()))).unwrap();
    (0..40_000).for_each(|_| step());
    for name in ["", "a\0b", "a/b", "naïve 🦀"] {
        scope_runtime::region!(&name);
    }
    block_on(fetch());
    worker.join().unwrap();
}

#[scope]
fn step() {}

#[scope]
async fn fetch() {
    for _ in 0..3 {
        part().await;
    }
}

#[scope]
async fn part() {
    Once(false).await;
    step();
}

/// Is not ready at first.
struct Once(bool);

impl Future for Once {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

fn block_on(future: impl Future) {
    let mut future = pin!(future);
    while future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
}

/// The child records for itself, and ends as its parent does.
fn fork() {
    extern "C" {
        fn fork() -> c_int;
        fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
    }
    unsafe {
        match fork() {
            0 => step(),
            child => assert_eq!(waitpid(child, std::ptr::null_mut(), 0), child),
        }
    }
}

/// Threads that go on while the process ends.
fn busy() {
    for _ in 0..2 {
        std::thread::spawn(|| loop {
            step();
            std::thread::sleep(std::time::Duration::from_micros(100));
        });
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
}

/// From here on files cannot be longer than a profile is.
fn limit_files() {
    extern "C" {
        fn setrlimit(resource: c_int, limits: *const [u64; 2]) -> c_int;
    }
    const FILE_SIZE: c_int = 1;
    // What is recorded is to be in its file by then.
    let recording = std::path::PathBuf::from(std::env::var_os("SCOPE_OUTPUT").unwrap()).join("rank0.scope");
    let written = || std::fs::metadata(&recording).unwrap().len();
    let mut before = 0;
    while before != written() {
        before = written();
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert_eq!(unsafe { setrlimit(FILE_SIZE, &[100_000; 2]) }, 0);
    std::process::exit(3);
}

/// A file of the program's own, which HDF5 itself closes when the process ends.
fn leave_a_file_open() {
    extern "C" {
        fn H5Fcreate(name: *const c_char, flags: c_uint, create: i64, access: i64) -> i64;
        fn H5Gcreate2(place: i64, name: *const c_char, link: i64, create: i64, access: i64) -> i64;
    }
    const TRUNCATE: c_uint = 2;
    let name = |name: &'static [u8]| CStr::from_bytes_with_nul(name).unwrap().as_ptr();
    unsafe {
        let file = H5Fcreate(name(b"own.h5\0"), TRUNCATE, 0, 0);
        assert!(file >= 0);
        assert!(H5Gcreate2(file, name(b"results\0"), 0, 0, 0) >= 0);
    }
}
