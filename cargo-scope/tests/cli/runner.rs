//! What cargo's configuration says about running a program holds for ours (case cli-05).

use crate::auxiliary::{Project, host, run};

#[test]
fn the_runner_of_the_project_is_used() {
    let project = Project::of_case("cli-05_runner");
    run(&mut project.cargo_scope(&["run", "--", "x"])).prints("runner=yes arg=x\n");
    let variable = format!("CARGO_TARGET_{}_RUNNER", host().to_uppercase().replace('-', "_"));
    run(project.cargo_scope(&["run", "--", "x"]).env(variable, "env VIA_RUNNER=variable"))
        .prints("runner=variable arg=x\n");
}

#[test]
fn env_of_the_configuration_and_of_cargo_holds() {
    let main = r#"fn main() {
        let read = |name| std::env::var(name).unwrap_or_default();
        println!("{} {}", read("FROM_CONFIG"), read("CARGO_PKG_NAME"));
    }"#;
    let project = Project::plain("configured", main);
    project.write(".cargo/config.toml", "[env]\nFROM_CONFIG = \"set\"\n");
    run(&mut project.cargo_scope(&["run"])).prints("set configured\n");
    run(&mut project.cargo_scope(&["run", "--config", "env.FROM_CONFIG='given'"]))
        .prints("given configured\n");
}
