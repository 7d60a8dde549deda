//! Two ranks, four threads on each, all sending and receiving at the same time.

use mpi::Threading;
use mpi::request::scope as requests;
use mpi::traits::*;
use scope_runtime::scope;

const THREADS: i32 = 4;
const ROUNDS: i32 = 1_000;

/// Sends to the same thread of the other rank and receives from it, by calls that wait and by ones that do not.
#[scope]
fn exchange(thread: i32) {
    let world = mpi::topology::SimpleCommunicator::world();
    let other = world.process_at_rank(1 - world.rank());
    let sent = vec![thread; thread as usize + 1];
    for round in 0..ROUNDS {
        let mut received = [-1; THREADS as usize];
        let tag = thread * ROUNDS + round;
        requests(|scope| {
            let receive = other.immediate_receive_into_with_tag(scope, &mut received[..], tag);
            other.send_with_tag(&sent[..], tag);
            let status = if round % 2 == 0 { receive.wait() } else { wait_by_testing(receive) };
            assert_eq!((status.source_rank(), status.tag()), (other.rank(), tag));
            assert_eq!(status.count(i32::equivalent_datatype()), thread + 1);
        });
        assert_eq!(received[..sent.len()], sent);
    }
}

fn wait_by_testing<'a, D: ?Sized, S: mpi::request::Scope<'a>>(
    mut request: mpi::request::Request<'a, D, S>,
) -> mpi::point_to_point::Status {
    loop {
        match request.test() {
            Ok(status) => return status,
            Err(again) => request = again,
        }
        std::thread::yield_now();
    }
}

fn main() {
    let (universe, threading) = mpi::initialize_with_threading(Threading::Multiple).expect("MPI begins once");
    assert_eq!(threading, Threading::Multiple);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || exchange(thread));
        }
    });
    drop(universe);
}
