//! The calls after which a message has been received, whose size and sender their statuses tell: where
//! the program wants none, ours takes the place.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

use mpi_sys::{MPI_Comm, MPI_Datatype, MPI_Message, MPI_Request, MPI_Status};

use super::call::{calls, counted, sent};
use super::communicators::{Peers, peers};
use super::requests::{Watched, is_ignored, receive_probed, received, take_probed};

counted! {
    mod receives;
    fn MPI_Recv(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        status: *mut MPI_Status,
    ) around {
        receive(status, |status| real(buf, count, datatype, source, tag, comm, status), || Some(peers(comm)))
    }
    fn MPI_Sendrecv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, dest: c_int, sendtag: c_int,
        recvbuf: *mut c_void, recvcount: Count, recvtype: MPI_Datatype, source: c_int, recvtag: c_int,
        comm: MPI_Comm, status: *mut MPI_Status,
    ) around {
        let exchange = |status| {
            real(
                sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,
                comm, status,
            )
        };
        receive(status, exchange, || {
            sent(comm, dest, sendcount, sendtype);
            Some(peers(comm))
        })
    }
    fn MPI_Sendrecv_replace(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, dest: c_int, sendtag: c_int, source: c_int,
        recvtag: c_int, comm: MPI_Comm, status: *mut MPI_Status,
    ) around {
        let exchange = |status| real(buf, count, datatype, dest, sendtag, source, recvtag, comm, status);
        receive(status, exchange, || {
            sent(comm, dest, count, datatype);
            Some(peers(comm))
        })
    }
    fn MPI_Mrecv(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, message: *mut MPI_Message,
        status: *mut MPI_Status,
    ) around {
        let peers = take_probed(message);
        receive(status, |status| real(buf, count, datatype, message, status), || peers)
    }
    fn MPI_Imrecv(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, message: *mut MPI_Message,
        request: *mut MPI_Request,
    ) around {
        let peers = take_probed(message);
        let result = real(buf, count, datatype, message, request);
        if result == 0 {
            receive_probed(request, peers);
        }
        result
    }
}
calls! {
    static RECEIVES;
    fn MPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) around {
        watch(1, request, status, |status| real(request, status), |done| done.completed(0, 0))
    }
    fn MPI_Waitall(count: c_int, requests: *mut MPI_Request, statuses: *mut MPI_Status) around {
        let wait = |statuses| real(count, requests, statuses);
        watch(count, requests, statuses, wait, |done| done.all_completed())
    }
    fn MPI_Waitany(
        count: c_int, requests: *mut MPI_Request, index: *mut c_int, status: *mut MPI_Status,
    ) around {
        let wait = |status| real(count, requests, index, status);
        watch(count, requests, status, wait, |done| done.one_completed(*index))
    }
    fn MPI_Waitsome(
        count: c_int, requests: *mut MPI_Request, number: *mut c_int, indices: *mut c_int,
        statuses: *mut MPI_Status,
    ) around {
        let wait = |statuses| real(count, requests, number, indices, statuses);
        watch(count, requests, statuses, wait, |done| done.some_completed(*number, indices))
    }
    fn MPI_Test(request: *mut MPI_Request, flag: *mut c_int, status: *mut MPI_Status) around {
        let wait = |status| real(request, flag, status);
        watch(1, request, status, wait, |done| if *flag != 0 { done.completed(0, 0) })
    }
    fn MPI_Testall(
        count: c_int, requests: *mut MPI_Request, flag: *mut c_int, statuses: *mut MPI_Status,
    ) around {
        let wait = |statuses| real(count, requests, flag, statuses);
        watch(count, requests, statuses, wait, |done| if *flag != 0 { done.all_completed() })
    }
    fn MPI_Testany(
        count: c_int, requests: *mut MPI_Request, index: *mut c_int, flag: *mut c_int,
        status: *mut MPI_Status,
    ) around {
        let wait = |status| real(count, requests, index, flag, status);
        watch(count, requests, status, wait, |done| if *flag != 0 { done.one_completed(*index) })
    }
    fn MPI_Testsome(
        count: c_int, requests: *mut MPI_Request, number: *mut c_int, indices: *mut c_int,
        statuses: *mut MPI_Status,
    ) around {
        let wait = |statuses| real(count, requests, number, indices, statuses);
        watch(count, requests, statuses, wait, |done| done.some_completed(*number, indices))
    }
}

/// Receives by `call`, which gets the status to write; when it has succeeded, `peers` says among whom the
/// sender is, if that is known.
unsafe fn receive(
    status: *mut MPI_Status,
    call: impl FnOnce(*mut MPI_Status) -> c_int,
    peers: impl FnOnce() -> Option<Peers>,
) -> c_int {
    let mut own = MaybeUninit::uninit();
    let status = if is_ignored(status) { own.as_mut_ptr() } else { status };
    let result = call(status);
    if result == 0
        && let Some(peers) = peers()
    {
        // SAFETY: the call has written the status.
        unsafe { received(&peers, status) };
    }
    result
}

/// Waits for requests, or tests them, by `call`, which gets the statuses to write; when it has succeeded,
/// `completed` says which of them are complete.
unsafe fn watch(
    count: c_int,
    requests: *const MPI_Request,
    statuses: *mut MPI_Status,
    call: impl FnOnce(*mut MPI_Status) -> c_int,
    completed: impl FnOnce(&mut Watched),
) -> c_int {
    // SAFETY: the caller has as many requests.
    let watched = unsafe { Watched::new(count, requests, statuses) };
    let result = call(watched.as_ref().map_or(statuses, Watched::statuses));
    if let Some(mut watched) = watched.filter(|_| result == 0) {
        completed(&mut watched);
    }
    result
}
