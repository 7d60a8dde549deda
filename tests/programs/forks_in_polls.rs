//! Forks inside two polls; the child polls a call of its own there, and both go on to the end of theirs.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use scope_runtime::scope;

fn main() {
    poll_to_end(outer());
}

#[scope]
async fn outer() {
    inner().await;
    after();
}

#[scope]
async fn inner() {
    // SAFETY: there are no other threads but the drainer, and both sides end well.
    let child = unsafe { libc::fork() };
    if child == 0 {
        poll_to_end(in_child());
    } else {
        let mut status = 0;
        // SAFETY: waits for the child made above.
        assert_eq!((unsafe { libc::waitpid(child, &mut status, 0) }, status), (child, 0));
    }
    after();
}

#[scope]
async fn in_child() {
    after();
    Twice(false).await;
}

#[scope]
fn after() {}

/// Pending once.
struct Twice(bool);

impl Future for Twice {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

fn poll_to_end(future: impl Future<Output = ()>) {
    let mut future = pin!(future);
    while future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
}
