//! The `#[scope]` attribute of scope-runtime.
//!
//! Use it through scope-runtime, which the code it makes calls.

mod arguments;
mod function;
mod future;

use proc_macro2::TokenStream;
use syn::parse::Parser;

use crate::arguments::Arguments;
use crate::function::Function;

/// Measures every call of a function or method.
///
/// | argument | meaning |
/// |---|---|
/// | `name = "text"` | the region's name; else it is the path below the module: `step`, `Grid::step` |
/// | `crate = path` | where scope-runtime is found, if not as `::scope_runtime` |
///
/// The function keeps its signature, attributes and body; a guard is made before the body:
///
/// ```text
/// #[scope]
/// fn step(n: u32) -> u32 { n + 1 }
///
/// fn step(n: u32) -> u32 {
///     let _guard = { static SITE: Site = Site::in_function(..); SITE.enter() };
///     { n + 1 }
/// }
/// ```
///
/// A plain function that returns a future measures the call itself, not the future. Arguments and
/// results are never recorded.
///
/// # Examples
/// ```
/// # mod scope_runtime { pub use scope_macros::scope; }
/// # // The example is about the form; what the expansion calls lives in scope-runtime.
/// # macro_rules! ignore { ($($t:tt)*) => {} }
/// # ignore! {
/// #[scope(name = "exchange halo")]
/// fn exchange(field: &mut [f64]) { field.rotate_left(1); }
/// # }
/// ```
#[proc_macro_attribute]
pub fn scope(arguments: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(arguments.into(), item.into()).into()
}

/// The item with the guard put in; where something is wrong, the item as it was and the errors.
fn expand(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let parsed = Function::parse.parse2(item.clone());
    let arguments = Arguments::parse.parse2(arguments);
    match (parsed, arguments) {
        (Ok(function), Ok(arguments)) => function.expand(&arguments),
        (function, arguments) => {
            let errors = [function.err(), arguments.err()];
            let errors = errors.into_iter().flatten().map(|error| error.to_compile_error());
            errors.chain([item]).collect()
        }
    }
}
