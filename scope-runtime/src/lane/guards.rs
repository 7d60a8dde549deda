//! Which guards still have their regions: tokens, epochs, and guards that are dropped out of order.

use super::Lane;
use crate::format::code;
use crate::recorder::Recorder;

/// Bits of a token for the number of open regions; those above are the epoch.
const DEPTH_BITS: u32 = 28;

pub(super) fn token(epoch: u64, depth: u32) -> u64 {
    epoch << DEPTH_BITS | u64::from(depth)
}

pub(super) fn depth_of(token: u64) -> u32 {
    (token & ((1 << DEPTH_BITS) - 1)) as u32
}

pub(super) fn epoch_of(token: u64) -> u64 {
    token >> DEPTH_BITS
}

/// Since when guards above `floor` are of another epoch.
///
/// When a guard that is not the innermost is dropped, the guards inside it have lost their
/// regions but still exist. A new epoch begins, so that their tokens equal none given out later.
///
/// Those of the epoch itself are above `floor` too, which goes down when a guard of an earlier epoch is dropped:
/// so an epoch of which none is left at `floor` or below can be forgotten.
#[derive(Clone, Copy)]
pub(super) struct Epoch {
    context: u64,
    number: u64,
    floor: u32,
}

/// Guards that wait for their context to run again; the oldest is forgotten where there are more.
const MAX_LATE: usize = 64;

impl Lane {
    /// Ends the region of a guard of the current context, unless it has ended before.
    pub(super) fn close(&self, recorder: &'static Recorder, token: u64) {
        let depth = depth_of(token);
        if !self.is_open(token) {
            return;
        }
        if depth == depth_of(self.token.get()) {
            if self.push_cold(recorder, code::LEAVE).is_some() {
                self.token.set(self.token.get() - 1);
                self.lower_floor(depth - 1);
            }
        } else {
            self.push_pair(recorder, code::CLOSE_TO, u64::from(self.below.get() + depth - 1));
            self.begin_epoch(depth - 1);
        }
    }

    /// Whether the guard with this token was made in the current context.
    pub(super) fn is_of_context(&self, token: u64) -> bool {
        let (epoch, context) = (epoch_of(token), self.context.get());
        epoch == epoch_of(self.token.get())
            || epoch == context
            || self.cold.epochs.borrow().iter().any(|known| known.context == context && known.number == epoch)
    }

    /// Whether the guard with this token, of the current context, still has its region.
    pub(super) fn is_open(&self, token: u64) -> bool {
        let epochs = self.cold.epochs.borrow();
        let context = self.context.get();
        let later = epochs.iter().find(|epoch| epoch.context == context && epoch.number > epoch_of(token));
        let floor = later.map_or(u32::MAX, |epoch| epoch.floor);
        depth_of(token) <= floor.min(depth_of(self.token.get()))
    }

    /// Has the current epoch, in which there are `depth` open regions now, be about all above these.
    fn lower_floor(&self, depth: u32) {
        let (number, context) = (epoch_of(self.token.get()), self.context.get());
        let mut epochs = self.cold.epochs.borrow_mut();
        let Some(current) = epochs.iter_mut().find(|epoch| epoch.number == number) else { return };
        current.floor = current.floor.min(depth);
        let floor = current.floor;
        epochs.retain(|epoch| epoch.context != context || epoch.floor < floor || epoch.number == number);
    }

    /// Begins an epoch of the current context with `depth` open regions.
    pub(super) fn begin_epoch(&self, depth: u32) {
        let (number, context) = (self.next_epoch(), self.context.get());
        let mut epochs = self.cold.epochs.borrow_mut();
        // A lower floor says all that a higher one said.
        epochs.retain(|epoch| epoch.context != context || epoch.floor < depth);
        epochs.push(Epoch { context, number, floor: depth });
        self.token.set(token(number, depth));
    }

    pub(super) fn next_epoch(&self) -> u64 {
        let number = self.cold.next_epoch.get();
        self.cold.next_epoch.set(number + 1);
        number
    }

    /// The instance whose context runs has ended.
    pub(super) fn forget_context(&self) {
        let context = self.context.get();
        self.cold.epochs.borrow_mut().retain(|epoch| epoch.context != context);
    }

    /// Keeps the token of a guard that was dropped outside its context.
    #[cold]
    pub(super) fn keep_late(&self, token: u64) {
        let mut late = self.cold.late.borrow_mut();
        if late.len() == MAX_LATE {
            late.remove(0);
        }
        late.push(token);
        self.cold.has_late.set(true);
    }

    /// Ends the regions of guards that were dropped before their context ran again.
    #[cold]
    #[inline(never)]
    pub(super) fn close_late(&self) {
        self.in_cold_path(|recorder| {
            let due: Vec<u64> =
                self.cold.late.borrow_mut().extract_if(.., |token| self.is_of_context(*token)).collect();
            due.into_iter().for_each(|token| self.close(recorder, token));
            self.cold.has_late.set(!self.cold.late.borrow().is_empty());
            Some(())
        });
    }
}
