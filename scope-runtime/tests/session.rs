//! One recording from begin to end, by the calls that a program makes itself. A single test, since
//! a process has one recording.

use scope_runtime::profile::Profile;
use scope_runtime::{finalize, init, pause, region, resume, scope};

#[scope]
fn outer(inside: impl FnOnce()) {
    inside();
}

#[scope(name = "given name")]
fn named() {}

struct Grid<T>(T);

impl<T> Grid<T> {
    #[scope]
    fn step(&self) -> &T {
        &self.0
    }
}

/// `(path, calls, open)` of every call path.
fn paths(profile: &Profile) -> Vec<(String, u64, u64)> {
    let mut names: Vec<String> = Vec::new();
    for node in profile.paths.nodes() {
        let name = &profile.regions[node.region.0 as usize].name;
        let above = node.parent.map(|parent| format!("{}/", names[parent.0 as usize]));
        names.push(above.unwrap_or_default() + name);
    }
    profile.paths.nodes().iter().zip(names).map(|(node, name)| (name, node.calls, node.open)).collect()
}

#[test]
fn what_is_recorded_is_what_ran_between_begin_and_end() {
    let folder = std::env::temp_dir().join(format!("scope-session-{}", std::process::id()));
    // SAFETY: the only thread that touches the environment is this one.
    unsafe { std::env::set_var("SCOPE_OUTPUT", &folder) };
    let session = init();
    outer(named);
    let sum = region!("sum", { Grid(2).step() + 1 });
    assert_eq!(sum, 3);
    let made = format!("made {sum}");
    drop(scope_runtime::enter(&made));

    // What is entered while recording pauses is left out, also when it ends later; what was open
    // goes on.
    outer(|| {
        pause();
        let late = scope_runtime::enter("paused");
        named();
        resume();
        drop(late);
        named();
    });

    // Guards in the wrong order: the region that ends takes those inside it along.
    let first = scope_runtime::enter("first");
    let second = scope_runtime::enter("second");
    drop(first);
    let third = scope_runtime::enter("third");
    drop(second);
    named();
    drop(third);

    let open = scope_runtime::enter("open at the end");
    drop(session);
    drop(open);
    named();
    let profile = finalize();
    assert_eq!(paths(&finalize()), paths(&profile), "a second end gives the same");
    let expected = [
        ("outer", 2, 0),
        ("outer/given name", 2, 0),
        ("sum", 1, 0),
        ("sum/Grid::step", 1, 0),
        ("made 3", 1, 0),
        ("first", 1, 0),
        ("first/second", 1, 0),
        ("third", 1, 0),
        ("third/given name", 1, 0),
        ("open at the end", 1, 1),
    ];
    let expected = expected.map(|(path, calls, open)| (path.to_owned(), calls, open));
    assert_eq!(paths(&profile), expected);
    assert_eq!((profile.open_calls, profile.lost_calls, profile.faulty_calls), (1, 0, 0));
    let step = profile.regions.iter().find(|region| region.name == "Grid::step").expect("it ran");
    assert!(step.file.ends_with("session.rs"), "{}", step.file);
    assert_eq!(step.line, 19, "the line of the name");
    for (node, children_ns) in profile.paths.nodes().iter().zip(children_ns(&profile)) {
        assert_eq!(node.inclusive_ns, node.self_ns + children_ns);
    }

    // A later session goes on in the same recording.
    let again = init();
    named();
    drop(again);
    assert!(paths(&finalize()).contains(&("given name".to_owned(), 1, 0)));
    let files: Vec<_> = std::fs::read_dir(&folder).expect("it was made").collect();
    assert_eq!(files.len(), 1);
    std::fs::remove_dir_all(&folder).expect("it is ours");
}

fn children_ns(profile: &Profile) -> Vec<i64> {
    let mut sums = vec![0; profile.paths.nodes().len()];
    for node in profile.paths.nodes() {
        if let Some(parent) = node.parent {
            sums[parent.0 as usize] += node.inclusive_ns;
        }
    }
    sums
}
