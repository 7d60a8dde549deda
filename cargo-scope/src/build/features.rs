//! Features that a target requires. Who names the target wants it; cargo alone would ask for the features
//! to be named too.

use std::collections::BTreeSet;

use cargo_metadata::{Metadata, Package};
use clap_cargo::Features;

use super::target::{RunTarget, packages};

/// The features, as `package/feature`, that the named targets require and that nothing turns on yet.
pub(super) fn missing(target: &RunTarget, features: &Features, metadata: &Metadata) -> Vec<String> {
    if features.all_features {
        return Vec::new();
    }
    let mut missing = Vec::new();
    for package in packages(target.package.as_slice(), metadata) {
        let named = package.targets.iter().filter(|one| {
            one.is_bin() && target.bin.contains(&one.name)
                || one.is_example() && target.example.contains(&one.name)
        });
        let on = turned_on(package, features);
        let required = named.flat_map(|target| &target.required_features);
        let off = required.filter(|feature| !on.contains(feature.as_str()));
        missing.extend(off.map(|feature| match feature.contains('/') {
            // One of a dependency.
            true => feature.clone(),
            false => format!("{}/{feature}", package.name),
        }));
    }
    missing
}

/// The features of a package that are turned on by default, by the options, or by another one.
fn turned_on<'a>(package: &'a Package, features: &'a Features) -> BTreeSet<&'a str> {
    let given = features.features.iter().flat_map(|list| list.split([',', ' ']));
    let prefix = format!("{}/", package.name);
    let mut next: Vec<&str> = given.map(|name| name.strip_prefix(&prefix).unwrap_or(name)).collect();
    next.extend((!features.no_default_features).then_some("default"));
    let mut on = BTreeSet::new();
    while let Some(feature) = next.pop() {
        if on.insert(feature) {
            next.extend(package.features.get(feature).into_iter().flatten().map(String::as_str));
        }
    }
    on
}
