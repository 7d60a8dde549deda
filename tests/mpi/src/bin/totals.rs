//! Ranks with different call paths; rank 0 prints what their totals add up to when MPI has ended.

use std::time::{Duration, Instant};

use mpi::collective::SystemOperation;
use mpi::traits::*;
use scope_runtime::job::JobTotals;
use scope_runtime::{region, scope};

#[scope]
fn work(us: u64) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_micros(us) {
        std::hint::spin_loop();
    }
}

#[scope]
fn agree(world: &impl Communicator, own: i32) -> i32 {
    let mut sum = 0;
    world.all_reduce_into(&own, &mut sum, SystemOperation::sum());
    sum
}

#[scope]
fn only_on_some(rank: i32) {
    for n in 0..rank {
        region!(&format!("on rank {rank}"), { work(n as u64) });
    }
}

#[scope]
fn solve(world: &impl Communicator) {
    let rank = world.rank();
    for _ in 0..50 {
        work(100 * (rank as u64 + 1));
        agree(world, rank);
    }
    std::thread::scope(|scope| (0..rank).for_each(|_| drop(scope.spawn(|| work(50)))));
    if rank % 2 == 1 {
        only_on_some(rank);
    }
}

#[scope]
fn main() {
    let universe = mpi::initialize().expect("MPI begins once");
    solve(&universe.world());
    drop(universe);
    work(10);
    region!("afterwards", { work(10) });
    if let Some(totals) = scope_runtime::mpi::totals() {
        print(&totals);
    }
}

/// One line for each path, its numbers first.
fn print(totals: &JobTotals) {
    println!("{} ranks", totals.ranks);
    for path in totals.paths() {
        let mut names = vec![path.name.as_str()];
        let mut next = path.parent;
        while let Some(parent) = next.map(|place| &totals.paths()[place]) {
            names.insert(0, &parent.name);
            next = parent.parent;
        }
        let counts = format!("{} {} {}", path.ranks, path.calls, path.open);
        let times = format!("{} {} {} {}", path.inclusive_ns, path.self_ns, path.least_ns, path.most_ns);
        println!("{counts} {times} {} {}", path.most_rank, names.join(" > "));
    }
}
