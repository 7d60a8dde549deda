//! What every call of MPI goes through: its region, and what is recorded of its messages.

use std::cell::Cell;
use std::ffi::{CString, c_int};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use mpi_sys::{MPI_Comm, MPI_Count, MPI_Datatype, PMPI_Type_size_x, RSMPI_DATATYPE_NULL};

use super::communicators::{self, Peers};
use crate::format::{code, message_word};
use crate::lane::{self, Guard, OFF, STATE};
use crate::profile::MessageKind;
use crate::region::Site;
use crate::{environment, os, report};

thread_local! {
    /// Whether the thread is inside a call: what MPI calls itself is not the program's.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A call of MPI that is being recorded, until this is dropped.
pub(super) struct Call(#[expect(dead_code, reason = "its drop ends the region")] Guard);

impl Call {
    /// Enters the region of a call; `None` when it is not to be recorded.
    #[inline]
    pub(super) fn enter(site: &'static Site) -> Option<Call> {
        if STATE.load(Relaxed) == OFF || INSIDE.get() || !are_recorded() {
            return None;
        }
        let guard = site.enter();
        // Its messages would be those of the call around it.
        if !guard.is_recorded() {
            return None;
        }
        INSIDE.set(true);
        Some(Call(guard))
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Whether calls are regions: yes, unless `SCOPE_MPI_CALLS=0`.
#[inline]
fn are_recorded() -> bool {
    static RECORDED: OnceLock<bool> = OnceLock::new();
    *RECORDED.get_or_init(|| match environment::is_on("SCOPE_MPI_CALLS") {
        Ok(on) => on.unwrap_or(true),
        Err(problem) => {
            report(format_args!("{problem}; calls of MPI are not recorded"));
            false
        }
    })
}

/// Defines functions of MPI in front of those of the library, which go by the same names with a `P`
/// before them. Each is a region. What is done beside the call, where that is recorded: nothing (`only`),
/// something `before` it, or `after` it when it has succeeded; `collective`, with the communicator first,
/// before it and with its number behind it; `begins` the same for one that is waited for later; `around`,
/// which calls `real` itself. The static lists the functions.
macro_rules! calls {
    (static $table:ident; $($calls:tt)*) => {
        $crate::mpi::call::functions! { linked "" static $table; $($calls)* }
    };
}
pub(super) use calls;

/// The same for functions that came with version 4 of MPI, which not every library has.
macro_rules! calls_of_4 {
    (static $table:ident; $($calls:tt)*) => {
        $crate::mpi::call::functions! { late "" static $table; $($calls)* }
    };
    (mod $name:ident; $($calls:tt)*) => {
        $crate::mpi::call::counted! { late mod $name; $($calls)* }
    };
}
pub(super) use calls_of_4;

/// The same for functions that MPI has twice, since version 4: with counts of 32 bits, and under names that
/// end by `_c` with large ones.
macro_rules! counted {
    (mod $name:ident; $($calls:tt)*) => {
        $crate::mpi::call::counted! { linked mod $name; $($calls)* }
    };
    ($way:ident mod $name:ident; $($calls:tt)*) => {
        pub(super) mod $name {
            use super::*;

            pub(in crate::mpi) mod plain {
                use super::*;

                type Count = std::ffi::c_int;
                #[allow(dead_code, reason = "not all lists have places")]
                type Displacement = std::ffi::c_int;
                #[allow(dead_code, reason = "hardly any has sizes")]
                type Size = mpi_sys::MPI_Aint;

                $crate::mpi::call::functions! { $way "" static ALL; $($calls)* }
            }

            pub(in crate::mpi) mod large {
                use super::*;

                type Count = mpi_sys::MPI_Count;
                #[allow(dead_code, reason = "not all lists have places")]
                type Displacement = mpi_sys::MPI_Aint;
                #[allow(dead_code, reason = "hardly any has sizes")]
                type Size = mpi_sys::MPI_Count;

                $crate::mpi::call::functions! { late "_c" static ALL; $($calls)* }
            }
        }
    };
}
pub(super) use counted;

/// Defines functions that call those of the library in this way, see [`linked`] and [`late`], with this behind
/// their names.
macro_rules! functions {
    ($way:ident $suffix:literal static $table:ident;
        $( fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $kind:ident $body:tt )*) => {
        #[allow(dead_code, reason = "only where calls from Fortran are led here")]
        pub(in crate::mpi) static $table: &[$crate::mpi::call::Function] =
            &[$($crate::mpi::call::function!($name $suffix)),*];
        $(
        #[allow(non_snake_case, reason = "it is MPI's name")]
        #[unsafe(export_name = concat!(stringify!($name), $suffix))]
        unsafe extern "C" fn $name($($arg: $ty),*) -> std::ffi::c_int {
            $crate::mpi::call::$way!(concat!("P", stringify!($name), $suffix), ($($arg: $ty),*));
            static SITE: $crate::region::Site =
                $crate::region::Site::named(concat!(stringify!($name), $suffix), "MPI", "", 0);
            let call = $crate::mpi::call::Call::enter(&SITE);
            // SAFETY: what the caller vouches for, the library's function and what is done beside it
            // ask for.
            unsafe {
                if call.is_none() {
                    $crate::mpi::call::unrecorded!($kind $body);
                    real($($arg),*)
                } else {
                    $crate::mpi::call::body!(real($($arg),*), $kind $body)
                }
            }
        }
        )*
    };
}
pub(super) use functions;

/// The library's function as `real`, which every library has.
macro_rules! linked {
    ($name:expr, ($($arg:ident: $ty:ty),*)) => {
        unsafe extern "C" {
            #[link_name = $name]
            fn real($($arg: $ty),*) -> std::ffi::c_int;
        }
    };
}
pub(super) use linked;

/// The library's function as `real`, which came with version 4 of MPI: it is looked up when it is called where
/// the library that this is built with is older.
macro_rules! late {
    ($name:expr, ($($arg:ident: $ty:ty),*)) => {
        #[allow(clippy::too_many_arguments, reason = "MPI has them")]
        unsafe fn real($($arg: $ty),*) -> std::ffi::c_int {
            if const { mpi_sys::MPI_VERSION >= 4 } {
                unsafe extern "C" {
                    #[link_name = $name]
                    fn linked($($arg: $ty),*) -> std::ffi::c_int;
                }
                // SAFETY: the caller vouches for the arguments.
                return unsafe { linked($($arg),*) };
            }
            static REAL: $crate::mpi::call::Late = $crate::mpi::call::Late::new($name);
            // SAFETY: the function has this signature; for its arguments the caller vouches.
            unsafe {
                std::mem::transmute::<*const (), unsafe extern "C" fn($($ty),*) -> std::ffi::c_int>(REAL.get())(
                    $($arg),*
                )
            }
        }
    };
}
pub(super) use late;

/// A function of the library that is looked up when it is first called.
pub(super) struct Late {
    name: &'static str,
    address: AtomicPtr<()>,
}

impl Late {
    pub(super) const fn new(name: &'static str) -> Late {
        Late { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Without this library's function the program would not have begun, or have stopped here.
    pub(super) fn get(&self) -> *const () {
        let known = self.address.load(Relaxed);
        if !known.is_null() {
            return known;
        }
        let name = CString::new(self.name).expect("a name of a function has no zero in it");
        let Some(found) = os::function_of_program(&name) else {
            report(format_args!("the MPI library of this program has no `{}`", self.name));
            std::process::abort();
        };
        self.address.store(found.as_ptr(), Relaxed);
        found.as_ptr()
    }
}

/// A function of MPI that is defined here in front of the library's.
#[allow(dead_code, reason = "only where calls from Fortran are led here")]
pub(super) struct Function {
    /// The name of the library's.
    pub(super) name: &'static str,
    pub(super) own: *const (),
}

// SAFETY: the address of a function.
unsafe impl Sync for Function {}

macro_rules! function {
    ($name:ident) => {
        $crate::mpi::call::function!($name "")
    };
    ($name:ident $suffix:literal) => {
        $crate::mpi::call::Function {
            name: concat!("P", stringify!($name), $suffix),
            own: $name as *const (),
        }
    };
}
pub(super) use function;

/// The body of a call that is recorded, see [`calls!`].
macro_rules! body {
    ($real:expr, only {}) => { $real };
    ($real:expr, before { $($before:tt)* }) => {{
        $($before)*
        $real
    }};
    ($real:expr, after { $($after:tt)* }) => {{
        let result = $real;
        if result == 0 {
            $($after)*
        }
        result
    }};
    ($real:expr, collective { $comm:ident; $($before:tt)* }) => {{
        $($before)*
        let number = begin_collective($comm);
        let result = $real;
        if result == 0 {
            $crate::mpi::call::done(number);
        }
        result
    }};
    ($real:expr, begins { $comm:ident; $($before:tt)* }) => {{
        $($before)*
        begin_collective($comm);
        $real
    }};
    ($real:expr, around { $($around:tt)* }) => {{ $($around)* }};
}
pub(super) use body;

/// What is done beside a call that is not recorded, see [`calls!`]: collective calls count all the same, so
/// that their numbers are those of the other ranks.
macro_rules! unrecorded {
    (collective { $comm:ident; $($before:tt)* }) => {
        $crate::mpi::call::pass($comm)
    };
    (begins { $comm:ident; $($before:tt)* }) => {
        $crate::mpi::call::pass($comm)
    };
    ($kind:ident $body:tt) => {};
}
pub(super) use unrecorded;

/// Counts a collective call that is not recorded.
pub(super) fn pass(comm: MPI_Comm) {
    if !INSIDE.get() && are_recorded() {
        communicators::begin_collective(comm);
    }
}

/// The bytes of `count` items.
pub(super) fn size(count: impl Into<i64>, datatype: MPI_Datatype) -> u64 {
    let Ok(count @ 1..) = u64::try_from(count.into()) else { return 0 };
    // SAFETY: a constant of the library, which is set when it is loaded.
    if datatype == unsafe { RSMPI_DATATYPE_NULL } {
        return 0;
    }
    let mut bytes: MPI_Count = 0;
    // SAFETY: the caller of MPI has given the type with this count, so it is one; the rest is ours.
    unsafe { PMPI_Type_size_x(datatype, &raw mut bytes) };
    count.saturating_mul(u64::try_from(bytes).unwrap_or(0))
}

/// Records a message of the innermost call.
pub(super) fn message(kind: MessageKind, peer: Option<u32>, bytes: u64) {
    lane::note_message(kind, message_word(peer, bytes));
}

/// Records a message to a rank of a communicator.
pub(super) fn sent(comm: MPI_Comm, to: c_int, count: impl Into<i64>, datatype: MPI_Datatype) {
    sent_to(&communicators::peers(comm), to, size(count, datatype));
}

/// The same with the communicator's peers known.
pub(super) fn sent_to(peers: &Peers, to: c_int, bytes: u64) {
    // A rank below 0 stands for nobody.
    if to >= 0 {
        message(MessageKind::Sent, peers.in_world(to), bytes);
    }
}

/// A list that was given to MPI.
///
/// # Safety
/// There are as many items as `len` says.
pub(super) unsafe fn list<'a, T>(items: *const T, len: c_int) -> &'a [T] {
    match usize::try_from(len) {
        // SAFETY: the caller vouches for it.
        Ok(len @ 1..) if !items.is_null() => unsafe { std::slice::from_raw_parts(items, len) },
        _ => &[],
    }
}

/// Records that a blocking collective call is done.
pub(super) fn done(number: Option<(u32, u32)>) {
    if let Some((communicator, number)) = number {
        lane::note(code::COLLECTIVE, u64::from(communicator) << 32 | u64::from(number));
    }
}
