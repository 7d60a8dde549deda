//! Instances of async regions: what a poll does on its thread, and what is kept between two of them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::guards::{depth_of, epoch_of, token};
use super::{Lane, OFF, SESSION, STATE, with_lane};
use crate::format::{MAX_INSTANCES, code, instance_of, instance_word};
use crate::pack;
use crate::region::Region;

/// How many numbers for instances a thread takes at once.
const INSTANCES_AT_ONCE: u64 = 4096;
/// Numbers of instances that were given to threads.
static NEXT_INSTANCE: AtomicU64 = AtomicU64::new(0);

/// An instance of an async region.
#[derive(Debug)]
pub(crate) struct Instance {
    state: InstanceState,
    session: u32,
    /// While it is polled, the frames that are open outside the context in which that began.
    below: u32,
    /// Number and region as events give them.
    word: u64,
    /// Ticks at the begin of the first poll.
    start: u64,
    /// Between polls, token and context of the regions that were open at the end of the last one; while
    /// it is polled, what they were on the thread before.
    token: u64,
    context: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstanceState {
    New,
    Polled,
    /// It has ended, or began when nothing was recorded.
    Unrecorded,
}

/// How a poll ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollEnd {
    Pending,
    Completed,
    Cancelled,
}

impl Instance {
    pub(crate) const NEW: Instance =
        Instance { state: InstanceState::New, session: 0, below: 0, word: 0, start: 0, token: 0, context: 0 };

    /// One that is never recorded.
    pub(crate) const NONE: Instance = Instance { state: InstanceState::Unrecorded, ..Instance::NEW };

    /// Whether it has begun and not ended.
    pub(crate) fn is_open(&self) -> bool {
        self.state == InstanceState::Polled
    }

    /// A poll begins, of this region, whose future was made at the position `made_at`, 0 for none. Gives
    /// whether it is recorded: its end is to be told then.
    #[inline]
    pub(crate) fn begin_poll(&mut self, region: Region, made_at: u64) -> bool {
        match self.state {
            InstanceState::Unrecorded => false,
            InstanceState::New => self.begin_first_poll(region, made_at),
            InstanceState::Polled => self.begin_later_poll(),
        }
    }

    /// A poll begins that is not the first.
    pub(crate) fn begin_later_poll(&mut self) -> bool {
        if self.session != SESSION.load(Relaxed) {
            self.state = InstanceState::Unrecorded;
            return false;
        }
        with_lane(|lane| {
            let is_stored = lane.push_poll(self.word);
            if is_stored {
                lane.begin_context(self);
            }
            is_stored
        })
    }

    fn begin_first_poll(&mut self, region: Region, made_at: u64) -> bool {
        self.state = InstanceState::Unrecorded;
        STATE.load(Relaxed) != OFF
            && with_lane(|lane| self.begin_first_poll_on(lane, region, made_at)).is_some()
    }

    fn begin_first_poll_on(&mut self, lane: &Lane, region: Region, made_at: u64) -> Option<()> {
        let code = match region.code() {
            0 => lane.in_cold_path(|_| Some(region.register()))?,
            code => code,
        };
        let number = lane.next_instance()?;
        self.word = instance_word(number, code);
        self.start = lane.push_two(code::FIRST_POLL, self.word)?;
        self.state = InstanceState::Polled;
        self.session = SESSION.load(Relaxed);
        lane.begin_context(self);
        // Nothing is around it where the context was that of the thread.
        let is_task = self.context == 0;
        let link = if made_at == 0 { lane.started_at.get() } else { made_at };
        if is_task && link != 0 {
            let _ = lane.push_two(code::LINK, link);
        }
        #[cfg(feature = "tokio")]
        if is_task && let Some(task) = lane.in_cold_path(|_| tokio_task()) {
            let _ = lane.push_two(code::TASK, task);
        }
        Some(())
    }

    /// The poll ends. Regions that are open in it go on at the next one.
    ///
    /// That the instance ends is an event before the end of its last poll, at whose time it counts.
    pub(crate) fn end_poll(&mut self, end: PollEnd) {
        with_lane(|lane| {
            if lane.context.get() == 0 {
                // A forked child: what ran was in its parent's recording. Polls nest, so those that began in
                // the child have ended by now.
                self.state = InstanceState::Unrecorded;
                return;
            }
            if end != PollEnd::Pending {
                self.end(lane, end);
            } else if depth_of(lane.token.get()) == 0 {
                // With nothing left open, the next poll has another one.
                lane.forget_context();
            }
            // With nothing left open in it, the poll is the innermost frame.
            if depth_of(lane.token.get()) > 0 || !lane.push(pack::LEAVE) {
                self.end_poll_cold(lane);
            }
            self.token = lane.token.replace(self.token);
            self.context = lane.context.replace(self.context);
            lane.below.set(self.below);
            if lane.cold.has_late.get() {
                lane.close_late();
            }
        });
    }

    /// The instance ends with this poll.
    fn end(&mut self, lane: &Lane, end: PollEnd) {
        self.state = InstanceState::Unrecorded;
        let code = if end == PollEnd::Completed { code::COMPLETED } else { code::CANCELLED };
        let _ = lane.push_two(code, self.start);
        lane.forget_context();
    }

    /// Its number, with a number of frames.
    fn word_with(&self, frames: u32) -> u64 {
        instance_word(instance_of(self.word).0, frames.into())
    }

    #[cold]
    #[inline(never)]
    fn end_poll_cold(&self, lane: &Lane) {
        if depth_of(lane.token.get()) > 0 {
            let open_after = self.below + depth_of(self.token);
            let _ = lane.push_two(code::POLL_END, self.word_with(open_after));
        } else {
            lane.in_cold_path(|recorder| lane.push_cold(recorder, code::LEAVE));
        }
    }
}

/// The number that tokio gives to the task that runs here; it tells it as text only.
#[cfg(feature = "tokio")]
fn tokio_task() -> Option<u64> {
    tokio::task::try_id()?.to_string().parse().ok()
}

impl Lane {
    /// Regions are entered in this instance from here on, whose poll was stored.
    #[inline]
    fn begin_context(&self, instance: &mut Instance) {
        let open = depth_of(instance.token);
        let (epoch, context) = if open == 0 {
            let epoch = self.next_epoch();
            (epoch, epoch)
        } else {
            (epoch_of(instance.token), instance.context)
        };
        instance.below = self.below.replace(self.frames() + 1);
        instance.token = self.token.replace(token(epoch, 0));
        instance.context = self.context.replace(context);
        if open > 0 {
            let _ = self.push_two(code::RESUME, instance.word_with(open));
            self.token.set(token(epoch, open));
        }
        if self.cold.has_late.get() {
            self.close_late();
        }
    }

    /// A number for an instance that is first polled here.
    pub(super) fn next_instance(&self) -> Option<u64> {
        let (mut next, mut end) = self.cold.instances.get();
        if next == end {
            next = NEXT_INSTANCE.fetch_add(INSTANCES_AT_ONCE, Relaxed);
            end = next + INSTANCES_AT_ONCE;
        }
        self.cold.instances.set((next + 1, end));
        (next < MAX_INSTANCES).then_some(next)
    }
}
