//! What measuring costs: measured by the program, told by the summary and by `inspect --cost`.

use std::collections::BTreeMap;

use cargo_scope::merged::MetadataValue;
use tests::package::Package;
use tests::tools;

#[test]
fn regions_that_are_too_short_for_measuring_are_named() {
    let source = "\
use scope_runtime::scope;

#[scope]
fn cell(n: u64) -> u64 {
    n ^ 1
}

#[scope]
fn main() {
    (0..10_000).for_each(|n| _ = std::hint::black_box(cell(n)));
    std::thread::sleep(std::time::Duration::from_millis(20));
}
";
    let package = Package::new("too-short", source, &[]);
    let run = package.run(&[]).expect_status(0);
    // The calls by which the program has measured the cost are not among them.
    assert_eq!(run.check_outputs().counts(), BTreeMap::from([("cell", 10_000), ("main", 1)]));
    let profile = run.profile();
    let Some(&MetadataValue::Float(cost_ns)) = profile.metadata_value("region_cost_ns") else {
        panic!("{:?}", profile.metadata)
    };
    assert!(cost_ns > 0.0);
    let told = format!(": 10,001 calls at {cost_ns:.1} ns\n~ the mean is below 20 times that");
    assert!(run.stderr.contains(&told), "{}", run.stderr);

    let report = tools::succeed(package.cargo_scope(&["inspect", "--cost"]).arg(&run.folder));
    let rows: Vec<_> = report.lines().filter(|line| line.contains("#[scope(skip)]  //")).collect();
    let [row] = rows[..] else { panic!("{report}") };
    assert!(row.starts_with("cell ") && row.ends_with("// src/main.rs:4"), "{report}");
}
