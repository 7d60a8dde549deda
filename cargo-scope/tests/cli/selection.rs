//! The program that runs is the one that `cargo run` runs (case cli-01).

use std::path::Path;

use crate::auxiliary::{Project, listing, run};

#[test]
fn the_target_is_the_one_of_cargo_run() {
    let project = Project::of_case("cli-01_workspace");
    let prints = |args: &[&str], word: &str| {
        let ran = run(&mut project.cargo_scope(args)).prints(&format!("{word}\n"));
        // What cargo itself runs, from the same words.
        let mut cargo = project.command(crate::auxiliary::cargo());
        run(cargo.args(args)).prints(&ran.stdout);
        ran
    };
    prints(&["run"], "alpha-main");
    let built = listing(&project.path("target/debug"));
    assert!(!built.contains(&"beta".into()) && !built.contains(&"other".into()), "{built:?}");
    prints(&["run", "--release"], "alpha-main").says("target/release/alpha");
    prints(&["run", "-r"], "alpha-main").says("target/release/alpha");
    prints(&["run", "--bin", "other"], "alpha-other");
    prints(&["run", "-p", "beta"], "beta-main");
    prints(&["run", "-p", "beta@0.1.0"], "beta-main");
    prints(&["run", "--package", "beta", "--example", "show"], "beta-show");
    prints(&["run", "--manifest-path", "beta/Cargo.toml"], "beta-main");
    run(project.cargo_scope(&["run"]).current_dir(project.path("beta"))).prints("beta-main\n");
    assert_eq!(listing(&project.path("target/scope")), [""; 0], "nothing was recorded");
}

#[test]
fn cargo_says_what_is_wrong_with_a_choice() {
    let project = Project::of_case("cli-01_workspace");
    let refused = |args: &[&str], text: &str| {
        let ran = run(&mut project.cargo_scope(args)).ends_with(101).says(text);
        assert!(ran.stdout.is_empty() && !ran.stderr.contains("panicked"), "{ran:#?}");
    };
    refused(&["run", "--bin", "nope"], "no bin target named `nope`");
    refused(&["run", "--bin"], "Available binaries:");
    refused(&["run", "-p", "nope"], "nope");
    refused(&["run", "--features", "nope"], "nope");
    project.write("Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [\"alpha\", \"beta\"]\n");
    project
        .write("alpha/Cargo.toml", "[package]\nname = \"alpha\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    refused(&["run"], "could not determine which binary to run");
    assert!(!Path::new(&project.path("target/debug/alpha")).exists(), "nothing is built for it");
}

#[test]
fn a_wrong_option_is_status_2() {
    let project = Project::plain("wrong-option", "fn main() {}");
    run(&mut project.cargo_scope(&["run", "--bim", "x"])).ends_with(2).says("--bin");
    run(&mut project.cargo_scope(&["export", "prof", "x.h5", "--ranks", "two"])).ends_with(2).says("two");
}

#[test]
fn a_named_target_gets_the_features_that_it_requires() {
    let project = Project::with_runtime("required", "fn main() {}\n");
    let example =
        "#[scope_runtime::scope]\nfn main() {\n    println!(\"{}\", cfg!(feature = \"extra\"));\n}\n";
    project.write("examples/wanting.rs", example);
    let target = "[[example]]\nname = \"wanting\"\nrequired-features = [\"extra\"]\n";
    project.append("Cargo.toml", target);
    let scope = |args: &[&str]| {
        let args = [&["run", "--example", "wanting"], args].concat();
        run(&mut project.cargo_scope(&args)).ends_with(0).prints("true\n")
    };
    scope(&[]).says("required/extra (required by the target)");
    scope(&["--no-default-features"]).says("required/extra (required by the target)");
    for given in ["--features=extra", "--features=required/extra", "--all-features"] {
        let ran = scope(&[given]);
        assert!(!ran.stderr.contains("required by"), "{given}: {}", ran.stderr);
    }
}
