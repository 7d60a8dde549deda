//! A function or method, and what the attribute makes of it.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::Error;

use crate::arguments::Arguments;
use crate::future::{self, AsyncFunction};
use crate::items::{self, Item};
use crate::signature::Signature;

/// A function as tokens: they keep their origin, and what no parser knows yet passes through.
pub(crate) struct Function {
    /// Attributes, visibility, qualifiers and signature.
    head: TokenStream,
    /// The same in parts, of an `async fn`: what stands in front of the signature, and that.
    asynchronous: Option<(TokenStream, Signature)>,
    /// Whether another attribute may look for the word `async`.
    stays_async: bool,
    /// The type behind the arrow.
    output: Option<TokenStream>,
    name: Span,
    body: Group,
}

impl Function {
    /// Takes a function that can be measured; says on the right word why another one cannot.
    pub(crate) fn of_item(item: &Item) -> syn::Result<Function> {
        let name = item.name_span();
        let refused = |span, reason| Err(Error::new(span, reason));
        let Some(body) = item.braces() else {
            let reason = "#[scope] needs a function with a body: there is nothing to measure here";
            return refused(name, reason);
        };
        if let Some(word) = item.qualifier("const") {
            return refused(word, "#[scope] cannot measure a `const fn`: it may run in the compiler");
        }
        if item.attributes().any(|attribute| attribute.is("naked")) {
            let reason = "#[scope] cannot measure a naked function: its body is assembly and nothing else";
            return refused(name, reason);
        }
        let (_, head) = item.tokens.split_last().expect("an item with braces has tokens");
        let asynchronous = item.qualifier("async").and_then(|_| {
            let (before, signature) = head.split_at(item.word());
            let is_async = |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word == "async");
            let before = before.iter().filter(|token| !is_async(token)).cloned().collect();
            Some((before, Signature::of_tokens(signature)?))
        });
        let stays_async = !item.attributes().all(|attribute| attribute.is_inert());
        let output = Signature::of_tokens(&head[item.word()..]).and_then(|signature| signature.output);
        Ok(Function { head: head.iter().cloned().collect(), asynchronous, stays_async, output, name, body })
    }

    /// Whether the arguments fit the function.
    pub(crate) fn check(&self, arguments: &Arguments) -> syn::Result<()> {
        let Some(word) = &arguments.future else { return Ok(()) };
        let reason = match (&self.asynchronous, &self.output) {
            (Some(_), _) => "an `async fn` is measured with its future anyway: leave `future` out",
            (None, None) => "`future` goes on a function that returns a future: this one returns nothing",
            (None, Some(_)) => return Ok(()),
        };
        Err(Error::new(word.span(), reason))
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
    ///         &SITE
    ///     }.enter();
    ///     body
    /// }
    /// ```
    ///
    /// The body is not wrapped in anything: a block or closure around it would change messages of
    /// the compiler, what it infers, or, between editions, when the values of the last expression are
    /// dropped. Names that the body imports mean nothing to the guard, whose paths are absolute.
    pub(crate) fn expand(self, arguments: &Arguments) -> TokenStream {
        let Function { head, asynchronous, stays_async, output, name, body } = self;
        let runtime = &arguments.runtime.clone().unwrap_or_else(|| quote!(::scope_runtime));
        let site = &site(arguments, runtime, name);
        if let Some((head, signature)) = asynchronous {
            let (body, body_span) = (items::split_body(body.stream()), body.span());
            let stays_async = stays_async || arguments.stays_async;
            let function =
                AsyncFunction { head, signature, body, body_span, stays_async, site, runtime, name };
            return function.expand();
        }
        let with_future = output.filter(|_| arguments.future.is_some());
        let whole = match with_future {
            Some(output) => Some(future::measure_with_call(&body, &output, site)),
            None => future::measure_boxed(&body, site),
        };
        if let Some(body) = whole {
            return quote!(#head #body);
        }
        let hygienic = Span::mixed_site().located_at(name);
        let guard = quote_spanned!(hygienic=> let _guard = #site.enter(););
        let (first, rest) = items::split_body(body.stream());
        let mut measured = Group::new(Delimiter::Brace, quote!(#first #guard #rest));
        measured.set_span(body.span());
        quote!(#head #measured)
    }
}

/// The expression of the call site. Its place in the source is that of the function's name.
fn site(arguments: &Arguments, runtime: &TokenStream, at: Span) -> TokenStream {
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
        {
            #item
            static SITE: #runtime::Site = #site;
            &SITE
        }
    }
}
