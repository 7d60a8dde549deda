//! Instances of async regions: what a poll does on its thread, and what is kept between two of them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::guards::{depth_of, epoch_of, token};
use super::{LANE, Lane, OFF, SESSION, STATE};
use crate::format::{MAX_INSTANCES, code, instance_word};
use crate::pack;

/// How many numbers for instances a thread takes at once.
const INSTANCES_AT_ONCE: u64 = 4096;
/// Numbers of instances that were given to threads.
static NEXT_INSTANCE: AtomicU64 = AtomicU64::new(0);

/// An instance of an async region, between its polls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instance {
    state: InstanceState,
    session: u32,
    /// Number and region as events give them.
    word: u64,
    /// Ticks at the begin of the first poll.
    start: u64,
    /// Of the regions that were open at the end of the last poll: the token and the context.
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

/// What the end of a poll takes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Poll {
    token: u64,
    context: u64,
    below: u32,
    generation: u32,
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
        Instance { state: InstanceState::New, session: 0, word: 0, start: 0, token: 0, context: 0 };

    /// One that is never recorded.
    pub(crate) const NONE: Instance = Instance { state: InstanceState::Unrecorded, ..Instance::NEW };

    /// Whether it has begun and not ended.
    pub(crate) fn is_open(&self) -> bool {
        self.state == InstanceState::Polled
    }

    /// A poll begins, of a region with this event code; where it is 0, `register` gives it. `made_at`
    /// is the position at which the future was made, 0 for none.
    #[inline]
    pub(crate) fn begin_poll(
        &mut self,
        code: u64,
        made_at: u64,
        register: impl FnOnce() -> u64,
    ) -> Option<Poll> {
        match self.state {
            InstanceState::Unrecorded => None,
            InstanceState::New => self.begin_first_poll(code, made_at, register),
            InstanceState::Polled if self.session != SESSION.load(Relaxed) => {
                self.state = InstanceState::Unrecorded;
                None
            }
            InstanceState::Polled => LANE.with(|lane| {
                lane.push_two(code::POLL, self.word)?;
                Some(lane.begin_context(self))
            }),
        }
    }

    fn begin_first_poll(&mut self, code: u64, made_at: u64, register: impl FnOnce() -> u64) -> Option<Poll> {
        self.state = InstanceState::Unrecorded;
        if STATE.load(Relaxed) == OFF {
            return None;
        }
        LANE.with(|lane| {
            let code = match code {
                0 => lane.in_cold_path(|_| Some(register()))?,
                code => code,
            };
            let number = lane.next_instance()?;
            self.word = instance_word(number, code);
            self.start = lane.push_two(code::FIRST_POLL, self.word)?;
            self.state = InstanceState::Polled;
            self.session = SESSION.load(Relaxed);
            let poll = lane.begin_context(self);
            let link = if made_at == 0 { lane.started_at.get() } else { made_at };
            if poll.context == 0 && link != 0 {
                let _ = lane.push_two(code::LINK, link);
            }
            #[cfg(feature = "tokio")]
            if poll.context == 0
                && let Some(task) = lane.in_cold_path(|_| tokio_task())
            {
                let _ = lane.push_two(code::TASK, task);
            }
            Some(poll)
        })
    }

    /// The poll ends. Regions that are open in it go on at the next one.
    ///
    /// That the instance ends is an event before the end of its last poll, at whose time it counts.
    #[inline]
    pub(crate) fn end_poll(&mut self, poll: Poll, end: PollEnd) {
        LANE.with(|lane| {
            if lane.cold.generation.get() != poll.generation {
                // A forked child: what ran was in its parent's recording.
                self.state = InstanceState::Unrecorded;
                return;
            }
            match end {
                PollEnd::Pending => (self.token, self.context) = (lane.token.get(), lane.context.get()),
                PollEnd::Completed | PollEnd::Cancelled => {
                    self.state = InstanceState::Unrecorded;
                    let code = if end == PollEnd::Completed { code::COMPLETED } else { code::CANCELLED };
                    let _ = lane.push_two(code, self.start);
                    lane.forget_context();
                }
            }
            // With nothing left open in it, the poll is the innermost frame.
            if depth_of(lane.token.get()) > 0 {
                let open_after = poll.below + depth_of(poll.token);
                let _ = lane.push_two(code::POLL_END, u64::from(open_after));
            } else if !lane.push(pack::LEAVE) {
                lane.leave_frame_cold();
            }
            lane.token.set(poll.token);
            lane.context.set(poll.context);
            lane.below.set(poll.below);
            if lane.cold.has_late.get() {
                lane.close_late();
            }
        });
    }
}

/// The number that tokio gives to the task that runs here; it tells it as text only.
#[cfg(feature = "tokio")]
fn tokio_task() -> Option<u64> {
    tokio::task::try_id()?.to_string().parse().ok()
}

impl Lane {
    #[cold]
    #[inline(never)]
    fn leave_frame_cold(&self) {
        self.in_cold_path(|recorder| self.push_cold(recorder, code::LEAVE));
    }

    /// Regions are entered in this instance from here on, whose poll was stored.
    #[inline]
    pub(super) fn begin_context(&self, instance: &Instance) -> Poll {
        let outer = Poll {
            token: self.token.get(),
            context: self.context.get(),
            below: self.below.get(),
            generation: self.cold.generation.get(),
        };
        self.below.set(self.frames() + 1);
        let open = depth_of(instance.token);
        if open == 0 {
            let epoch = self.next_epoch();
            self.context.set(epoch);
            self.token.set(token(epoch, 0));
        } else {
            self.context.set(instance.context);
            self.token.set(token(epoch_of(instance.token), 0));
            let _ = self.push_two(code::RESUME, u64::from(open));
            self.token.set(instance.token);
        }
        if self.cold.has_late.get() {
            self.close_late();
        }
        outer
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
