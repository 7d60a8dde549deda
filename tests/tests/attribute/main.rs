//! The attribute in packages of their own: other editions, a renamed dependency, other attributes,
//! the feature `off`, and what the compiler says with and without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::package::{Package, empty_folder, runtime};
use tests::{subcommand, tools};

/// A file beside this one.
fn source(file: &str) -> String {
    fs::read_to_string(tools::in_tests("tests/attribute").join(file)).unwrap()
}

/// What the compiler says, without cargo's own lines.
#[track_caller]
fn messages(mut command: Command) -> String {
    let stderr = String::from_utf8(tools::output(&mut command).stderr).unwrap();
    // Cargo starts its lines with a word that ends at the same column.
    let is_cargos = |line: &&str| {
        let (verb, rest) = line.split_at_checked(12).unwrap_or(("", line));
        rest.starts_with(' ') && verb.trim_start().starts_with(char::is_uppercase)
    };
    stderr.lines().filter(|line| !is_cargos(line)).map(|line| format!("{line}\n")).collect()
}

/// The same source without attribute and `region!`, line for line.
fn unmarked(source: &str) -> String {
    let ours = ["#[scope]", "#[scope(", "use scope_runtime::scope;", "scope_runtime::region!("];
    let is_ours = |line: &str| ours.iter().any(|start| line.trim_start().starts_with(start));
    source.lines().map(|line| if is_ours(line) { "\n".into() } else { format!("{line}\n") }).collect()
}

/// Compares what clippy, which says what rustc says and more, has to say about a file with and
/// without the attribute: at least `count` messages.
#[track_caller]
fn check_same_messages(name: &str, count: usize) {
    let marked = source(&format!("same_messages/{name}.rs"));
    for edition in ["2021", "2024"] {
        let said = |source: &str| {
            let name = format!("{}-{edition}", name.replace('_', "-"));
            let dependencies = runtime("scope-runtime", "");
            let package = Package::of_files(&name, edition, &[("src/main.rs", source)], &[&dependencies]);
            messages(package.cargo(&["clippy"]))
        };
        let (with, without) = (said(&marked), said(&unmarked(&marked)));
        assert!(without.matches("--> src/main.rs").count() >= count, "{without}");
        assert_eq!(with, without, "edition {edition}");
    }
}

#[test]
fn errors_of_types_are_the_same_with_and_without() {
    check_same_messages("type_errors", 25);
}

#[test]
fn errors_of_borrowing_are_the_same_with_and_without() {
    check_same_messages("borrow_errors", 8);
}

#[test]
fn warnings_are_the_same_with_and_without() {
    check_same_messages("warnings", 25);
}

/// The files that compile without a warning, as modules of one program.
fn pass_files() -> Vec<(String, PathBuf)> {
    let folder = subcommand::workspace().join("scope-macros/tests/ui/pass");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |file: &Path| file.file_stem().unwrap().to_str().unwrap().to_owned();
    files.map(|file| (name(&file), file)).collect()
}

#[test]
fn what_passes_in_this_edition_passes_in_older_ones() {
    let files = pass_files();
    assert!(files.len() >= 5, "{files:?}");
    let modules = files.iter().map(|(name, file)| format!("#[path = {file:?}]\nmod {name};\n"));
    let calls = files.iter().map(|(name, _)| format!("    {name}::main();\n"));
    let program = format!("{}\nfn main() {{\n{}}}\n", modules.collect::<String>(), calls.collect::<String>());
    for edition in ["2018", "2021"] {
        let name = format!("passes-in-{edition}");
        let dependencies = runtime("scope-runtime", "");
        let package = Package::of_files(&name, edition, &[("src/main.rs", &program)], &[&dependencies]);
        assert_eq!(messages(package.cargo(&["clippy", "--", "-D", "warnings"])), "", "edition {edition}");
        tools::succeed(&mut package.cargo(&["run", "--quiet"]));
    }
}

#[test]
fn other_attributes_stand_before_and_behind() {
    let source = source("other_attributes.rs");
    let dependencies = [
        &runtime("scope-runtime", ""),
        "async-trait = \"0.1\"",
        "rstest = { version = \"0.26\", default-features = false }",
        "tokio = { version = \"1\", features = [\"rt\", \"macros\"] }",
        "tracing = { version = \"0.1\", default-features = false, features = [\"attributes\", \"std\"] }",
    ];
    let package = Package::of_files("other-attributes", "2021", &[("src/main.rs", &source)], &dependencies);
    let passed = tools::succeed(&mut package.cargo(&["test", "--quiet"]));
    assert!(passed.contains("test result: ok. 11 passed; 0 failed; 1 ignored"), "{passed}");
}

/// The code of a package's library, as the assembler gets it.
#[track_caller]
fn assembly(package: &Package, name: &str) -> String {
    let file = empty_folder(&format!("{name}.s"));
    let emit = format!("--emit=asm={}", file.display());
    let options = ["rustc", "--quiet", "--release", "--lib", "--", &emit, "-Ccodegen-units=1", "-Adead_code"];
    tools::succeed(&mut package.cargo(&options));
    fs::read_to_string(&file).unwrap()
}

#[test]
fn with_the_feature_off_a_function_has_the_machine_code_that_it_has_without_the_attribute() {
    let marked = source("off.rs");
    let code = |source: &str, more: &str| {
        let dependencies = runtime("scope-runtime", more);
        let package = Package::of_files("off", "2024", &[("src/lib.rs", source)], &[&dependencies]);
        assembly(&package, "off")
    };
    let off = code(&marked, ", features = [\"off\"]");
    let without = code(&unmarked(&marked), ", features = [\"off\"]");
    let on = code(&marked, "");
    assert!(off.contains("sum_of_squares") && off.contains("Grid"), "{off}");
    assert!(on.len() > 2 * off.len(), "{} and {} bytes", on.len(), off.len());
    assert_eq!(off, without);
}

#[test]
fn with_the_feature_off_nothing_is_recorded_and_nothing_written() {
    let source = source("off.rs");
    let main = "use std::{future::Future, pin::pin, task::{Context, Waker}};\n\
        use scope_runtime::ScopeFuture;\n\
        fn main() {\n    let mut future = pin!(async {}.in_region(\"future\"));\n    \
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());\n    \
        off_run::all();\n}\n";
    let dependencies = runtime("scope-runtime", ", features = [\"off\"]");
    let files = [("src/lib.rs", source.as_str()), ("src/main.rs", main)];
    let package = Package::of_files("off-run", "2024", &files, &[&dependencies]);
    assert_eq!(messages(package.cargo(&["clippy", "--", "-D", "warnings"])), "");
    let folder = empty_folder("off-run");
    let mut command = package.cargo(&["run", "--quiet"]);
    tools::succeed(command.env("SCOPE_OUTPUT", &folder));
    assert!(!folder.exists(), "{}", folder.display());
}
