//! All ranks make calls; then one of them ends in the way that the first argument names, while the others do
//! what the second one says. The third is the rank.

use std::process::Command;
use std::time::Duration;

use mpi::ffi;
use mpi::traits::*;
use scope_runtime::scope;

const CALLS: u64 = 1_000;

#[scope]
fn call(n: u64) -> u64 {
    std::hint::black_box(n)
}

#[scope]
fn in_child() {}

#[scope]
fn leave(way: &str, world: &mpi::topology::SimpleCommunicator) {
    match way {
        "return" => {}
        "panic" => panic!("on purpose"),
        "exit" => std::process::exit(3),
        "exit-after-finalize" => {
            finalize();
            std::process::exit(3);
        }
        "abort" => std::process::abort(),
        "sigkill" => kill(libc::SIGKILL),
        "sigsegv" => {
            // SAFETY: none: this is the fault that the way is about.
            unsafe { std::hint::black_box(std::ptr::without_provenance_mut::<u64>(8)).write_volatile(1) };
        }
        "mpi-abort" => world.abort(4),
        "exec" => {
            use std::os::unix::process::CommandExt;
            panic!("{}", Command::new("sh").args(["-c", "exit 5"]).exec());
        }
        "fork" => fork(),
        "late" => std::thread::sleep(Duration::from_secs(3)),
        other => panic!("no way {other}"),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, others, leaves] = &arguments[..] else { panic!("three arguments, not {arguments:?}") };
    let universe = mpi::initialize().expect("MPI begins once");
    let world = universe.world();
    // Whoever ends without `MPI_Finalize` is to do so: the value's drop would call it.
    std::mem::forget(universe);
    (0..CALLS).for_each(|n| _ = call(n));
    world.barrier();
    if world.rank().to_string() == *leaves {
        leave(way, &world);
    } else if others == "barrier" {
        world.barrier();
    }
    finalize();
}

fn finalize() {
    // SAFETY: MPI has begun, and this is the last call.
    unsafe { ffi::MPI_Finalize() };
}

fn kill(signal: libc::c_int) {
    // SAFETY: a signal to this process.
    unsafe { libc::kill(libc::getpid(), signal) };
    std::thread::sleep(Duration::from_secs(3600));
}

fn fork() {
    // SAFETY: the child goes on with regions and a normal exit, which is what the way is about.
    let child = unsafe { libc::fork() };
    if child == 0 {
        (0..CALLS).for_each(|_| in_child());
        std::process::exit(0);
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
}
