//! The `#[scope]` attribute of scope-runtime.
//!
//! Use it through scope-runtime, which the code it makes calls.
//!
//! With the feature `off`, which scope-runtime's feature of that name turns on, the attribute gives
//! back what it stands on, without the attributes of this name inside.

mod arguments;
mod attribute;
mod errors;
mod function;
mod future;
mod items;
mod measure;
mod signature;

use proc_macro2::TokenStream;

use crate::arguments::Arguments;
use crate::errors::Errors;

/// Measures every call of a function or method, or of each one in an `impl`, inline module or trait.
///
/// | argument | meaning |
/// |---|---|
/// | `name = "text"` | the region's name; else it is the path below the module: `step`, `Grid::step` |
/// | `crate = path` | where scope-runtime is found, if not as `::scope_runtime` |
/// | `future` | measures a function that returns a future together with the future, as one call |
/// | `skip` | measures nothing: for what stands in a block that has the attribute |
///
/// The function keeps its signature, attributes and body; a guard is made in front of the body,
/// behind the items that it begins with:
///
/// ```text
/// #[scope]
/// fn step(n: u32) -> u32 { n + 1 }
///
/// fn step(n: u32) -> u32 {
///     let _guard = __site!(..).enter();
///     n + 1
/// }
/// ```
///
/// An `async fn` is one call from its first poll to its completion or drop, busy while it is polled;
/// so is a function whose body is nothing but `Box::pin(async move { .. })`, as `async_trait` writes
/// them. Any other function that returns a future measures the call itself, not the future; with
/// `#[scope(future)]` it measures both as one, where it returns `impl Future` or a boxed future.
/// Arguments and results are never recorded.
///
/// Each layer of async functions takes some of the 128 levels that the compiler follows types. Chains
/// of 30 measured functions hold in a spawned task, of plain ones 40; beyond that, say
/// `#![recursion_limit = "256"]` in the crate.
///
/// On an `impl`, an inline `mod` or a `trait` it measures every function with a body inside, in
/// nested modules too. Left out are `const fn`, naked functions, and functions inside functions.
/// `name = "text"` there stands in front of the names: `text::Grid::step`. Inside, an attribute that
/// is called `scope` says more about the item on which it stands: another name, or `#[scope(skip)]`,
/// which leaves it out. One in `cfg_attr` decides alone about its item.
///
/// # Examples
/// ```
/// use scope_runtime::scope;
///
/// #[scope(name = "exchange halo")]
/// fn exchange(field: &mut [f64]) {
///     field.rotate_left(1);
/// }
///
/// struct Grid {
///     cells: Vec<f64>,
/// }
///
/// #[scope]
/// impl Grid {
///     fn step(&mut self) {
///         exchange(&mut self.cells);
///     }
///
///     #[scope(skip)]
///     fn at(&self, index: usize) -> f64 {
///         self.cells[index]
///     }
/// }
///
/// let mut grid = Grid { cells: vec![1.0, 2.0] };
/// grid.step();
/// assert_eq!(grid.at(0), 2.0);
/// ```
#[proc_macro_attribute]
pub fn scope(arguments: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    if cfg!(feature = "off") {
        measure::unmeasured(item.into()).into()
    } else {
        expand(arguments.into(), item.into()).into()
    }
}

/// The item with the guards put in; where something is wrong, the item as it was and the errors.
fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let arguments = errors.take(Arguments::of_tokens(arguments));
    let item = match items::split(item).into_iter().next() {
        Some(item) => measure::marked(item, arguments, &mut errors),
        None => TokenStream::new(),
    };
    [errors.to_compile_errors(), item].into_iter().collect()
}
