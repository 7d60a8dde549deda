//! The calls after which a message has been received, whose size and sender their statuses tell: where
//! the program wants none, ours takes the place.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

use mpi_sys::{
    MPI_Comm, MPI_Datatype, MPI_Message, MPI_Request, MPI_Status, RSMPI_STATUS_IGNORE, RSMPI_UNDEFINED,
};

use super::call::{calls, list, sent};
use super::communicators::peers;
use super::requests::{Watched, receive_probed, received, take_probed};

calls! {
    fn MPI_Recv(
        buf: *mut c_void, count: c_int, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        status: *mut MPI_Status,
    ) around {
        let mut own = MaybeUninit::uninit();
        let status = wanted(status, &mut own);
        let result = real(buf, count, datatype, source, tag, comm, status);
        if result == 0 {
            received(&peers(comm), status);
        }
        result
    }
    fn MPI_Sendrecv(
        sendbuf: *const c_void, sendcount: c_int, sendtype: MPI_Datatype, dest: c_int, sendtag: c_int,
        recvbuf: *mut c_void, recvcount: c_int, recvtype: MPI_Datatype, source: c_int, recvtag: c_int,
        comm: MPI_Comm, status: *mut MPI_Status,
    ) around {
        let mut own = MaybeUninit::uninit();
        let status = wanted(status, &mut own);
        let result = real(
            sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm,
            status,
        );
        if result == 0 {
            sent(comm, dest, sendcount, sendtype);
            received(&peers(comm), status);
        }
        result
    }
    fn MPI_Sendrecv_replace(
        buf: *mut c_void, count: c_int, datatype: MPI_Datatype, dest: c_int, sendtag: c_int, source: c_int,
        recvtag: c_int, comm: MPI_Comm, status: *mut MPI_Status,
    ) around {
        let mut own = MaybeUninit::uninit();
        let status = wanted(status, &mut own);
        let result = real(buf, count, datatype, dest, sendtag, source, recvtag, comm, status);
        if result == 0 {
            sent(comm, dest, count, datatype);
            received(&peers(comm), status);
        }
        result
    }
    fn MPI_Mrecv(
        buf: *mut c_void, count: c_int, datatype: MPI_Datatype, message: *mut MPI_Message,
        status: *mut MPI_Status,
    ) around {
        let peers = take_probed(message);
        let mut own = MaybeUninit::uninit();
        let status = wanted(status, &mut own);
        let result = real(buf, count, datatype, message, status);
        if let Some(peers) = peers.filter(|_| result == 0) {
            received(&peers, status);
        }
        result
    }
    fn MPI_Imrecv(
        buf: *mut c_void, count: c_int, datatype: MPI_Datatype, message: *mut MPI_Message,
        request: *mut MPI_Request,
    ) around {
        let peers = take_probed(message);
        let result = real(buf, count, datatype, message, request);
        if result == 0 {
            receive_probed(request, peers);
        }
        result
    }
    fn MPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) around {
        let watched = Watched::new(1, request, status);
        let result = real(request, Watched::statuses(&watched, status));
        if let Some(mut watched) = watched.filter(|_| result == 0) {
            watched.completed(0, 0);
        }
        result
    }
    fn MPI_Waitall(count: c_int, requests: *mut MPI_Request, statuses: *mut MPI_Status) around {
        let watched = Watched::new(count, requests, statuses);
        let result = real(count, requests, Watched::statuses(&watched, statuses));
        if let Some(mut watched) = watched.filter(|_| result == 0) {
            watched.all_completed();
        }
        result
    }
    fn MPI_Waitany(
        count: c_int, requests: *mut MPI_Request, index: *mut c_int, status: *mut MPI_Status,
    ) around {
        let watched = Watched::new(count, requests, status);
        let result = real(count, requests, index, Watched::statuses(&watched, status));
        if let Some(mut watched) = watched.filter(|_| result == 0) {
            completed_one(&mut watched, *index);
        }
        result
    }
    fn MPI_Waitsome(
        count: c_int, requests: *mut MPI_Request, done: *mut c_int, indices: *mut c_int,
        statuses: *mut MPI_Status,
    ) around {
        let watched = Watched::new(count, requests, statuses);
        let result = real(count, requests, done, indices, Watched::statuses(&watched, statuses));
        if let Some(mut watched) = watched.filter(|_| result == 0) {
            completed_some(&mut watched, *done, indices);
        }
        result
    }
    fn MPI_Test(request: *mut MPI_Request, flag: *mut c_int, status: *mut MPI_Status) around {
        let watched = Watched::new(1, request, status);
        let result = real(request, flag, Watched::statuses(&watched, status));
        if let Some(mut watched) = watched.filter(|_| result == 0 && *flag != 0) {
            watched.completed(0, 0);
        }
        result
    }
    fn MPI_Testall(
        count: c_int, requests: *mut MPI_Request, flag: *mut c_int, statuses: *mut MPI_Status,
    ) around {
        let watched = Watched::new(count, requests, statuses);
        let result = real(count, requests, flag, Watched::statuses(&watched, statuses));
        if let Some(mut watched) = watched.filter(|_| result == 0 && *flag != 0) {
            watched.all_completed();
        }
        result
    }
    fn MPI_Testany(
        count: c_int, requests: *mut MPI_Request, index: *mut c_int, flag: *mut c_int,
        status: *mut MPI_Status,
    ) around {
        let watched = Watched::new(count, requests, status);
        let result = real(count, requests, index, flag, Watched::statuses(&watched, status));
        if let Some(mut watched) = watched.filter(|_| result == 0 && *flag != 0) {
            completed_one(&mut watched, *index);
        }
        result
    }
    fn MPI_Testsome(
        count: c_int, requests: *mut MPI_Request, done: *mut c_int, indices: *mut c_int,
        statuses: *mut MPI_Status,
    ) around {
        let watched = Watched::new(count, requests, statuses);
        let result = real(count, requests, done, indices, Watched::statuses(&watched, statuses));
        if let Some(mut watched) = watched.filter(|_| result == 0) {
            completed_some(&mut watched, *done, indices);
        }
        result
    }
}

/// The caller's status, or ours where it wants none.
fn wanted(status: *mut MPI_Status, own: &mut MaybeUninit<MPI_Status>) -> *mut MPI_Status {
    // SAFETY: a constant of the library, which is set when it is loaded.
    let ignored = status.is_null() || status == unsafe { RSMPI_STATUS_IGNORE };
    if ignored { own.as_mut_ptr() } else { status }
}

/// The request at `index` is complete, with the first status; no index where none was left.
unsafe fn completed_one(watched: &mut Watched, index: c_int) {
    // SAFETY: a constant of the library, which is set when it is loaded.
    if index != unsafe { RSMPI_UNDEFINED }
        && let Ok(index) = usize::try_from(index)
    {
        // SAFETY: the call has written the status.
        unsafe { watched.completed(index, 0) };
    }
}

/// The requests at `done` indices are complete, with as many statuses.
unsafe fn completed_some(watched: &mut Watched, done: c_int, indices: *const c_int) {
    // SAFETY: a constant of the library, which is set when it is loaded.
    if done == unsafe { RSMPI_UNDEFINED } {
        return;
    }
    // SAFETY: the call has written as many indices and statuses.
    let indices = unsafe { list(indices, done) };
    for (status, &index) in indices.iter().enumerate() {
        // SAFETY: see above.
        unsafe { watched.completed(usize::try_from(index).unwrap_or(usize::MAX), status) };
    }
}
