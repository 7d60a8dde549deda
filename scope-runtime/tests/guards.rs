//! Guards that are dropped in any order, or leaked: each ends its region and what is open inside, and no other. A
//! single test, since a process has one recording.

use std::collections::BTreeMap;

use scope_runtime::{Guard, enter, finalize, init};

/// A small generator of random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 as usize % end
    }
}

/// What is open, and how often each path was entered.
#[derive(Default)]
struct Model {
    /// Name and number of each open region, from the outside in.
    open: Vec<(usize, u64)>,
    entered: u64,
    calls: BTreeMap<Vec<usize>, u64>,
}

impl Model {
    fn enter(&mut self, name: usize) -> u64 {
        self.entered += 1;
        self.open.push((name, self.entered));
        *self.calls.entry(self.open.iter().map(|(name, _)| *name).collect()).or_default() += 1;
        self.entered
    }

    fn leave(&mut self, number: u64) {
        if let Some(at) = self.open.iter().position(|(_, other)| *other == number) {
            self.open.truncate(at);
        }
    }
}

/// Enters and leaves at random, with guards that outlive their regions.
fn run(model: &mut Model, random: &mut Random) {
    let mut guards: Vec<(Guard, u64)> = Vec::new();
    for _ in 0..random.below(60) {
        match random.below(8) {
            0..4 if model.open.len() < 6 => {
                let name = random.below(4);
                guards.push((enter(&name.to_string()), model.enter(name)));
            }
            7 if !guards.is_empty() && random.below(3) == 0 => {
                let (guard, _) = guards.swap_remove(random.below(guards.len()));
                std::mem::forget(guard);
            }
            _ if !guards.is_empty() => {
                // Mostly the innermost.
                let last = guards.len() - 1;
                let at = if random.below(3) > 0 { last } else { random.below(guards.len()) };
                let (guard, number) = guards.remove(at);
                drop(guard);
                model.leave(number);
            }
            _ => {}
        }
    }
    while !guards.is_empty() {
        let (guard, number) = guards.swap_remove(random.below(guards.len()));
        drop(guard);
        model.leave(number);
    }
}

#[test]
fn every_guard_ends_its_region_and_what_is_open_inside() {
    let folder = std::env::temp_dir().join(format!("scope-guards-{}", std::process::id()));
    // SAFETY: the only thread that touches the environment is this one.
    unsafe { std::env::set_var("SCOPE_OUTPUT", &folder) };
    let session = init();
    let (mut model, mut random) = (Model::default(), Random(0x9E37_79B9_7F4A_7C15));
    for _ in 0..3_000 {
        // A region around ends what is left open.
        let name = random.below(4);
        let (guard, number) = (enter(&name.to_string()), model.enter(name));
        run(&mut model, &mut random);
        drop(guard);
        model.leave(number);
        assert!(model.open.is_empty());
    }
    let profile = finalize();
    drop(session);
    let mut paths: Vec<Vec<usize>> = Vec::new();
    let mut calls = BTreeMap::new();
    for node in profile.paths.nodes() {
        let mut path = node.parent.map(|parent| paths[parent.0 as usize].clone()).unwrap_or_default();
        path.push(profile.regions[node.region.0 as usize].name.parse().unwrap());
        assert_eq!(node.open, 0, "{path:?}");
        calls.insert(path.clone(), node.calls);
        paths.push(path);
    }
    assert_eq!(calls, model.calls);
    std::fs::remove_dir_all(folder).unwrap();
}
