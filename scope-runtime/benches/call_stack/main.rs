//! Call stacks and profiles side by side with scope-profiler, on the same columns.
//!
//! `SCOPE_BENCH_PYTHON=python3 cargo bench -p scope-runtime --bench call_stack [-- CALLS]` prints CPU
//! seconds (median of five, the two sides in turn), their ratio, and the extra peak memory of the
//! build; then the odd shapes, in ns per call. Without a Python that has scope-profiler 0.7.5 our
//! side is measured alone.

mod columns;
#[path = "../common/tree8.rs"]
mod tree8;

use std::fs;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use columns::Columns;
use scope_runtime::call_stack::{CallArrays, Mode, RegionCalls, build_call_arrays};
use scope_runtime::pstats::{PstatsOptions, build_pstats_dict};
use scope_runtime::totals::PathTree;

const ROUNDS: usize = 5;

fn main() {
    let calls = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(10_000_000);
    let mut reference = Reference::start();
    println!("{calls} calls; CPU seconds, median of {ROUNDS}");
    println!("{:34} {:>8} {:>9} {:>7}", "", "ours", "reference", "ratio");
    let mut one_lane_ns = 0.0;
    for lanes in [1, 8] {
        let columns = columns::columns(calls, lanes);
        if let Some(reference) = &mut reference {
            reference.load(&columns, lanes > 1);
        }
        let seconds = compare(&columns, lanes, reference.as_mut());
        if lanes == 1 {
            one_lane_ns = seconds * 1e9 / calls as f64;
        }
    }
    println!("\nns per call and its ratio to the build of one lane");
    odd_shape("100,000 lanes of 10", columns::columns(1_000_000, 100_000), true, one_lane_ns);
    odd_shape("200 lanes of 25,000", columns::columns(5_000_000, 200), true, one_lane_ns);
    odd_shape("one lane, 1 million calls", columns::columns(1_000_000, 1), false, one_lane_ns);
    odd_shape("recursion 100,000 deep, 10 times", recursion(), false, one_lane_ns);
    odd_shape("one lane, 10 calls per tick", coarse(columns::columns(1_000_000, 1)), false, one_lane_ns);
    odd_shape("1 million call paths", distinct_paths(), false, one_lane_ns);
}

/// Both sides in turn on one data set; gives our CPU seconds of the build.
fn compare(columns: &Columns, lanes: usize, mut reference: Option<&mut Reference>) -> f64 {
    let regions = regions(columns, lanes > 1);
    let steps = ["build", "paths", "names", "copy"];
    let mut times = [const { (Vec::new(), Vec::new()) }; 4];
    let mut memory = (0, 0);
    // Freed just before the next build, as on the other side: both find the memory of their last one.
    let mut kept = None;
    for _ in 0..ROUNDS {
        drop(kept.take());
        let (arrays, seconds, peak) = measured(|| build_call_arrays(&regions, Mode::Default));
        let arrays = arrays.expect("calls that nest");
        times[0].0.push(seconds);
        memory.0 = memory.0.max(peak);
        for (step, by_path) in [(1, true), (2, false)] {
            let options = PstatsOptions::default();
            times[step].0.push(measured(|| build_pstats_dict(&arrays, None, by_path, &options)).1);
        }
        kept = Some(arrays);
        for step in 0..3 {
            let Some(reference) = reference.as_mut() else { break };
            let (seconds, peak) = reference.ask(steps[step]);
            times[step].1.push(seconds);
            memory.1 = memory.1.max(peak);
        }
    }
    // Not between builds: the other side does not copy, and a virtual machine takes freed memory away.
    for _ in 0..ROUNDS {
        times[3].0.push(measured(|| kept.clone()).1);
    }
    let titles = ["build call arrays", "pstats by path", "pstats by name", "plain copy of the arrays"];
    let [build, ..] = std::array::from_fn::<f64, 4, _>(|step| {
        let ours = median(&mut times[step].0).expect("our side was measured");
        let theirs = median(&mut times[step].1);
        let title = format!("{}, {lanes} lane(s)", titles[step]);
        match theirs {
            Some(theirs) => println!("{title:34} {ours:8.3} {theirs:9.3} {:6.1}x", theirs / ours),
            None => println!("{title:34} {ours:8.3}"),
        }
        ours
    });
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let title = format!("extra peak MiB of the build, {lanes}");
    let (ours, theirs) = (mib(memory.0), mib(memory.1));
    if theirs > 0.0 {
        println!("{title:34} {ours:8.0} {theirs:9.0} {:7.2}", ours / theirs);
    } else {
        println!("{title:34} {ours:8.0}");
    }
    build
}

fn odd_shape(title: &str, columns: Columns, threads: bool, one_lane_ns: f64) {
    let regions = regions(&columns, threads);
    let calls = columns.starts.len();
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        let (arrays, seconds, _) = measured(|| build_call_arrays(&regions, Mode::Default));
        let arrays: CallArrays = arrays.expect("calls that nest");
        times[0].push(seconds);
        times[1].push(measured(|| PathTree::from_calls(&arrays)).1);
        let options = PstatsOptions::default();
        times[2].push(measured(|| build_pstats_dict(&arrays, None, true, &options)).1);
        times[3].push(measured(|| build_pstats_dict(&arrays, None, false, &options)).1);
    }
    let per_call =
        |mut times: Vec<f64>| median(&mut times).map_or(0.0, |seconds| seconds * 1e9 / calls as f64);
    let [build, totals, paths, names] = times.map(per_call);
    println!(
        "{title:34} build {build:6.1} ({:.2}x)  path totals {totals:6.1}  pstats by path {paths:6.1}  by name {names:6.1}",
        build / one_lane_ns
    );
}

fn regions(columns: &Columns, threads: bool) -> Vec<RegionCalls<'_>> {
    let mut begin = 0;
    let mut regions = Vec::new();
    for (name, &end) in columns.names.iter().zip(&columns.ends_at) {
        let part = begin..end;
        begin = end;
        regions.push(RegionCalls {
            thread_ids: threads.then(|| &columns.threads[part.clone()]),
            ..RegionCalls::new(name, &columns.starts[part.clone()], &columns.ends[part])
        });
    }
    regions
}

/// The same on a clock that ticks every 2 us.
fn coarse(mut columns: Columns) -> Columns {
    columns.starts.iter_mut().chain(&mut columns.ends).for_each(|time| *time /= 2000);
    columns
}

/// Ten recursions one after the other, each 100,000 deep.
fn recursion() -> Columns {
    let mut columns = Columns::empty();
    for begin in (0..10).map(|round| round * 1_000_000) {
        for depth in 0..100_000 {
            columns.push(begin + depth, begin + 900_000 - depth, 0);
        }
    }
    columns.close_region("walk");
    columns
}

/// A full binary tree 20 levels deep with two regions per level.
fn distinct_paths() -> Columns {
    let mut columns = Columns::empty();
    for level in 0..20_u32 {
        for side in 0..2 {
            let width = 16_i64 << (21 - level);
            for at in (0..1 << level).filter(|at| level == 0 || at % 2 == side) {
                let start = at * width + i64::from(level);
                columns.push(start, (at + 1) * width - i64::from(level) - 1, 0);
            }
            columns.close_region(&format!("level_{level:02}_{side}"));
            if level == 0 {
                break;
            }
        }
    }
    columns
}

/// A result with the CPU seconds and the extra peak bytes that it took.
fn measured<T>(work: impl FnOnce() -> T) -> (T, f64, u64) {
    let _ = fs::write("/proc/self/clear_refs", "5");
    let (before, begin) = (memory("VmRSS"), cpu_seconds());
    let result = black_box(work());
    let seconds = cpu_seconds() - begin;
    (result, seconds, memory("VmHWM").saturating_sub(before))
}

fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists and the time is ours to write.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn memory(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// `None` when nothing was measured.
fn median(times: &mut [f64]) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

/// A Python process that does one step at a time.
struct Reference {
    process: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Reference {
    fn start() -> Option<Reference> {
        let Some(python) = std::env::var_os("SCOPE_BENCH_PYTHON") else {
            println!("SCOPE_BENCH_PYTHON names no Python with scope-profiler: our side alone");
            return None;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/call_stack/reference.py");
        let mut command = Command::new(python);
        let pipes = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = pipes.spawn().expect("a Python that starts");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        Some(Reference { process, answers })
    }

    fn ask(&mut self, request: &str) -> (f64, u64) {
        let requests = self.process.stdin.as_mut().expect("a pipe");
        writeln!(requests, "{request}").expect("Python listens");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("Python answers");
        let mut numbers = answer.split_whitespace();
        let mut next = || numbers.next().unwrap_or_else(|| panic!("Python failed at {request}"));
        (next().parse().expect("seconds"), next().parse().expect("bytes"))
    }

    fn load(&mut self, columns: &Columns, threads: bool) {
        let folder = std::env::temp_dir().join(format!("scope-bench-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the columns");
        let write = |name: &str, column: &[i64]| {
            let bytes: Vec<u8> = column.iter().flat_map(|value| value.to_le_bytes()).collect();
            fs::write(folder.join(name), bytes).expect("room for the columns");
        };
        write("starts.bin", &columns.starts);
        write("ends.bin", &columns.ends);
        if threads {
            write("threads.bin", &columns.threads);
        }
        let rows = columns.names.iter().zip(&columns.ends_at);
        let rows: String = rows.map(|(name, end)| format!("{name} {end}\n")).collect();
        fs::write(folder.join("regions.txt"), rows).expect("room for the regions");
        self.ask(&format!("load {}", folder.display()));
        fs::remove_dir_all(&folder).expect("the folder is ours");
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
