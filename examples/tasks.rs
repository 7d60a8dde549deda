//! Reads pages from a slow source, many at a time: async functions on tokio, a time limit that
//! cancels, work on the blocking pool.
//!
//! ```text
//! cargo scope run --release --example tasks -- --pages 200 --at-once 32
//! ```
//!
//! The source is a timer: what one waits for costs nothing, so nearly all of a page's time is waiting,
//! and the table shows it: inclusive time against busy time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use examples::Calls;
use scope_runtime::{link, scope};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

const LATENCY: Duration = Duration::from_millis(4);
/// How long a page may take; one in seven does not answer the first time.
const PATIENCE: Duration = Duration::from_millis(60);
const SILENT: u64 = 7;

/// Calls of each region, counted by the program itself for `--counts`.
static FETCHES: AtomicU64 = AtomicU64::new(0);
static STORES: AtomicU64 = AtomicU64::new(0);

struct Options {
    pages: u64,
    at_once: u64,
    counts: bool,
}

/// One page as the source has it.
struct Page {
    number: u64,
    text: String,
}

#[scope]
async fn fetch(number: u64, attempt: u32) -> Page {
    FETCHES.fetch_add(1, Relaxed);
    let silent = attempt == 0 && number.is_multiple_of(SILENT);
    sleep(if silent { Duration::from_secs(3600) } else { LATENCY }).await;
    let words = (0..2_000).map(|n| ["lorem", "ipsum", "dolor"][(n + number as usize) % 3]);
    Page { number, text: words.collect::<Vec<_>>().join(" ") }
}

/// Asks again where no answer comes in time; what was asked first is dropped half-way.
#[scope]
async fn fetch_patiently(number: u64) -> Page {
    let mut attempt = 0;
    loop {
        if let Ok(page) = timeout(PATIENCE, fetch(number, attempt)).await {
            return page;
        }
        attempt += 1;
    }
}

#[scope]
fn count_words(page: &Page) -> usize {
    page.text.split(' ').filter(|word| *word == "ipsum").count()
}

#[scope]
fn store(page: &Page, words: usize) -> u64 {
    STORES.fetch_add(1, Relaxed);
    page.text.bytes().fold(page.number + words as u64, |sum, byte| sum.rotate_left(5) ^ u64::from(byte))
}

#[scope]
async fn read(number: u64) -> u64 {
    let page = fetch_patiently(number).await;
    let words = count_words(&page);
    // The pool does not know who gives it work: the link tells the profiler.
    let link = link();
    let stored = spawn_blocking(move || link.run(|| store(&page, words))).await;
    stored.expect("storing does not panic")
}

#[scope]
async fn read_all(options: &Options) -> u64 {
    let mut sum = 0_u64;
    let mut running = JoinSet::new();
    for number in 0..options.pages {
        if running.len() as u64 == options.at_once {
            sum = sum.wrapping_add(next(&mut running).await);
        }
        running.spawn(read(number));
    }
    while !running.is_empty() {
        sum = sum.wrapping_add(next(&mut running).await);
    }
    sum
}

async fn next(running: &mut JoinSet<u64>) -> u64 {
    let joined = running.join_next().await.expect("there is one");
    joined.expect("reading does not panic")
}

fn options() -> Result<Options, lexopt::Error> {
    use lexopt::prelude::*;
    let mut options = Options { pages: 100, at_once: 16, counts: false };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("pages") => options.pages = arguments.value()?.parse()?,
            Long("at-once") => options.at_once = arguments.value()?.parse::<u64>()?.max(1),
            Long("counts") => options.counts = true,
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(options)
}

#[tokio::main(worker_threads = 4)]
async fn main() -> Result<(), lexopt::Error> {
    let options = options()?;
    let sum = read_all(&options).await;
    println!("{} pages, checksum {sum:016x}", options.pages);
    if options.counts {
        let mut calls = Calls::default();
        let pages = options.pages;
        let numbers = [
            ("read_all", 1),
            ("read", pages),
            ("fetch_patiently", pages),
            ("fetch", FETCHES.load(Relaxed)),
            ("count_words", pages),
            ("store", STORES.load(Relaxed)),
        ];
        for (region, number) in numbers {
            (0..number).for_each(|_| calls.count(region));
        }
        print!("{calls}");
    }
    Ok(())
}
