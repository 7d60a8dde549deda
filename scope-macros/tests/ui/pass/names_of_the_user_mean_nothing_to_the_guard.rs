//! What the user calls as the guard calls its own, around the function and in its body.
#![deny(warnings, clippy::all, clippy::pedantic, missing_docs)]
#![forbid(unsafe_code)]

/// Without a prelude, and with everything shadowed.
mod shadowed {
    #![no_implicit_prelude]
    #![allow(dead_code, unused_macros, non_camel_case_types, reason = "the names are what is tested")]
    #![allow(clippy::upper_case_acronyms, clippy::no_effect_underscore_binding, clippy::let_and_return)]
    #![allow(clippy::used_underscore_binding)]

    pub struct core;
    pub struct std;
    pub struct str;
    pub struct u32;
    pub struct Site;
    pub struct Item;
    pub static SITE: &::core::primitive::str = "mine";

    pub enum Kind {
        Grain,
        Some,
        Ok,
        Item,
        SITE,
        Guard,
        _Guard,
    }

    #[derive(::core::fmt::Debug, ::core::cmp::PartialEq)]
    pub struct Grain(pub ::core::primitive::u8);

    macro_rules! file {
        () => {
            no_such_thing
        };
    }

    #[::scope_runtime::scope]
    pub fn glob(n: ::core::primitive::u8) -> Grain {
        #[allow(unused_imports)]
        use self::Kind::*;
        let _guard = Guard;
        let _ = SITE;
        self::Grain(n)
    }

    #[::scope_runtime::scope]
    pub fn parameters(_guard: ::core::primitive::u8, item: ::core::primitive::u8) -> ::core::primitive::u8 {
        struct Item(::core::primitive::u8);
        static SITE: ::core::primitive::u8 = 1;
        Item(_guard + item + SITE).0
    }

    #[::scope_runtime::scope]
    impl Grain {
        pub fn weigh(&self) -> ::core::primitive::u8 {
            let _guard = self.0;
            _guard
        }
    }
}

/// A module that is called as the crate, which is named by the attribute here.
mod renamed {
    #[allow(dead_code)]
    mod scope_runtime {
        pub const NOT_THE_CRATE: u8 = 1;
    }

    use ::scope_runtime as stopwatch;
    use stopwatch::scope;

    #[scope(crate = stopwatch)]
    pub fn tick() -> u8 {
        2
    }

    #[scope(crate = self::stopwatch, name = "tock")]
    pub fn tock() -> u8 {
        2
    }

    #[scope(crate = stopwatch)]
    pub mod inner {
        use super::stopwatch;

        pub fn tick() -> u8 {
            1
        }
    }
}

/// Runs them all.
pub fn main() {
    assert_eq!(shadowed::glob(3), shadowed::Grain(3));
    assert_eq!(shadowed::parameters(1, 2), 4);
    assert_eq!(shadowed::Grain(5).weigh(), 5);
    assert_eq!(renamed::tick() + renamed::tock() + renamed::inner::tick(), 5);
}
