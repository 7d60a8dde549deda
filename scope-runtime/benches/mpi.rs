//! What recording calls of MPI costs, and what it takes to put the totals of ranks together.
//!
//! `cargo bench -p scope-runtime --features mpi --bench mpi` starts itself under `mpirun` (or what `MPIRUN`
//! says). Messages of 8 bytes go forth and back between two ranks, recorded and bare in turn; a row is the
//! median of the ratios. Then 16 ranks with 10,000 call paths each end MPI.

use std::ffi::c_int;
use std::process::Command;
use std::time::Instant;

use mpi_sys::{
    MPI_Comm, MPI_Finalize, MPI_Init, MPI_Recv, MPI_Send, PMPI_Barrier, PMPI_Comm_rank, PMPI_Recv, PMPI_Send,
    RSMPI_COMM_WORLD, RSMPI_PROC_NULL, RSMPI_STATUS_IGNORE, RSMPI_UINT8_T,
};

/// Messages forth and back in one measurement, and pairs of measurements.
const TRIPS: u32 = 20_000;
const PAIRS: usize = 41;
/// Ranks that put their totals together, and paths of each.
const RANKS: u32 = 16;
const PATHS: u32 = 10_000;

fn main() {
    // Linked, so that its functions stand before those of the library.
    let _session = scope_runtime::resume;
    match std::env::var("MPI_BENCH").as_deref() {
        Ok("pair") => pair(),
        Ok("reduction") => reduction(),
        _ => run_all(),
    }
}

fn run_all() {
    let folder = std::env::temp_dir().join(format!("mpi-bench-{}", std::process::id()));
    let mpirun = std::env::var("MPIRUN").unwrap_or_else(|_| "mpirun".into());
    let program = std::env::current_exe().expect("a running program has a path");
    for (mode, ranks, combine) in [("pair", 2, "1"), ("reduction", RANKS, "1"), ("reduction", RANKS, "0")] {
        let mut command = Command::new(&mpirun);
        command.arg("-n").arg(ranks.to_string()).arg(&program).env("MPI_BENCH", mode);
        command.env("SCOPE_OUTPUT", &folder).env("SCOPE_EVENT_LIMIT", "64GiB");
        command.env("SCOPE_MPI_TABLE", "0").env("SCOPE_MPI_COMBINE", combine).env("SCOPE_MPI_TIMEOUT", "120");
        let status = command.status().expect("mpirun starts: MPIRUN says which one");
        assert!(status.success(), "{status}");
        let _ = std::fs::remove_dir_all(&folder);
    }
}

fn init() -> c_int {
    let mut rank = 0;
    // SAFETY: MPI allows null for both, and begins once.
    unsafe {
        MPI_Init(std::ptr::null_mut(), std::ptr::null_mut());
        PMPI_Comm_rank(RSMPI_COMM_WORLD, &raw mut rank);
    }
    rank
}

fn finalize() {
    // SAFETY: MPI has begun and ends once.
    unsafe { MPI_Finalize() };
}

fn pair() {
    let rank = init();
    trip(rank, true);
    trip(rank, false);
    let (mut ratios, mut bare_ns, mut recorded_ns) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let (bare, recorded) = (trip(rank, false), trip(rank, true));
        ratios.push(recorded / bare);
        bare_ns.push(bare / f64::from(TRIPS) / 2.0);
        recorded_ns.push(recorded / f64::from(TRIPS) / 2.0);
    }
    if rank == 0 {
        let (ratio, bare) = (median(&mut ratios), median(&mut bare_ns));
        // Both are in order now.
        median(&mut recorded_ns);
        let fastest = recorded_ns[0] / bare_ns[0];
        println!("MPI_Send and MPI_Recv of 8 bytes, recorded: {ratio:.2} (bare {bare:.0} ns)");
        println!("the same, of the fastest of each:           {fastest:.2} (bare {:.0} ns)", bare_ns[0]);
        let mut added_ns: Vec<f64> = (0..PAIRS).map(|_| nothing(MPI_Send) - nothing(PMPI_Send)).collect();
        println!("a call that MPI has nothing to do for, recorded: {:.0} ns more", median(&mut added_ns));
    }
    finalize();
}

/// Sends to nobody; gives the ns of one call.
fn nothing(send: Send) -> f64 {
    let bytes = 7_u64;
    let begin = Instant::now();
    for _ in 0..TRIPS {
        // SAFETY: the buffer has the length that is said.
        unsafe { send((&raw const bytes).cast(), 8, RSMPI_UINT8_T, RSMPI_PROC_NULL, 0, RSMPI_COMM_WORLD) };
    }
    begin.elapsed().as_nanos() as f64 / f64::from(TRIPS)
}

/// Sends forth and back as often as said; gives the ns that it took.
fn trip(rank: c_int, recorded: bool) -> f64 {
    // SAFETY: MPI has begun.
    unsafe { PMPI_Barrier(RSMPI_COMM_WORLD) };
    let begin = Instant::now();
    if recorded {
        messages(rank, MPI_Send, MPI_Recv)
    } else {
        messages(rank, PMPI_Send, PMPI_Recv)
    }
    begin.elapsed().as_nanos() as f64
}

type Send = unsafe extern "C" fn(
    *const std::ffi::c_void,
    c_int,
    mpi_sys::MPI_Datatype,
    c_int,
    c_int,
    MPI_Comm,
) -> c_int;
type Recv = unsafe extern "C" fn(
    *mut std::ffi::c_void,
    c_int,
    mpi_sys::MPI_Datatype,
    c_int,
    c_int,
    MPI_Comm,
    *mut mpi_sys::MPI_Status,
) -> c_int;

fn messages(rank: c_int, send: Send, recv: Recv) {
    let mut bytes = 7_u64;
    let other = 1 - rank;
    for _ in 0..TRIPS {
        // SAFETY: the buffer has the length that is said; the other rank receives and sends in turn.
        unsafe {
            let (buffer, comm) = ((&raw mut bytes).cast(), RSMPI_COMM_WORLD);
            if rank == 0 {
                send(buffer, 8, RSMPI_UINT8_T, other, 0, comm);
                recv(buffer.cast(), 8, RSMPI_UINT8_T, other, 0, comm, RSMPI_STATUS_IGNORE);
            } else {
                recv(buffer, 8, RSMPI_UINT8_T, other, 0, comm, RSMPI_STATUS_IGNORE);
                send(buffer.cast(), 8, RSMPI_UINT8_T, other, 0, comm);
            }
        }
    }
}

fn reduction() {
    let rank = init();
    for group in 0..PATHS / 100 {
        let _group = scope_runtime::enter(&format!("group {group}"));
        for path in 1..100 {
            drop(scope_runtime::enter(&format!("path {group} {path}")));
        }
    }
    // SAFETY: MPI has begun.
    unsafe { PMPI_Barrier(RSMPI_COMM_WORLD) };
    let begin = Instant::now();
    finalize();
    let took = begin.elapsed();
    if rank == 0 {
        let job = scope_runtime::mpi::totals();
        let what =
            job.map_or("nothing".into(), |job| format!("{} paths of {} ranks", job.paths().len(), job.ranks));
        println!("MPI_Finalize with {what} put together: {:.1} ms", took.as_secs_f64() * 1e3);
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
