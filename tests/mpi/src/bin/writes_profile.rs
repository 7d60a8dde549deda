//! A job that writes its profile itself when MPI ends (feature `mpio`). Ranks differ: rank 1 has tasks, rank 2
//! threads, rank 3 is without regions of its own.
//!
//! Arguments: how the job ends, and how often rank 0 calls `step`; others do so less often, unless it ends `even`.

use std::ffi::{CString, c_char, c_int, c_uint};
use std::future::Future;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mpi::traits::*;
use scope_runtime::{region, scope};

#[scope]
fn step() {}

#[scope]
async fn fetch() {
    for _ in 0..3 {
        Once(false).await;
        step();
    }
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

#[scope]
fn work(rank: i32, steps: u64) {
    (0..steps).for_each(|_| step());
    region!(&format!("on rank {rank}\0"), { step() });
    if rank == 1 {
        block_on(fetch());
    }
    if rank == 2 {
        let link = scope_runtime::link();
        let worker = std::thread::Builder::new().name("wörker".into());
        worker.spawn(move || link.run(|| region!("a/b", { step() }))).unwrap().join().unwrap();
    }
}

/// No file may become larger than it takes for the calls of rank 0.
fn limit_files(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: only reads the limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
}

unsafe extern "C" {
    fn H5Fcreate(name: *const c_char, flags: c_uint, creation: i64, access: i64) -> i64;
    fn H5Fclose(file: i64) -> c_int;
}

/// Writes a file of its own by HDF5.
fn use_hdf5() {
    let path = folder().with_extension("h5");
    let path = CString::new(path.into_os_string().into_encoded_bytes()).unwrap();
    // SAFETY: the name ends with a NUL; the file is closed once.
    unsafe {
        let replaces = 2;
        let file = H5Fcreate(path.as_ptr(), replaces, 0, 0);
        assert!(file >= 0 && H5Fclose(file) >= 0);
    }
}

/// Of the recordings.
fn folder() -> PathBuf {
    std::env::var_os("SCOPE_OUTPUT").expect("the test sets it").into()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let how = arguments.next().unwrap_or_default();
    let steps = arguments.next().map_or(100, |steps| steps.parse().unwrap());
    let of_rank_2 =
        ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].iter().any(|name| std::env::var(name).as_deref() == Ok("2"));
    if how == "unwanted" && of_rank_2 {
        // SAFETY: there is no other thread yet.
        unsafe { std::env::set_var("SCOPE_HDF5", "0") };
    }
    let session = scope_runtime::init();
    let universe = mpi::initialize().unwrap();
    let world = universe.world();
    let rank = world.rank();
    match how.as_str() {
        "even" => work(rank, steps),
        _ if rank == 3 => {}
        _ => work(rank, steps / (rank as u64 + 1)),
    }
    world.barrier();
    match how.as_str() {
        // What comes later is not recorded: the file of the job and that of `cargo scope collect` are equal.
        "ended" => drop(session),
        "killed" if rank == 2 => {
            // SAFETY: ends this process only.
            unsafe { libc::raise(libc::SIGKILL) };
        }
        "late" if rank == 2 => std::thread::sleep(Duration::from_secs(3)),
        "limit" if rank == 2 => limit_files(2 << 20),
        "moved" if rank == 0 => {
            let moved = folder().with_extension("moved");
            let _ = std::fs::remove_dir_all(&moved);
            std::fs::rename(folder(), moved).unwrap();
        }
        "taken" if rank == 0 => std::fs::create_dir(folder().join("profile.h5")).unwrap(),
        _ => {}
    }
    drop(universe);
    if how == "hdf5-after" && rank == 0 {
        use_hdf5();
    }
    region!("afterwards", { step() });
    println!("rank {rank} has ended");
}
