//! The pictures in a real browser: snakeviz draws the `.prof`, and the flame graph works by itself.

use tests::outputs::Run;
use tests::package::{Package, empty_folder};
use tests::subcommand;
use tests::tools::{self, Snakeviz};

/// Names that pictures and pages get wrong, from the root to the leaf.
const NAMES: [&str; 5] = ["Vec<Cell>::step", "halo & edge", "say \"hello\"", "it's <b>", "one;two"];

/// Each of the names inside the one before it, and a wide frame for the innermost: the labels of
/// call paths are long.
fn nested(name: &str) -> Run {
    let source = format!(
        "\
fn nest(names: &[&str]) {{
    let Some((first, rest)) = names.split_first() else {{
        return std::thread::sleep(std::time::Duration::from_millis(100));
    }};
    let _guard = scope_runtime::enter(first);
    std::thread::sleep(std::time::Duration::from_millis(1));
    nest(rest);
}}

fn main() {{
    nest(&{NAMES:?});
}}
"
    );
    Package::new("nested-names", &source, &[]).run(&[name]).expect_status(0)
}

fn heat(name: &str) -> Run {
    let folder = empty_folder(name);
    let mut command = subcommand::cargo_with_scope();
    command.args(["scope", "run", "--release", "--example", "heat", "-o"]).arg(&folder);
    // One thread waits for nobody, so that most of the time is in `sweep` on any machine.
    command.args(["--", "--size", "200", "--steps", "20", "--threads", "1"]);
    Run::start(command.current_dir(subcommand::workspace()), folder).expect_status(0)
}

/// The icicle has one root, and labels with each of `names`.
fn check_icicle(run: &Run, names: &[&str]) {
    let (Some(python), Some(_)) = (tools::python(), tools::browser()) else { return };
    let snakeviz = Snakeviz::start(&python, &run.prof_file());
    tools::run_browser("snakeviz.mjs", &[&[&*snakeviz.url, " rank 0>"], names].concat());
}

/// The flame graph has frames of `names` that can be found and zoomed.
fn check_flame_graph(run: &Run, names: &[&str]) {
    let Some(_) = tools::browser() else { return };
    let file = run.flame_graph_file();
    tools::run_browser("flame_graph.mjs", &[&[file.to_str().unwrap()], names].concat());
}

#[test]
fn snakeviz_draws_the_whole_run_from_one_root() {
    check_icicle(&heat("heat-icicle"), &["main > cool_down", "Strip::sweep"]);
}

#[test]
fn snakeviz_draws_names_with_special_characters() {
    check_icicle(&nested("icicle"), &NAMES);
}

#[test]
fn the_flame_graph_can_be_searched_and_zoomed() {
    check_flame_graph(&heat("heat-flame"), &["cool_down", "Strip::sweep"]);
}

#[test]
fn the_flame_graph_has_names_with_special_characters() {
    check_flame_graph(&nested("flame"), &NAMES);
}
