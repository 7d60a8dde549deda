//! What is left out by `pause`, from before anything was recorded on. A single test, since a process has one
//! recording.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use scope_runtime::{ScopeFuture, finalize, init, pause, region, resume};

#[test]
fn what_runs_in_a_pause_is_left_out_and_nothing_else() {
    let folder = std::env::temp_dir().join(format!("scope-pauses-{}", std::process::id()));
    // SAFETY: the only thread that touches the environment is this one.
    unsafe { std::env::set_var("SCOPE_OUTPUT", &folder) };
    pause();
    region!("before all", {});
    resume();
    region!("first", {});
    pause();
    // A session inside the one that the environment began changes nothing.
    let session = init();
    region!("paused", {});
    let mut future = pin!(async {}.in_region("polled later"));
    resume();
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    region!("last", {});
    drop(session);
    let profile = finalize();
    let calls = profile.paths.nodes().iter().map(|node| {
        let name = profile.regions[node.region.0 as usize].name.as_str();
        (name, node.calls)
    });
    assert_eq!(calls.collect::<Vec<_>>(), [("first", 1), ("polled later", 1), ("last", 1)]);
    std::fs::remove_dir_all(folder).unwrap();
}
