//! An `async fn`, or a function that boxes its future, and what the attribute makes of it.
//!
//! ```text
//! async fn load(&self, id: u32, _: Lock) -> Page { body }
//!
//! fn load(&self, id: u32, argument: Lock) -> impl Future<Output = Page> {
//!     SITE.future(async move {
//!         if false { return unreachable::<Page>(); }      // so that the type is known in the body
//!         let id = id;                                    // dropped in the order of a function's
//!         let argument = argument; let _ = argument;
//!         { body }
//!     })
//! }
//! ```
//!
//! Saying `impl Future` instead of `async` saves one layer of the future's type, of which the compiler
//! takes 128. What it captures is decided by the edition of the tokens, and these are of this crate:
//! everything in scope, as an `async fn` does in every edition. Where another attribute may look for
//! the word `async`, it stays, and the inner future is awaited.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, FnArg, Pat, ReturnType, Signature, Type};

/// The signature and the body of the function that measures what `signature` and `body` say; `site`
/// is the expression of its call site.
pub(crate) fn expand(
    mut signature: Signature,
    attributes: &[Attribute],
    body: &Group,
    site: &TokenStream,
    runtime: &TokenStream,
) -> TokenStream {
    let hygienic = Span::mixed_site().located_at(signature.ident.span());
    let arguments = take_arguments(&mut signature);
    let output = match &signature.output {
        ReturnType::Default => quote_spanned!(hygienic=> ()),
        ReturnType::Type(_, output) => quote!(#output),
    };
    let never =
        matches!(&signature.output, ReturnType::Type(_, output) if matches!(**output, Type::Never(_)));
    let expected = (!never && can_be_written(&output))
        .then(|| quote_spanned!(hygienic=> if false { return #runtime::__unreachable::<#output>(); }));
    let future = quote_spanned!(hygienic=> #site.future(async move { #expected #arguments #body }));
    if never {
        return quote_spanned!(hygienic=> #signature {
            #future.await;
            #[allow(unreachable_code)]
            { ::core::unreachable!() }
        });
    }
    if attributes.iter().all(is_inert) {
        signature.asyncness = None;
        signature.output =
            syn::parse_quote_spanned!(hygienic=> -> impl ::core::future::Future<Output = #output>);
        quote_spanned!(hygienic=> #signature { #future })
    } else {
        quote_spanned!(hygienic=> #signature { #future.await })
    }
}

/// Gives the arguments names that the body does not see, where theirs is a pattern, and moves them
/// into the variables that it does see: they live in the future, and are dropped in the order of an
/// `async fn`'s.
fn take_arguments(signature: &mut Signature) -> TokenStream {
    let mut moves = TokenStream::new();
    for (index, argument) in signature.inputs.iter_mut().enumerate() {
        let FnArg::Typed(argument) = argument else { continue };
        let attributes = &argument.attrs;
        let pattern = &argument.pat;
        let name = match &**pattern {
            // Names stay where they say something to readers of the documentation.
            Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
                pattern.ident.clone()
            }
            _ => format_ident!("argument{index}", span = Span::mixed_site()),
        };
        let keep = matches!(**pattern, Pat::Wild(_)).then(|| quote!(#(#attributes)* let #name = #name;));
        moves.extend(quote! {
            #keep
            #(#attributes)*
            #[allow(clippy::redundant_locals, clippy::used_underscore_binding, clippy::let_underscore_untyped)]
            let #pattern = #name;
        });
        *argument.pat = Pat::Ident(syn::PatIdent {
            attrs: Vec::new(),
            by_ref: None,
            mutability: None,
            ident: name,
            subpat: None,
        });
    }
    moves
}

/// Whether the type can stand in an expression: `impl Trait` cannot.
fn can_be_written(output: &TokenStream) -> bool {
    output.clone().into_iter().all(|token| match token {
        TokenTree::Ident(word) => word != "impl",
        TokenTree::Group(group) => can_be_written(&group.stream()),
        _ => true,
    })
}

/// Whether the attribute only tells the compiler or its tools something, and sees no tokens.
fn is_inert(attribute: &Attribute) -> bool {
    const INERT: &[&str] = &[
        "allow",
        "cfg",
        "cold",
        "deny",
        "deprecated",
        "doc",
        "expect",
        "forbid",
        "ignore",
        "inline",
        "must_use",
        "no_mangle",
        "target_feature",
        "track_caller",
        "unsafe",
        "warn",
    ];
    const TOOLS: &[&str] = &["clippy", "diagnostic", "rustdoc", "rustfmt"];
    let segments = &attribute.path().segments;
    let first = segments.first().map(|segment| segment.ident.to_string()).unwrap_or_default();
    if segments.len() == 1 { INERT.contains(&&*first) } else { TOOLS.contains(&&*first) }
}

/// The body of a function that does nothing but box a future, as `async_trait` makes it, with the
/// future measured.
///
/// ```text
/// { Box::pin(async move { body }) }
///
/// { Box::pin(SITE.future(async move { body })) }
/// ```
pub(crate) fn measure_boxed(body: &Group, site: &TokenStream) -> Option<Group> {
    let mut tokens: Vec<TokenTree> = body.stream().into_iter().collect();
    let Some(TokenTree::Group(arguments)) = tokens.last() else { return None };
    let is_word = |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(ident) if ident == word);
    let names: Vec<&Ident> = tokens
        .iter()
        .filter_map(|token| if let TokenTree::Ident(ident) = token { Some(ident) } else { None })
        .collect();
    let is_path = tokens[..tokens.len() - 1].iter().all(|token| match token {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(punct) => punct.as_char() == ':',
        _ => false,
    });
    let boxes = matches!(names[..], [.., ty, function] if ty == "Box" && function == "pin");
    let inner: Vec<TokenTree> = arguments.stream().into_iter().collect();
    let is_future = match &inner[..] {
        [word, TokenTree::Group(block)] => is_word(word, "async") && block.delimiter() == Delimiter::Brace,
        [word, second, TokenTree::Group(block)] => {
            is_word(word, "async") && is_word(second, "move") && block.delimiter() == Delimiter::Brace
        }
        _ => false,
    };
    if !(is_path && boxes && is_future && arguments.delimiter() == Delimiter::Parenthesis) {
        return None;
    }
    let future = arguments.stream();
    let mut measured = Group::new(Delimiter::Parenthesis, quote!(#site.future(#future)));
    measured.set_span(arguments.span());
    *tokens.last_mut()? = TokenTree::Group(measured);
    let mut group = Group::new(Delimiter::Brace, tokens.into_iter().collect());
    group.set_span(body.span());
    Some(group)
}
