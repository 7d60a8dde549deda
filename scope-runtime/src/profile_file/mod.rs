//! `profile.h5`: HDF5 schema 3 of scope-profiler 0.7.5.
//!
//! The layout is described once, in `layout`, and what is written where once, in `write`, for every
//! [`Library`] that can write HDF5.

pub mod check;
mod columns;
mod error;
pub mod layout;
mod library;
mod placing;
pub mod publish;
#[cfg(feature = "mpio")]
pub(crate) mod shared;
#[cfg(feature = "hdf5")]
mod system;
mod write;

pub use error::Error;
pub use library::{CHUNK, ColumnChunk, DEFLATE_LEVEL, Library, Number, Numbers};
pub(crate) use placing::{BegunCall, CallColumns, EndedCall};
#[cfg(feature = "hdf5")]
pub use system::SystemHdf5;
pub use write::{ProfileWriter, write};
