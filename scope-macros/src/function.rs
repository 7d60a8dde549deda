//! A function or method, and what the attribute makes of it.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Error, Signature, Visibility};

use crate::arguments::Arguments;
use crate::items;

/// A function with its body as tokens: what stands in it keeps its origin, and is not parsed.
pub(crate) struct Function {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    /// `default`, in a specialising impl.
    defaultness: Option<TokenTree>,
    signature: Signature,
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
    /// Parses a function that can be measured; says on the right word why another one cannot.
    pub(crate) fn parse(tokens: TokenStream) -> Result<Function, Refusal> {
        let head = |input: ParseStream<'_>| {
            let attributes = input.call(Attribute::parse_outer)?;
            let visibility = input.parse::<Visibility>()?;
            let defaultness = if is_word(input, "default") { Some(input.parse()?) } else { None };
            Ok((attributes, visibility, defaultness, input.parse::<Signature>()?, input.parse::<TokenStream>()?))
        };
        let (attributes, visibility, defaultness, signature, rest) =
            head.parse2(tokens).map_err(Refusal::Wrong)?;
        let left_out = |span, reason| Err(Refusal::LeftOut(Error::new(span, reason)));
        let Some(body) = body_of(rest) else {
            let reason = "#[scope] needs a function with a body: there is nothing to measure here";
            return left_out(signature.ident.span(), reason);
        };
        if let Some(word) = signature.constness {
            return left_out(word.span, "#[scope] cannot measure a `const fn`: it may run in the compiler");
        }
        if attributes.iter().any(is_naked) {
            let reason = "#[scope] cannot measure a naked function: its body is assembly and nothing else";
            return left_out(signature.ident.span(), reason);
        }
        if let Some(word) = signature.asyncness {
            return Err(Refusal::Wrong(Error::new(
                word.span,
                "#[scope] does not measure `async fn` yet: mark the functions it calls",
            )));
        }
        Ok(Function { attributes, visibility, defaultness, signature, body })
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
        let Function { attributes, visibility, defaultness, signature, body } = self;
        let guard = guard(arguments, signature.ident.span());
        let statements: Vec<TokenTree> = body.stream().into_iter().collect();
        // Inner attributes come first by the language, items because clippy wants them there.
        let (first, rest) = statements.split_at(items::leading_items(&statements));
        let mut measured = Group::new(Delimiter::Brace, quote!(#(#first)* #guard #(#rest)*));
        measured.set_span(body.span());
        quote!(#(#attributes)* #visibility #defaultness #signature #measured)
    }
}

/// The statement that enters the region. Its place in the source is that of the function's name.
fn guard(arguments: &Arguments, at: Span) -> TokenStream {
    let runtime = match &arguments.runtime {
        Some(path) => path.to_token_stream(),
        None => quote!(::scope_runtime),
    };
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

/// The braces that are all of `rest`.
fn body_of(rest: TokenStream) -> Option<Group> {
    let mut tokens = rest.into_iter();
    match (tokens.next()?, tokens.next()) {
        (TokenTree::Group(group), None) => items::braces(&group),
        _ => None,
    }
}

/// `#[unsafe(naked)]` or `#[naked]`.
fn is_naked(attribute: &Attribute) -> bool {
    let within_unsafe = attribute.path().is_ident("unsafe")
        && attribute.parse_args::<syn::Path>().is_ok_and(|inner| inner.is_ident("naked"));
    within_unsafe || attribute.path().is_ident("naked")
}

fn is_word(input: ParseStream<'_>, word: &str) -> bool {
    input.cursor().ident().is_some_and(|(ident, _)| ident == word)
}
