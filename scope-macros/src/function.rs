//! A function or method, and what the attribute makes of it.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::Error;

use crate::arguments::Arguments;
use crate::attribute::Attribute;
use crate::future::{self, AsyncFunction};
use crate::items::{Body, Item};
use crate::signature::Signature;

/// A function as tokens: they keep their origin, and what no parser knows yet passes through.
pub(crate) struct Function<'a> {
    item: &'a Item,
    body: Body,
}

impl Function<'_> {
    /// Takes a function that can be measured; says on the right word why another one cannot.
    pub(crate) fn of_item(item: &Item) -> syn::Result<Function<'_>> {
        let refused = |span, reason| Err(Error::new(span, reason));
        let Some(body) = item.braces() else {
            let reason = "#[scope] needs a function with a body: there is nothing to measure here";
            return refused(item.name_span(), reason);
        };
        if let Some(word) = item.qualifier("const") {
            return refused(word, "#[scope] cannot measure a `const fn`: it may run in the compiler");
        }
        if item.attributes().any(|attribute| attribute.is("naked")) {
            let reason = "#[scope] cannot measure a naked function: its body is assembly and nothing else";
            return refused(item.name_span(), reason);
        }
        Ok(Function { item, body: Body::of_group(&body) })
    }

    /// Attributes, visibility, qualifiers and signature.
    fn head(&self) -> &[TokenTree] {
        let tokens = &self.item.tokens;
        &tokens[..tokens.len() - 1]
    }

    /// From the word `fn` on; `None` where no parser knows what stands there.
    fn signature(&self) -> Option<Signature> {
        Signature::of_tokens(&self.head()[self.item.word()..])
    }

    fn is_async(&self) -> bool {
        self.item.qualifier("async").is_some()
    }

    /// Whether the arguments fit the function.
    pub(crate) fn check(&self, arguments: &Arguments) -> syn::Result<()> {
        let Some(word) = &arguments.future else { return Ok(()) };
        let reason = if self.is_async() {
            "an `async fn` is measured with its future anyway: leave `future` out"
        } else if self.signature().is_some_and(|signature| signature.output.is_some()) {
            return Ok(());
        } else {
            "`future` goes on a function that returns a future: this one returns nothing"
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
    ///     let _guard = __site!(in_function "" "src/grid.rs" 7).enter();
    ///     body
    /// }
    /// ```
    ///
    /// The body is not wrapped in anything: a block or closure around it would change messages of
    /// the compiler, what it infers, or, between editions, when the values of the last expression are
    /// dropped. Names that the body imports mean nothing to the guard, whose paths are absolute.
    pub(crate) fn expand(&self, arguments: &Arguments) -> TokenStream {
        let runtime = &arguments.runtime.clone().unwrap_or_else(|| quote!(::scope_runtime));
        let (head, body, name) = (self.head(), &self.body, self.item.name_span());
        let site = &site(arguments, runtime, name);
        if self.is_async()
            && let Some(signature) = self.signature()
        {
            let head = &head[..self.item.word()];
            // Another attribute may look for the word `async`.
            let stays_async =
                arguments.stays_async || !self.item.attributes().all(|attribute| attribute.is_inert());
            let may_be_must_use =
                |attribute: Attribute| attribute.is("must_use") || attribute.may_become("must_use");
            let is_marked_must_use = self.item.attributes().any(may_be_must_use);
            return AsyncFunction {
                head,
                signature,
                body,
                stays_async,
                is_marked_must_use,
                site,
                runtime,
                name,
            }
            .expand();
        }
        let output = arguments.future.as_ref().and_then(|_| self.signature()?.output);
        let whole = match output {
            Some(output) => Some(future::measure_with_call(body, &output, site)),
            None => future::measure_boxed(body, site),
        };
        let measured = whole.unwrap_or_else(|| {
            let hygienic = Span::mixed_site().located_at(name);
            let guard = quote_spanned!(hygienic=> let _guard = #site.enter(););
            let (first, rest) = body.split();
            body.with_content(quote!(#first #guard #rest))
        });
        quote!(#(#head)* #measured)
    }
}

/// The expression of the call site. Its place in the source is that of the function's name.
fn site(arguments: &Arguments, runtime: &TokenStream, at: Span) -> TokenStream {
    // `file!()` and `line!()` would give the place of the attribute, which may stand on a block.
    let (file, line) = (at.unwrap().file(), at.unwrap().line() as u32);
    let hygienic = Span::mixed_site().located_at(at);
    match (&arguments.name, &arguments.prefix) {
        (Some(name), _) => quote_spanned!(hygienic=> #runtime::__site!(named #name #file, #line)),
        (None, Some(prefix)) => quote_spanned!(hygienic=> #runtime::__site!(in_function #prefix #file #line)),
        (None, None) => quote_spanned!(hygienic=> #runtime::__site!(in_function "" #file #line)),
    }
}
