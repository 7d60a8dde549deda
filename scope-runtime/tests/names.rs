//! The name that every form of function gets: its path below the module, as users read it.

#![allow(dead_code, reason = "some names are there to be left out")]

use std::collections::BTreeSet;

use scope_runtime::{finalize, init, scope};

mod forms {
    use super::scope;

    #[scope]
    pub(crate) fn free() {}

    #[scope]
    pub(crate) fn r#match() {}

    #[scope]
    pub(crate) fn generic<T, const N: usize>(_: [T; N]) {}

    #[scope]
    pub(crate) extern "C" fn foreign() {}

    #[scope(name = "a name of its own")]
    pub(crate) fn named() {}

    #[scope]
    pub(crate) fn outer() {
        #[scope]
        fn nested() {}
        nested();
        let closure = || {
            #[scope]
            fn in_a_closure() {}
            in_a_closure();
        };
        closure();
        struct Local;
        impl Local {
            #[scope]
            fn method(&self) {}
        }
        impl super::Tr for Local {
            #[scope]
            fn required(&self) {}
        }
        Local.method();
        super::Tr::required(&Local);
        mod in_a_function {
            #[scope_runtime::scope]
            pub(crate) fn in_a_module_in_a_function() {}
        }
        in_a_function::in_a_module_in_a_function();
    }

    macro_rules! make {
        ($name:ident) => {
            #[scope]
            pub(crate) fn $name() {}
        };
    }
    make!(made_by_a_macro);

    pub(crate) mod r#async {
        #[scope_runtime::scope]
        pub(crate) fn in_a_raw_module() {}
    }
}

struct Grid<T>(T);

impl<T> Grid<T> {
    #[scope]
    fn method(&self) {}

    #[scope]
    fn associated() {
        #[scope]
        fn in_a_method() {}
        in_a_method();
    }

    const IN_A_CONSTANT: fn() = {
        #[scope]
        fn in_a_constant() {}
        in_a_constant
    };
}

trait Tr {
    #[scope]
    fn default(&self) {}

    fn required(&self);
}

impl<T> Tr for Grid<T> {
    #[scope]
    fn required(&self) {}
}

macro_rules! implement {
    ($($ty:ty)*) => {
        $(impl Tr for $ty {
            #[scope]
            fn required(&self) {}
        })*
    };
}

implement! { &Grid<u8> (u8, Grid<u8>) [u8; 3] Vec<u8> fn(Grid<u8>) -> u8 }

impl dyn Tr + Send {
    #[scope]
    fn of_a_trait_object(&self) {}
}

mod elsewhere {
    use super::{Grid, scope};

    impl Grid<u8> {
        #[scope]
        pub(crate) fn implemented_elsewhere(&self) {}
    }

    impl super::Far for Grid<u8> {
        #[scope]
        fn far(&self) {}
    }
}

trait Far {
    fn far(&self);
}

struct Block;

#[scope]
impl Block {
    fn in_a_block(&self) {}

    #[scope(skip)]
    fn left_out(&self) {}

    const fn constant(&self) {}

    #[scope(name = "named in a block")]
    fn named(&self) {}
}

#[scope(name = "prefix")]
impl Tr for Block {
    fn required(&self) {}
}

#[scope(name = "disk")]
mod disk {
    pub(crate) fn write() {}

    pub(crate) mod cache {
        pub(crate) fn get() {
            super::read();
        }
    }

    struct Page;

    impl Page {
        fn read(&self) {}
    }

    #[scope(skip)]
    fn read() {
        Page.read();
    }

    #[scope(name = "tape")]
    pub(crate) mod tape {
        pub(crate) fn wind() {}
    }

    #[scope(skip)]
    pub(crate) mod left_out {
        pub(crate) fn outside() {}
    }
}

#[scope]
trait Whole {
    fn with_a_body(&self) {}
    fn without(&self);
}

impl Whole for Block {
    fn without(&self) {}
}

#[test]
fn every_form_has_the_name_that_a_reader_expects() {
    let folder = std::env::temp_dir().join(format!("scope-names-{}", std::process::id()));
    // SAFETY: the only thread that touches the environment is this one.
    unsafe { std::env::set_var("SCOPE_OUTPUT", &folder) };
    let session = init();
    run_all();
    drop(session);
    let regions = finalize().regions;
    // The place of a region is that of the function's name, also where the attribute stands on a block.
    let source: Vec<_> = include_str!("names.rs").lines().collect();
    for region in regions.iter().filter(|region| !region.name.contains("name")) {
        let line = source[region.line as usize - 1];
        let name = region.name.rsplit("::").next().unwrap();
        assert!(region.file.ends_with("tests/names.rs") && line.contains(name), "{region:?} at {line}");
    }
    let names: BTreeSet<_> = regions.into_iter().map(|region| region.name).collect();
    std::fs::remove_dir_all(folder).unwrap();
    let expected = [
        // Functions.
        "free",
        "match",
        "generic",
        "foreign",
        "a name of its own",
        "made_by_a_macro",
        "in_a_raw_module",
        // In functions.
        "outer",
        "outer::nested",
        "outer::in_a_closure",
        "outer::Local::method",
        "outer::Local::required",
        "in_a_module_in_a_function",
        // Methods and associated functions; the trait is left out where the type is known.
        "Grid::method",
        "Grid::associated",
        "Grid::associated::in_a_method",
        "Grid::IN_A_CONSTANT::in_a_constant",
        "Grid::required",
        "Grid::implemented_elsewhere",
        "Grid::far",
        "Tr::default",
        "&Grid::required",
        "(u8, Grid)::required",
        "[u8; 3]::required",
        "Vec::required",
        "fn(Grid) -> u8::required",
        "dyn Tr + Send::of_a_trait_object",
        // In blocks that have the attribute.
        "Block::in_a_block",
        "named in a block",
        "prefix::Block::required",
        "disk::write",
        "disk::get",
        "disk::Page::read",
        "tape::wind",
        "Whole::with_a_body",
    ];
    assert_eq!(names, expected.into_iter().map(String::from).collect());
}

fn run_all() {
    forms::free();
    forms::r#match();
    forms::generic([1, 2]);
    forms::foreign();
    forms::named();
    forms::made_by_a_macro();
    forms::r#async::in_a_raw_module();
    forms::outer();
    let grid = || Grid(1_u8);
    grid().method();
    Grid::<u8>::associated();
    Grid::<u8>::IN_A_CONSTANT();
    grid().implemented_elsewhere();
    grid().far();
    grid().default();
    grid().required();
    <&Grid<u8> as Tr>::required(&&grid());
    (1_u8, grid()).required();
    [1_u8; 3].required();
    vec![1_u8].required();
    let function: fn(Grid<u8>) -> u8 = |grid| grid.0;
    function.required();
    let object: &(dyn Tr + Send) = &grid();
    object.of_a_trait_object();
    Block.in_a_block();
    Block.left_out();
    Block.constant();
    Block.named();
    Tr::required(&Block);
    disk::write();
    disk::cache::get();
    disk::tape::wind();
    disk::left_out::outside();
    Block.with_a_body();
    Block.without();
}
