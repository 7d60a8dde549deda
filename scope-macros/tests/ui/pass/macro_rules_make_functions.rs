//! Functions whose parts come from several places, as fragments of every kind.
#![deny(warnings, clippy::all, clippy::pedantic, missing_docs)]

use scope_runtime::scope;

macro_rules! function {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($argument:ident: $ty:ty),*) -> $result:ty $body:block) => {
        $(#[$meta])*
        $vis fn $name($($argument: $ty),*) -> $result $body

        #[scope]
        #[allow(dead_code)]
        mod $name {
            $vis fn $name($($argument: $ty),*) -> $result $body
        }
    };
}

function! {
    /// Twice.
    #[scope]
    #[inline]
    pub fn twice(x: u32) -> u32 { x * 2 }
}

function! {
    #[scope(name = "half")]
    fn half(x: u32) -> u32 {
        use std::ops::Div;
        x.div(2)
    }
}

macro_rules! items {
    ($($item:item)*) => {
        #[scope]
        mod items {
            $($item)*
        }
    };
}

items! {
    #[must_use]
    pub fn one() -> u32 {
        1
    }
    pub const FOUR: u32 = if true { 4 } else { 5 };
    #[scope(skip)]
    pub fn two() -> u32 {
        2
    }
}

macro_rules! passed_through {
    ($item:item) => {
        #[scope]
        $item
    };
}

passed_through! {
    fn passed() -> u32 {
        3
    }
}

macro_rules! method {
    ($ty:ty, $me:ident, $name:ident, $text:literal, $value:expr, $constant:expr) => {
        #[scope(name = $text)]
        impl $ty {
            const CONSTANT: u32 = $constant;

            fn $name(&$me) -> u32 {
                let outer = 1;
                outer + $value
            }
        }
    };
}

macro_rules! times {
    ($name:ident, $behind_an_item:ident, $value:expr) => {
        #[scope]
        fn $name() -> u32 {
            $value * 3
        }

        #[scope]
        fn $behind_an_item() -> u32 {
            #[allow(clippy::items_after_statements)]
            const THREE: u32 = 3;
            $value * THREE
        }
    };
}

times!(three_times, three_times_behind_an_item, 1 + 1);

struct Gauge {
    value: u32,
}

method!(
    Gauge,
    self,
    read,
    "gauges",
    {
        let outer = 100;
        self.value + outer
    },
    { 1 } + 1
);

/// Runs them all.
pub fn main() {
    assert_eq!(twice(2) + half(8), 8);
    assert_eq!(items::one() + items::two() + items::FOUR + passed(), 10);
    assert_eq!(Gauge { value: 5 }.read(), 106);
    // The braces in the constant are no end of it.
    assert_eq!(Gauge::CONSTANT, 2);
    assert_eq!(three_times() + three_times_behind_an_item(), 12);
}
