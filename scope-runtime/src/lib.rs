//! Exact region profiler for Rust programs: recording, call stacks and totals inside the program.
//!
//! Mark functions with [`scope`] and parts of them with [`region!`]; run the program with
//! `cargo scope run`. Recording is on when the environment variable `SCOPE_OUTPUT` names a folder
//! (`cargo scope run` sets it) or between [`init`] and the end of what it gives; else a region
//! costs one load of one byte. With the feature `off` the attribute and the macro expand to nothing.
//! With the feature `hdf5` a program of one rank writes its `profile.h5` itself when it ends, with `mpio` the
//! ranks of a job write theirs together.
//!
//! ```
//! use scope_runtime::scope;
//!
//! #[scope]
//! fn step(grid: &mut [f64]) {
//!     for _ in 0..2 {
//!         scope_runtime::region!("sweep");
//!         grid.iter_mut().for_each(|cell| *cell *= 0.5);
//!     }
//! }
//!
//! let mut grid = [4.0];
//! step(&mut grid);
//! assert_eq!(grid, [1.0]);
//! ```

#[cfg(not(scope_thread_sanitizer))]
use std::sync::PoisonError;
use std::sync::{Mutex, MutexGuard};

mod cache;
pub mod call_stack;
mod clock;
#[cfg(feature = "profile-file")]
pub mod collect;
mod cost;
mod environment;
mod finalize;
mod fold;
mod format;
mod future;
mod hand_over;
mod id_map;
mod item_path;
pub mod job;
mod lane;
#[cfg(feature = "tracing")]
mod layer;
mod link;
pub mod marshal;
#[cfg(feature = "profile-file")]
pub mod merged;
#[cfg(test)]
mod model;
#[cfg(all(feature = "mpi", not(feature = "off")))]
pub mod mpi;
pub mod names;
mod os;
#[cfg(feature = "hdf5")]
mod own_profile;
mod pack;
mod pool;
pub mod profile;
#[cfg(feature = "profile-file")]
#[doc(hidden)]
pub mod profile_file;
pub mod pstats;
mod recorder;
pub mod recording;
mod region;
mod regions;
mod replay;
mod room;
mod session;
mod sink;
mod sync;
pub mod text_table;
pub mod totals;
pub mod units;
mod writer;

pub use environment::check_environment;
pub use format::FORMAT_VERSION;
pub use future::{InRegion, ScopeFuture};
pub use lane::{Guard, enter};
#[cfg(feature = "tracing")]
pub use layer::{ScopeLayer, layer};
pub use link::{Link, link};
pub use scope_macros::scope;
pub use session::{Session, finalize, init, pause, resume};

#[doc(hidden)]
pub use region::{Codes, Site};

/// Gives the body of an async function its type; never called.
#[doc(hidden)]
pub fn __unreachable<T>() -> T {
    unreachable!("it stands where no program comes")
}

/// Measures from here to the end of the enclosing block, or a block with a value.
///
/// The name is any expression that is a string; with a literal, entering is as fast as for a
/// function with [`scope`].
///
/// ```
/// let n = 3;
/// {
///     scope_runtime::region!("assemble");
///     // ... measured until the end of this block ...
/// }
/// let total = scope_runtime::region!("sum up", { (1..=n).sum::<u32>() });
/// assert_eq!(total, 6);
/// let species = String::from("argon");
/// scope_runtime::region!(&species);
/// ```
#[macro_export]
macro_rules! region {
    ($name:expr, $body:block $(,)?) => {{
        $crate::__open!($name);
        $body
    }};
    ($name:expr $(,)?) => {
        $crate::__open!($name);
    };
}

/// The statement that opens a region until the end of the block; a literal gets a static site.
#[cfg(not(feature = "off"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __open {
    ($name:literal) => {
        let _guard = $crate::__site!(named $name ::core::file!(), ::core::line!()).enter();
    };
    ($name:expr) => {
        let _guard = $crate::enter(::core::convert::AsRef::<str>::as_ref(&$name));
    };
}

/// A reference to the static site of a function or block.
///
/// `named` has the name that is given, `in_function` that of the function around, behind the prefix that is
/// given: in a function `Grid::step` the path of the item is "app::Grid<_>::step::Item".
#[cfg(not(feature = "off"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    (named $name:tt $file:expr, $line:expr) => {{
        static SITE: $crate::Site = $crate::Site::named($name, ::core::module_path!(), $file, $line);
        &SITE
    }};
    // A program may have thousands of these: single tokens and a literal are the least work for the compiler.
    (in_function $prefix:tt $file:tt $line:tt) => {{
        enum Item {}
        static SITE: $crate::Site = $crate::Site {
            codes: $crate::Codes::NONE,
            name: $prefix,
            item: ::core::any::type_name::<Item>,
            module: ::core::module_path!(),
            file: $file,
            line: $line,
        };
        &SITE
    }};
}

/// Nothing; what makes the name counts as used.
#[cfg(feature = "off")]
#[doc(hidden)]
#[macro_export]
macro_rules! __open {
    ($name:literal) => {};
    ($name:expr) => {
        let _ = || {
            let _: &str = ::core::convert::AsRef::<str>::as_ref(&$name);
        };
    };
}

/// Locks what a panic of another thread may have left locked: none leaves it half changed.
#[cfg(not(scope_thread_sanitizer))]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same for ThreadSanitizer, which cannot see how the standard library takes a lock that it has to
/// wait for, and so would take what the lock orders for a race.
#[cfg(scope_thread_sanitizer)]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}

/// Tells the user on stderr, in one line. A closed stderr is no reason to fail.
fn report(message: std::fmt::Arguments<'_>) {
    use std::io::Write;
    // At once, so that no line of another rank comes in between.
    let _ = std::io::stderr().write_all(format!("scope: {message}\n").as_bytes());
}
