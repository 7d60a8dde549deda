//! One attribute in front of an item, as tokens.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};

/// `#[path(arguments)]`.
pub(crate) struct Attribute {
    /// What stands in the brackets.
    content: Vec<TokenTree>,
}

impl Attribute {
    /// From `#` and the brackets.
    pub(crate) fn of_tokens(tokens: &[TokenTree]) -> Option<Attribute> {
        match tokens {
            [_, TokenTree::Group(brackets)] => Some(Attribute::of_content(brackets.stream())),
            _ => None,
        }
    }

    /// `macro_rules!` passes on `$meta:meta` in invisible delimiters.
    fn of_content(content: TokenStream) -> Attribute {
        let content: Vec<TokenTree> = content.into_iter().collect();
        match &content[..] {
            [TokenTree::Group(passed)] if passed.delimiter() == Delimiter::None => {
                Attribute::of_content(passed.stream())
            }
            _ => Attribute { content },
        }
    }

    /// Whether its path ends with this name; `#[unsafe(name)]` counts too.
    pub(crate) fn is(&self, name: &str) -> bool {
        match self.last_of_path() {
            Some(last) if last == "unsafe" => Attribute::of_content(self.arguments()).is(name),
            last => last.is_some_and(|last| last == name),
        }
    }

    /// Whether it only tells the compiler or its tools something, and changes no tokens.
    pub(crate) fn is_inert(&self) -> bool {
        const INERT: &[&str] = &[
            "allow",
            "cfg",
            "cold",
            "deny",
            "deprecated",
            "doc",
            "expect",
            "forbid",
            "inline",
            "must_use",
            "no_mangle",
            "target_feature",
            "track_caller",
            "unsafe",
            "warn",
        ];
        const TOOLS: &[&str] = &["clippy", "diagnostic", "rustdoc", "rustfmt"];
        match self.path() {
            [TokenTree::Ident(name)] => INERT.iter().any(|inert| name == inert),
            [TokenTree::Ident(tool), ..] => TOOLS.iter().any(|known| tool == known),
            _ => false,
        }
    }

    /// Whether it is `#[cfg_attr(.., name)]`.
    pub(crate) fn may_become(&self, name: &str) -> bool {
        let arguments: Vec<TokenTree> = self.arguments().into_iter().collect();
        let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
        let mut attributes = arguments.split(is_comma).skip(1).map(|one| one.iter().cloned().collect());
        self.is("cfg_attr") && attributes.any(|attribute| Attribute::of_content(attribute).is(name))
    }

    /// What stands in its parentheses; whatever else stands behind its path, as it is.
    pub(crate) fn arguments(&self) -> TokenStream {
        match &self.content[self.path().len()..] {
            [TokenTree::Group(group)] => group.stream(),
            other => other.iter().cloned().collect(),
        }
    }

    /// Where its name stands.
    pub(crate) fn span(&self) -> Span {
        self.last_of_path().map_or_else(Span::call_site, Ident::span)
    }

    fn last_of_path(&self) -> Option<&Ident> {
        match self.path().last()? {
            TokenTree::Ident(last) => Some(last),
            _ => None,
        }
    }

    /// The words and colons that it begins with.
    fn path(&self) -> &[TokenTree] {
        let is_path = |token: &TokenTree| match token {
            TokenTree::Ident(_) => true,
            TokenTree::Punct(punct) => punct.as_char() == ':',
            _ => false,
        };
        let length = self.content.iter().position(|token| !is_path(token)).unwrap_or(self.content.len());
        &self.content[..length]
    }
}
