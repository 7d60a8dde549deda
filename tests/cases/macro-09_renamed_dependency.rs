// case:  macro-09
// area:  macro
// from:  https://github.com/fast/fastrace/pull/105  (issue 69 in the same repository)
// kind:  pass   (the dependency: stopwatch = { package = "scope-runtime", path = ".." })
// holds: Builds and exits 0 although the runtime crate is known here only as `stopwatch`, and although
//        this crate has a module of its own called `scope_runtime`. The attribute is told the name.
//        The failure to avoid: "could not find `init` in `scope_runtime`" pointing at `#[scope]`.
use stopwatch::scope;

#[allow(dead_code)]
mod scope_runtime {
    pub const NOT_THE_CRATE: u8 = 1;
}

#[scope(crate = stopwatch)]
fn tick() -> u8 {
    2
}

fn main() {
    assert_eq!(tick(), 2);
}
