//! Call stacks from recorded intervals: which call lies inside which, per lane.
//!
//! Input is the calls of one rank, grouped by region, as columns of ns ([`RegionCalls`]); output
//! is one column per property in call-id order ([`CallArrays`]). Everything that draws or sums a
//! tree of calls starts here: path totals, pstats, flame pictures.
//!
//! A *lane* is one sequential flow of control, a thread or a task. On one lane two calls are
//! disjoint or one contains the other; a partial overlap is a [`NestingError`].
//!
//! ```
//! use scope_runtime::call_stack::{Mode, RegionCalls, build_call_arrays};
//!
//! // main  [0 ............ 100]
//! // step     [10 .. 30] [50 . 60]
//! let regions =
//!     [RegionCalls::new("main", &[0], &[100]), RegionCalls::new("step", &[10, 50], &[30, 60])];
//! let calls = build_call_arrays(&regions, Mode::Default)?;
//! assert_eq!(calls.depth, [0, 1, 1]);
//! assert_eq!(calls.exclusive_ns, [70, 20, 10]);
//! # Ok::<(), scope_runtime::call_stack::NestingError>(())
//! ```

mod arrays;
mod build;
mod closed;
mod error;
mod faults;
mod filter;
mod ids;
mod input;
mod lanes;
mod open_calls;
mod order;
mod partition;
mod reference;
mod small_column;
mod sort;
mod stack;
#[cfg(feature = "profile-file")]
pub mod stored;

pub use arrays::{CallArrays, LaneColumn, NO_PARENT, RegionTable};
pub use build::{BadLanes, LaneReport, Mode, build_call_arrays, build_good_lanes};
pub use closed::{ClosedCalls, ClosedReport, build_closed_calls};
pub use error::{CallAt, NestingError};
pub use input::{RegionCalls, regions_from_snapshot};
pub use lanes::{UNKNOWN_LANE, lane_number};
pub use small_column::SmallColumn;
pub use stack::{
    CallRecord, Children, NS_PER_SECOND, build_call_stack, call_stack_children, call_stack_roots,
};

/// Stands between the names of a call path.
pub const PATH_SEPARATOR: &str = " > ";
