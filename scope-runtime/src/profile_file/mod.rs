//! `profile.h5`: HDF5 schema 3 of scope-profiler 0.7.5, as far as no HDF5 library is needed to know it.
//!
//! The layout is described once, in `layout`, for the writer here and for the readers and libraries
//! elsewhere.

pub mod check;
pub mod layout;
pub mod publish;
