//! Functions whose parts come from several places, as fragments of every kind.
#![deny(warnings, clippy::all, clippy::pedantic, missing_docs)]

use std::future::Future;

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

/// Expressions and types with operators, where tokens are taken apart.
macro_rules! operators {
    ($value:expr, $negative:expr, $ty:ty, $path:ty) => {
        struct Constants;

        #[scope]
        impl Constants {
            const DOUBLE: i32 = $value * 2;
            const EMPTY: $path = <$path>::new();
            const LENGTH: usize = [0; $value].len();

            fn twice() -> i32 {
                #![allow(clippy::items_after_statements)]
                $value * 2
            }
        }

        #[scope]
        mod constants {
            pub const DOUBLE: i32 = $value * 2;
            pub static OPPOSITE: i32 = -$value;
            pub const ABSOLUTE: i32 = $negative.abs();
        }

        #[scope]
        fn shown() -> &'static $ty {
            &7
        }

        #[scope]
        async fn shows(value: &$ty) -> Box<$ty> {
            Box::new(value.to_string())
        }
    };
}

operators!(1 + 1, -5_i32, dyn std::fmt::Display + Sync, Vec<u8>);

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
    assert_eq!((Constants::DOUBLE, Constants::LENGTH, Constants::twice()), (4, 2, 4));
    assert!(Constants::EMPTY.is_empty());
    assert_eq!((constants::DOUBLE, constants::OPPOSITE, constants::ABSOLUTE), (4, -2, 5));
    let mut shows = std::pin::pin!(shows(&3));
    let shows = shows.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    let std::task::Poll::Ready(text) = shows else { unreachable!() };
    assert_eq!(format!("{}{text}", shown()), "73");
}
