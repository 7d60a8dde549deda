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
    PMPI_Test_cancelled, RSMPI_STATUS_IGNORE, RSMPI_UINT8_T,
};

use super::call::{message, sent_to, size};
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
        const { assert!(size_of::<T>() <= 8) };
        let mut number = [0_u8; 8];
        // SAFETY: the handle is a plain number or address, of as many bytes as are copied.
        unsafe {
            let bytes = (&raw const handle).cast::<u8>();
            number.as_mut_ptr().copy_from_nonoverlapping(bytes, size_of::<T>());
        }
        Handle(kind, u64::from_ne_bytes(number))
    }

    fn of(request: MPI_Request) -> Handle {
        Handle::new(HandleKind::Request, request)
    }
}

#[derive(Clone)]
enum Pending {
    Receive {
        peers: Peers,
        persistent: bool,
        active: bool,
        cancelled: bool,
    },
    /// A persistent send.
    Send {
        peers: Peers,
        to: c_int,
        bytes: u64,
    },
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
pub(super) unsafe fn receive(request: *const MPI_Request, comm: MPI_Comm, persistent: bool) {
    let peers = communicators::peers(comm);
    let pending = Pending::Receive { peers, persistent, active: !persistent, cancelled: false };
    // SAFETY: as the caller says.
    insert(Handle::of(unsafe { *request }), pending);
}

/// A persistent send was prepared.
pub(super) unsafe fn send_init(
    request: *const MPI_Request,
    comm: MPI_Comm,
    to: c_int,
    count: c_int,
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

/// The program tries to cancel a request.
pub(super) unsafe fn cancel(request: *const MPI_Request) {
    // SAFETY: as the caller says.
    with(Handle::of(unsafe { *request }), |pending| {
        if let Pending::Receive { cancelled, .. } = pending {
            *cancelled = true;
        }
    });
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
        let pending = Pending::Receive { peers, persistent: false, active: true, cancelled: false };
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

/// The requests of a call that waits or tests, as they were before it: it changes them.
pub(super) struct Watched {
    lists: Lists,
    statuses: *mut MPI_Status,
}

/// Lists that are used again by the next call of the thread.
#[derive(Default)]
struct Lists {
    handles: Vec<Handle>,
    /// Take the place of statuses that the caller does not want.
    statuses: Vec<MPI_Status>,
}

thread_local! {
    static LISTS: RefCell<Lists> = RefCell::default();
}

impl Drop for Watched {
    fn drop(&mut self) {
        let lists = std::mem::take(&mut self.lists);
        // Where the thread is ending they are gone for good.
        let _ = LISTS.try_with(|kept| *kept.borrow_mut() = lists);
    }
}

impl Watched {
    /// Remembers requests among which there is a receive; `None` where there is none.
    pub(super) unsafe fn new(requests: &[MPI_Request], statuses: *mut MPI_Status) -> Option<Watched> {
        if COUNT.load(Relaxed) == 0 {
            return None;
        }
        let is_known = {
            let all = lock(&PENDING);
            let is_known = |request| all.as_ref().is_some_and(|all| all.contains_key(&Handle::of(request)));
            requests.iter().any(|&request| is_known(request))
        };
        if !is_known {
            return None;
        }
        let mut lists = LISTS.try_with(RefCell::take).unwrap_or_default();
        lists.handles.clear();
        lists.handles.extend(requests.iter().map(|&request| Handle::of(request)));
        // SAFETY: constants of the library; both ways to want no status are the same address.
        let ignored = statuses.is_null() || statuses == unsafe { RSMPI_STATUS_IGNORE };
        if ignored {
            // SAFETY: a status holds numbers only.
            lists
                .statuses
                .resize_with(requests.len().max(1), || unsafe { MaybeUninit::zeroed().assume_init() });
        }
        let statuses = if ignored { lists.statuses.as_mut_ptr() } else { statuses };
        Some(Watched { lists, statuses })
    }

    /// Where the call is to write the statuses, for one that was asked to write them to `given`.
    pub(super) fn statuses(watched: &Option<Watched>, given: *mut MPI_Status) -> *mut MPI_Status {
        watched.as_ref().map_or(given, |watched| watched.statuses)
    }

    /// The request at `index` is complete, and its status is the one at `status`.
    pub(super) unsafe fn completed(&self, index: usize, status: usize) {
        let Some(&handle) = self.lists.handles.get(index) else { return };
        // SAFETY: the call has written as many statuses.
        let status = unsafe { self.statuses.add(status) };
        let done = with(handle, |pending| match pending {
            Pending::Receive { peers, persistent, active, cancelled } => {
                let done = std::mem::replace(active, false).then(|| (peers.clone(), *cancelled));
                (done, *persistent)
            }
            _ => (None, true),
        });
        let Some((done, persistent)) = done else { return };
        if !persistent {
            remove(handle);
        }
        if let Some((peers, cancelled)) = done {
            // SAFETY: the status is of a receive that is complete.
            unsafe {
                if !cancelled || !is_cancelled(status) {
                    received(&peers, status);
                }
            }
        }
    }

    /// All requests that were not idle are complete.
    pub(super) unsafe fn all_completed(&self) {
        for index in 0..self.lists.handles.len() {
            // SAFETY: the call has written a status for each.
            unsafe { self.completed(index, index) };
        }
    }
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
