//! What cargo's configuration says about running a program holds for ours (case cli-05).

use crate::auxiliary::{Project, calls, host, listing, run};

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

#[test]
fn ranks_of_an_mpi_launcher_get_a_profile_each() {
    let Ok(families) = std::env::var("SCOPE_TEST_MPI") else {
        eprintln!("left out: SCOPE_TEST_MPI is not set");
        return;
    };
    let main = "#[scope_runtime::scope]\nfn work() {}\nfn main() { work(); println!(\"rank\"); }\n";
    let project = Project::with_runtime("ranks", main);
    for family in families.split_whitespace() {
        let oversubscribe = if family == "openmpi" { "\"--oversubscribe\", " } else { "" };
        let runner = format!("runner = [\"mpirun.{family}\", {oversubscribe}\"-n\", \"2\"]\n");
        project.write(".cargo/config.toml", &format!("[target.'cfg(unix)']\n{runner}"));
        let mut command = project.cargo_scope(&["run", "-o", family]);
        // Tests may run in a container, as its only user.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        run(&mut command).prints("rank\nrank\n");
        let work = |_| ("work".to_string(), 1);
        assert_eq!(calls(&project.path(family)), [0, 1].map(work), "{family}");
        let expected = [
            "flamegraph.svg",
            "flamegraph_rank0.svg",
            "flamegraph_rank1.svg",
            "profile.h5",
            "profile_rank0.prof",
            "profile_rank1.prof",
        ];
        assert_eq!(listing(&project.path(family)), expected, "{family}");
    }
}
