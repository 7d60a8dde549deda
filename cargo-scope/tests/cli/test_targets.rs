//! `cargo scope test` and `cargo scope bench`: each program has a profile of its own.

use crate::auxiliary::{Project, calls, listing, run};

const LIB: &str = "
    #[scope_runtime::scope]
    pub fn work() {}

    #[test]
    fn unit() {
        work();
    }
";

const TEST: &str = r#"
    #[test]
    fn slow() {
        (0..2).for_each(|_| tested::work());
    }

    #[test]
    #[ignore]
    fn fails() {
        (0..3).for_each(|_| tested::work());
        panic!("on purpose");
    }

    #[test]
    #[ignore]
    fn starts_the_program() {
        tested::work();
        assert!(std::process::Command::new(env!("CARGO_BIN_EXE_tested")).status().unwrap().success());
    }
"#;

fn project() -> Project {
    let project = Project::with_runtime("tested", "fn main() { tested::work() }\n");
    project.append("Cargo.toml", "\n[[bench]]\nname = \"speed\"\nharness = false\n");
    project.write("src/lib.rs", LIB);
    project.write("tests/it.rs", TEST);
    project.write("benches/speed.rs", "fn main() { (0..4).for_each(|_| tested::work()) }\n");
    project
}

fn worked(times: usize) -> Vec<(String, usize)> {
    vec![("work".to_string(), times)]
}

#[test]
fn every_test_program_has_a_profile_of_its_own() {
    let project = project();
    let ran = run(&mut project.cargo_scope(&["test", "-o", "out"])).ends_with(0);
    assert!(
        ran.stdout.contains("test unit ... ok") && ran.stdout.contains("test slow ... ok"),
        "{}",
        ran.stdout
    );
    // The library and the binary are both called `tested`; the binary has no tests.
    assert_eq!(listing(&project.path("out")), ["it", "tested-lib"]);
    assert_eq!(calls(&project.path("out/tested-lib")), worked(1));
    assert_eq!(calls(&project.path("out/it")), worked(2));
    let expected = ["flamegraph_rank0.svg", "profile.h5", "profile_rank0.prof"];
    assert_eq!(listing(&project.path("out/it")), expected);

    run(&mut project.cargo_scope(&["test", "it", "-o", "one", "--", "slow"])).ends_with(0);
    assert_eq!(listing(&project.path("one")), expected, "one program needs no folder of its own");
    run(&mut project.cargo_scope(&["test", "--test", "it", "--", "nothing_is_called_so"]))
        .ends_with(0)
        .says("no region of `it` was recorded");

    let mut failing = project.cargo_scope(&["test", "it", "-o", "failing", "--", "--ignored", "fails"]);
    run(&mut failing).ends_with(101).says("test failed");
    assert_eq!(calls(&project.path("failing")), worked(3));

    project.append("Cargo.toml", "\n[[test]]\nname = \"it\"\ntest = false\n\n[[bin]]\nname = \"tested\"\ntest = false\n\n[lib]\ntest = false\n");
    run(&mut project.cargo_scope(&["test"])).ends_with(0).says("none of the targets is a program");
}

#[test]
fn what_tests_start_is_named_and_kept() {
    let project = project();
    let args = ["test", "it", "-o", "out", "--", "--ignored", "starts_the_program"];
    run(&mut project.cargo_scope(&args)).ends_with(0).says("1 recording is of other programs");
    assert_eq!(calls(&project.path("out")), worked(1));
    assert_eq!(listing(&project.path("out/recordings")).len(), 2);
}

#[test]
fn a_filter_in_the_place_of_a_name_is_told_where_it_goes() {
    let project = project();
    for args in [&["test", "slow"][..], &["test", "--lib", "slow"], &["test", "--test", "it", "slow"]] {
        let ran = run(&mut project.cargo_scope(args)).ends_with(1);
        ran.says("no target is called `slow` (there are: it, speed, tested)")
            .says("`cargo scope test -- slow`");
    }
}

#[test]
fn benches_are_run_as_cargo_bench_does() {
    let project = project();
    // Unoptimized, since the dependencies are built so for the other tests.
    run(&mut project.cargo_scope(&["bench", "speed", "--profile", "dev", "-o", "out"])).ends_with(0);
    assert_eq!(calls(&project.path("out")), worked(4));
    run(&mut project.cargo_scope(&["bench", "--profile", "dev", "--bench", "speed"])).ends_with(0);
    let series = project
        .cargo_scope(&["--help"])
        .get_envs()
        .find(|(name, _)| *name == "CARGO_TARGET_DIR")
        .unwrap()
        .1
        .unwrap()
        .to_owned();
    let latest = std::path::Path::new(&series).join("scope/speed/latest");
    assert_eq!(calls(&latest), worked(4));
}
