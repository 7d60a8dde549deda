//! Memory of other ranks, and files.

use std::ffi::{CString, c_int, c_void};

use mpi::ffi::*;
use scope_runtime::scope;

use crate::tally::*;

pub(crate) fn all(file: &str) {
    memory();
    memory_of_a_half();
    file_of_all(file);
}

/// MPICH 4.0 takes the address of a window for a multiple of 16.
#[repr(align(64))]
struct Memory([i32; 8]);

fn window(memory: &mut [i32], comm: MPI_Comm) -> MPI_Win {
    // SAFETY: a constant of the library.
    let mut window = unsafe { RSMPI_WIN_NULL };
    call!(MPI_Win_create(into(memory), 4 * memory.len() as MPI_Aint, 4, no_info(), comm, &mut window));
    window
}

#[scope]
fn memory() {
    let mut memory = Memory([rank(); 8]);
    let mut window = window(&mut memory.0, world());
    let (own, mut got) = ([rank() + 10; 3], [-1; 3]);
    call!(MPI_Win_fence(0, window));
    call!(MPI_Put(from(&own), 2, int(), next(), 0, 2, int(), window));
    call!(MPI_Win_fence(0, window));
    call!(MPI_Get(into(&mut got), 3, int(), next(), 0, 3, int(), window));
    call!(MPI_Win_fence(0, window));
    assert_eq!(got, [rank() + 10, rank() + 10, next()]);
    call!(MPI_Accumulate(from(&[1]), 1, int(), next(), 2, 1, int(), sum(), window));
    call!(MPI_Put(from(&own), 2, int(), nobody(), 0, 2, int(), window));
    call!(MPI_Win_fence(0, window));
    assert_eq!(memory.0[..3], [before() + 10, before() + 10, rank() + 1]);

    call!(MPI_Win_lock(MPI_LOCK_EXCLUSIVE as c_int, next(), 0, window));
    call!(MPI_Put(from(&own), 3, int(), next(), 4, 3, int(), window));
    call!(MPI_Win_flush(next(), window));
    let (one, mut old) = ([1], [-1]);
    call!(MPI_Fetch_and_op(from(&one), into(&mut old), int(), next(), 3, sum(), window));
    call!(MPI_Win_unlock(next(), window));
    assert_eq!(old, [next()]);
    call!(MPI_Win_lock_all(0, window));
    let compare = [next() + 1];
    call!(MPI_Compare_and_swap(from(&one), from(&compare), into(&mut old), int(), next(), 3, window));
    call!(MPI_Get_accumulate(
        from(&own),
        2,
        int(),
        into(&mut got),
        2,
        int(),
        next(),
        6,
        2,
        int(),
        sum(),
        window,
    ));
    call!(MPI_Win_flush_all(window));
    let mut request = no_request();
    call!(MPI_Rget(into(&mut got), 1, int(), next(), 0, 1, int(), window, &mut request));
    call!(MPI_Wait(&mut request, no_status()));
    call!(MPI_Win_unlock_all(window));
    assert_eq!((old, got[0]), ([next() + 1], rank() + 10));
    call!(MPI_Barrier(world()));
    call!(MPI_Win_free(&mut window));
    assert_eq!(memory.0[3..6], [1, before() + 10, before() + 10]);
}

/// A window that the library allocates, on ranks 0 and 2. Open MPI 4.1 would mix up one on 1 and 3 with it.
#[scope]
fn memory_of_a_half() {
    let mut half = world();
    // SAFETY: a constant of the library.
    let color = if rank() % 2 == 0 { 0 } else { unsafe { RSMPI_UNDEFINED } };
    call!(MPI_Comm_split(world(), color, rank(), &mut half));
    // SAFETY: a constant of the library.
    if half == unsafe { RSMPI_COMM_NULL } {
        return;
    }
    // SAFETY: a constant of the library.
    let mut window = unsafe { RSMPI_WIN_NULL };
    let mut memory: *mut c_void = std::ptr::null_mut();
    call!(MPI_Win_allocate(16, 4, no_info(), half, (&raw mut memory).cast(), &mut window));
    call!(MPI_Comm_free(&mut half));
    let own = [rank()];
    call!(MPI_Win_fence(0, window));
    call!(MPI_Put(from(&own), 1, int(), c_int::from(rank() == 0), 0, 1, int(), window));
    call!(MPI_Win_fence(0, window));
    // SAFETY: the memory of the window, which others write to between fences only.
    assert_eq!(unsafe { *memory.cast::<i32>() }, rank() ^ 2);
    call!(MPI_Win_free(&mut window));
}

#[scope]
fn file_of_all(path: &str) {
    let path = CString::new(path).unwrap();
    let mode = (MPI_MODE_CREATE | MPI_MODE_RDWR) as c_int;
    // SAFETY: a constant of the library.
    let mut file = unsafe { RSMPI_FILE_NULL };
    call!(MPI_File_open(world(), path.as_ptr(), mode, no_info(), &mut file));
    let (own, mut theirs) = ([rank(); 4], [-1; 8]);
    let at = |rank: c_int| MPI_Offset::from(16 * rank);
    let mut said = status();
    call!(MPI_File_write_at_all(file, at(rank()), from(&own), 4, int(), &mut said));
    call!(MPI_File_sync(file));
    call!(MPI_Barrier(world()));
    call!(MPI_File_read_at(file, at(next()), into(&mut theirs), 4, int(), no_status()));
    assert_eq!(theirs[..4], [next(); 4]);
    // Asked for is more than there is behind rank 3.
    call!(MPI_File_read_at(file, at(3), into(&mut theirs), 8, int(), &mut said));
    let mut count = 0;
    // SAFETY: MPI has written the status.
    assert_eq!(unsafe { MPI_Get_count(&said, int(), &mut count) }, 0);
    assert_eq!(count, 4);
    call!(MPI_Barrier(world()));
    let mut request = no_request();
    call!(MPI_File_iwrite_at(file, at(rank()), from(&own), 2, int(), &mut request));
    call!(MPI_Wait(&mut request, no_status()));
    call!(MPI_File_close(&mut file));
}
