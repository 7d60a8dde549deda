//! Messages that are under way while the program goes on, waited for in every way.

use std::ffi::c_int;

use mpi::ffi::*;
use scope_runtime::{region, scope};

use crate::point_to_point::{attach_buffer, detach_buffer};
use crate::tally::*;

const DATA: [i32; 8] = [20, 21, 22, 23, 24, 25, 26, 27];

type Finish = fn(&mut [MPI_Request; 3], Option<&mut [MPI_Status; 3]>);

/// The ways to wait for three requests. With statuses, those are in the order of the requests.
const WAYS: [(&str, Finish); 8] = [
    ("wait", wait),
    ("waitall", wait_for_all),
    ("waitany", wait_for_any),
    ("waitsome", wait_for_some),
    ("test", test),
    ("testall", test_all),
    ("testany", test_any),
    ("testsome", test_some),
];

pub(crate) fn all() {
    for (name, finish) in WAYS {
        region!(name, {
            three_messages(finish, true);
            three_messages(finish, false);
        });
        // A rank that is ahead would send the next ones already, which is allowed, but hard to read.
        call!(MPI_Barrier(world()));
    }
    match rank() {
        0 => four_kinds(),
        1 => four_receives(),
        2 => persistent_sends(),
        _ => persistent_receives(),
    }
    cancelled();
    freed();
}

/// Messages of 1, 2 and 3 numbers from rank 0 to rank 1, received in the other order.
fn three_messages(finish: Finish, wants_statuses: bool) {
    let mut requests = [no_request(); 3];
    let mut statuses = [status(); 3];
    let mut data = [[0; 8]; 3];
    match rank() {
        0 => {
            for (tag, request) in (0..).zip(&mut requests) {
                call!(MPI_Isend(from(&DATA), tag + 1, int(), 1, tag, world(), request));
            }
        }
        1 => {
            for ((tag, request), data) in (0..3).zip(&mut requests).zip(&mut data).rev() {
                let source = if tag == 1 { anybody() } else { 0 };
                call!(MPI_Irecv(into(data), 8, int(), source, tag, world(), request));
            }
        }
        _ => return,
    }
    finish(&mut requests, wants_statuses.then_some(&mut statuses));
    assert!(requests.iter().all(|&request| request == no_request()));
    if rank() == 1 {
        assert_eq!(data.map(|data| data[..3].to_vec()), [[20, 0, 0], [20, 21, 0], [20, 21, 22]]);
        if wants_statuses {
            (0..).zip(&statuses).for_each(|(tag, status)| check(status, 0, tag, tag + 1));
        }
    }
}

/// Where a call is to write one status.
fn one(statuses: &mut Option<&mut [MPI_Status; 3]>, at: usize) -> *mut MPI_Status {
    statuses.as_mut().map_or(no_status(), |statuses| &mut statuses[at])
}

fn wait(requests: &mut [MPI_Request; 3], mut statuses: Option<&mut [MPI_Status; 3]>) {
    for (at, request) in requests.iter_mut().enumerate() {
        call!(MPI_Wait(request, one(&mut statuses, at)));
    }
}

fn wait_for_all(requests: &mut [MPI_Request; 3], statuses: Option<&mut [MPI_Status; 3]>) {
    call!(MPI_Waitall(
        3,
        requests.as_mut_ptr(),
        statuses.map_or(no_statuses(), |statuses| statuses.as_mut_ptr())
    ));
}

fn wait_for_any(requests: &mut [MPI_Request; 3], mut statuses: Option<&mut [MPI_Status; 3]>) {
    for _ in 0..3 {
        let (mut index, mut said) = (-1, status());
        let wanted = if statuses.is_some() { &mut said } else { no_status() };
        call!(MPI_Waitany(3, requests.as_mut_ptr(), &mut index, wanted));
        keep(&mut statuses, index, said);
    }
    // Nothing is left, which is no error.
    let mut index = -1;
    call!(MPI_Waitany(3, requests.as_mut_ptr(), &mut index, no_status()));
    // SAFETY: a constant of the library.
    assert_eq!(index, unsafe { RSMPI_UNDEFINED });
}

fn keep(statuses: &mut Option<&mut [MPI_Status; 3]>, index: c_int, said: MPI_Status) {
    if let Some(statuses) = statuses {
        statuses[index as usize] = said;
    }
}

fn wait_for_some(requests: &mut [MPI_Request; 3], mut statuses: Option<&mut [MPI_Status; 3]>) {
    let mut left = 3;
    while left > 0 {
        let (mut done, mut indices, mut said) = (-1, [-1; 3], [status(); 3]);
        let wanted = if statuses.is_some() { said.as_mut_ptr() } else { no_statuses() };
        call!(MPI_Waitsome(3, requests.as_mut_ptr(), &mut done, indices.as_mut_ptr(), wanted));
        (0..done as usize).for_each(|at| keep(&mut statuses, indices[at], said[at]));
        left -= done;
    }
}

fn test(requests: &mut [MPI_Request; 3], mut statuses: Option<&mut [MPI_Status; 3]>) {
    for (at, request) in requests.iter_mut().enumerate() {
        let mut done = 0;
        while done == 0 {
            call!(MPI_Test(request, &mut done, one(&mut statuses, at)));
        }
    }
}

fn test_all(requests: &mut [MPI_Request; 3], statuses: Option<&mut [MPI_Status; 3]>) {
    let wanted = statuses.map_or(no_statuses(), |statuses| statuses.as_mut_ptr());
    let mut done = 0;
    while done == 0 {
        call!(MPI_Testall(3, requests.as_mut_ptr(), &mut done, wanted));
    }
}

fn test_any(requests: &mut [MPI_Request; 3], mut statuses: Option<&mut [MPI_Status; 3]>) {
    let mut left = 3;
    while left > 0 {
        let (mut done, mut index, mut said) = (0, -1, status());
        let wanted = if statuses.is_some() { &mut said } else { no_status() };
        call!(MPI_Testany(3, requests.as_mut_ptr(), &mut index, &mut done, wanted));
        if done != 0 {
            keep(&mut statuses, index, said);
            left -= 1;
        }
    }
}

fn test_some(requests: &mut [MPI_Request; 3], mut statuses: Option<&mut [MPI_Status; 3]>) {
    let mut left = 3;
    while left > 0 {
        let (mut done, mut indices, mut said) = (-1, [-1; 3], [status(); 3]);
        let wanted = if statuses.is_some() { said.as_mut_ptr() } else { no_statuses() };
        call!(MPI_Testsome(3, requests.as_mut_ptr(), &mut done, indices.as_mut_ptr(), wanted));
        (0..done as usize).for_each(|at| keep(&mut statuses, indices[at], said[at]));
        left -= done;
    }
}

/// From rank 0 to rank 1: 1 to 4 numbers.
#[scope]
fn four_kinds() {
    let mut requests = [no_request(); 4];
    attach_buffer();
    call!(MPI_Recv(std::ptr::null_mut(), 0, int(), 1, 0, world(), no_status()));
    call!(MPI_Isend(from(&DATA), 1, int(), 1, 0, world(), &mut requests[0]));
    call!(MPI_Ibsend(from(&DATA), 2, int(), 1, 0, world(), &mut requests[1]));
    call!(MPI_Issend(from(&DATA), 3, int(), 1, 0, world(), &mut requests[2]));
    call!(MPI_Irsend(from(&DATA), 4, int(), 1, 0, world(), &mut requests[3]));
    call!(MPI_Waitall(4, requests.as_mut_ptr(), no_statuses()));
    detach_buffer();
}

/// Requests that are null stand among the others.
#[scope]
fn four_receives() {
    let mut requests = [no_request(); 6];
    let mut statuses = [status(); 6];
    let mut data = [[0; 8]; 6];
    for at in [0, 2, 3, 5] {
        call!(MPI_Irecv(into(&mut data[at]), 8, int(), 0, 0, world(), &mut requests[at]));
    }
    call!(MPI_Send(std::ptr::null(), 0, int(), 0, 0, world()));
    call!(MPI_Waitall(6, requests.as_mut_ptr(), statuses.as_mut_ptr()));
    for (at, count) in [(0, 1), (2, 2), (3, 3), (5, 4)] {
        check(&statuses[at], 0, 0, count);
    }
}

/// From rank 2 to rank 3: 1 to 4 numbers in two rounds, and 1 number in a third.
#[scope]
fn persistent_sends() {
    let mut requests = [no_request(); 4];
    attach_buffer();
    call!(MPI_Send_init(from(&DATA), 1, int(), 3, 0, world(), &mut requests[0]));
    call!(MPI_Bsend_init(from(&DATA), 2, int(), 3, 1, world(), &mut requests[1]));
    call!(MPI_Ssend_init(from(&DATA), 3, int(), 3, 2, world(), &mut requests[2]));
    call!(MPI_Rsend_init(from(&DATA), 4, int(), 3, 3, world(), &mut requests[3]));
    for _ in 0..2 {
        call!(MPI_Recv(std::ptr::null_mut(), 0, int(), 3, 9, world(), no_status()));
        call!(MPI_Startall(4, requests.as_mut_ptr()));
        call!(MPI_Waitall(4, requests.as_mut_ptr(), no_statuses()));
    }
    call!(MPI_Start(&mut requests[0]));
    call!(MPI_Wait(&mut requests[0], no_status()));
    for request in &mut requests {
        call!(MPI_Request_free(request));
    }
    detach_buffer();
}

#[scope]
fn persistent_receives() {
    let mut requests = [no_request(); 4];
    let mut statuses = [status(); 4];
    let mut data = [[0; 8]; 4];
    for (tag, (request, data)) in (0..).zip(requests.iter_mut().zip(&mut data)) {
        call!(MPI_Recv_init(into(data), 8, int(), 2, tag, world(), request));
    }
    // None of them is active: they count as done, and as nothing.
    call!(MPI_Waitall(4, requests.as_mut_ptr(), no_statuses()));
    for round in 0..2 {
        call!(MPI_Startall(4, requests.as_mut_ptr()));
        call!(MPI_Send(std::ptr::null(), 0, int(), 2, 9, world()));
        let wanted = if round == 0 { no_statuses() } else { statuses.as_mut_ptr() };
        call!(MPI_Waitall(4, requests.as_mut_ptr(), wanted));
    }
    (0..).zip(&statuses).for_each(|(tag, status)| check(status, 2, tag, tag + 1));
    call!(MPI_Start(&mut requests[0]));
    let mut done = 0;
    while done == 0 {
        call!(MPI_Test(&mut requests[0], &mut done, no_status()));
    }
    call!(MPI_Wait(&mut requests[0], no_status()));
    for request in &mut requests {
        call!(MPI_Request_free(request));
    }
    assert_eq!(data[3], [20, 21, 22, 23, 0, 0, 0, 0]);
}

/// A receive that nothing comes for; then one like it that something comes for.
#[scope]
fn cancelled() {
    let (mut request, mut said, mut data) = (no_request(), status(), [0; 8]);
    for wants_status in [true, false] {
        call!(MPI_Irecv(into(&mut data), 8, int(), before(), 77, world(), &mut request));
        call!(MPI_Cancel(&mut request));
        call!(MPI_Wait(&mut request, if wants_status { &mut said } else { no_status() }));
    }
    let mut is_cancelled = 0;
    // SAFETY: MPI has written the status.
    assert_eq!(unsafe { MPI_Test_cancelled(&said, &mut is_cancelled) }, 0);
    assert_eq!(is_cancelled, 1);
    call!(MPI_Irecv(into(&mut data), 8, int(), before(), 78, world(), &mut request));
    call!(MPI_Send(from(&DATA), 3, int(), next(), 78, world()));
    call!(MPI_Wait(&mut request, no_status()));
    assert_eq!(data, [20, 21, 22, 0, 0, 0, 0, 0]);
}

/// Requests that nobody waits for: the messages arrive, which rank 1 knows because a later one does.
#[scope]
fn freed() {
    static mut PLACE: [i32; 1] = [0];
    let (mut request, mut data) = (no_request(), [0; 2]);
    match rank() {
        0 => {
            call!(MPI_Isend(from(&DATA), 1, int(), 1, 0, world(), &mut request));
            call!(MPI_Request_free(&mut request));
            call!(MPI_Send(from(&DATA), 2, int(), 1, 0, world()));
        }
        1 => {
            let place = (&raw mut PLACE).cast();
            call!(MPI_Irecv(place, 1, int(), 0, 0, world(), &mut request));
            call!(MPI_Request_free(&mut request));
            call!(MPI_Recv(into(&mut data), 2, int(), 0, 0, world(), no_status()));
            assert_eq!(data, [20, 21]);
        }
        _ => {}
    }
}
