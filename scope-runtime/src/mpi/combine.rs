//! The totals of all ranks on rank 0: each rank takes those of the ranks below it in a tree, adds its own
//! and passes the sum on.

use super::exchange::{Exchange, GaveUp};
use crate::job::JobTotals;

/// Puts the totals together; `None` on all ranks but rank 0.
///
/// # Errors
/// Where a rank does not come by the deadline, or has given up.
pub(super) fn combine(exchange: &Exchange, own: JobTotals) -> Result<Option<JobTotals>, GaveUp> {
    let mut sum = own;
    for below in exchange.below() {
        let theirs = JobTotals::from_bytes(&exchange.take(below)?).ok_or(GaveUp)?;
        sum.add(&theirs);
    }
    match exchange.above() {
        None => Ok(Some(sum)),
        Some(above) => exchange.offer(above, sum.to_bytes()).map(|()| None),
    }
}
