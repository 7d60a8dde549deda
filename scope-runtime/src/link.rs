//! Links from what runs elsewhere to the region that started it.

use crate::lane;

/// The place in the calls of a thread or task where [`link`] was called.
///
/// It may be sent anywhere, copied, and outlive the region.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    position: u64,
}

/// A handle to the region that is open here.
///
/// A pool knows nothing of who gave it work. What is run by [`Link::run`] knows, and views can hang it
/// there (`cargo scope export flame --linked`); the time still counts on the thread that ran it. Tasks
/// need none: an async function knows where it was called.
///
/// # Examples
/// ```
/// use scope_runtime::{link, region};
///
/// region!("simulate");
/// let link = link();
/// let sum = std::thread::scope(|scope| {
///     let worker = scope.spawn(move || link.run(|| region!("sum up", { (1..=10).sum::<u32>() })));
///     worker.join().unwrap()
/// });
/// assert_eq!(sum, 55);
/// ```
pub fn link() -> Link {
    Link { position: lane::here() }
}

impl Link {
    /// Runs `work`, whose outermost regions on this thread were started where the link was made.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        lane::started_at(self.position, work)
    }
}
