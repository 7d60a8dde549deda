//! The layer for `tracing`, by programs of a few lines. A process has one recording, so each test runs
//! its program in processes of their own: with events, with totals only, and with totals after the first
//! events, which must agree.

use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use scope_runtime::profile::{LaneId, Profile};
use scope_runtime::recording::{Call, Parent, Recording};
use scope_runtime::{ScopeFuture, enter, region, scope};
use tracing::{Dispatch, Span, debug_span, info_span};
use tracing_subscriber::filter::{EnvFilter, LevelFilter, Targets};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{Layer, registry, reload};

/// Runs `program` of the test called `test`, and gives its recording; `None` in the process that runs it.
fn recorded(test: &str, program: impl FnOnce()) -> Option<Recording> {
    if std::env::var_os("SCOPE_OUTPUT").is_some() {
        program();
        scope_runtime::finalize();
        return None;
    }
    let events = run(test, &[]);
    let totals = run(test, &[("SCOPE_TOTALS_ONLY", "1")]);
    let limited = run(test, &[("SCOPE_EVENT_LIMIT", "1")]);
    for profile in [&events, &totals, &limited].map(Recording::profile) {
        assert_eq!(paths(profile), paths(events.profile()));
        assert_eq!((profile.lost_calls, profile.faulty_calls), (0, 0), "{:?}", paths(profile));
        assert!(profile.paths.nodes().iter().all(|node| node.self_ns >= 0 && node.min_ns <= node.max_ns));
        // Totals are kept in ticks, and each number of each lane is rounded by itself.
        assert!(profile.paths.nodes().iter().all(|node| node.max_ns <= node.wall_ns + 10));
    }
    Some(events)
}

fn run(test: &str, variables: &[(&str, &str)]) -> Recording {
    let mode = variables.first().map_or("EVENTS", |(name, _)| name);
    let folder = format!("scope-layer-{}-{test}-{mode}", std::process::id());
    let folder: PathBuf = std::env::temp_dir().join(folder);
    let mut command = Command::new(std::env::current_exe().expect("a running program has a path"));
    command.args([test, "--exact", "--nocapture"]).env("SCOPE_OUTPUT", &folder);
    command.envs(variables.iter().copied());
    let output = command.output().expect("the test starts again");
    assert!(output.status.success(), "{output:?}");
    let recording = Recording::open(&folder.join("rank0.scope")).expect("it was recorded");
    std::fs::remove_dir_all(&folder).expect("it is ours");
    recording
}

/// `path calls`, and how many were cut, of every call path that was called, sorted.
fn paths(profile: &Profile) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for node in profile.paths.nodes() {
        let name = &profile.regions[node.region.0 as usize].name;
        let above = node.parent.map(|parent| format!("{}/", names[parent.0 as usize]));
        names.push(above.unwrap_or_default() + name);
    }
    let nodes = profile.paths.nodes().iter().zip(names).filter(|(node, _)| node.calls > 0);
    let open = |open: u64| if open > 0 { format!(", {open} open") } else { String::new() };
    let mut paths: Vec<_> =
        nodes.map(|(node, name)| format!("{name} {}{}", node.calls, open(node.open))).collect();
    paths.sort();
    paths
}

fn calls_of(recording: &Recording, name: &str) -> Vec<Call> {
    let profile = recording.profile();
    let lanes = 0..profile.lanes.len() as u32;
    let calls = lanes.flat_map(|lane| recording.calls(LaneId(lane)));
    calls.filter(|call| profile.regions[call.region.0 as usize].name == name).collect()
}

fn with_layer<T>(work: impl FnOnce() -> T) -> T {
    tracing::subscriber::with_default(registry().with(scope_runtime::layer()), work)
}

fn pause() {
    std::thread::sleep(Duration::from_millis(3));
}

#[scope]
fn wrap() {
    region!("inner");
}

/// Polls a future to its end on this thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

/// Is pending once.
async fn once_pending() {
    let mut is_first = true;
    std::future::poll_fn(|_| {
        if std::mem::take(&mut is_first) { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
}

#[test]
fn spans_and_regions_nest_in_each_other() {
    let program = || {
        with_layer(|| {
            info_span!("top").in_scope(wrap);
            region!("region");
            for _ in 0..3 {
                info_span!("span").in_scope(|| {
                    wrap();
                    info_span!("leaf").in_scope(|| {});
                });
            }
            let _never_entered = info_span!("never entered");
        });
    };
    let Some(recording) = recorded("spans_and_regions_nest_in_each_other", program) else { return };
    let expected = [
        "region 1",
        "region/span 3",
        "region/span/leaf 3",
        "region/span/wrap 3",
        "region/span/wrap/inner 3",
        "top 1",
        "top/wrap 1",
        "top/wrap/inner 1",
    ];
    assert_eq!(paths(recording.profile()), expected);
    assert!(recording.tasks().tasks().is_empty(), "spans that are entered once are no tasks");
    let region = &recording.profile().regions.iter().find(|region| region.name == "leaf").expect("it ran");
    assert!(region.file.ends_with("layer.rs") && region.line > 0, "{region:?}");
}

#[test]
fn a_span_that_is_entered_again_later_is_one_call() {
    let program = || {
        with_layer(|| {
            let span = info_span!("span");
            span.in_scope(|| {
                wrap();
                pause();
            });
            region!("between", { pause() });
            span.in_scope(wrap);
            std::thread::scope(|threads| {
                let (span, dispatch) = (span.clone(), tracing::dispatcher::get_default(Clone::clone));
                threads.spawn(move || {
                    tracing::dispatcher::with_default(&dispatch, || span.in_scope(pause));
                });
            });
            info_span!("span").in_scope(|| {});
        });
    };
    let Some(recording) = recorded("a_span_that_is_entered_again_later_is_one_call", program) else { return };
    let expected = ["between 1", "span 2", "span/wrap 2", "span/wrap/inner 2"];
    assert_eq!(paths(recording.profile()), expected);
    let [run] = recording.tasks().runs() else { panic!("one ran in parts") };
    assert_eq!((run.polls, run.open, run.cancelled), (3, false, false));
    assert!(run.end_ns - run.start_ns >= run.busy_ns + 3_000_000 && run.busy_ns >= 6_000_000, "{run:?}");
    let lanes: Vec<u32> = recording.tasks().polls().iter().map(|poll| poll.lane).collect();
    assert_eq!(lanes.len(), 3);
    assert_ne!(lanes[0], lanes[2]);
    let calls = calls_of(&recording, "span");
    assert_eq!((calls[0].start_ns, calls[0].end_ns), (run.start_ns, run.end_ns));
    assert!(calls_of(&recording, "wrap").iter().all(|call| matches!(call.parent, Parent::Run(_))));
    let span = recording.profile().paths.nodes().iter().find(|node| node.calls == 2 && node.parent.is_none());
    let span = span.expect("it ran");
    let mut durations = [calls[0], calls[1]].map(|call| call.end_ns - call.start_ns);
    durations.sort_unstable();
    assert_eq!([span.min_ns, span.max_ns], durations);
    assert_eq!(span.wall_ns, span.min_ns + span.max_ns);
}

#[test]
fn a_span_with_nothing_around_it_is_linked_to_where_it_was_made() {
    let program = || {
        with_layer(|| {
            let on_a_thread = |span: Span| {
                let dispatch = tracing::dispatcher::get_default(Clone::clone);
                let there = || tracing::dispatcher::with_default(&dispatch, || span.in_scope(wrap));
                std::thread::scope(|threads| threads.spawn(there).join().expect("it does not panic"));
            };
            region!("region", {
                let span = info_span!("in parts");
                on_a_thread(span.clone());
                on_a_thread(span);
            });
            let follows = info_span!("follows");
            info_span!("first").in_scope(|| {
                follows.follows_from(Span::current());
                info_span!("inside").in_scope(|| {});
            });
            on_a_thread(follows);
            on_a_thread(info_span!("made outside"));
        });
    };
    let test = "a_span_with_nothing_around_it_is_linked_to_where_it_was_made";
    let Some(recording) = recorded(test, program) else { return };
    let mut profile = recording.profile().clone();
    let expected = [
        "first 1",
        "first/inside 1",
        "follows 1",
        "follows/wrap 1",
        "follows/wrap/inner 1",
        "in parts 1",
        "in parts/wrap 2",
        "in parts/wrap/inner 2",
        "made outside 1",
        "made outside/wrap 1",
        "made outside/wrap/inner 1",
        "region 1",
    ];
    assert_eq!(paths(&profile), expected);
    assert_eq!(recording.links().len(), 2);
    profile.paths = recording.linked_paths().expect("there are links");
    let expected = [
        "first 1",
        "first/follows 1",
        "first/follows/wrap 1",
        "first/follows/wrap/inner 1",
        "first/inside 1",
        "made outside 1",
        "made outside/wrap 1",
        "made outside/wrap/inner 1",
        "region 1",
        "region/in parts 1",
        "region/in parts/wrap 2",
        "region/in parts/wrap/inner 2",
    ];
    assert_eq!(paths(&profile), expected);
}

#[test]
fn a_span_that_is_closed_where_it_did_not_end_keeps_its_last_part() {
    let program = || {
        with_layer(|| {
            let span = info_span!("span");
            span.in_scope(|| {});
            let (other, dispatch) = (span.clone(), tracing::dispatcher::get_default(Clone::clone));
            let there = move || {
                tracing::dispatcher::with_default(&dispatch, || other.in_scope(pause));
            };
            std::thread::spawn(there).join().expect("it does not panic");
            // Nothing was recorded here since its first part ended.
            drop(span);
        });
    };
    let test = "a_span_that_is_closed_where_it_did_not_end_keeps_its_last_part";
    let Some(recording) = recorded(test, program) else { return };
    assert_eq!(paths(recording.profile()), ["span 1"]);
    let [run] = recording.tasks().runs() else { panic!("it ran in parts") };
    assert!(run.polls == 2 && run.busy_ns >= 3_000_000, "{run:?}");
}

#[test]
fn a_span_that_is_closed_late_or_never_has_ended_at_its_last_exit() {
    let program = || {
        with_layer(|| {
            let late = info_span!("late");
            late.in_scope(|| {});
            wrap();
            pause();
            drop(late);
            let never = info_span!("never");
            never.in_scope(|| {});
            wrap();
            let elsewhere = info_span!("elsewhere");
            elsewhere.in_scope(|| {});
            wrap();
            std::thread::scope(|threads| drop(threads.spawn(move || drop(elsewhere))));
            std::mem::forget(never);
            let entered = info_span!("entered").entered();
            std::mem::forget(entered);
            pause();
        });
    };
    let Some(recording) = recorded("a_span_that_is_closed_late_or_never_has_ended_at_its_last_exit", program)
    else {
        return;
    };
    let expected = ["elsewhere 1", "entered 1, 1 open", "late 1", "never 1", "wrap 3", "wrap/inner 3"];
    assert_eq!(paths(recording.profile()), expected);
    // After each comes a call of `wrap`, and only then its close, if any.
    for (name, wrap) in ["late", "never", "elsewhere"].into_iter().zip(calls_of(&recording, "wrap")) {
        let [call] = calls_of(&recording, name)[..] else { panic!("one call of {name}") };
        assert!(call.end_ns <= wrap.start_ns && call.run.is_none(), "{call:?}");
    }
}

#[test]
fn a_span_entered_twice_is_counted_once_and_on_two_threads_apart() {
    let program = || {
        with_layer(|| {
            let span = info_span!("span");
            let dispatch = tracing::dispatcher::get_default(Clone::clone);
            span.in_scope(|| {
                span.in_scope(wrap);
                wrap();
                let (go, went) = channel();
                let other = span.clone();
                std::thread::scope(|threads| {
                    threads.spawn(move || {
                        tracing::dispatcher::with_default(&dispatch, || {
                            other.in_scope(|| {
                                other.in_scope(wrap);
                                region!("there");
                            });
                            go.send(()).expect("the other thread waits");
                        });
                    });
                    went.recv().expect("the other thread sends");
                });
                wrap();
            });
        });
    };
    let Some(recording) = recorded("a_span_entered_twice_is_counted_once_and_on_two_threads_apart", program)
    else {
        return;
    };
    let expected = ["span 2", "span/there 1", "span/wrap 4", "span/wrap/inner 4"];
    assert_eq!(paths(recording.profile()), expected);
    assert!(recording.tasks().runs().is_empty());
}

#[test]
fn spans_are_closed_in_any_order() {
    let program = || {
        with_layer(|| {
            let outer = info_span!("outer").entered();
            let inner = info_span!("inner of two").entered();
            let guard = enter("guard");
            let outer = outer.exit();
            wrap();
            drop(guard);
            let inner = inner.exit();
            wrap();
            // What was ended from outside is a new call.
            inner.in_scope(wrap);
            outer.in_scope(|| {});
            // A guard that outlives the span it was made in.
            let span = info_span!("span").entered();
            let guard = enter("guard");
            drop(span);
            drop(guard);
            // And a span that outlives a region.
            let region = enter("region");
            let span = info_span!("in region").entered();
            drop(region);
            wrap();
            drop(span);
            wrap();
        });
    };
    let Some(recording) = recorded("spans_are_closed_in_any_order", program) else { return };
    let expected = [
        "inner of two 1",
        "inner of two/wrap 1",
        "inner of two/wrap/inner 1",
        "outer 1",
        "outer/inner of two 1",
        "outer/inner of two/guard 1",
        "region 1",
        "region/in region 1",
        "span 1",
        "span/guard 1",
        "wrap 4",
        "wrap/inner 4",
    ];
    assert_eq!(paths(recording.profile()), expected);
}

#[test]
fn a_span_that_is_held_over_an_await_goes_on_with_its_future() {
    let program = || {
        with_layer(|| {
            let held = async {
                let _held = info_span!("held").entered();
                wrap();
                once_pending().await;
                wrap();
            };
            let mut future = Box::pin(held.in_region("future"));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(future.as_mut().poll(&mut context).is_pending());
            wrap();
            assert!(future.as_mut().poll(&mut context).is_ready());
        });
    };
    let Some(recording) = recorded("a_span_that_is_held_over_an_await_goes_on_with_its_future", program)
    else {
        return;
    };
    let expected = [
        "future 1",
        "future/held 1",
        "future/held/wrap 2",
        "future/held/wrap/inner 2",
        "wrap 1",
        "wrap/inner 1",
    ];
    assert_eq!(paths(recording.profile()), expected);
}

#[test]
fn futures_in_spans_and_async_regions_have_each_other_as_parents() {
    use tracing::Instrument;
    let program = || {
        with_layer(|| {
            let inside = async {
                once_pending().await;
                wrap();
                once_pending().await;
            };
            let region = inside.in_region("async region").instrument(info_span!("inner span"));
            let request = region.instrument(info_span!("request"));
            block_on(request);
            region!("outside");
            block_on(once_pending().instrument(info_span!("in a region")));
        });
    };
    let Some(recording) = recorded("futures_in_spans_and_async_regions_have_each_other_as_parents", program)
    else {
        return;
    };
    let expected = [
        "outside 1",
        "outside/in a region 1",
        "request 1",
        "request/inner span 1",
        "request/inner span/async region 1",
        "request/inner span/async region/wrap 1",
        "request/inner span/async region/wrap/inner 1",
    ];
    assert_eq!(paths(recording.profile()), expected);
    // One after the other on one lane, and one of its own for what waits in a region.
    assert_eq!(recording.tasks().tasks().len(), 2);
    for run in recording.tasks().runs() {
        assert!(run.busy_ns <= run.end_ns - run.start_ns, "{run:?}");
    }
}

fn spans_of_two_levels_and_targets() {
    let hidden = debug_span!("hidden");
    hidden.in_scope(|| info_span!("shown").in_scope(|| {}));
    info_span!(parent: &hidden, "with a hidden parent").in_scope(|| {});
    info_span!(target: "elsewhere", "of a hidden target").in_scope(wrap);
}

struct SeesAll;

impl<S: tracing::Subscriber> Layer<S> for SeesAll {}

#[test]
fn filters_hide_spans_from_this_layer_or_from_all() {
    let program = || {
        let targets = Targets::new().with_target("layer", LevelFilter::INFO);
        let filter = || EnvFilter::new("info,elsewhere=off");
        let ours = || scope_runtime::layer();
        let dispatches = [
            Dispatch::new(registry().with(SeesAll).with(ours().with_filter(targets.clone()))),
            Dispatch::new(registry().with(SeesAll).with(ours().with_filter(filter()))),
            Dispatch::new(registry().with(ours()).with(targets)),
            Dispatch::new(registry().with(filter()).with(ours())),
        ];
        for dispatch in dispatches {
            tracing::dispatcher::with_default(&dispatch, spans_of_two_levels_and_targets);
        }
    };
    let Some(recording) = recorded("filters_hide_spans_from_this_layer_or_from_all", program) else { return };
    assert_eq!(paths(recording.profile()), ["shown 4", "with a hidden parent 4", "wrap 4", "wrap/inner 4"]);
}

#[test]
fn time_counts_where_it_runs_whatever_the_parent_is_said_to_be() {
    let program = || {
        with_layer(|| {
            let elsewhere = info_span!("elsewhere");
            info_span!("top").in_scope(|| {
                info_span!(parent: None, "detached").in_scope(|| {});
                info_span!(parent: &elsewhere, "of another").in_scope(|| {});
                let follows = info_span!("follows");
                follows.follows_from(Span::current());
                follows.in_scope(|| {});
            });
        });
    };
    let test = "time_counts_where_it_runs_whatever_the_parent_is_said_to_be";
    let Some(recording) = recorded(test, program) else { return };
    let expected = ["top 1", "top/detached 1", "top/follows 1", "top/of another 1"];
    assert_eq!(paths(recording.profile()), expected);
}

#[test]
fn layers_may_come_late_go_and_be_several() {
    let program = || {
        let (layer, handle) = reload::Layer::new(None::<scope_runtime::ScopeLayer>);
        tracing::subscriber::with_default(registry().with(layer), || {
            let early = info_span!("early").entered();
            handle.reload(scope_runtime::layer()).expect("the subscriber lives");
            let between = info_span!("between").entered();
            handle.reload(scope_runtime::layer()).expect("the subscriber lives");
            info_span!("late").in_scope(wrap);
            drop(between);
            drop(early);
            handle.reload(None::<scope_runtime::ScopeLayer>).expect("the subscriber lives");
            info_span!("gone").in_scope(|| {});
        });
        // Two layers record each span twice, and equal ids of two registries are two spans.
        let twice = registry().with(scope_runtime::layer()).with(scope_runtime::layer());
        tracing::subscriber::with_default(twice, || info_span!("twice").in_scope(|| {}));
        let (one, two) = (
            Dispatch::new(registry().with(scope_runtime::layer())),
            with_layer(|| tracing::dispatcher::get_default(Clone::clone)),
        );
        let one = tracing::dispatcher::with_default(&one, || info_span!("one").entered());
        let two = tracing::dispatcher::with_default(&two, || info_span!("two").entered());
        assert_eq!(one.id(), two.id());
        drop(two);
        drop(one);
    };
    let Some(recording) = recorded("layers_may_come_late_go_and_be_several", program) else { return };
    // The exit of `between` went to a layer that does not know it, so the end of the recording cuts it.
    let expected = [
        "between 1, 1 open",
        "between/late 1",
        "between/late/wrap 1",
        "between/late/wrap/inner 1",
        "between/one 1",
        "between/one/two 1",
        "between/twice 1",
        "between/twice/twice 1",
    ];
    assert_eq!(paths(recording.profile()), expected);
}

#[test]
fn named_fields_are_part_of_the_name() {
    let program = || {
        let layer = scope_runtime::layer().with_field("shard").with_field("method");
        tracing::subscriber::with_default(registry().with(layer), || {
            for shard in [3, 4, 3] {
                info_span!("request", method = "GET", secret = "x", shard).in_scope(|| {});
            }
            info_span!("request", method = ?Some(1)).in_scope(|| {});
            info_span!("request", secret = "x").in_scope(|| {});
        });
    };
    let Some(recording) = recorded("named_fields_are_part_of_the_name", program) else { return };
    let expected = [
        "request 1",
        "request{method=GET shard=3} 2",
        "request{method=GET shard=4} 1",
        "request{method=Some(1)} 1",
    ];
    assert_eq!(paths(recording.profile()), expected);
}

#[test]
fn more_spans_at_once_than_the_table_holds_and_ids_that_are_used_again() {
    let program = || {
        with_layer(|| {
            for _ in 0..2 {
                let spans: Vec<Span> = (0..20_000).map(|_| info_span!("many")).collect();
                spans.iter().for_each(|span| span.in_scope(|| {}));
                spans.iter().for_each(|span| span.in_scope(|| {}));
            }
        });
    };
    let test = "more_spans_at_once_than_the_table_holds_and_ids_that_are_used_again";
    let Some(recording) = recorded(test, program) else { return };
    assert_eq!(paths(recording.profile()), ["many 40000"]);
    assert!(recording.tasks().runs().iter().all(|run| run.polls == 2));
}

#[test]
fn what_is_made_or_entered_while_nothing_is_recorded_is_left_out() {
    let program = || {
        with_layer(|| {
            let open = info_span!("open").entered();
            scope_runtime::pause();
            let made_meanwhile = info_span!("made meanwhile");
            open.in_scope(|| {});
            scope_runtime::resume();
            wrap();
            made_meanwhile.in_scope(|| {});
            let again = open.exit();
            scope_runtime::finalize();
            again.in_scope(|| {});
            info_span!("after the end").in_scope(|| {});
            let _session = scope_runtime::init();
            again.in_scope(wrap);
        });
    };
    let test = "what_is_made_or_entered_while_nothing_is_recorded_is_left_out";
    let Some(recording) = recorded(test, program) else { return };
    let expected = ["open 2", "open/wrap 2", "open/wrap/inner 2"];
    assert_eq!(paths(recording.profile()), expected);
}

#[test]
fn spans_in_destructors_of_thread_locals_are_recorded() {
    struct Late;
    impl Drop for Late {
        fn drop(&mut self) {
            info_span!("late").in_scope(|| {});
        }
    }
    thread_local!(static LATE: Late = const { Late });
    let program = || {
        let subscriber = registry().with(scope_runtime::layer());
        tracing::subscriber::set_global_default(subscriber).expect("it is the first");
        std::thread::spawn(|| {
            // The registry's own thread-local goes after those that were made later.
            info_span!("early").in_scope(|| {});
            LATE.with(|_| {});
        })
        .join()
        .expect("it does not panic");
    };
    let Some(recording) = recorded("spans_in_destructors_of_thread_locals_are_recorded", program) else {
        return;
    };
    assert_eq!(paths(recording.profile()), ["early 1", "late 1"]);
}

#[test]
fn a_forked_child_records_its_spans_into_a_recording_of_its_own() {
    let program = || {
        with_layer(|| {
            let span = info_span!("span").entered();
            // SAFETY: the child uses what it would after any fork of a program with threads that hold no
            // locks, and ends without running what this process would run at its end.
            let child = unsafe { libc::fork() };
            if child == 0 {
                info_span!("in the child").in_scope(|| {});
                let span = span.exit();
                span.in_scope(|| {});
                let calls = paths(&scope_runtime::finalize());
                // SAFETY: nothing runs after it.
                unsafe { libc::_exit(i32::from(calls != ["in the child 1", "span 1"])) };
            }
            let mut status = 0;
            // SAFETY: `status` outlives the call.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!(status, 0);
            wrap();
            drop(span);
        });
    };
    let Some(recording) = recorded("a_forked_child_records_its_spans_into_a_recording_of_its_own", program)
    else {
        return;
    };
    assert_eq!(paths(recording.profile()), ["span 1", "span/wrap 1", "span/wrap/inner 1"]);
}
