//! When MPI begins and ends beside the regions: the argument says.

use mpi::traits::*;
use scope_runtime::scope;

#[scope]
fn solve(universe: &mpi::environment::Universe) -> i32 {
    let mut sum = 0;
    let world = universe.world();
    world.all_reduce_into(&world.rank(), &mut sum, mpi::collective::SystemOperation::sum());
    sum
}

#[scope]
fn report(sum: i32) {
    println!("the sum is {sum}");
}

fn main() {
    let order = std::env::args().nth(1).expect("the order comes first");
    match order.as_str() {
        // MPI is linked, and never begins.
        "never" => report(0),
        "ends-before-the-last-region" => {
            let universe = mpi::initialize().expect("MPI begins once");
            let sum = solve(&universe);
            drop(universe);
            report(sum);
        }
        "ends-after-the-last-region" => {
            let universe = mpi::initialize().expect("MPI begins once");
            report(solve(&universe));
        }
        "ends-after-the-session" => {
            let session = scope_runtime::init();
            let universe = mpi::initialize().expect("MPI begins once");
            report(solve(&universe));
            drop(session);
            drop(universe);
        }
        "begins-before-the-session" => {
            let universe = mpi::initialize().expect("MPI begins once");
            let _session = scope_runtime::init();
            report(solve(&universe));
            drop(universe);
        }
        other => panic!("no order {other}"),
    }
}
