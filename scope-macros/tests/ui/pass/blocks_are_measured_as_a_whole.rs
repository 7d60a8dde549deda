//! The attribute on an `impl`, a trait and a module with modules in it.
#![deny(warnings, clippy::all, clippy::pedantic, missing_docs)]
#![allow(clippy::mixed_attributes_style, clippy::unused_self, reason = "the forms are what is tested")]

use scope_runtime::scope;

/// A grid.
pub struct Grid<T, const N: usize>([T; N]);

/// Inner attributes and documentation, a constant with braces before its end, functions that are
/// left out, and one with another name.
#[scope]
impl<T: Copy + Into<f64>, const N: usize> Grid<T, { N }> {
    #![allow(clippy::must_use_candidate)]
    //! Documentation inside.

    const LIMITS: (usize, usize) = { (0, N) };

    /// How many cells there are.
    pub const fn len(&self) -> usize {
        Self::LIMITS.1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[scope(skip)]
    fn at(&self, index: usize) -> f64 {
        self.0[index].into()
    }

    #[scope(name = "sum up")]
    fn sum(&self) -> f64 {
        (0..self.len()).map(|index| self.at(index)).sum()
    }

    #[cfg_attr(all(), scope(skip))]
    fn first(&self) -> Constant<{ usize::MAX >> 60 }> {
        Constant
    }
}

struct Constant<const N: usize>;

/// Something that steps.
#[scope(name = "solver")]
pub trait Step {
    /// What a step gives.
    type Output;

    /// Without a body.
    fn step(&self) -> Self::Output;

    /// With one.
    fn step_twice(&self) -> (Self::Output, Self::Output) {
        (self.step(), self.step())
    }
}

#[scope]
impl<T, const N: usize> Step for Grid<T, N> {
    type Output = usize;

    fn step(&self) -> usize {
        N
    }
}

#[scope(name = "disk")]
mod disk {
    //! A module with all that can stand in one.
    use std::fmt::Write as _;

    pub(super) static GREETING: &[&str] = &{ ["hello"] };
    pub(crate) type Text = String;

    pub(in super::disk) struct Braced {
        pub(super) count: u8,
    }

    struct Tuple(u8);

    #[allow(dead_code)]
    union Either {
        left: u8,
        right: i8,
    }

    macro_rules! make {
        ($name:ident) => {
            pub(super) fn $name() -> u8 {
                1
            }
        };
    }

    make! { made }
    make!(made_too);

    #[scope(skip)]
    mod left_out {
        pub(crate) fn outside() -> u8 {
            2
        }
    }

    pub(super) mod cache {
        use super::{Braced, Tuple};

        impl Braced {
            pub(crate) fn get(&self) -> u8 {
                self.count + Tuple(1).0
            }
        }

        pub(crate) unsafe extern "C" fn foreign(value: u8) -> u8 {
            value
        }
    }

    pub(super) fn write(text: &mut Text) -> u8 {
        write!(text, "{}", GREETING[0]).expect("memory suffices");
        Braced { count: left_out::outside() }.get()
    }
}

/// Runs them all.
pub fn main() {
    let grid = Grid([1_u8, 2, 3]);
    assert!(!grid.is_empty());
    assert!((grid.sum() - 6.0).abs() < 1e-9);
    let Constant::<15> = grid.first();
    assert_eq!(grid.step_twice(), (3, 3));
    let mut text = String::new();
    assert_eq!(disk::write(&mut text) + disk::made() + disk::made_too(), 5);
    assert_eq!(text, "hello");
    // SAFETY: the function does nothing that could be unsafe.
    assert_eq!(unsafe { disk::cache::foreign(1) }, 1);
}
