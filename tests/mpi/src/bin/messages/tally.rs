//! Calls of MPI by name, each counted.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use mpi::ffi::*;

static CALLS: Mutex<BTreeMap<&str, u64>> = Mutex::new(BTreeMap::new());

/// Calls a function of MPI, which must succeed.
macro_rules! call {
    ($name:ident($($arg:expr),* $(,)?)) => {{
        $crate::tally::count(stringify!($name));
        // SAFETY: the arguments are what the function asks for, and live until the end of the scenario.
        #[allow(unused_unsafe)]
        let result = unsafe { mpi::ffi::$name($($arg),*) };
        assert_eq!(result, 0, stringify!($name));
    }};
}
pub(crate) use call;

pub(crate) fn count(name: &'static str) {
    *CALLS.lock().unwrap().entry(name).or_default() += 1;
}

pub(crate) fn print(rank: c_int) {
    for (name, calls) in CALLS.lock().unwrap().iter() {
        println!("rank {rank}: {calls} {name}");
    }
}

pub(crate) fn world() -> MPI_Comm {
    // SAFETY: a constant of the library.
    unsafe { RSMPI_COMM_WORLD }
}

pub(crate) fn rank() -> c_int {
    rank_in(world())
}

pub(crate) fn rank_in(comm: MPI_Comm) -> c_int {
    let mut rank = 0;
    // SAFETY: MPI has begun, and the communicator is one.
    assert_eq!(unsafe { MPI_Comm_rank(comm, &mut rank) }, 0);
    rank
}

/// The next rank of four, in a ring.
pub(crate) fn next() -> c_int {
    (rank() + 1) % 4
}

/// The rank before.
pub(crate) fn before() -> c_int {
    (rank() + 3) % 4
}

/// The type of an `i32`.
pub(crate) fn int() -> MPI_Datatype {
    // SAFETY: a constant of the library.
    unsafe { RSMPI_INT32_T }
}

pub(crate) fn sum() -> MPI_Op {
    // SAFETY: a constant of the library.
    unsafe { RSMPI_SUM }
}

pub(crate) fn nobody() -> c_int {
    // SAFETY: a constant of the library.
    unsafe { RSMPI_PROC_NULL }
}

pub(crate) fn anybody() -> c_int {
    // SAFETY: a constant of the library.
    unsafe { RSMPI_ANY_SOURCE }
}

pub(crate) fn any_tag() -> c_int {
    // SAFETY: a constant of the library.
    unsafe { RSMPI_ANY_TAG }
}

pub(crate) fn no_request() -> MPI_Request {
    // SAFETY: a constant of the library.
    unsafe { RSMPI_REQUEST_NULL }
}

pub(crate) fn no_status() -> *mut MPI_Status {
    // SAFETY: a constant of the library.
    unsafe { RSMPI_STATUS_IGNORE }
}

pub(crate) fn no_statuses() -> *mut MPI_Status {
    // SAFETY: a constant of the library.
    unsafe { RSMPI_STATUSES_IGNORE }
}

pub(crate) fn no_info() -> MPI_Info {
    // SAFETY: a constant of the library.
    unsafe { RSMPI_INFO_NULL }
}

pub(crate) fn status() -> MPI_Status {
    // SAFETY: a status holds numbers only.
    unsafe { std::mem::zeroed() }
}

/// `MPI_IN_PLACE`, which the bindings leave out.
pub(crate) fn in_place() -> *mut c_void {
    let is_mpich = mpi::environment::library_version().is_ok_and(|version| version.contains("MPICH"));
    std::ptr::without_provenance_mut(if is_mpich { usize::MAX } else { 1 })
}

/// The address of numbers, as MPI wants it.
pub(crate) fn from(numbers: &[i32]) -> *const c_void {
    numbers.as_ptr().cast()
}

/// The address of a place for numbers.
pub(crate) fn into(numbers: &mut [i32]) -> *mut c_void {
    numbers.as_mut_ptr().cast()
}

/// What a status says: sender, tag, and number of `i32`.
#[track_caller]
pub(crate) fn check(status: &MPI_Status, source: c_int, tag: c_int, numbers: c_int) {
    let mut count = -1;
    // SAFETY: MPI has written the status.
    assert_eq!(unsafe { MPI_Get_count(status, int(), &mut count) }, 0);
    assert_eq!((status.MPI_SOURCE, status.MPI_TAG, count), (source, tag, numbers));
}
