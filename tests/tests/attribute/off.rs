//! Functions, a block and regions, to be compiled with the feature `off`.
use scope_runtime::scope;

#[scope]
#[inline(never)]
pub fn sum_of_squares(values: &[u64]) -> u64 {
    scope_runtime::region!("sum");
    values.iter().map(|value| value * value).sum()
}

pub struct Grid {
    cells: Vec<f64>,
}

#[scope(name = "grid")]
impl Grid {
    #[inline(never)]
    pub fn step(&mut self, name: &str) -> f64 {
        scope_runtime::region!(name);
        scope_runtime::region!(&format!("step of {name}"));
        self.cells.iter_mut().for_each(|cell| *cell *= 0.5);
        self.largest()
    }

    #[scope(skip)]
    #[inline(never)]
    fn largest(&self) -> f64 {
        self.cells.iter().copied().fold(f64::MIN, f64::max)
    }
}

/// Where the attribute is not known by its name.
#[scope_runtime::scope(name = "inner")]
pub mod inside {
    #[scope(name = "one")]
    #[inline(never)]
    pub fn one() -> u32 {
        1
    }

    pub mod deeper {
        #[scope(skip)]
        #[inline(never)]
        pub fn two() -> u32 {
            2
        }
    }
}

#[inline(never)]
#[scope]
pub fn drops(text: String) -> Option<usize> {
    let length = text.parse::<usize>().ok()?;
    Some(length + 1)
}

/// Uses all that can be used.
///
/// # Panics
/// When a region changes what a program does.
pub fn all() {
    let session = scope_runtime::init();
    assert_eq!(sum_of_squares(&[1, 2]), 5);
    let mut grid = Grid { cells: vec![4.0] };
    assert!((grid.step("first") - 2.0).abs() < 1e-9);
    assert_eq!(drops(String::from("5")), Some(6));
    assert_eq!(inside::one() + inside::deeper::two(), 3);
    let value = scope_runtime::region!("block", { 5 });
    assert_eq!(value, 5);
    let guard = scope_runtime::enter("by hand");
    scope_runtime::pause();
    scope_runtime::resume();
    drop(guard);
    assert!(scope_runtime::finalize().regions.is_empty());
    drop(session);
}
