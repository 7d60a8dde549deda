//! A function or method, and what the attribute makes of it.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::parse::ParseStream;
use syn::{Attribute, Error, Signature, Visibility};

use crate::arguments::Arguments;
use crate::future;

/// A function with its body as tokens: what stands in it keeps its origin, and is not parsed.
pub(crate) struct Function {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    /// `default`, in a specialising impl.
    defaultness: Option<TokenTree>,
    signature: Signature,
    body: Group,
}

impl Function {
    /// Parses a function that can be measured; says on the right word why another item cannot.
    pub(crate) fn parse(input: ParseStream<'_>) -> syn::Result<Function> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse::<Visibility>()?;
        let start = input.span();
        let defaultness = if is_word(input, "default") { Some(input.parse()?) } else { None };
        let is_function = input.fork().parse::<Signature>().is_ok();
        if !is_function {
            skip(input)?;
            return Err(Error::new(start, "#[scope] goes on a function or method with a body"));
        }
        let signature = input.parse::<Signature>()?;
        let end = input.span();
        let rest = input.parse::<TokenStream>()?;
        let body = body_of(rest).ok_or_else(|| {
            Error::new(end, "#[scope] needs a function with a body: there is nothing to measure here")
        })?;
        if let Some(word) = signature.constness {
            return Err(Error::new(
                word.span,
                "#[scope] cannot measure a `const fn`: it may run in the compiler",
            ));
        }
        Ok(Function { attributes, visibility, defaultness, signature, body })
    }

    /// The function with a guard that lives as long as its body runs.
    ///
    /// ```text
    /// fn step(&mut self) { body }
    ///
    /// fn step(&mut self) {
    ///     let _guard = {
    ///         fn item() -> &'static str { type_name_of_val(&item) }       // "app::Grid<_>::step::item"
    ///         static SITE: Site = Site::in_function(item, module_path!(), file!(), line!());
    ///         &SITE
    ///     }.enter();
    ///     { body }
    /// }
    /// ```
    ///
    /// The body stays a block of its own, so that what it imports means nothing to the guard.
    pub(crate) fn expand(self, arguments: &Arguments) -> TokenStream {
        let Function { attributes, visibility, defaultness, signature, mut body } = self;
        // Braces around one expression would be called unnecessary if they looked like the user's.
        body.set_span(Span::mixed_site().located_at(body.span()));
        let site = site(arguments, signature.ident.span());
        let function = if signature.asyncness.is_some() {
            future::expand(signature, &attributes, &body, &site, &arguments.runtime())
        } else if let Some(body) = future::measure_boxed(&body, &site) {
            quote!(#signature #body)
        } else {
            let hygienic = Span::mixed_site().located_at(signature.ident.span());
            let guard = quote_spanned!(hygienic=> let _guard = #site.enter(););
            quote!(#signature { #guard #body })
        };
        quote!(#(#attributes)* #visibility #defaultness #function)
    }
}

/// The expression of the call site. Its place in the source is that of the function's name.
fn site(arguments: &Arguments, at: Span) -> TokenStream {
    let runtime = arguments.runtime();
    let hygienic = Span::mixed_site().located_at(at);
    let place = quote_spanned!(hygienic=> ::core::module_path!(), ::core::file!(), ::core::line!());
    let site = match &arguments.name {
        Some(name) => quote_spanned!(hygienic=>
            static SITE: #runtime::Site = #runtime::Site::named(#name, #place);
        ),
        None => quote_spanned!(hygienic=>
            fn item() -> &'static ::core::primitive::str {
                ::core::any::type_name_of_val(&item)
            }
            static SITE: #runtime::Site = #runtime::Site::in_function(item, #place);
        ),
    };
    quote_spanned!(hygienic=> { #site &SITE })
}

/// The braces that are all of `rest`. A body that `macro_rules!` passes on as `$body:block` comes in
/// invisible delimiters.
fn body_of(rest: TokenStream) -> Option<Group> {
    let mut tokens = rest.into_iter();
    match (tokens.next()?, tokens.next()) {
        (TokenTree::Group(group), None) => match group.delimiter() {
            Delimiter::Brace => Some(group),
            Delimiter::None => body_of(group.stream()),
            _ => None,
        },
        _ => None,
    }
}

fn is_word(input: ParseStream<'_>, word: &str) -> bool {
    input.cursor().ident().is_some_and(|(ident, _)| ident == word)
}

fn skip(input: ParseStream<'_>) -> syn::Result<()> {
    input.parse::<TokenStream>().map(drop)
}
