//! The totals of all ranks on rank 0: each rank takes those of the ranks below it in a tree, adds its own
//! and passes the sum on.

use super::exchange::{Exchange, GaveUp, Tag};
use crate::job::JobTotals;

/// Puts the totals together; `None` on all ranks but rank 0.
///
/// # Errors
/// Where a rank does not come by the deadline, or has given up.
pub(super) fn combine(exchange: &Exchange, own: JobTotals) -> Result<Option<JobTotals>, GaveUp> {
    let mut sum = own;
    for below in exchange.below() {
        let theirs = take(exchange, below)?;
        sum.add(&theirs);
    }
    match exchange.above() {
        None => Ok(Some(sum)),
        Some(above) => offer(exchange, above, sum.to_bytes()).map(|()| None),
    }
}

fn take(exchange: &Exchange, below: u32) -> Result<JobTotals, GaveUp> {
    let offer = exchange.receive(below, Tag::Offer, 8)?;
    let len = u64::from_le_bytes(offer.try_into().map_err(|_| GaveUp)?);
    let len = usize::try_from(len).map_err(|_| GaveUp)?;
    exchange.send(below, Tag::Answer, vec![1])?;
    let bytes = exchange.receive(below, Tag::Content, len)?;
    JobTotals::from_bytes(&bytes).ok_or(GaveUp)
}

fn offer(exchange: &Exchange, above: u32, bytes: Vec<u8>) -> Result<(), GaveUp> {
    exchange.send(above, Tag::Offer, (bytes.len() as u64).to_le_bytes().to_vec())?;
    if exchange.receive(above, Tag::Answer, 1)? != [1] {
        return Err(GaveUp);
    }
    exchange.send(above, Tag::Content, bytes)
}
