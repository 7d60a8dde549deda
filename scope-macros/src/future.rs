//! An `async fn`, or a function that returns a future, and what the attribute makes of it.
//!
//! ```text
//! async fn load(&self, id: u32, _: Lock) -> Page { body }
//!
//! fn load(&self, id: u32, argument: Lock) -> impl Future<Output = Page> {
//!     SITE.future(async move {
//!         let _ = &self;                                  // all of it lives in the future
//!         let id = id;                                    // dropped in the order of a function's
//!         let argument = argument; let _ = argument;
//!         {
//!             if false { return unreachable::<Page>(); }  // so that the type is known in the body
//!             body
//!         }
//!     })
//! }
//! ```
//!
//! Saying `impl Future` instead of `async` saves one layer of the future's type, of which the compiler
//! takes 128, and has the call itself run code, which knows who calls. What it captures is decided by
//! the edition of the tokens, and these are of this crate: everything in scope, as an `async fn` does
//! in every edition. Where another attribute may look for the word `async`, it stays, and the inner
//! future is awaited.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};

use crate::attribute::Attribute;
use crate::items::{Body, is_punct, is_word};
use crate::signature::{self, Angles, Parameter, Signature};

/// What stands around and in an `async fn`.
pub(crate) struct AsyncFunction<'a> {
    /// Attributes, visibility and qualifiers.
    pub(crate) head: &'a [TokenTree],
    pub(crate) signature: Signature,
    pub(crate) body: &'a Body,
    /// Whether the word `async` must stay.
    pub(crate) stays_async: bool,
    pub(crate) is_marked_must_use: bool,
    /// The expression of the call site.
    pub(crate) site: &'a TokenStream,
    pub(crate) runtime: &'a TokenStream,
    /// Where the function's name stands.
    pub(crate) name: Span,
}

impl AsyncFunction<'_> {
    /// The function that measures it.
    pub(crate) fn expand(self) -> TokenStream {
        let AsyncFunction { head, signature, body, stays_async, is_marked_must_use, site, runtime, name } =
            self;
        let (attributes, rest) = body.split_attributes();
        let hygienic = Span::mixed_site().located_at(name);
        let Signature { name, parameters, output, bounds } = signature;
        let (parameters, moves) = take_parameters(&parameters);
        let output = output.unwrap_or_else(|| quote_spanned!(hygienic=> ()));
        let never = output.to_string() == "!";
        let expected = written(&output).filter(|_| !never).map(
            |output| quote_spanned!(hygienic=> if false { return #runtime::__unreachable::<#output>(); };),
        );
        // A type that an item of the body gives another meaning must not be named beside that item. In front of
        // all others a statement keeps the compiler from calling the braces needless.
        let (outside, inside) = if body.has_items() {
            (expected, None)
        } else {
            (None, Some(expected.unwrap_or_else(|| quote_spanned!(hygienic=> let () = ();))))
        };
        let inner = body.with_content(quote!(#inside #rest));
        // By the edition of these braces, what the last expression of the inner ones has made is dropped before
        // the arguments, as it is in an `async fn` of any edition.
        let mut block = Group::new(Delimiter::Brace, quote!(#outside #moves #inner));
        block.set_span(hygienic);
        let future = quote_spanned!(hygienic=> #site.future(async move #block));
        if !never && !stays_async {
            let output = quote_spanned!(hygienic=> -> impl ::core::future::Future<Output = #output>);
            let head = head.iter().filter(|token| !is_word(token, "async"));
            let whole = body.with_content(quote!(#attributes #future));
            // The user has not said it twice.
            let allow = is_marked_must_use.then(|| quote!(#[allow(clippy::double_must_use)]));
            return quote!(#allow #(#head)* #name #parameters #output #bounds #whole);
        }
        let awaited = if never {
            quote_spanned!(hygienic=> #future.await; #[allow(unreachable_code)] { ::core::unreachable!() })
        } else {
            quote_spanned!(hygienic=> #future.await)
        };
        let whole = body.with_content(quote!(#attributes #awaited));
        quote!(#(#head)* #name #parameters -> #output #bounds #whole)
    }
}

/// Gives the parameters names that the body does not see, where theirs is a pattern, and moves them
/// into the variables that it does see: they live in the future, and are dropped in the order of an
/// `async fn`'s.
fn take_parameters(parentheses: &Group) -> (Group, TokenStream) {
    let (mut list, mut moves) = (TokenStream::new(), TokenStream::new());
    for (index, parameter) in signature::parameters(parentheses).into_iter().enumerate() {
        let (attributes, pattern, name, ty) = match parameter {
            Parameter::Receiver(receiver, word) => {
                list.extend(quote!(#receiver,));
                // All of it lives in the future, also what the body does not mention.
                moves.extend(quote!(let _ = &#word;));
                continue;
            }
            Parameter::Typed { attributes, pattern, name, ty } => (attributes, pattern, name, ty),
        };
        let is_wild = name.as_ref().is_some_and(|name| name == "_");
        // Names stay that say something to readers of the documentation; one with an underscore in
        // front is called unused, and is used here.
        let shown = name.filter(|name| !name.to_string().starts_with('_'));
        let name = shown.unwrap_or_else(|| Ident::new(&format!("argument{index}"), Span::mixed_site()));
        // What is expected of a parameter is in one of the places that it is in now.
        let attributes = with_allowed(&attributes);
        list.extend(quote!(#attributes #name #ty,));
        let keep = is_wild.then(|| quote!(#attributes let #name = #name;));
        moves.extend(quote!(#keep #attributes #[allow(clippy::redundant_locals, clippy::no_effect_underscore_binding)] let #pattern = #name;));
    }
    let mut group = Group::new(Delimiter::Parenthesis, list);
    group.set_span(parentheses.span());
    (group, moves)
}

/// Attributes with `#[allow(..)]` in place of `#[expect(..)]`.
fn with_allowed(attributes: &TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = attributes.clone().into_iter().collect();
    let changed = tokens.chunks(2).map(|tokens| match Attribute::of_tokens(tokens) {
        Some(attribute) if attribute.is("expect") => {
            let lints = attribute.arguments();
            quote!(#[allow(#lints)])
        }
        _ => tokens.iter().cloned().collect(),
    });
    changed.collect()
}

/// The type as it can stand in an expression, with `_` in place of each `impl Trait`; `None` where that is all
/// of it.
fn written(output: &TokenStream) -> Option<TokenStream> {
    let first = output.clone().into_iter().next();
    (!first.is_some_and(|first| is_word(&first, "impl"))).then(|| with_gaps(output))
}

fn with_gaps(tokens: &TokenStream) -> TokenStream {
    let mut tokens = tokens.clone().into_iter().peekable();
    let mut written = TokenStream::new();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => {
                let mut changed = Group::new(group.delimiter(), with_gaps(&group.stream()));
                changed.set_span(group.span());
                written.extend([TokenTree::Group(changed)]);
            }
            token if is_word(&token, "impl") => {
                written.extend(quote!(_));
                let mut angles = Angles::default();
                let mut is_of_bounds = |token: &TokenTree| {
                    let outside = angles.outside(token);
                    // An angle that none of theirs has opened closes the type around.
                    let is_end = is_punct(token, ',') || is_punct(token, ';');
                    !(outside && (is_end || !angles.are_closed() && is_punct(token, '>')))
                };
                while tokens.next_if(&mut is_of_bounds).is_some() {}
            }
            token => written.extend([token]),
        }
    }
    written
}

/// The body of a function that does nothing but box a future, as `async_trait` makes it, with the
/// future measured.
///
/// ```text
/// { Box::pin(async move { body }) }
///
/// { Box::pin(SITE.future(async move { body })) }
/// ```
pub(crate) fn measure_boxed(body: &Body, site: &TokenStream) -> Option<Group> {
    let (TokenTree::Group(arguments), path) = body.tokens.split_last()? else { return None };
    let is_path = path.iter().all(|token| match token {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(punct) => punct.as_char() == ':',
        _ => false,
    });
    let words =
        path.iter().filter_map(|token| if let TokenTree::Ident(word) = token { Some(word) } else { None });
    let words: Vec<&Ident> = words.collect();
    let boxes = matches!(words[..], [.., ty, function] if ty == "Box" && function == "pin");
    if !(is_path && boxes && arguments.delimiter() == Delimiter::Parenthesis && is_async_block(arguments)) {
        return None;
    }
    let future = arguments.stream();
    let mut measured = Group::new(Delimiter::Parenthesis, quote!(#site.future(#future)));
    measured.set_span(arguments.span());
    let tokens = path.iter().cloned().chain([TokenTree::Group(measured)]);
    Some(body.with_content(tokens.collect()))
}

/// The body of a function that returns a future, with the call and the future measured as one.
///
/// ```text
/// -> impl Future<Output = u32> { body }          -> BoxFuture<'a, u32> { body }
///
/// { SITE.call(move || { body }) }                { Box::pin(SITE.call(move || -> BoxFuture<'a, u32> { body })) }
/// ```
pub(crate) fn measure_with_call(body: &Body, output: &TokenStream, site: &TokenStream) -> Group {
    let hygienic = Span::mixed_site().located_at(body.span);
    let whole = body.whole();
    let boxed = match written(output) {
        None => quote_spanned!(hygienic=> #site.call(move || #whole)),
        Some(output) => quote_spanned!(hygienic=> #site.boxed(#site.call(move || -> #output #whole))),
    };
    body.with_content(boxed)
}

/// Whether the tokens are one `async` block.
fn is_async_block(tokens: &Group) -> bool {
    let tokens: Vec<TokenTree> = tokens.stream().into_iter().collect();
    let Some((TokenTree::Group(block), words)) = tokens.split_last() else { return false };
    let is_async = match words {
        [first] => is_word(first, "async"),
        [first, second] => is_word(first, "async") && is_word(second, "move"),
        _ => false,
    };
    is_async && block.delimiter() == Delimiter::Brace
}
