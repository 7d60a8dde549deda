//! A warm plate cools down: the 2-D heat equation on threads.
//!
//! ```text
//! cargo scope run --release --example heat              see where the time goes
//! cargo run --release --example heat -- --threads 8     the same program, nothing recorded
//! ```
//!
//! Recording needs no line in this file besides the regions: `cargo scope run` names a folder in
//! the variable `SCOPE_OUTPUT`, and that turns it on.
//!
//! The plate is the unit square. It starts at `sin(pi x) sin(pi y)` and its edges are kept at 0, so
//! the exact temperature is known at all times: the start, times `exp(-2 pi^2 t)`. Time goes on in
//! Crank-Nicolson steps; the equations of a step are solved by red-black over-relaxation (SOR).
//! Each thread owns a strip of rows and a copy of the row above and below it:
//!
//! ```text
//!   strip 0   = = = = = = = = =      1. all strips update their red points
//!             - - - - - - - - -      2. exchange: copy edge rows to the neighbours
//!   strip 1   - - - - - - - - -      3. all strips update their black points
//!             = = = = = = = = =      4. exchange
//!             - - - - - - - - -      now and then: the largest residual of all
//!   strip 2   - - - - - - - - -      strips, to see whether the step is solved
//!             = = = = = = = = =
//! ```
//!
//! A red point has only black neighbours, so the result does not depend on the number of threads.

use std::error::Error;
use std::f64::consts::PI;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Barrier, Mutex};
use std::thread;

use examples::Calls;
use scope_runtime::{region, scope};

const HELP: &str = "\
Usage: heat [OPTIONS]
  --size N         points per side inside the plate [400]
  --steps N        time steps until the end time of 0.1 [60]
  --threads N      threads, at most one per row [one per core]
  --picture FILE   write the temperatures at the end as a grey picture (PGM)
  --counts         print how often each region was entered";

/// The time at which the program stops: the plate is down to 14 %.
const END_TIME: f64 = 0.1;
/// A step is solved when no equation is off by more than this.
const TOLERANCE: f64 = 1e-8;
/// Sweeps between two looks at the residual, which costs as much as a sweep.
const SWEEPS_PER_CHECK: usize = 4;

#[scope]
fn main() -> Result<(), Box<dyn Error>> {
    let Some(options) = Options::parse()? else {
        println!("{HELP}");
        return Ok(());
    };
    let mut calls = Calls::default();
    calls.count("main");

    let plate = Plate::new(&options);
    let team = Team::new(&options);
    let strips: Vec<Strip> = region!("set up strips", {
        calls.count("set up strips");
        (0..options.threads).map(|index| Strip::new(index, &plate, &team)).collect()
    });
    let strips = cool_down(strips, &mut calls);
    for strip in &strips {
        calls.add(&strip.calls);
    }

    print_result(&plate, &strips, &mut calls)?;
    if let Some(path) = &options.picture {
        calls.count("write_picture");
        write_picture(&plate, &strips, path)
            .map_err(|error| format!("failed to write `{}`: {error}", path.display()))?;
    }
    if options.counts {
        print!("{calls}");
    }
    Ok(())
}

/// Runs every strip on a thread of its own until the end time.
#[scope]
fn cool_down<'a>(strips: Vec<Strip<'a>>, calls: &mut Calls) -> Vec<Strip<'a>> {
    calls.count("cool_down");
    thread::scope(|threads| {
        let running: Vec<_> = strips
            .into_iter()
            .map(|mut strip| {
                thread::Builder::new()
                    .name(format!("strip {}", strip.index))
                    .spawn_scoped(threads, move || {
                        strip.run();
                        strip
                    })
                    .expect("the system has room for one more thread")
            })
            .collect();
        running.into_iter().map(|thread| thread.join().expect("a strip does not panic")).collect()
    })
}

/// What the user asked for.
struct Options {
    size: usize,
    steps: usize,
    threads: usize,
    picture: Option<PathBuf>,
    counts: bool,
}

impl Options {
    /// Reads the command line; `None` when it asks for help.
    fn parse() -> Result<Option<Options>, Box<dyn Error>> {
        use lexopt::prelude::*;

        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let mut options = Options { size: 400, steps: 60, threads: cores, picture: None, counts: false };
        let mut words = lexopt::Parser::from_env();
        while let Some(word) = words.next()? {
            match word {
                Long("size") => options.size = words.value()?.parse()?,
                Long("steps") => options.steps = words.value()?.parse()?,
                Long("threads") => options.threads = words.value()?.parse()?,
                Long("picture") => options.picture = Some(words.value()?.into()),
                Long("counts") => options.counts = true,
                Short('h') | Long("help") => return Ok(None),
                _ => return Err(word.unexpected().into()),
            }
        }
        if options.size == 0 || options.steps == 0 || options.threads == 0 {
            return Err("--size, --steps and --threads must be at least 1".into());
        }
        options.threads = options.threads.min(options.size);
        Ok(Some(options))
    }
}

/// The equations: the same for every point, every step and every strip.
struct Plate {
    /// Points per side, without the edges.
    size: usize,
    /// Number of time steps.
    steps: usize,
    /// Length of a time step.
    step_time: f64,
    /// Distance between two points.
    spacing: f64,
    /// Weight of one neighbour, `step_time / (2 spacing^2)`.
    coupling: f64,
    /// Over-relaxation factor.
    relaxation: f64,
}

impl Plate {
    fn new(options: &Options) -> Plate {
        let spacing = 1.0 / (options.size as f64 + 1.0);
        let step_time = END_TIME / options.steps as f64;
        let coupling = step_time / (2.0 * spacing * spacing);
        // Young's optimum for the spectral radius of the Jacobi iteration.
        let radius = 4.0 * coupling * (PI * spacing).cos() / (1.0 + 4.0 * coupling);
        let relaxation = 2.0 / (1.0 + (1.0 - radius * radius).sqrt());
        Plate { size: options.size, steps: options.steps, step_time, spacing, coupling, relaxation }
    }

    /// The exact temperature of a point; row and column 0 lie on the edge.
    fn exact(&self, row: usize, column: usize, time: f64) -> f64 {
        let (x, y) = (column as f64 * self.spacing, row as f64 * self.spacing);
        (PI * x).sin() * (PI * y).sin() * (-2.0 * PI * PI * time).exp()
    }

    /// The error that this many points and steps may have: the leading terms of Crank-Nicolson and
    /// of the five-point stencil. Both come with the factor `k t exp(-k t)`, which is below 1.
    fn expected_error(&self) -> f64 {
        let in_time = (2.0 * PI * PI * self.step_time).powi(2) / 12.0;
        let in_space = (PI * self.spacing).powi(2) / 12.0;
        in_time + in_space + TOLERANCE * self.steps as f64
    }
}

/// What the threads share: a place to wait for each other and mailboxes.
struct Team {
    everyone: Barrier,
    /// The edge rows of each strip. There are two sets, used in turn: who is a step ahead cannot
    /// overwrite what a slower neighbour has not read yet.
    edges: [Vec<Mutex<EdgeRows>>; 2],
    /// The largest residual of each strip.
    residuals: Vec<Mutex<f64>>,
}

/// Copies of the first and the last row of a strip.
struct EdgeRows {
    first: Vec<f64>,
    last: Vec<f64>,
}

impl Team {
    fn new(options: &Options) -> Team {
        let width = options.size + 2;
        let mailboxes = || {
            (0..options.threads)
                .map(|_| Mutex::new(EdgeRows { first: vec![0.0; width], last: vec![0.0; width] }))
                .collect()
        };
        Team {
            everyone: Barrier::new(options.threads),
            edges: [mailboxes(), mailboxes()],
            residuals: (0..options.threads).map(|_| Mutex::new(0.0)).collect(),
        }
    }
}

/// Points whose row and column add up to an even number are red, the others black.
#[derive(Clone, Copy)]
enum Colour {
    Red = 0,
    Black = 1,
}

/// The rows that one thread owns.
struct Strip<'a> {
    plate: &'a Plate,
    team: &'a Team,
    index: usize,
    /// Row of the plate that is row 1 here.
    first_row: usize,
    /// Rows owned, without the copies of the neighbours' rows above and below.
    rows: usize,
    /// Points per row, both edges included.
    width: usize,
    /// Row by row, `rows + 2` of them: row 0 and the last one are copies.
    temperature: Vec<f64>,
    /// Right-hand side of the equations of the current step, same shape.
    right_side: Vec<f64>,
    /// Exchanges so far; even and odd ones use different mailboxes.
    exchanges: usize,
    iterations: usize,
    residual: f64,
    calls: Calls,
}

impl<'a> Strip<'a> {
    /// Strip `index` at time 0.
    #[scope]
    fn new(index: usize, plate: &'a Plate, team: &'a Team) -> Strip<'a> {
        let mut calls = Calls::default();
        calls.count("Strip::new");
        let strips = team.residuals.len();
        let first_row = 1 + index * plate.size / strips;
        let rows = 1 + (index + 1) * plate.size / strips - first_row;
        let width = plate.size + 2;
        let mut temperature = vec![0.0; (rows + 2) * width];
        for (row, points) in temperature.chunks_exact_mut(width).enumerate() {
            for (column, point) in points.iter_mut().enumerate() {
                *point = plate.exact(first_row + row - 1, column, 0.0);
            }
        }
        Strip {
            plate,
            team,
            index,
            first_row,
            rows,
            width,
            right_side: vec![0.0; temperature.len()],
            temperature,
            exchanges: 0,
            iterations: 0,
            residual: 0.0,
            calls,
        }
    }

    /// All time steps.
    #[scope]
    fn run(&mut self) {
        self.calls.count("Strip::run");
        for _ in 0..self.plate.steps {
            self.step();
        }
    }

    /// One time step: sets up its equations and solves them.
    #[scope]
    fn step(&mut self) {
        self.calls.count("Strip::step");
        self.set_up_equations();
        loop {
            for _ in 0..SWEEPS_PER_CHECK {
                for colour in [Colour::Red, Colour::Black] {
                    self.sweep(colour);
                    self.exchange();
                }
                self.iterations += 1;
            }
            let own = self.largest_residual();
            self.residual = self.largest_of_all_strips(own);
            if self.residual < TOLERANCE {
                break;
            }
        }
    }

    /// Half of the change comes from the temperatures at the start of the step.
    #[scope]
    fn set_up_equations(&mut self) {
        self.calls.count("Strip::set_up_equations");
        let coupling = self.plate.coupling;
        for row in 1..=self.rows {
            let (above, here, below) = three_rows(&self.temperature, self.width, row);
            let right_side = &mut self.right_side[row * self.width..][..self.width];
            for column in 1..self.width - 1 {
                let neighbours = above[column] + below[column] + here[column - 1] + here[column + 1];
                right_side[column] = (1.0 - 4.0 * coupling) * here[column] + coupling * neighbours;
            }
        }
    }

    /// Updates all points of one colour from their neighbours, which have the other one.
    #[scope]
    fn sweep(&mut self, colour: Colour) {
        self.calls.count("Strip::sweep");
        let Plate { coupling, relaxation, .. } = *self.plate;
        let weight = relaxation / (1.0 + 4.0 * coupling);
        for row in 1..=self.rows {
            let (before, rest) = self.temperature.split_at_mut(row * self.width);
            let (here, after) = rest.split_at_mut(self.width);
            let above = &before[before.len() - self.width..];
            let below = &after[..self.width];
            let right_side = &self.right_side[row * self.width..][..self.width];

            let plate_row = self.first_row + row - 1;
            let first_column = 1 + (plate_row + 1 + colour as usize) % 2;
            for column in (first_column..self.width - 1).step_by(2) {
                let neighbours = above[column] + below[column] + here[column - 1] + here[column + 1];
                let solved = right_side[column] + coupling * neighbours;
                here[column] += weight * solved - relaxation * here[column];
            }
        }
    }

    /// Gives the edge rows to the neighbours and takes theirs.
    #[scope]
    fn exchange(&mut self) {
        self.calls.count("Strip::exchange");
        let mailboxes = &self.team.edges[self.exchanges % 2];
        self.exchanges += 1;
        {
            let mut mine = mailboxes[self.index].lock().expect("no strip panics with a mailbox in hand");
            mine.first.copy_from_slice(&self.temperature[self.width..][..self.width]);
            mine.last.copy_from_slice(&self.temperature[self.rows * self.width..][..self.width]);
        }
        self.wait();
        if self.index > 0 {
            let above = mailboxes[self.index - 1].lock().expect("no strip panics with a mailbox in hand");
            self.temperature[..self.width].copy_from_slice(&above.last);
        }
        if let Some(below) = mailboxes.get(self.index + 1) {
            let below = below.lock().expect("no strip panics with a mailbox in hand");
            self.temperature[(self.rows + 1) * self.width..].copy_from_slice(&below.first);
        }
    }

    /// Waits until every strip is here: the price of strips that are not equally fast.
    #[scope]
    fn wait(&mut self) {
        self.calls.count("Strip::wait");
        self.team.everyone.wait();
    }

    /// How far the equations of this strip are from being solved.
    #[scope]
    fn largest_residual(&mut self) -> f64 {
        self.calls.count("Strip::largest_residual");
        let coupling = self.plate.coupling;
        let mut largest = 0.0_f64;
        for row in 1..=self.rows {
            let (above, here, below) = three_rows(&self.temperature, self.width, row);
            let right_side = &self.right_side[row * self.width..][..self.width];
            for column in 1..self.width - 1 {
                let neighbours = above[column] + below[column] + here[column - 1] + here[column + 1];
                let off = right_side[column] + coupling * neighbours - (1.0 + 4.0 * coupling) * here[column];
                largest = largest.max(off.abs());
            }
        }
        largest
    }

    /// The largest of the values that the strips bring, the same for everyone.
    #[scope]
    fn largest_of_all_strips(&mut self, value: f64) -> f64 {
        self.calls.count("Strip::largest_of_all_strips");
        *self.team.residuals[self.index].lock().expect("no strip panics with a residual in hand") = value;
        self.wait();
        // Nobody brings the next value before all have passed the wait of an exchange.
        self.team
            .residuals
            .iter()
            .map(|residual| *residual.lock().expect("no strip panics with a residual in hand"))
            .fold(0.0, f64::max)
    }

    /// The rows that this strip owns, with their numbers in the plate.
    fn own_rows(&self) -> impl Iterator<Item = (usize, &[f64])> {
        let rows = self.temperature.chunks_exact(self.width).skip(1).take(self.rows);
        (self.first_row..).zip(rows)
    }
}

/// The row above `row`, the row itself and the one below.
fn three_rows(points: &[f64], width: usize, row: usize) -> (&[f64], &[f64], &[f64]) {
    let rows = &points[(row - 1) * width..(row + 2) * width];
    (&rows[..width], &rows[width..2 * width], &rows[2 * width..])
}

/// Prints what came out, and fails when it is not what the exact solution says.
#[scope]
fn print_result(plate: &Plate, strips: &[Strip], calls: &mut Calls) -> Result<(), String> {
    calls.count("print_result");
    let mut error = 0.0_f64;
    let mut checksum = 0.0;
    for (row, points) in strips.iter().flat_map(Strip::own_rows) {
        for (column, point) in points.iter().enumerate() {
            error = error.max((point - plate.exact(row, column, END_TIME)).abs());
            checksum += point;
        }
    }
    println!("points     {0} x {0}", plate.size);
    println!("steps      {}", plate.steps);
    println!("threads    {}", strips.len());
    println!("iterations {}", strips[0].iterations);
    println!("residual   {:.2e}", strips[0].residual);
    println!("error      {error:.2e}");
    println!("checksum   {checksum:.9}");
    if error > plate.expected_error() {
        return Err(format!("the error should be below {:.2e}", plate.expected_error()));
    }
    Ok(())
}

/// Writes the temperatures as a picture, white where it is warmest.
#[scope]
fn write_picture(plate: &Plate, strips: &[Strip], path: &Path) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let warmest = plate.exact(plate.size.div_ceil(2), plate.size.div_ceil(2), END_TIME);
    writeln!(file, "P5 {0} {0} 255", plate.size)?;
    for (_, points) in strips.iter().flat_map(Strip::own_rows) {
        // `as` keeps a value that rounding put outside at 0 or 255.
        let greys = points[1..=plate.size].iter().map(|point| (point / warmest * 255.0) as u8);
        file.write_all(&greys.collect::<Vec<u8>>())?;
    }
    file.flush()
}
