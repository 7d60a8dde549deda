//! `profile.h5`: HDF5 schema 3 of scope-profiler 0.7.5, written and read.
//!
//! [`write()`] takes a [`MergedProfile`](crate::merged::MergedProfile) to a file, [`ProfileWriter`] one
//! whose events come in pieces; [`read`] brings one back, from files of the Python package too (schemas 1 to 3). The layout is described once,
//! in `layout`; this is also what a second writer, with the C library, is to follow.

mod column;
#[cfg(test)]
mod damaged_tests;
mod error;
mod growing;
mod headers;
mod read;
mod schema1;
mod source;
#[cfg(test)]
mod tests;
mod values;
mod write;

pub use error::Error;
pub use read::read;
pub use scope_runtime::profile_file::layout::SCHEMA as SCHEMA_VERSION;
pub(crate) use scope_runtime::profile_file::publish;
use scope_runtime::profile_file::{check, layout};
pub use write::{ProfileWriter, write};
