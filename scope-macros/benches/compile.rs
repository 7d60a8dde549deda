//! What the attribute costs when a crate is compiled.
//!
//! `cargo bench -p scope-macros --bench compile` writes a crate of 1,000 small functions and compiles it
//! with the attribute on each and with none, in turn, in a debug and in a release build. A row is the
//! difference per function, in CPU time of cargo and the compiler; the least of several rounds counts,
//! since other work on the machine only ever adds.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const FUNCTIONS: usize = 1000;
const ROUNDS: usize = 5;

fn main() {
    let crate_folder = std::env::temp_dir().join(format!("scope-compile-bench-{}", std::process::id()));
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in a workspace");
    let manifest = format!(
        "[package]\nname = \"functions\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nscope-runtime = {{ path = {:?} }}\n\n[workspace]\n",
        runtime.join("scope-runtime"),
    );
    let source = crate_folder.join("src/lib.rs");
    std::fs::create_dir_all(crate_folder.join("src")).expect("a folder for the crate");
    std::fs::write(crate_folder.join("Cargo.toml"), manifest).expect("its manifest");
    println!(
        "{:<10} {:>12} {:>12} {:>22} {:>8}",
        "build", "without, s", "with, s", "ms per function, CPU", "wall"
    );
    for (name, options) in [("debug", &[][..]), ("release", &["--release"])] {
        // The first build of all has the dependencies in it.
        compile(&source, "", options);
        let mut best = [Cost::MOST; 2];
        for _ in 0..ROUNDS {
            for (best, attribute) in best.iter_mut().zip(["", "#[scope_runtime::scope]"]) {
                *best = best.least(compile(&source, attribute, options));
            }
        }
        let [without, with] = best;
        let per_function = |with: f64, without: f64| (with - without) * 1e3 / FUNCTIONS as f64;
        println!(
            "{name:<10} {:>12.3} {:>12.3} {:>22.3} {:>8.3}",
            without.cpu_s,
            with.cpu_s,
            per_function(with.cpu_s, without.cpu_s),
            per_function(with.wall_s, without.wall_s),
        );
    }
    let _ = std::fs::remove_dir_all(crate_folder);
}

/// Seconds that one build took.
#[derive(Clone, Copy)]
struct Cost {
    cpu_s: f64,
    wall_s: f64,
}

impl Cost {
    const MOST: Cost = Cost { cpu_s: f64::INFINITY, wall_s: f64::INFINITY };

    fn least(self, other: Cost) -> Cost {
        Cost { cpu_s: self.cpu_s.min(other.cpu_s), wall_s: self.wall_s.min(other.wall_s) }
    }
}

/// Compiles the crate from nothing with `attribute` on each function.
fn compile(source: &PathBuf, attribute: &str, options: &[&str]) -> Cost {
    let mut text = String::new();
    for number in 0..FUNCTIONS {
        // Without `inline(never)` so short a function would be compiled where it is called.
        writeln!(
            text,
            "{attribute}\n#[inline(never)]\npub fn function_{number}(start: u64, values: &[u64]) -> u64 {{\n    \
             let mut sum = start + {number};\n    for value in values {{\n        \
             sum = sum.wrapping_mul(31).wrapping_add(*value);\n    }}\n    sum\n}}\n"
        )
        .expect("memory suffices");
    }
    std::fs::write(source, text).expect("the source is written");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet"]).args(options).env("CARGO_INCREMENTAL", "0");
    let folder = source.ancestors().nth(2).expect("the source is in src of the crate");
    cargo.current_dir(folder).env("CARGO_TARGET_DIR", folder.join("target"));
    let (cpu_s, start) = (children_cpu_s(), Instant::now());
    assert!(cargo.status().expect("cargo starts").success());
    Cost { cpu_s: children_cpu_s() - cpu_s, wall_s: start.elapsed().as_secs_f64() }
}

/// CPU seconds of the processes that ended, and of theirs.
fn children_cpu_s() -> f64 {
    // SAFETY: zeros are a value of this type, and it outlives the call.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
