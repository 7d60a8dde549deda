//! Commands that start from files of an earlier run.

use std::fs;
use std::path::Path;

use cargo_scope::hdf5;
use cargo_scope::merged::{Events, MergedProfile, Row};

use crate::auxiliary::{Project, calls, listing, run};

const PROGRAM: &str = "
    #[scope_runtime::scope]
    fn inner() {}
    #[scope_runtime::scope]
    fn outer() { inner(); inner(); }
    fn main() { outer(); }
";

#[test]
fn a_profile_can_be_looked_at_again() {
    let project = Project::with_runtime("stored", PROGRAM);
    run(&mut project.cargo_scope(&["run", "-o", "out"])).ends_with(0);
    let shown = run(&mut project.cargo_scope(&["inspect", "out"])).ends_with(0);
    assert!(shown.stdout.contains("outer") && !shown.stdout.contains('\x1b'), "{}", shown.stdout);
    assert!(shown.stdout.contains("\nprogram "), "{}", shown.stdout);
    run(&mut project.cargo_scope(&["export", "prof", "out/profile.h5", "-o", "prof"])).ends_with(0);
    assert_eq!(listing(&project.path("prof")), ["profile_rank0.prof"]);
    run(&mut project.cargo_scope(&["export", "flame", "out", "-o", "svg", "--include", "out"])).ends_with(0);
    assert_eq!(listing(&project.path("svg")), ["flamegraph_rank0.svg"]);
    let flat = ["export", "flame", "out", "-o", "flat", "--no-call-paths", "--root", "everything"];
    run(&mut project.cargo_scope(&flat)).ends_with(0);
    let picture = fs::read_to_string(project.path("flat/flamegraph_rank0.svg")).unwrap();
    assert!(picture.contains(">everything (") && picture.contains("own time by region"), "{picture}");
    run(&mut project.cargo_scope(&["inspect", "nowhere.h5"])).ends_with(1).says("nowhere.h5");
}

#[test]
fn a_timeline_that_ends_early_is_told_wherever_single_calls_count() {
    const MANY: &str = "
        #[scope_runtime::scope]
        fn step() {}
        fn main() { (0..100_000).for_each(|_| step()); }
    ";
    let project = Project::with_runtime("cut-timeline", MANY);
    let mut limited = project.cargo_scope(&["run", "-o", "cut"]);
    run(limited.env("SCOPE_EVENT_LIMIT", "100kB")).ends_with(0).says("the timeline ends after");
    let mut totals_only = project.cargo_scope(&["run", "-o", "totals", "--totals-only"]);
    let ran = run(&mut totals_only).ends_with(0).says("only totals were kept");
    assert!(!ran.stderr.contains("SCOPE_EVENT_LIMIT"), "{}", ran.stderr);
    for profile in ["cut", "totals"] {
        for options in [&[][..], &["--wall"], &["--flat"], &["--sort", "p99"]] {
            let shown =
                run(&mut project.cargo_scope(&[&["inspect", profile], options].concat())).ends_with(0);
            let row = shown.stdout.lines().find(|line| line.starts_with("step "));
            assert!(row.unwrap().contains(" 100,000 "), "{profile} {options:?}: {}", shown.stdout);
            assert!(shown.stdout.contains("\ntimeline "), "{profile} {options:?}: {}", shown.stdout);
            let says = shown.stderr.contains("what single calls tell lacks them");
            let asked = matches!(options, ["--flat"] | ["--sort", ..]);
            assert_eq!(says, asked, "{profile} {options:?}: {}", shown.stderr);
        }
        run(&mut project.cargo_scope(&["export", "flame", profile, "-o", profile, "--wall"])).ends_with(0);
        let picture = fs::read_to_string(project.path(profile).join("flamegraph_rank0.svg")).unwrap();
        assert!(picture.contains("100,000 calls"), "{profile}");
    }
}

#[test]
fn a_table_can_be_made_to_measure() {
    let project = Project::with_runtime("measure", PROGRAM);
    run(&mut project.cargo_scope(&["run", "-o", "out"])).ends_with(0);
    let table = |args: &[&str]| {
        let shown = run(&mut project.cargo_scope(&[&["inspect", "out"], args].concat())).ends_with(0);
        let (_, table) = shown.stdout.rsplit_once("\n\n").unwrap();
        table.to_string()
    };
    let names = |table: &str| {
        let names = table.lines().map(|line| line.split_whitespace().next().unwrap().to_string());
        names.take_while(|name| name != "measuring").collect::<Vec<_>>()
    };
    let flat = table(&["--flat", "--sort", "calls", "--columns", "calls,p50,imbalance"]);
    assert_eq!(names(&flat), ["region", "inner", "outer"]);
    let heads: Vec<_> = flat.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(heads, ["region", "calls", "p50", "imbalance"]);
    let first = table(&["--flat", "--sort", "start", "--top", "1"]);
    assert_eq!(names(&first), ["region", "outer", "..."]);
    run(&mut project.cargo_scope(&["inspect", "out", "--sort", "speed"]))
        .ends_with(2)
        .says("`name`, `start`");
    let twice = run(&mut project.cargo_scope(&["inspect", "out", "out/profile.h5", "--json"])).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&twice.stdout).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 2);
    assert_eq!(json[0]["call_paths"][1]["path"], serde_json::json!(["outer", "inner"]));
    assert_eq!(json[1]["call_paths"][1]["calls"], 2);
    assert!(json[1]["call_paths"][1]["p99_ns"].is_number() && json[1]["metadata"]["program"].is_string());
}

/// Calls from the last to the first, those of a thread overlapping, in a file without totals.
fn write_lanes(path: &Path) {
    let calls = 6_000;
    let mut events = Events { thread_ids: Some(vec![1; calls]), ..Events::default() };
    events.start_ns = (0..calls as i64).rev().map(|call| 100 * call).collect();
    events.duration_ns = vec![50; calls];
    (events.start_ns[0], events.start_ns[1]) = (10, 40);
    events.thread_ids.iter_mut().for_each(|threads| threads[..2].fill(0));
    let rows = vec![Row { events: 0..calls, ..Row::default() }];
    let names = vec!["step".to_string()];
    hdf5::write(&MergedProfile { names, rows, events, ..MergedProfile::default() }, path).unwrap();
}

#[test]
fn lanes_that_do_not_nest_are_named() {
    let project = Project::plain("lanes", "fn main() {}");
    let file = project.path("lanes.h5");
    write_lanes(&file);
    let text = "rank 0: a lane is left out: recorded calls are not properly nested";
    for args in [&["inspect", "lanes.h5"][..], &["inspect", "lanes.h5", "--json"]] {
        run(&mut project.cargo_scope(args)).ends_with(0).says(&format!("`lanes.h5`: {text}"));
    }
    for kind in ["prof", "flame"] {
        run(&mut project.cargo_scope(&["export", kind, "lanes.h5"])).ends_with(0).says(text);
    }
}

#[test]
fn the_profile_that_a_selection_does_not_fit_is_named() {
    let project = Project::plain("misfit", "fn main() {}");
    for (name, regions) in [("a.h5", ["step", "solve"]), ("b.h5", ["step", "write"])] {
        let mut events = Events::default();
        (events.start_ns, events.duration_ns) = (vec![0, 10], vec![9, 9]);
        let row =
            |region: u32| Row { region, events: region as usize..region as usize + 1, ..Row::default() };
        let (names, rows) = (regions.map(String::from).to_vec(), vec![row(0), row(1)]);
        let profile = MergedProfile { names, rows, events, ..MergedProfile::default() };
        hdf5::write(&profile, &project.path(name)).unwrap();
    }
    let selections = [
        (["--include", "solve"], "b.h5", "none of the 2 region(s)"),
        (["--ranks", "3"], "a.h5", "there is no rank 3"),
    ];
    for (selection, file, text) in selections {
        for command in
            [&["inspect"][..], &["inspect", "--json"], &["export", "prof", "--label=x", "--label=y"]]
        {
            let args = [command, &["a.h5", "b.h5"], &selection].concat();
            run(&mut project.cargo_scope(&args)).ends_with(1).says(&format!("error: `{file}`: {text}"));
        }
    }
}

/// Which folder was too small, for what.
#[cfg(unix)]
#[test]
fn calls_that_cannot_be_sorted_say_what_it_takes() {
    let project = Project::plain("unsorted", "fn main() {}");
    write_lanes(&project.path("lanes.h5"));
    let text = "failed to sort the calls of `lanes.h5` in a temporary file in `/nowhere`, which takes ";
    let command = &mut project.cargo_scope(&["inspect", "lanes.h5"]);
    run(command.env("TMPDIR", "/nowhere")).ends_with(1).says(text).says("name a folder with room by TMPDIR");
}

/// A file of the Python package's aggregation mode.
#[test]
fn a_profile_with_totals_per_region_shows_them() {
    let project = Project::plain("regions", "fn main() {}");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/aggregate.h5");
    let file = file.to_str().unwrap();
    let shown = run(&mut project.cargo_scope(&["inspect", file])).ends_with(0);
    let (metadata, table) = shown.stdout.rsplit_once("\n\n").unwrap();
    assert!(metadata.ends_with("none: the file has totals per region only"), "{metadata}");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["region", "calls", "total", "self", "mean", "min", "max"]);
    let inner = ["inner", "3", "4.478", "us", "4.478", "us", "1.493", "us", "651", "ns", "2.745", "us"];
    assert_eq!((rows.len(), &rows[3][..]), (4, &inner[..]));

    let options = ["--json", "--include", "work|inner", "--sort", "calls", "--wall"];
    let shown = run(&mut project.cargo_scope(&[&["inspect", file], &options[..]].concat())).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    let regions = json[0]["regions"].as_array().unwrap();
    assert_eq!((regions.len(), &regions[0]["path"][0]), (2, &serde_json::json!("inner")));
    assert_eq!((&regions[1]["total_ns"], &regions[1]["self_ns"]), (&54943.into(), &50465.into()));
    assert!(regions[1]["inclusive_ns"].is_null() && regions[1]["p50_ns"].is_null());

    for kind in ["prof", "flame"] {
        run(&mut project.cargo_scope(&["export", kind, file]))
            .ends_with(1)
            .says("totals per region only")
            .says("record again with events");
    }
}

#[test]
fn source_text_and_arguments_are_kept_unless_they_are_private() {
    let project = Project::with_runtime("private", PROGRAM);
    let kept = |args: &[&str]| {
        run(&mut project.cargo_scope(&[args, &["-o", "out"]].concat())).ends_with(0);
        let profile = cargo_scope::hdf5::read(&project.path("out/profile.h5")).unwrap();
        let texts: Vec<_> = profile.rows.iter().map(|row| row.source_text.trim().to_string()).collect();
        let has = |key: &str| profile.metadata.iter().any(|(name, _)| name == key);
        (texts.join("\n"), has("command_line"))
    };
    let (text, command_line) = kept(&["run"]);
    assert!(text.contains("fn outer() { inner(); inner(); }") && text.contains("fn inner() {}"), "{text}");
    assert!(command_line);
    assert_eq!(kept(&["run", "--private"]), ("\n".to_string(), false));
    let mut cargo = project.command(crate::auxiliary::cargo());
    run(cargo.args(["run", "-q"]).env("SCOPE_OUTPUT", project.path("rec"))).ends_with(0);
    assert!(kept(&["collect", "rec"]).0.contains("fn inner() {}"));
    assert_eq!(kept(&["collect", "rec", "--private"]).0, "\n");
}

#[test]
fn recordings_made_by_hand_are_collected() {
    let project = Project::with_runtime("by-hand", PROGRAM);
    let mut cargo = project.command(crate::auxiliary::cargo());
    run(cargo.args(["run", "-q"]).env("SCOPE_OUTPUT", project.path("rec"))).ends_with(0);
    for path in ["rec", "rec/rank0.scope"] {
        run(&mut project.cargo_scope(&["inspect", path]))
            .ends_with(1)
            .says("`cargo scope collect rec` makes a profile");
    }
    run(&mut project.cargo_scope(&["collect", "rec"])).ends_with(0);
    assert_eq!(calls(&project.path("rec")), [("outer".to_string(), 1), ("inner".to_string(), 2)]);
    assert!(listing(&project.path("rec")).contains(&"rank0.scope".to_string()), "recordings stay");
    // The folder of a run that has no profile is as good as that of its recordings.
    fs::create_dir(project.path("run")).unwrap();
    fs::rename(project.path("rec"), project.path("run/recordings")).unwrap();
    run(&mut project.cargo_scope(&["collect", "run"])).ends_with(0);
    assert_eq!(calls(&project.path("run")), [("outer".to_string(), 1), ("inner".to_string(), 2)]);
    assert!(listing(&project.path("run/recordings")).contains(&"rank0.scope".to_string()), "recordings stay");
    fs::create_dir(project.path("empty")).unwrap();
    run(&mut project.cargo_scope(&["collect", "empty"])).ends_with(1).says("no recording");
    assert!(listing(&project.path("empty")).is_empty());
    run(&mut project.cargo_scope(&["collect", "missing"])).ends_with(1).says("missing");
}

#[test]
fn a_rank_that_left_something_unreadable_is_not_called_idle() {
    let project = Project::with_runtime("unreadable", PROGRAM);
    let mut program = project.command(crate::auxiliary::cargo());
    program.args(["run", "--quiet"]).env("SCOPE_OUTPUT", project.path("rec"));
    program.envs([("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "3")]);
    run(&mut program).ends_with(0);
    project.write("rec/rank1.scope", "nothing of use");
    let ran = run(&mut project.cargo_scope(&["collect", "rec", "-o", "out"]));
    let ran = ran.says("rec/rank1.scope").says("no recording of rank `2` of 3: no region ran there");
    assert_eq!(ran.stderr.matches("no region ran there").count(), 1, "{ran:#?}");
}

#[test]
fn without_a_path_the_latest_run_counts() {
    let project = Project::with_runtime("latest", PROGRAM);
    let scope = |args: &[&str]| {
        let mut command = project.cargo_scope(args);
        command.env("CARGO_TARGET_DIR", project.path("built here"));
        command
    };
    run(&mut scope(&["inspect"]))
        .ends_with(1)
        .says("built here/scope`: run the program by `cargo scope run`");
    run(&mut scope(&["run", "--keep", "1"])).ends_with(0);
    run(&mut scope(&["run", "--keep", "1"])).ends_with(0);
    assert_eq!(listing(&project.path("built here/scope/latest")), ["2", "latest"], "--keep 1");
    let shown = run(&mut scope(&["inspect"])).ends_with(0).says("scope/latest/latest/profile.h5");
    assert!(shown.stdout.contains("outer"), "{}", shown.stdout);
    // Exports go where the user stands: a part must not take the place of the run's own outputs.
    project.write("elsewhere/file", "");
    let mut export = scope(&["export", "flame", "--include", "inner"]);
    run(export.current_dir(project.path("elsewhere"))).ends_with(0);
    assert_eq!(listing(&project.path("elsewhere")), ["file", "flamegraph_rank0.svg"]);
    let outside = tempfile::tempdir().unwrap();
    let mut inspect = project.cargo_scope(&["inspect"]);
    run(inspect.current_dir(outside.path())).ends_with(1).says("no PROFILE was given");
}
