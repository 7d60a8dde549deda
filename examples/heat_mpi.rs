//! Heat flow in a plate on several MPI ranks: each has a strip of rows, exchanges their edges with its
//! neighbours in every step, and all agree now and then on how much still changes.
//!
//! ```text
//! cargo scope run --release -n 4 --features mpi --example heat_mpi
//! ```

use mpi::collective::SystemOperation;
use mpi::request::{WaitGuard, scope as requests};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use scope_runtime::scope;

/// Steps between two agreements.
const STEPS_PER_CHECK: usize = 10;
const DOWN: i32 = 1;
const UP: i32 = 2;

struct Options {
    /// Cells along one edge of the plate.
    cells: usize,
    /// Most steps.
    steps: usize,
    /// Change from which on the plate counts as still.
    still: f64,
}

/// Rows of the plate, with one more above and below: the neighbours' or the cold edge.
struct Strip {
    cells: usize,
    rows: usize,
    now: Vec<f64>,
    next: Vec<f64>,
}

#[scope]
impl Strip {
    /// The strip of rows from `first` on: hot at the left edge of the plate, cold elsewhere.
    fn new(cells: usize, first: usize, rows: usize) -> Strip {
        let mut now = vec![0.0; (rows + 2) * cells];
        for row in 0..rows + 2 {
            let at = first + row;
            now[row * cells] = if (1..=cells).contains(&at) { 100.0 } else { 0.0 };
        }
        Strip { cells, rows, next: now.clone(), now }
    }

    /// One step; gives the largest change of a cell.
    fn sweep(&mut self) -> f64 {
        let cells = self.cells;
        let mut change: f64 = 0.0;
        for row in 1..=self.rows {
            for at in row * cells + 1..(row + 1) * cells - 1 {
                let around =
                    self.now[at - 1] + self.now[at + 1] + self.now[at - cells] + self.now[at + cells];
                self.next[at] = 0.25 * around;
                change = change.max((self.next[at] - self.now[at]).abs());
            }
        }
        std::mem::swap(&mut self.now, &mut self.next);
        change
    }

    #[scope(skip)]
    fn row(&self, row: usize) -> &[f64] {
        &self.now[row * self.cells..(row + 1) * self.cells]
    }

    /// Sends the outer rows to the neighbours and takes theirs.
    fn exchange(&mut self, world: &SimpleCommunicator) {
        let (rank, last) = (world.rank(), world.size() - 1);
        let (cells, rows) = (self.cells, self.rows);
        let (first_row, last_row) = (self.row(1).to_vec(), self.row(rows).to_vec());
        let (above, rest) = self.now.split_at_mut(cells);
        let below = &mut rest[rows * cells..];
        requests(|scope| {
            let mut under_way = Vec::new();
            if rank > 0 {
                let neighbour = world.process_at_rank(rank - 1);
                under_way
                    .push(WaitGuard::from(neighbour.immediate_receive_into_with_tag(scope, above, DOWN)));
                under_way.push(WaitGuard::from(neighbour.immediate_send_with_tag(scope, &first_row[..], UP)));
            }
            if rank < last {
                let neighbour = world.process_at_rank(rank + 1);
                under_way.push(WaitGuard::from(neighbour.immediate_receive_into_with_tag(scope, below, UP)));
                under_way.push(WaitGuard::from(neighbour.immediate_send_with_tag(
                    scope,
                    &last_row[..],
                    DOWN,
                )));
            }
        });
    }
}

/// The largest change on any rank.
#[scope]
fn agree(world: &SimpleCommunicator, change: f64) -> f64 {
    let mut largest = 0.0;
    world.all_reduce_into(&change, &mut largest, SystemOperation::max());
    largest
}

/// Runs until the plate is still; gives the number of steps.
#[scope]
fn solve(strip: &mut Strip, options: &Options, world: &SimpleCommunicator) -> usize {
    for step in 1..=options.steps {
        strip.exchange(world);
        let change = strip.sweep();
        if step % STEPS_PER_CHECK == 0 && agree(world, change) < options.still {
            return step;
        }
    }
    options.steps
}

/// The whole plate in one strip, without messages.
#[scope]
fn solve_alone(options: &Options, steps: usize) -> Strip {
    let mut strip = Strip::new(options.cells, 0, options.cells);
    for _ in 0..steps {
        strip.sweep();
    }
    strip
}

/// The rows of all ranks on rank 0.
#[scope]
fn collect(strip: &Strip, world: &SimpleCommunicator) -> Vec<f64> {
    let own = &strip.now[strip.cells..(strip.rows + 1) * strip.cells];
    if world.rank() > 0 {
        world.process_at_rank(0).send(own);
        return Vec::new();
    }
    let mut plate = own.to_vec();
    for rank in 1..world.size() {
        plate.extend(world.process_at_rank(rank).receive_vec::<f64>().0);
    }
    plate
}

#[scope]
fn main() {
    let options = options();
    let universe = mpi::initialize().expect("MPI begins once");
    let world = universe.world();
    let (rank, ranks) = (world.rank() as usize, world.size() as usize);
    let first_of = |rank: usize| rank * options.cells / ranks;
    let (first, end) = (first_of(rank), first_of(rank + 1));
    let mut strip = Strip::new(options.cells, first, end - first);
    let steps = solve(&mut strip, &options, &world);
    let plate = collect(&strip, &world);
    if rank == 0 {
        let alone = solve_alone(&options, steps);
        let same = plate == alone.now[alone.cells..(alone.rows + 1) * alone.cells];
        let middle = plate[(options.cells / 2) * options.cells + options.cells / 2];
        println!("{steps} steps on {ranks} ranks, middle at {middle:.6}, same as alone: {same}");
        assert!(same, "the plate differs from that of one rank");
    }
}

fn options() -> Options {
    let mut options = Options { cells: 256, steps: 2000, still: 1e-3 };
    let usage = "usage: heat_mpi [--cells N] [--steps N] [--still CHANGE]";
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        let known = match name.as_str() {
            "--cells" => value.parse().map(|cells| options.cells = cells).is_ok(),
            "--steps" => value.parse().map(|steps| options.steps = steps).is_ok(),
            "--still" => value.parse().map(|still| options.still = still).is_ok(),
            _ => false,
        };
        if !known || options.cells < 3 {
            eprintln!("{usage}");
            std::process::exit(2);
        }
    }
    options
}
