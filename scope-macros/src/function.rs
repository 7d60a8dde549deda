//! A function or method, and what the attribute makes of it.

use proc_macro2::{Delimiter, Group, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Error;

use crate::arguments::Arguments;
use crate::items::{self, Item};

/// A function as tokens: they keep their origin, and what no parser knows yet passes through.
pub(crate) struct Function {
    /// Attributes, visibility, qualifiers and signature.
    head: TokenStream,
    name: Span,
    body: Group,
}

/// Why a function is not measured.
pub(crate) enum Refusal {
    /// There is nothing that could be measured: in a block such functions are left out.
    LeftOut(Error),
    /// Something the user should hear of wherever it stands.
    Wrong(Error),
}

impl Refusal {
    pub(crate) fn into_error(self) -> Error {
        match self {
            Refusal::LeftOut(error) | Refusal::Wrong(error) => error,
        }
    }
}

impl Function {
    /// Takes a function that can be measured; says on the right word why another one cannot.
    pub(crate) fn of_item(item: &Item) -> Result<Function, Refusal> {
        let name = item.name_span();
        let left_out = |span, reason| Err(Refusal::LeftOut(Error::new(span, reason)));
        let Some(body) = item.braces() else {
            let reason = "#[scope] needs a function with a body: there is nothing to measure here";
            return left_out(name, reason);
        };
        if let Some(word) = item.qualifier("const") {
            return left_out(word, "#[scope] cannot measure a `const fn`: it may run in the compiler");
        }
        if item.attributes().any(|attribute| attribute.is("naked")) {
            let reason = "#[scope] cannot measure a naked function: its body is assembly and nothing else";
            return left_out(name, reason);
        }
        if let Some(word) = item.qualifier("async") {
            let reason = "#[scope] does not measure `async fn` yet: mark the functions it calls";
            return Err(Refusal::Wrong(Error::new(word, reason)));
        }
        let (_, head) = item.tokens.split_last().expect("an item with braces has tokens");
        Ok(Function { head: head.iter().cloned().collect(), name, body })
    }

    /// The function with a guard that lives as long as its body runs.
    ///
    /// ```text
    /// fn step(&mut self) { use Kind::*; body }
    ///
    /// fn step(&mut self) {
    ///     use Kind::*;
    ///     let _guard = {
    ///         enum Item {}                                       // its path: "app::Grid<_>::step::Item"
    ///         static SITE: Site = Site::in_function(type_name::<Item>, module_path!(), "src/grid.rs", 7);
    ///         SITE.enter()
    ///     };
    ///     body
    /// }
    /// ```
    ///
    /// The body is not wrapped in anything: a block or closure around it would change messages of
    /// the compiler, what it infers, or, between editions, when the values of the last expression are
    /// dropped. Names that the body imports mean nothing to the guard, whose paths are absolute.
    pub(crate) fn expand(self, arguments: &Arguments) -> TokenStream {
        let Function { head, name, body } = self;
        let guard = guard(arguments, name);
        let (first, rest) = items::split_body(body.stream());
        let mut measured = Group::new(Delimiter::Brace, quote!(#first #guard #rest));
        measured.set_span(body.span());
        quote!(#head #measured)
    }
}

/// The statement that enters the region. Its place in the source is that of the function's name.
fn guard(arguments: &Arguments, at: Span) -> TokenStream {
    let runtime = arguments.runtime.clone().unwrap_or_else(|| quote!(::scope_runtime));
    // `file!()` and `line!()` would give the place of the attribute, which may stand on a block.
    let (file, line) = (at.unwrap().file(), at.unwrap().line() as u32);
    let hygienic = Span::mixed_site().located_at(at);
    let place = quote_spanned!(hygienic=> ::core::module_path!(), #file, #line);
    let (item, site) = match &arguments.name {
        Some(name) => (None, quote_spanned!(hygienic=> #runtime::Site::named(#name, #place))),
        None => {
            let item = quote_spanned!(hygienic=> enum Item {});
            let path = quote_spanned!(hygienic=> ::core::any::type_name::<Item>);
            let site = match &arguments.prefix {
                Some(prefix) => {
                    quote_spanned!(hygienic=> #runtime::Site::in_function_of_block(#prefix, #path, #place))
                }
                None => quote_spanned!(hygienic=> #runtime::Site::in_function(#path, #place)),
            };
            (Some(item), site)
        }
    };
    quote_spanned! {hygienic=>
        let _guard = {
            #item
            static SITE: #runtime::Site = #site;
            SITE.enter()
        };
    }
}
