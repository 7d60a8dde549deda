//! By how much the clocks of ranks differ from that of rank 0.
//!
//! A rank asks the one above it in the tree for the time, several times: the answer was given somewhere
//! between asking and hearing it, so the quickest answer says most. The one above has been told before
//! how its own clock differs, so that all count from rank 0.

use super::exchange::{Exchange, GaveUp, Tag};
use crate::format::{FieldReader, Fields};
use crate::os;
use crate::recording::ClockOffset;

/// How often a rank asks.
const QUESTIONS: usize = 16;
/// Time, uncertainty, and whether there is an answer.
pub(super) const ANSWER_BYTES: usize = 24;

/// Compares the clocks of all ranks; each gets its own offset.
pub(super) fn compare(exchange: &Exchange) -> Result<ClockOffset, GaveUp> {
    let own = match exchange.above() {
        None => ClockOffset { at_ns: now_ns(), offset_ns: 0, uncertainty_ns: 0 },
        Some(above) => ask(exchange, above)?,
    };
    for below in exchange.below().rev() {
        for _ in 0..QUESTIONS {
            exchange.receive(below, Tag::Ask, 0)?;
            let answer = Fields::default().u64((now_ns() + own.offset_ns).cast_unsigned());
            let answer = answer.u64(own.uncertainty_ns.cast_unsigned()).u64(1);
            exchange.send(below, Tag::Time, answer.0)?;
        }
    }
    Ok(own)
}

fn ask(exchange: &Exchange, above: u32) -> Result<ClockOffset, GaveUp> {
    let mut best: Option<ClockOffset> = None;
    for _ in 0..QUESTIONS {
        let asked_ns = now_ns();
        exchange.send(above, Tag::Ask, Vec::new())?;
        let answer = exchange.receive(above, Tag::Time, ANSWER_BYTES)?;
        let heard_ns = now_ns();
        let mut fields = FieldReader(&answer);
        let mut number = || fields.u64().unwrap_or(0).cast_signed();
        let (there_ns, above_uncertainty_ns, is_answer) = (number(), number(), number() == 1);
        if !is_answer {
            return Err(GaveUp);
        }
        let uncertainty_ns = (heard_ns - asked_ns + 1) / 2 + above_uncertainty_ns;
        if best.is_none_or(|best| uncertainty_ns < best.uncertainty_ns) {
            let at_ns = asked_ns + (heard_ns - asked_ns) / 2;
            best = Some(ClockOffset { at_ns, offset_ns: there_ns - at_ns, uncertainty_ns });
        }
    }
    best.ok_or(GaveUp)
}

fn now_ns() -> i64 {
    os::monotonic_ns().cast_signed()
}
