//! The arguments of the attribute.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::ParseStream;
use syn::{Error, Ident, LitStr, Path, Token};

/// What stands in `#[scope(..)]`.
#[derive(Default)]
pub(crate) struct Arguments {
    /// Name of the region.
    pub(crate) name: Option<LitStr>,
    /// Path of scope-runtime.
    pub(crate) runtime: Option<Path>,
}

impl Arguments {
    /// The path of scope-runtime.
    pub(crate) fn runtime(&self) -> TokenStream {
        match &self.runtime {
            Some(path) => path.to_token_stream(),
            None => quote!(::scope_runtime),
        }
    }
}

const ALLOWED: &str = "allowed are `name = \"text\"` and `crate = path`";

impl Arguments {
    /// Parses all arguments; the errors of several are reported together.
    pub(crate) fn parse(input: ParseStream<'_>) -> syn::Result<Arguments> {
        let mut arguments = Arguments::default();
        let mut errors: Option<Error> = None;
        while !input.is_empty() {
            if let Err(error) = arguments.parse_one(input) {
                match &mut errors {
                    Some(errors) => errors.combine(error),
                    None => errors = Some(error),
                }
                skip_to_comma(input)?;
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        errors.map_or(Ok(arguments), Err)
    }

    fn parse_one(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        if input.peek(Token![crate]) {
            let key = input.parse::<Token![crate]>()?;
            let path = value::<Path>(input, "crate", key.span, "a path, as in `crate = my::scope_runtime`")?;
            return set(&mut self.runtime, path, "crate", key.span);
        }
        let unexpected = input.span();
        let key = input
            .parse::<Ident>()
            .map_err(|_| Error::new(unexpected, format!("expected an argument: {ALLOWED}")))?;
        if key != "name" {
            return Err(Error::new(key.span(), format!("unknown argument `{key}`: {ALLOWED}")));
        }
        let name = value::<LitStr>(input, "name", key.span(), "a string literal, as in `name = \"text\"`")?;
        set(&mut self.name, name, "name", key.span())
    }
}

fn value<T: syn::parse::Parse>(
    input: ParseStream<'_>,
    key: &str,
    key_span: proc_macro2::Span,
    expected: &str,
) -> syn::Result<T> {
    if !input.peek(Token![=]) {
        return Err(Error::new(key_span, format!("`{key}` needs {expected}")));
    }
    input.parse::<Token![=]>()?;
    let span = if input.is_empty() { key_span } else { input.span() };
    input.parse().map_err(|_| Error::new(span, format!("`{key}` needs {expected}")))
}

fn set<T>(slot: &mut Option<T>, value: T, key: &str, span: proc_macro2::Span) -> syn::Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new(span, format!("`{key}` is given twice"))),
    }
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}
