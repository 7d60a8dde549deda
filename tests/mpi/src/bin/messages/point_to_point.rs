//! Messages from one rank to another, by calls that wait.

use std::ffi::{c_int, c_void};

use mpi::ffi::*;
use scope_runtime::scope;

use crate::tally::*;

const DATA: [i32; 8] = [10, 11, 12, 13, 14, 15, 16, 17];

pub(crate) fn all() {
    match rank() {
        0 => sends(),
        1 => receives(),
        _ => {}
    }
    any_source();
    // Rank 0 takes anything, so what comes next is not to be there yet.
    call!(MPI_Barrier(world()));
    ring();
    to_nobody();
    match rank() {
        0 => probed_sends(),
        1 => probes(),
        _ => {}
    }
    types();
    errors();
}

/// From rank 0 to rank 1: messages of 2, 5, 3, 4 and 1 numbers, and one of none.
#[scope]
fn sends() {
    call!(MPI_Send(from(&DATA), 2, int(), 1, 0, world()));
    call!(MPI_Send(from(&DATA), 5, int(), 1, 1, world()));
    call!(MPI_Ssend(from(&DATA), 3, int(), 1, 2, world()));
    attach_buffer();
    call!(MPI_Bsend(from(&DATA), 4, int(), 1, 3, world()));
    detach_buffer();
    // Rank 1 is ready when it says so.
    call!(MPI_Recv(std::ptr::null_mut(), 0, int(), 1, 4, world(), no_status()));
    call!(MPI_Rsend(from(&DATA), 1, int(), 1, 5, world()));
}

#[scope]
fn receives() {
    let mut data = [0; 8];
    let mut said = status();
    call!(MPI_Recv(into(&mut data), 8, int(), 0, 0, world(), no_status()));
    assert_eq!(data, [10, 11, 0, 0, 0, 0, 0, 0]);
    call!(MPI_Recv(into(&mut data), 8, int(), 0, 1, world(), &mut said));
    check(&said, 0, 1, 5);
    assert_eq!(data, [10, 11, 12, 13, 14, 0, 0, 0]);
    call!(MPI_Recv(into(&mut data), 8, int(), 0, 2, world(), &mut said));
    check(&said, 0, 2, 3);
    call!(MPI_Recv(into(&mut data), 8, int(), 0, 3, world(), no_status()));
    let mut request = no_request();
    call!(MPI_Irecv(into(&mut data[7..]), 1, int(), 0, 5, world(), &mut request));
    call!(MPI_Send(std::ptr::null(), 0, int(), 0, 4, world()));
    call!(MPI_Wait(&mut request, &mut said));
    check(&said, 0, 5, 1);
    assert_eq!(data[7], 10);
}

pub(crate) fn attach_buffer() {
    let buffer = Box::leak(vec![0_u8; 1 << 16].into_boxed_slice());
    call!(MPI_Buffer_attach(buffer.as_mut_ptr().cast(), buffer.len() as c_int));
}

pub(crate) fn detach_buffer() {
    let (mut buffer, mut size): (*mut c_void, c_int) = (std::ptr::null_mut(), 0);
    call!(MPI_Buffer_detach((&raw mut buffer).cast(), &mut size));
    assert_eq!(size, 1 << 16);
}

/// Rank 0 takes what comes, of rank + 1 numbers.
#[scope]
fn any_source() {
    if rank() > 0 {
        call!(MPI_Send(from(&DATA), rank() + 1, int(), 0, rank(), world()));
        return;
    }
    let mut said = status();
    for n in 0..3 {
        let mut data = [0; 8];
        let status = if n == 1 { &mut said } else { no_status() };
        call!(MPI_Recv(into(&mut data), 8, int(), anybody(), any_tag(), world(), status));
        if n == 1 {
            check(&said, said.MPI_SOURCE, said.MPI_SOURCE, said.MPI_SOURCE + 1);
        }
    }
}

/// Three numbers go to the next rank, then two; at last rank 3 sends to nobody and rank 0 hears nobody.
#[scope]
fn ring() {
    let (own, mut theirs) = ([rank(); 3], [-1; 3]);
    let mut said = status();
    call!(MPI_Sendrecv(
        from(&own),
        3,
        int(),
        next(),
        7,
        into(&mut theirs),
        3,
        int(),
        before(),
        7,
        world(),
        &mut said,
    ));
    check(&said, before(), 7, 3);
    assert_eq!(theirs, [before(); 3]);
    let mut both = [rank(); 2];
    call!(MPI_Sendrecv_replace(into(&mut both), 2, int(), next(), 8, before(), 8, world(), no_status(),));
    assert_eq!(both, [before(); 2]);
    let (to, of) =
        (if rank() == 3 { nobody() } else { next() }, if rank() == 0 { nobody() } else { before() });
    let mut theirs = [-1];
    call!(MPI_Sendrecv(from(&own), 1, int(), to, 9, into(&mut theirs), 1, int(), of, 9, world(), &mut said,));
    check(&said, of, if rank() == 0 { any_tag() } else { 9 }, c_int::from(rank() > 0));
    assert_eq!(theirs, [rank() - 1]);
}

/// Neither counts as a message.
#[scope]
fn to_nobody() {
    let mut data = [0; 8];
    let (mut requests, mut said) = ([no_request(); 2], status());
    call!(MPI_Send(from(&DATA), 8, int(), nobody(), 0, world()));
    call!(MPI_Recv(into(&mut data), 8, int(), nobody(), 0, world(), &mut said));
    check(&said, nobody(), any_tag(), 0);
    call!(MPI_Recv(into(&mut data), 8, int(), nobody(), 0, world(), no_status()));
    call!(MPI_Isend(from(&DATA), 8, int(), nobody(), 0, world(), &mut requests[0]));
    call!(MPI_Irecv(into(&mut data), 8, int(), nobody(), 0, world(), &mut requests[1]));
    call!(MPI_Waitall(2, requests.as_mut_ptr(), no_statuses()));
    assert_eq!(data, [0; 8]);
}

#[scope]
fn probed_sends() {
    for (tag, count) in (0..).zip([3, 4, 5, 6, 7]) {
        call!(MPI_Send(from(&DATA), count, int(), 1, tag, world()));
    }
}

#[scope]
fn probes() {
    let mut data = [0; 8];
    let (mut said, mut is_there) = (status(), 0);
    call!(MPI_Probe(0, 0, world(), &mut said));
    check(&said, 0, 0, 3);
    call!(MPI_Recv(into(&mut data), 3, int(), 0, 0, world(), no_status()));
    while is_there == 0 {
        call!(MPI_Iprobe(anybody(), 1, world(), &mut is_there, &mut said));
    }
    check(&said, 0, 1, 4);
    call!(MPI_Recv(into(&mut data), 4, int(), 0, 1, world(), no_status()));

    // SAFETY: a constant of the library.
    let mut message = unsafe { RSMPI_MESSAGE_NULL };
    call!(MPI_Mprobe(anybody(), 2, world(), &mut message, &mut said));
    check(&said, 0, 2, 5);
    call!(MPI_Mrecv(into(&mut data), 8, int(), &mut message, no_status()));
    is_there = 0;
    while is_there == 0 {
        call!(MPI_Improbe(0, any_tag(), world(), &mut is_there, &mut message, no_status()));
    }
    let mut request = no_request();
    call!(MPI_Imrecv(into(&mut data), 8, int(), &mut message, &mut request));
    call!(MPI_Wait(&mut request, &mut said));
    check(&said, 0, 3, 6);
    call!(MPI_Mprobe(0, 4, world(), &mut message, no_status()));
    call!(MPI_Mrecv(into(&mut data), 8, int(), &mut message, &mut said));
    check(&said, 0, 4, 7);
    call!(MPI_Mprobe(nobody(), 4, world(), &mut message, no_status()));
    call!(MPI_Mrecv(into(&mut data), 8, int(), &mut message, &mut said));
    check(&said, nobody(), any_tag(), 0);
    assert_eq!(data, [10, 11, 12, 13, 14, 15, 16, 0]);
}

/// Every second number of six, to the next rank; they count as what they hold.
#[scope]
fn types() {
    let mut every_second = int();
    let mut data = [-1; 3];
    // SAFETY: makes a type from one of the library.
    assert_eq!(unsafe { MPI_Type_vector(3, 1, 2, int(), &mut every_second) }, 0);
    call!(MPI_Type_commit(&mut every_second));
    let mut request = no_request();
    call!(MPI_Isend(from(&DATA), 1, every_second, next(), 0, world(), &mut request));
    call!(MPI_Recv(into(&mut data), 3, int(), before(), 0, world(), no_status()));
    call!(MPI_Wait(&mut request, no_status()));
    assert_eq!(data, [10, 12, 14]);
    // SAFETY: nothing uses the type any more.
    assert_eq!(unsafe { MPI_Type_free(&mut every_second) }, 0);
}

/// Messages that are too long for their receivers, on a communicator whose errors are returned; then one that
/// is not.
#[scope]
fn errors() {
    let mut comm = world();
    call!(MPI_Comm_dup(world(), &mut comm));
    // SAFETY: the communicator is one.
    assert_eq!(unsafe { MPI_Comm_set_errhandler(comm, RSMPI_ERRORS_RETURN) }, 0);
    let mut request = no_request();
    let mut data = [0; 2];
    call!(MPI_Isend(from(&DATA), 4, int(), next(), 0, comm, &mut request));
    count("MPI_Recv");
    // SAFETY: there is room for what is said.
    let result = unsafe { MPI_Recv(into(&mut data), 2, int(), before(), 0, comm, no_status()) };
    check_truncated(result);
    call!(MPI_Wait(&mut request, no_status()));

    let mut receive = no_request();
    call!(MPI_Irecv(into(&mut data), 2, int(), before(), 0, comm, &mut receive));
    call!(MPI_Isend(from(&DATA), 4, int(), next(), 0, comm, &mut request));
    count("MPI_Wait");
    // SAFETY: the request is under way; MPICH takes errors of this call for those of all ranks.
    check_truncated(unsafe {
        MPI_Comm_set_errhandler(world(), RSMPI_ERRORS_RETURN);
        MPI_Wait(&mut receive, no_status())
    });
    // SAFETY: a constant of the library.
    assert_eq!(unsafe { MPI_Comm_set_errhandler(world(), RSMPI_ERRORS_ARE_FATAL) }, 0);
    call!(MPI_Wait(&mut request, no_status()));

    call!(MPI_Irecv(into(&mut data), 2, int(), before(), 0, comm, &mut receive));
    call!(MPI_Isend(from(&DATA), 1, int(), next(), 0, comm, &mut request));
    call!(MPI_Wait(&mut receive, no_status()));
    call!(MPI_Wait(&mut request, no_status()));
    call!(MPI_Comm_free(&mut comm));
}

fn check_truncated(result: c_int) {
    let mut class = 0;
    // SAFETY: the error is one of MPI.
    unsafe { MPI_Error_class(result, &mut class) };
    assert_eq!(class, MPI_ERR_TRUNCATE as c_int);
}
