//! Leaves a small recording in the folder that `SCOPE_OUTPUT` names; the argument says of what kind.

use std::hint::black_box;

use scope_runtime::{init, region, scope};

#[scope]
fn leaf(n: u64) -> u64 {
    black_box(n)
}

#[scope]
fn branch(calls: u64) {
    for n in 0..calls {
        leaf(n);
        if n % 7 == 0 {
            region!("seventh", {
                leaf(n);
            });
        }
    }
}

fn main() {
    // A little more than a chunk has room for, so that there is a block of events.
    let calls = 3_700;
    match std::env::args().nth(1).expect("a kind").as_str() {
        "sealed" => {
            let other = std::thread::Builder::new().name("other".into()).spawn(move || branch(calls));
            branch(40);
            other.expect("a thread starts").join().expect("it does not panic");
        }
        "killed" => {
            region!("open");
            branch(calls);
            std::process::abort();
        }
        "long" => branch(3 * calls),
        "sessions" => {
            for number in 0..3 {
                let session = init();
                let guard = scope_runtime::enter(&format!("session {number}"));
                branch(20);
                drop(guard);
                drop(session);
            }
        }
        kind => panic!("no kind {kind}"),
    }
}
