//! Real MPI jobs with the feature `mpi`, by Open MPI and MPICH: what `tests/mpi` holds, on several ranks.

mod cases;
mod endings;
mod heat;
mod messages;
mod preload;
mod programs;
mod python;
mod totals;
mod writes_profile;
