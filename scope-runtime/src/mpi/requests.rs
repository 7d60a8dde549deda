//! What is under way: receives and persistent requests, until they are waited for; messages that were
//! probed, until they are received; windows, until they are freed.
//!
//! How large a received message is and who has sent it is known when it is complete, so it counts in
//! the call that completes it. A send counts where it is begun.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use mpi_sys::{
    MPI_Comm, MPI_Count, MPI_Datatype, MPI_Message, MPI_Request, MPI_Status, MPI_Win, PMPI_Get_elements_x,
    PMPI_Test_cancelled, RSMPI_PROC_NULL, RSMPI_STATUS_IGNORE, RSMPI_UINT8_T, RSMPI_UNDEFINED,
};

use super::call::{list, message, sent_to, size};
use super::communicators::{self, Peers};
use crate::lock;
use crate::profile::MessageKind;

/// A handle of MPI as a number: an integer or an address, as the library has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Handle(HandleKind, u64);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum HandleKind {
    Request,
    Message,
    Window,
}

impl Handle {
    fn new<T: Copy>(kind: HandleKind, handle: T) -> Handle {
        Handle(kind, number_of(handle))
    }

    fn of(request: MPI_Request) -> Handle {
        Handle::new(HandleKind::Request, request)
    }
}

/// A handle as a number.
pub(super) fn number_of<T: Copy>(handle: T) -> u64 {
    const { assert!(size_of::<T>() <= 8) };
    let mut number = [0_u8; 8];
    // SAFETY: the handle is a plain number or address, of as many bytes as are copied.
    unsafe {
        let bytes = (&raw const handle).cast::<u8>();
        number.as_mut_ptr().copy_from_nonoverlapping(bytes, size_of::<T>());
    }
    u64::from_ne_bytes(number)
}

enum Pending {
    /// A receive; a persistent one is not always active.
    Receive { peers: Peers, active: bool },
    /// A persistent send.
    Send { peers: Peers, to: c_int, bytes: u64 },
    /// A probed message, or a window.
    Of(Peers),
}

static PENDING: Mutex<Option<HashMap<Handle, Pending>>> = Mutex::new(None);
/// How many there are, so that nobody looks where there is nothing.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn insert(handle: Handle, pending: Pending) {
    let mut all = lock(&PENDING);
    let all = all.get_or_insert_default();
    all.insert(handle, pending);
    COUNT.store(all.len(), Relaxed);
}

fn remove(handle: Handle) -> Option<Pending> {
    if COUNT.load(Relaxed) == 0 {
        return None;
    }
    let mut all = lock(&PENDING);
    let all = all.as_mut()?;
    let pending = all.remove(&handle);
    COUNT.store(all.len(), Relaxed);
    pending
}

fn with<T>(handle: Handle, work: impl FnOnce(&mut Pending) -> T) -> Option<T> {
    if COUNT.load(Relaxed) == 0 {
        return None;
    }
    lock(&PENDING).as_mut()?.get_mut(&handle).map(work)
}

/// A receive was begun, or prepared.
///
/// # Safety
/// The call that writes the request has succeeded. The same holds for all functions below that are
/// given an address.
pub(super) unsafe fn receive(request: *const MPI_Request, source: c_int, comm: MPI_Comm, persistent: bool) {
    // SAFETY: a constant of the library, which is set when it is loaded.
    if source == unsafe { RSMPI_PROC_NULL } {
        // Nothing comes from nobody, and MPICH leaves the status as it was.
        return;
    }
    let pending = Pending::Receive { peers: communicators::peers(comm), active: !persistent };
    // SAFETY: as the caller says.
    insert(Handle::of(unsafe { *request }), pending);
}

/// A persistent send was prepared.
pub(super) unsafe fn send_init(
    request: *const MPI_Request,
    comm: MPI_Comm,
    to: c_int,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
) {
    let pending = Pending::Send { peers: communicators::peers(comm), to, bytes: size(count, datatype) };
    // SAFETY: as the caller says.
    insert(Handle::of(unsafe { *request }), pending);
}

/// A persistent request is begun.
pub(super) fn start(request: MPI_Request) {
    let send = with(Handle::of(request), |pending| match pending {
        Pending::Receive { active, .. } => {
            *active = true;
            None
        }
        Pending::Send { peers, to, bytes } => Some((peers.clone(), *to, *bytes)),
        Pending::Of(_) => None,
    });
    if let Some((peers, to, bytes)) = send.flatten() {
        sent_to(&peers, to, bytes);
    }
}

/// The program gives a request up.
pub(super) unsafe fn free(request: *const MPI_Request) {
    // SAFETY: as the caller says.
    remove(Handle::of(unsafe { *request }));
}

/// A message was found that is to be received.
pub(super) unsafe fn probed(probed: *const MPI_Message, comm: MPI_Comm) {
    // SAFETY: as the caller says.
    let handle = Handle::new(HandleKind::Message, unsafe { *probed });
    insert(handle, Pending::Of(communicators::peers(comm)));
}

/// The peers of a probed message, which is about to be received.
pub(super) unsafe fn take_probed(probed: *const MPI_Message) -> Option<Peers> {
    // SAFETY: as the caller says.
    match remove(Handle::new(HandleKind::Message, unsafe { *probed })) {
        Some(Pending::Of(peers)) => Some(peers),
        _ => None,
    }
}

/// The receive of a probed message was begun.
pub(super) unsafe fn receive_probed(request: *const MPI_Request, peers: Option<Peers>) {
    if let Some(peers) = peers {
        let pending = Pending::Receive { peers, active: true };
        // SAFETY: as the caller says.
        insert(Handle::of(unsafe { *request }), pending);
    }
}

/// A window was made.
pub(super) unsafe fn window(window: *const MPI_Win, comm: MPI_Comm) {
    // SAFETY: as the caller says.
    let handle = Handle::new(HandleKind::Window, unsafe { *window });
    insert(handle, Pending::Of(communicators::peers(comm)));
}

/// A window is freed.
pub(super) unsafe fn free_window(window: *const MPI_Win) {
    // SAFETY: as the caller says.
    remove(Handle::new(HandleKind::Window, unsafe { *window }));
}

/// Records an access to the memory of a rank of a window.
pub(super) fn access(kind: MessageKind, window: MPI_Win, rank: c_int, bytes: u64) {
    if rank < 0 {
        return;
    }
    let peers = with(Handle::new(HandleKind::Window, window), |pending| match pending {
        Pending::Of(peers) => Some(peers.clone()),
        _ => None,
    });
    message(kind, peers.flatten().and_then(|peers| peers.in_world(rank)), bytes);
}

/// The receives among the requests of a call that waits or tests.
///
/// They are taken out before the call: when it is over, another thread may have been given the handle of a
/// complete one for a request of its own. Those that are still there are put back.
pub(super) struct Watched {
    requests: *const MPI_Request,
    lists: Lists,
    statuses: *mut MPI_Status,
}

/// Lists that are used again by the next call of the thread.
#[derive(Default)]
struct Lists {
    /// Those of the requests that are receives.
    receives: Vec<Option<Receive>>,
    /// Take the place of statuses that the caller does not want.
    statuses: Vec<MPI_Status>,
}

thread_local! {
    static LISTS: RefCell<Lists> = RefCell::default();
}

/// A receive that was taken out.
struct Receive {
    handle: Handle,
    peers: Peers,
    active: bool,
}

impl Receive {
    fn take(all: &mut HashMap<Handle, Pending>, request: MPI_Request) -> Option<Receive> {
        let handle = Handle::of(request);
        match all.remove(&handle)? {
            Pending::Receive { peers, active } => Some(Receive { handle, peers, active }),
            other => {
                all.insert(handle, other);
                None
            }
        }
    }
}

impl Watched {
    /// Takes out what is received among so many requests; `None` where nothing is.
    pub(super) unsafe fn new(
        count: c_int,
        requests: *const MPI_Request,
        statuses: *mut MPI_Status,
    ) -> Option<Watched> {
        if COUNT.load(Relaxed) == 0 {
            return None;
        }
        let lists = LISTS.try_with(RefCell::take).unwrap_or_default();
        let mut watched = Watched { requests, lists, statuses };
        // SAFETY: as the caller says.
        watched.take_receives(unsafe { list(requests, count) });
        if watched.lists.receives.iter().all(Option::is_none) {
            return None;
        }
        if is_ignored(statuses) {
            let Lists { receives, statuses } = &mut watched.lists;
            // SAFETY: a status holds numbers only.
            statuses.resize_with(receives.len(), || unsafe { MaybeUninit::zeroed().assume_init() });
            watched.statuses = statuses.as_mut_ptr();
        }
        Some(watched)
    }

    fn take_receives(&mut self, requests: &[MPI_Request]) {
        let mut all = lock(&PENDING);
        if let Some(all) = &mut *all {
            let receives = requests.iter().map(|&request| Receive::take(all, request));
            self.lists.receives.extend(receives);
            COUNT.store(all.len(), Relaxed);
        }
    }

    /// Where the call is to write the statuses.
    pub(super) fn statuses(&self) -> *mut MPI_Status {
        self.statuses
    }

    /// The request at `index` is complete, and its status is the one at `status`.
    pub(super) unsafe fn completed(&mut self, index: usize, status: usize) {
        let Some(Some(receive)) = self.lists.receives.get_mut(index) else { return };
        if std::mem::replace(&mut receive.active, false) {
            // SAFETY: the call has written as many statuses, this one of a receive.
            unsafe {
                let status = self.statuses.add(status);
                if !is_cancelled(status) {
                    received(&receive.peers, status);
                }
            }
        }
    }

    /// The request at `index` is complete, with the first status; no index where none was left.
    pub(super) unsafe fn one_completed(&mut self, index: c_int) {
        // SAFETY: a constant of the library, which is set when it is loaded.
        if index != unsafe { RSMPI_UNDEFINED }
            && let Ok(index) = usize::try_from(index)
        {
            // SAFETY: the call has written the status.
            unsafe { self.completed(index, 0) };
        }
    }

    /// The requests at `number` indices are complete, with as many statuses; no number where none was left.
    pub(super) unsafe fn some_completed(&mut self, number: c_int, indices: *const c_int) {
        // SAFETY: a constant of the library, which is set when it is loaded.
        if number == unsafe { RSMPI_UNDEFINED } {
            return;
        }
        // SAFETY: the call has written as many indices and statuses.
        for (status, &index) in unsafe { list(indices, number) }.iter().enumerate() {
            // SAFETY: see above.
            unsafe { self.completed(usize::try_from(index).unwrap_or(usize::MAX), status) };
        }
    }

    /// All requests that were not idle are complete.
    pub(super) unsafe fn all_completed(&mut self) {
        for index in 0..self.lists.receives.len() {
            // SAFETY: the call has written a status for each.
            unsafe { self.completed(index, index) };
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut lists = std::mem::take(&mut self.lists);
        for (index, receive) in lists.receives.drain(..).enumerate() {
            let Some(Receive { handle, peers, active }) = receive else { continue };
            // SAFETY: the call is over, and the caller's requests are still there.
            if Handle::of(unsafe { *self.requests.add(index) }) == handle {
                insert(handle, Pending::Receive { peers, active });
            }
        }
        // Where the thread is ending they are gone for good.
        let _ = LISTS.try_with(|kept| *kept.borrow_mut() = lists);
    }
}

/// Whether the program wants no status; for one and for several that is the same address.
pub(super) fn is_ignored(status: *const MPI_Status) -> bool {
    // SAFETY: a constant of the library, which is set when it is loaded.
    status.is_null() || status == unsafe { RSMPI_STATUS_IGNORE }.cast_const()
}

unsafe fn is_cancelled(status: *const MPI_Status) -> bool {
    let mut cancelled = 0;
    // SAFETY: the caller has a status that MPI has written.
    unsafe { PMPI_Test_cancelled(status, &raw mut cancelled) };
    cancelled != 0
}

/// Records the message that a status tells of.
pub(super) unsafe fn received(peers: &Peers, status: *const MPI_Status) {
    let mut bytes: MPI_Count = 0;
    // SAFETY: the caller has a status that MPI has written.
    let from = unsafe {
        PMPI_Get_elements_x(status, RSMPI_UINT8_T, &raw mut bytes);
        (*status).MPI_SOURCE
    };
    if from >= 0 {
        message(MessageKind::Received, peers.in_world(from), u64::try_from(bytes).unwrap_or(0));
    }
}
