//! Wherever cargo builds, the program just built runs, and its profile lies beside it (case cli-04).

use std::fs;
use std::path::Path;

use crate::auxiliary::{Project, host, listing, run};

const HERE: &str =
    "#[scope_runtime::scope]\nfn work() {}\n\nfn main() {\n    work();\n    println!(\"here\");\n}\n";

/// Checks that run `number` of `name` left its profile below `target`.
#[track_caller]
fn has_profile(target: &Path, name: &str, number: u32) {
    let series = target.join("scope").join(name);
    assert!(series.join(number.to_string()).join("profile.h5").is_file(), "{:?}", listing(&series));
    assert_eq!(fs::read_link(series.join("latest")).unwrap(), Path::new(&number.to_string()));
}

#[test]
fn every_way_to_set_it() {
    let project = Project::with_runtime("here", HERE);
    let scope = |args: &[&str]| {
        let mut command = project.cargo_scope(args);
        command.env_remove("CARGO_TARGET_DIR");
        command
    };
    run(scope(&["run"]).env("CARGO_TARGET_DIR", "elsewhere")).prints("here\n");
    has_profile(&project.path("elsewhere"), "here", 1);
    // A copy of what was built saves building it again for each place.
    let prepare = |name: &str| fs::rename(project.path("elsewhere"), project.path(name)).unwrap();
    prepare("with a space");
    run(scope(&["run"]).env("CARGO_TARGET_DIR", project.path("with a space"))).prints("here\n");
    has_profile(&project.path("with a space"), "here", 2);
    fs::rename(project.path("with a space"), project.path("other-out")).unwrap();
    run(&mut scope(&["run", "--target-dir", "other-out"])).prints("here\n");
    has_profile(&project.path("other-out"), "here", 3);
    project.write("package/.cargo/config.toml", "[build]\ntarget-dir = \"../shared-out\"\n");
    fs::rename(project.path("other-out"), project.path("shared-out")).unwrap();
    let inner = project.path("package");
    for file in ["Cargo.toml", "Cargo.lock", "src/main.rs"] {
        fs::create_dir_all(inner.join(file).parent().unwrap()).unwrap();
        fs::copy(project.path(file), inner.join(file)).unwrap();
    }
    run(scope(&["run"]).current_dir(&inner)).prints("here\n");
    has_profile(&project.path("shared-out"), "here", 4);
}

#[test]
fn profiles_and_triples() {
    let project = Project::with_runtime("triple", HERE);
    let at = |args: &[&str]| project.cargo_scope(&[&["run", "-o", "out"], args].concat());
    // Left by an earlier build elsewhere: where somebody who guesses the path would look.
    project.write("target/bench-like/triple", "#!/bin/sh\necho stale\n");
    run(&mut at(&["--profile", "bench-like"])).prints("here\n").says("bench-like/triple");
    let profile = cargo_scope::hdf5::read(&project.path("out/profile.h5")).unwrap();
    let text = |text: &str| Some(cargo_scope::merged::MetadataValue::Text(text.into()));
    assert_eq!(profile.metadata_value("build_profile").cloned(), text("bench-like"));
    assert_eq!(profile.metadata_value("label").cloned(), text("triple"));
    run(&mut at(&["--target", &host()])).prints("here\n").says(&format!("{}/debug/triple", host()));
    run(at(&[]).env("CARGO_BUILD_TARGET", host())).prints("here\n").says(&format!("{}/debug/triple", host()));
    run(&mut at(&["--features", "extra"])).prints("here\n");
}

#[test]
fn another_cargo_is_used() {
    let project = Project::plain("other-cargo", "fn main() { println!(\"here\"); }");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >>'{}'\nexec '{}' \"$@\"\n",
        project.path("log").display(),
        crate::auxiliary::cargo()
    );
    project.write_script("my-cargo", &script);
    run(project.binary().arg("run").env("CARGO", project.path("my-cargo"))).prints("here\n");
    let log = fs::read_to_string(project.path("log")).unwrap();
    assert!(log.contains("build ") && log.contains("run "), "{log}");
    run(project.binary().arg("run").env("CARGO", project.path("missing"))).ends_with(1).says("missing");
}
