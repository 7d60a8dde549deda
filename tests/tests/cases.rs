//! Programs on which tools of this kind have failed, each run by `cargo scope run`; the head of
//! each file in `tests/cases` says what must hold.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use scope_runtime::pstats;
use scope_runtime::recording::Recording;
use tests::outputs::{Run, files_below, integer};
use tests::package::{Package, empty_folder, runtime};
use tests::{subcommand, tools};

const LIBC: &str = "libc = \"0.2\"";

/// Runs the program of a case, without arguments.
#[track_caller]
fn run(case: &str, code: i32) -> Run {
    Package::of_case(case, &[]).run(&[]).expect_status(code)
}

#[test]
fn exit_01_exit_inside_regions() {
    let run = run("exit-01", 7);
    let calls = run.check_outputs();
    assert_eq!(calls.counts(), BTreeMap::from([("done_before", 3), ("inner", 1), ("outer", 1)]));
    let profile = run.profile();
    assert_eq!(integer(&profile, "open_calls"), 2);
    let end_ns = integer(&profile, "finalize_time_ns");
    let last_ns = calls.named("done_before").map(|call| call.end_ns).max().unwrap();
    for name in ["outer", "inner"] {
        let call = calls.named(name).next().unwrap();
        assert!((last_ns..=end_ns).contains(&call.end_ns), "{call:?} ends between {last_ns} and {end_ns}");
    }
}

#[test]
fn exit_02_fork_then_exit() {
    let run = Package::of_case("exit-02", &[LIBC]).run(&[]).expect_status(0);
    let calls = run.check_outputs();
    let parent = BTreeMap::from([("before", 1), ("parent_only", 1), ("background", 10_000)]);
    assert_eq!(calls.counts(), parent);
    // The child wrote a recording of its own; it is named and kept.
    let mut others = files_below(&run.folder);
    others
        .retain(|file| file.extension().is_some_and(|end| end == "scope") && !file.ends_with("rank0.scope"));
    let [of_child] = &others[..] else { panic!("{others:?}") };
    assert!(run.stderr.contains(of_child.file_name().unwrap().to_str().unwrap()), "{}", run.stderr);
    let child = Recording::open(of_child).unwrap();
    let regions: Vec<_> = child.profile().regions.iter().map(|region| region.name.as_str()).collect();
    let calls: Vec<_> = child.profile().paths.nodes().iter().map(|path| path.calls).collect();
    assert_eq!((regions, calls), (vec!["child_only"], vec![1]));
}

#[test]
fn exit_04_every_way_out() {
    let run = run("exit-04", 0);
    let calls = run.check_outputs();
    assert_eq!(calls.counts(), BTreeMap::from([("parse", 6), ("step", 10), ("tail", 5)]));
    assert_eq!(calls.parents("step"), [Some("parse"); 10]);
    assert_eq!(calls.parents("parse"), [None; 6]);
    // The program sleeps 50 ms at its end: what was closed, was closed before. A millisecond less
    // leaves room for two clocks that do not agree to the last digit.
    let profile = run.profile();
    assert_eq!(integer(&profile, "open_calls"), 0);
    let before_the_sleep_ns = integer(&profile, "finalize_time_ns") - 49_000_000;
    for call in ["parse", "step", "tail"].iter().flat_map(|name| calls.named(name)) {
        assert!(call.end_ns <= before_the_sleep_ns, "{call:?} ends after {before_the_sleep_ns}");
    }
}

#[test]
fn exit_05_two_sessions() {
    let run = run("exit-05", 0);
    let calls = run.check_outputs();
    // `cargo scope run` turns recording on from the start, so the first `early` counts; the second
    // comes after the outermost end.
    assert_eq!(calls.counts(), BTreeMap::from([("early", 1), ("still_on", 1)]));
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
}

#[test]
fn threads_01_region_in_a_thread_local_destructor() {
    let run = run("threads-01", 0);
    for wrong in ["Thread Local Storage", "panicked", "fatal"] {
        assert!(!run.stderr.contains(wrong), "{}", run.stderr);
    }
    let calls = run.check_outputs();
    assert_eq!(calls.count("work"), 4);
    // Two of four destructors run after the runtime's own thread-local is gone.
    let missed = integer(&run.profile(), "lost_calls");
    assert_eq!(calls.count("closing") as i64 + missed, 4);
}

#[test]
fn threads_02_pool_that_never_ends() {
    let run = run("threads-02", 0);
    assert_eq!(run.stdout, "all twelve done\n");
    assert_eq!(run.check_outputs().counts(), BTreeMap::from([("chunk", 12)]));
}

#[test]
fn threads_03_unwinding() {
    let run = run("threads-03", 0);
    assert_eq!(run.stderr.matches("bottom reached on purpose").count(), 2, "{}", run.stderr);
    for wrong in ["oison", "while panicking", "in a destructor", "aborting"] {
        assert!(!run.stderr.contains(wrong), "{}", run.stderr);
    }
    let calls = run.check_outputs();
    assert_eq!(calls.counts(), BTreeMap::from([("level", 8), ("tidy", 8), ("afterwards", 2)]));
    assert_eq!(integer(&run.profile(), "open_calls"), 0);
    assert_eq!(calls.parents("tidy"), [Some("level"); 8]);
    assert_eq!(calls.parents("afterwards"), [None; 2]);
    let threads: Vec<_> = calls.named("afterwards").map(|call| call.thread).collect();
    assert_ne!(threads[0], threads[1]);
    // On each thread the four levels lie inside each other, each with its own value to tidy up.
    let paths = calls.paths();
    for depth in 1..=4 {
        let mut path = vec!["level"; depth];
        assert_eq!(paths[&path].calls, 2, "{path:?}");
        path.push("tidy");
        assert_eq!(paths[&path].calls, 2, "{path:?}");
    }
}

#[test]
fn export_04_nothing_recorded() {
    let package = Package::of_case("export-04", &[]);
    for (arguments, blinks) in [(&[][..], 0), (&["zero"], 1), (&["late"], 0)] {
        let run = package.run(arguments).expect_status(0);
        let calls = run.check_outputs();
        assert_eq!(calls.count("blink"), blinks, "{arguments:?}");
        assert!(std::fs::metadata(run.flame_graph_file()).unwrap().len() > 0);
        assert!(!run.stderr.contains("No stack counts found"), "{}", run.stderr);
        if blinks == 0 {
            assert!(run.flame_graph().to_lowercase().contains("nothing"), "{}", run.flame_graph());
            assert!(run.stderr.to_lowercase().contains("no region"), "{}", run.stderr);
        }
        if let Some(python) = tools::python() {
            let load = "import pstats, sys; pstats.Stats(sys.argv[1]).print_stats()";
            tools::succeed(Command::new(python).arg("-c").arg(load).arg(run.prof_file()));
        }
    }
}

#[test]
fn hdf5_01_slashes_in_names() {
    let run = run("hdf5-01", 0);
    let calls = run.check_outputs();
    let expected = [
        ("io", 1),
        ("io/read", 2),
        ("io/read/fast", 1),
        ("/abs", 1),
        ("trail/", 1),
        ("a//b", 1),
        ("io%2Fread", 1),
        ("../up", 1),
    ];
    assert_eq!(calls.counts(), BTreeMap::from(expected));
    for (name, _) in expected {
        assert!(calls.parents(name).iter().all(Option::is_none), "{name}");
    }
    if let Some(h5dump) = tools::h5dump() {
        let dump = tools::succeed(Command::new(h5dump).arg(run.profile_file()));
        for (name, _) in expected {
            assert!(dump.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}

#[test]
fn hdf5_02_no_room_for_the_file() {
    let package = Package::of_case("hdf5-02", &[LIBC]);
    let folder = empty_folder("hdf5-02");
    let run = |arguments: &[&str]| {
        let mut command = package.cargo_scope(&["run", "-o"]);
        command.arg(&folder).arg("--").args(arguments);
        Run::start(&mut command, folder.clone()).expect_status(0)
    };
    let first = run(&[]);
    assert_eq!(first.check_outputs().counts(), BTreeMap::from([("cell", 50_000)]));
    let full = run(&["full"]);
    assert_eq!(full.stdout, first.stdout);
    let reasons = full.stderr.lines().filter(|line| line.contains("File too large"));
    let [reason] = reasons.collect::<Vec<_>>()[..] else { panic!("{}", full.stderr) };
    assert!(reason.contains("rank0.scope"), "{reason}");
    assert!(!full.stderr.contains("panicked"), "{}", full.stderr);
    // The limit is the program's own, so there are outputs, of which no part is left elsewhere: the
    // totals of all calls, some of which are not in the timeline.
    let profile = full.profile();
    assert_eq!(integer(&profile, "lost_calls"), 0);
    let calls: u64 = profile.paths.as_ref().unwrap().iter().map(|path| path.calls).sum();
    assert_eq!(calls, 50_000);
    let names: Vec<_> =
        files_below(&folder).iter().map(|file| file.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["flamegraph_rank0.svg", "profile.h5", "profile_rank0.prof"]);
}

#[test]
fn limits_03_very_deep() {
    let package = Package::of_case("limits-03", &[]);
    let run = package.run(&[]).expect_status(0);
    let profile = run.profile();
    assert_eq!((profile.names.len(), profile.events.start_ns.len()), (1, 100_000));
    let parents = profile.events.parent_ids.as_ref().unwrap();
    assert!(parents.iter().zip(-1..).all(|(&parent, above)| parent == above));
    // A path per level, none longer than the bound of labels.
    let prof = pstats::load_prof(File::open(run.prof_file()).unwrap()).unwrap();
    assert_eq!(prof.entries().len(), 100_001);
    assert!(std::fs::metadata(run.prof_file()).unwrap().len() < 100_000 * 2_000);
    assert!(run.flame_graph().contains("levels"), "levels that are left out are counted");
    let mut export = package.cargo_scope(&["export", "prof", "--no-call-paths"]);
    tools::succeed(export.arg("-o").args([&run.folder; 2]));
    let prof = pstats::load_prof(File::open(run.prof_file()).unwrap()).unwrap();
    let dig = prof.entries().iter().find(|entry| &*entry.key.name == "dig").unwrap();
    assert_eq!((dig.nc, dig.cc), (100_000, 1));
    assert_eq!((dig.ct_s * 1e9).round() as i64, profile.events.duration_ns[0], "counted once");
}

/// The million names are looked at by the runtime's own reader: an HDF5 file of them takes minutes where
/// nothing is optimised.
#[test]
fn limits_04_many_names() {
    if !tools::has_time() {
        return;
    }
    let folder = empty_folder("limits-04");
    let mut program = Command::new(Package::of_case("limits-04", &[]).build_optimised());
    subcommand::without_traces_of_the_test(&mut program);
    tools::succeed(program.env("SCOPE_OUTPUT", &folder));
    let recording = Recording::open(&folder.join("rank0.scope")).unwrap();
    let profile = recording.profile();
    assert_eq!((profile.regions.len(), profile.lost_calls), (1_000_001, 0));
    let paths = profile.paths.nodes();
    assert!(paths.len() == 1_000_001 && paths.iter().all(|path| path.calls == 2));
    // A name is kept once: its definition, and 8 bytes for each of two calls.
    let size = std::fs::metadata(folder.join("rank0.scope")).unwrap().len();
    assert!(size < 150 * 1_000_000, "{size} bytes");
}

#[test]
fn limits_05_many_threads() {
    let package = Package::of_case("limits-05", &[]);
    let run = package.run(&[]).expect_status(0);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    assert_eq!(run.check_outputs().counts(), BTreeMap::from([("job", 20_500)]));
    assert_eq!(run.profile().threads.unwrap().len(), 20_500);
    assert!(run.flame_graph().len() < 100_000);
    // Threads that end give their buffers back: what 20,000 of them recorded takes little beside the
    // buffers of those that live at the same time.
    let folder = empty_folder("limits-05-recording");
    let mut program = Command::new(package.build());
    subcommand::without_traces_of_the_test(&mut program);
    tools::succeed(program.env("SCOPE_OUTPUT", &folder));
    let size = std::fs::metadata(folder.join("rank0.scope")).unwrap().len();
    assert!(size < 64 << 20, "{size} bytes");
}

/// The package is called `echo`, as in the lines that people type.
fn echo() -> Package {
    let source = std::fs::read_to_string(tools::in_tests("cases/cli-02_program_arguments.rs")).unwrap();
    Package::new("echo", &source, &[])
}

#[test]
fn cli_02_program_arguments() {
    let echo = echo();
    let prints = |mut command: Command, expected: &str| {
        assert_eq!(tools::succeed(&mut command), expected, "{command:?}");
    };
    prints(echo.cargo_scope(&["run", "--", "a", "b"]), "[a]\n[b]\n");
    prints(echo.cargo_scope_itself(&["scope", "run", "--", "a", "b"]), "[a]\n[b]\n");
    prints(echo.cargo_scope_itself(&["run", "--", "a", "b"]), "[a]\n[b]\n");
    prints(echo.cargo_scope(&["run", "--", "scope", "run"]), "[scope]\n[run]\n");
    prints(echo.cargo_scope(&["run", "--release", "--", "--release"]), "[--release]\n");
    let options = ["run", "--", "--bin", "x", "--help", "-V"];
    prints(echo.cargo_scope(&options), "[--bin]\n[x]\n[--help]\n[-V]\n");
    prints(echo.cargo_scope(&["run", "--", "--message-format=json"]), "[--message-format=json]\n");
    prints(echo.cargo_scope(&["run", "--", "", "two words", "*"]), "[]\n[two words]\n[*]\n");
}

#[test]
fn cli_02_help_and_version_are_the_tools_own() {
    let echo = echo();
    let help = tools::succeed(&mut echo.cargo_scope(&["--help"]));
    assert!(help.contains("Usage: cargo scope"), "{help}");
    let help = tools::succeed(&mut echo.cargo_scope(&["run", "--help"]));
    assert!(help.contains("Usage: cargo scope run") && help.contains("--output"), "{help}");
    let version = tools::succeed(&mut echo.cargo_scope(&["--version"]));
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
}

#[test]
fn cli_02_standard_input_is_the_programs() {
    let source = "fn main() { std::io::copy(&mut std::io::stdin(), &mut std::io::stdout()).unwrap(); }\n";
    let package = Package::new("reads-input", source, &[]);
    let input = package.folder().join("src/main.rs");
    let mut command = package.cargo_scope(&["run"]);
    let output = command.stdin(std::fs::File::open(input).unwrap()).output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), source);
}

#[test]
fn cli_03_status_of_the_program() {
    let package = Package::of_case("cli-03", &[LIBC]);
    for (word, code) in [("ok", 0), ("three", 3), ("panic", 101)] {
        let run = package.run(&[word]).expect_status(code);
        assert_eq!(run.check_outputs().counts(), BTreeMap::from([("attempt", 1)]), "{word}");
    }
}

#[test]
fn cli_03_killed_program() {
    let run = Package::of_case("cli-03", &[LIBC]).run(&["kill"]);
    // A tool that dies of the same signal is what a shell shows as 137.
    assert_eq!(run.status.signal(), Some(9), "{}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    assert_eq!(run.check_outputs().counts(), BTreeMap::from([("attempt", 1)]));
}

#[test]
fn cli_03_failed_build() {
    let package = Package::new("cli-03-broken", "fn main() { no_such_function(); }\n", &[]);
    let built = tools::output(&mut package.cargo(&["build"])).status;
    let run = package.run(&[]).expect_status(built.code().unwrap());
    assert_eq!(run.stdout, "");
    assert!(!run.folder.exists(), "{:?}", files_below(&run.folder));
}

#[test]
fn macro_01_glob_import_in_body() {
    let calls = run("macro-01", 0).check_outputs();
    assert_eq!(calls.counts(), BTreeMap::from([("weigh", 1), ("weigh again", 1)]));
}

#[test]
fn macro_07_work_before_a_boxed_future() {
    let tokio = "tokio = { version = \"1\", features = [\"rt\", \"macros\"] }";
    let run = Package::of_case("macro-07", &[tokio]).run(&[]).expect_status(0);
    assert_eq!(run.check_outputs().counts(), BTreeMap::from([("prepare", 1)]));
}

#[test]
fn macro_09_renamed_dependency() {
    let source = std::fs::read_to_string(tools::in_tests("cases/macro-09_renamed_dependency.rs")).unwrap();
    let files = [("src/main.rs", source.as_str())];
    let package = Package::of_files("macro-09", "2021", &files, &[&runtime("stopwatch", "")]);
    assert_eq!(package.run(&[]).expect_status(0).check_outputs().counts(), BTreeMap::from([("tick", 1)]));
}

#[test]
fn macro_10_wrong_item_one_error() {
    let package = Package::of_case("macro-10", &[]);
    let output = tools::output(&mut package.cargo(&["check"]));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    let errors: Vec<_> = said.lines().filter(|line| line.starts_with("error")).collect();
    let goes_on = "error: #[scope] goes on a function with a body, an `impl`, an inline `mod` or a `trait`";
    assert_eq!(errors[..2], [goes_on; 2], "{said}");
    assert_eq!(errors.len(), 3, "{said}");
    assert!(errors[2].starts_with("error: could not compile"), "{said}");
    for place in ["--> src/main.rs:11:1", "--> src/main.rs:16:1"] {
        assert!(said.contains(place), "{said}");
    }
}

#[test]
fn macro_08_methods_made_by_macro_rules() {
    let calls = run("macro-08", 0).check_outputs();
    assert_eq!(calls.counts(), BTreeMap::from([("Gauge::read", 1), ("fixed name", 1), ("twice", 1)]));
}

#[test]
fn macro_11_arguments_are_not_recorded() {
    let run = run("macro-11", 0);
    assert_eq!(run.check_outputs().counts(), BTreeMap::from([("unlock", 1), ("unlock generic", 1)]));
    // The file may be compressed, so its meaning is searched as well as its bytes.
    let meaning = format!("{:?}", run.profile());
    for secret in ["hunter2", "PIN-0000"] {
        assert!(!meaning.contains(secret));
        for file in files_below(&run.folder) {
            let bytes = std::fs::read(&file).unwrap();
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} is in {}", file.display());
        }
    }
}

#[test]
fn without_the_subcommand_nothing_is_written_and_nothing_printed() {
    let source = "\
use scope_runtime::scope;

#[scope]
fn step(n: u64) -> u64 {
    scope_runtime::region!(\"inside\");
    n + 1
}

#[scope]
fn main() {
    let thread = std::thread::spawn(|| (0..1000).fold(0, |n, _| step(n)));
    assert_eq!(thread.join().unwrap(), 1000);
}
";
    let program = Package::new("started-plainly", source, &[]).build();
    let folder = empty_folder("started-plainly");
    std::fs::create_dir(&folder).unwrap();
    let mut command = Command::new(&program);
    subcommand::without_traces_of_the_test(&mut command);
    let output = tools::output(command.current_dir(&folder));
    assert!(output.status.success());
    assert_eq!((output.stdout, output.stderr), (Vec::new(), Vec::new()));
    assert_eq!(files_below(&folder), Vec::<std::path::PathBuf>::new());
}
