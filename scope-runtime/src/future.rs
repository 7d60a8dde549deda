//! Async regions: futures that record their polls.
//!
//! One call of an async region lasts from the first poll to completion or drop. What is recorded are
//! its polls, on the thread each runs on; `replay.rs` makes calls of them.

use std::mem::ManuallyDrop;
use std::panic::Location;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use crate::lane::{self, Instance, PollEnd, STATE};
use crate::region::{self, Region, Site};
use crate::session;

/// Measures futures.
pub trait ScopeFuture: Future + Sized {
    /// The same future as an async region of any name: one call from its first poll to its
    /// completion or drop, busy while it is polled.
    ///
    /// # Examples
    /// ```
    /// use scope_runtime::ScopeFuture;
    ///
    /// async fn load(shard: u32) -> u32 {
    ///     let answer = async { shard + 1 }.in_region("fetch").await;
    ///     answer * 2
    /// }
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # let polled = std::pin::pin!(load(20)).as_mut().poll(&mut context);
    /// # assert_eq!(polled, std::task::Poll::Ready(42));
    /// ```
    #[track_caller]
    fn in_region(self, name: impl AsRef<str>) -> InRegion<Self> {
        // Where recording pauses, it may go on by the first poll.
        if STATE.load(Relaxed) == lane::OFF && session::current().is_none() {
            return InRegion::new(self, Region::Code(0), Instance::NONE);
        }
        let code = region::code_of_name(name.as_ref(), Location::caller());
        InRegion::new(self, Region::Code(code), Instance::NEW)
    }
}

impl<F: Future> ScopeFuture for F {}

/// A future that is measured as an async region; made by `#[scope]` and [`ScopeFuture`].
///
/// It adds one layer to the type of the future, and keeps it inline: no allocation, no other bounds.
#[must_use = "futures do nothing unless polled"]
pub struct InRegion<F> {
    future: ManuallyDrop<F>,
    region: Region,
    instance: Instance,
    /// Position of the thread that made it.
    made_at: u64,
}

// SAFETY: all but the future may be sent. Said by hand since the compiler counts every layer of types
// that it goes through, and a chain of async functions can have 128.
unsafe impl<F: Send> Send for InRegion<F> {}

impl Site {
    /// Measures `future` as an async region.
    #[doc(hidden)]
    pub fn future<F: Future>(&'static self, future: F) -> InRegion<F> {
        InRegion::new(future, Region::Site(self), Instance::NEW)
    }
}

impl Site {
    /// Measures `call` and the future that it gives as one call of an async region.
    #[doc(hidden)]
    pub fn call<F: Future>(&'static self, call: impl FnOnce() -> F) -> InRegion<F> {
        let (mut instance, region, made_at) = (Instance::NEW, Region::Site(self), lane::here());
        let is_recorded = instance.begin_poll(region, made_at);
        // Where the call panics, that is its end.
        let end = PollEnd::Cancelled;
        let mut polling = is_recorded.then(|| Polling { instance: &mut instance, end });
        let future = call();
        if let Some(polling) = &mut polling {
            polling.end = PollEnd::Pending;
        }
        drop(polling);
        InRegion { future: ManuallyDrop::new(future), region, instance, made_at }
    }

    /// Boxes what is returned as a boxed future, whose paths the user's crate may not have.
    #[doc(hidden)]
    pub fn boxed<F>(&'static self, future: F) -> Pin<Box<F>> {
        Box::pin(future)
    }
}

impl<F> InRegion<F> {
    fn new(future: F, region: Region, instance: Instance) -> InRegion<F> {
        InRegion { future: ManuallyDrop::new(future), region, instance, made_at: lane::here() }
    }
}

/// Ends the poll also when it panics.
struct Polling<'a> {
    instance: &'a mut Instance,
    end: PollEnd,
}

impl Drop for Polling<'_> {
    #[inline]
    fn drop(&mut self) {
        self.instance.end_poll(self.end);
    }
}

impl<F: Future> Future for InRegion<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: nothing is moved out of it; the future in it is pinned with it.
        let InRegion { future, region, instance, made_at } = unsafe { self.get_unchecked_mut() };
        // SAFETY: it is pinned as it is a part of what is, and dropped in its place only.
        let future = unsafe { Pin::new_unchecked(&mut **future) };
        if !instance.begin_poll(*region, *made_at) {
            return future.poll(context);
        }
        let mut polling = Polling { instance, end: PollEnd::Pending };
        let result = future.poll(context);
        if result.is_ready() {
            polling.end = PollEnd::Completed;
        }
        result
    }
}

impl<F> Drop for InRegion<F> {
    fn drop(&mut self) {
        // What destructors do in a future that is dropped half-way belongs to its call.
        let is_recorded = self.instance.is_open() && self.instance.begin_later_poll();
        let _polling = is_recorded.then(|| Polling { instance: &mut self.instance, end: PollEnd::Cancelled });
        // SAFETY: it is dropped here only, and not used any more.
        unsafe { ManuallyDrop::drop(&mut self.future) };
    }
}
