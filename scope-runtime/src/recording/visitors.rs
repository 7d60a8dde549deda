//! What is made of a lane's calls: totals, or the calls themselves.

mod calls;
mod spans;
mod totaller;

pub(super) use calls::CallCollector;
pub use calls::CallSink;
pub(super) use totaller::{Hang, LaneTotals, Pending, Totaller};
