//! The arguments of the attribute.

use proc_macro2::{Literal, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Error, Ident, LitStr, Token};

use crate::errors::Errors;

/// What stands in `#[scope(..)]`.
#[derive(Default)]
pub(crate) struct Arguments {
    /// Name of the region.
    pub(crate) name: Option<Literal>,
    /// What stands in front of the path that is otherwise the name.
    pub(crate) prefix: Option<Literal>,
    /// Path of scope-runtime.
    pub(crate) runtime: Option<TokenStream>,
    /// Leaves the item as it is.
    pub(crate) skip: Option<Ident>,
    /// Measures the call and the future that it returns as one.
    pub(crate) future: Option<Ident>,
    /// Whether an attribute of a block around the item may look for the word `async`.
    pub(crate) stays_async: bool,
}

const ALLOWED: &str = "allowed are `name = \"text\"`, `crate = path`, `future` and `skip`";

impl Arguments {
    /// Parses all arguments; the errors of several are reported together.
    pub(crate) fn of_tokens(tokens: TokenStream) -> syn::Result<Arguments> {
        // Most attributes have none.
        if tokens.is_empty() { Ok(Arguments::default()) } else { Arguments::parse.parse2(tokens) }
    }

    fn parse(input: ParseStream<'_>) -> syn::Result<Arguments> {
        let mut arguments = Arguments::default();
        let mut errors = Errors::default();
        while !input.is_empty() {
            errors.take(arguments.parse_one(input).and_then(|()| expect_end(input)));
            skip_past_comma(input)?;
        }
        if let Some(skip) = &arguments.skip
            && (arguments.name.is_some() || arguments.runtime.is_some() || arguments.future.is_some())
        {
            errors.add(Error::new(skip.span(), "`skip` stands alone: what is left out needs no more"));
        }
        errors.into_result().map(|()| arguments)
    }

    /// What the members of a block are measured with: its name stands in front of theirs.
    pub(crate) fn of_members(self) -> Arguments {
        Arguments { prefix: self.name.or(self.prefix), name: None, ..self }
    }

    /// With what a block around the item says where these arguments say nothing.
    pub(crate) fn within(self, block: &Arguments) -> Arguments {
        Arguments {
            prefix: self.prefix.or_else(|| block.prefix.clone()),
            runtime: self.runtime.or_else(|| block.runtime.clone()),
            stays_async: block.stays_async,
            ..self
        }
    }

    fn parse_one(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        if input.peek(Token![crate]) {
            let key = input.parse::<Token![crate]>()?.span;
            let path = value(input, "crate", key, "a path, as in `crate = my::scope_runtime`", path)?;
            return set(&mut self.runtime, path, "crate", key);
        }
        let unexpected = input.span();
        let key = input
            .parse::<Ident>()
            .map_err(|_| Error::new(unexpected, format!("expected an argument: {ALLOWED}")))?;
        if key == "future" {
            return set(&mut self.future, key.clone(), "future", key.span());
        }
        if key == "skip" {
            return set(&mut self.skip, key.clone(), "skip", key.span());
        }
        if key != "name" {
            return Err(Error::new(key.span(), format!("unknown argument `{key}`: {ALLOWED}")));
        }
        let name: LitStr =
            value(input, "name", key.span(), "a string literal, as in `name = \"text\"`", Parse::parse)?;
        if !name.suffix().is_empty() {
            return Err(Error::new(name.span(), "`name` needs a string literal without a suffix"));
        }
        set(&mut self.name, name.token(), "name", key.span())
    }
}

fn value<T>(
    input: ParseStream<'_>,
    key: &str,
    key_span: Span,
    expected: &str,
    parse: fn(ParseStream<'_>) -> syn::Result<T>,
) -> syn::Result<T> {
    let wrong = |span| Error::new(span, format!("`{key}` needs {expected}; {ALLOWED}"));
    if !input.peek(Token![=]) {
        return Err(wrong(key_span));
    }
    input.parse::<Token![=]>()?;
    if input.is_empty() || input.peek(Token![,]) {
        return Err(wrong(key_span));
    }
    let span = input.span();
    input.call(parse).map_err(|_| wrong(span))
}

/// `my::scope_runtime`, which may begin with `::` or `$crate`.
fn path(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut path = TokenStream::new();
    loop {
        if input.peek(Token![::]) {
            path.extend([input.parse::<TokenTree>()?, input.parse()?]);
        } else if !path.is_empty() {
            return Ok(path);
        }
        path.extend([TokenTree::from(Ident::parse_any(input)?)]);
    }
}

fn set<T>(slot: &mut Option<T>, value: T, key: &str, span: Span) -> syn::Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new(span, format!("`{key}` is given twice; {ALLOWED}, each once"))),
    }
}

/// A comma or the end comes after an argument.
fn expect_end(input: ParseStream<'_>) -> syn::Result<()> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(());
    }
    Err(input.error(format!("expected a comma before the next argument; {ALLOWED}")))
}

fn skip_past_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    input.parse::<Option<Token![,]>>().map(drop)
}
