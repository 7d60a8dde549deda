//! The parts of a function's signature, as tokens.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use crate::items::{is_punct, is_word, visible};

/// A signature from the word `fn` on.
pub(crate) struct Signature {
    /// `fn`, the name and the generic parameters.
    pub(crate) name: TokenStream,
    pub(crate) parameters: Group,
    /// Type behind the arrow.
    pub(crate) output: Option<TokenStream>,
    /// `where` and what follows.
    pub(crate) bounds: TokenStream,
}

impl Signature {
    /// From the tokens behind the qualifiers up to the body; `None` where they are no signature.
    pub(crate) fn of_tokens(tokens: &[TokenTree]) -> Option<Signature> {
        let mut angles = Angles::default();
        let is_parameters = |token: &TokenTree| {
            let outside = angles.outside(token);
            matches!(token, TokenTree::Group(group) if outside && group.delimiter() == Delimiter::Parenthesis)
        };
        let at = tokens.iter().position(is_parameters)?;
        let (name, rest) = tokens.split_at(at);
        let (TokenTree::Group(parameters), rest) = rest.split_first()? else { return None };
        let mut angles = Angles::default();
        let is_where = |token: &TokenTree| angles.outside(token) && is_word(token, "where");
        let (output, bounds) = rest.split_at(rest.iter().position(is_where).unwrap_or(rest.len()));
        let output = match output {
            [dash, arrow, output @ ..] if is_punct(dash, '-') && is_punct(arrow, '>') => {
                Some(output.iter().cloned().collect())
            }
            _ => None,
        };
        let (name, bounds) = (name.iter().cloned().collect(), bounds.iter().cloned().collect());
        Some(Signature { name, parameters: parameters.clone(), output, bounds })
    }
}

/// One parameter.
pub(crate) enum Parameter {
    /// `self` in any form, as it stands, and the word by itself.
    Receiver(TokenStream, Ident),
    /// All others.
    Typed {
        attributes: TokenStream,
        pattern: TokenStream,
        /// The name, where the pattern is nothing else, but for `mut`.
        name: Option<Ident>,
        /// The colon and the type.
        ty: TokenStream,
    },
}

/// The parameters between the parentheses.
pub(crate) fn parameters(parentheses: &Group) -> Vec<Parameter> {
    let tokens: Vec<TokenTree> = parentheses.stream().into_iter().map(|token| visible(&token)).collect();
    let mut angles = Angles::default();
    let parts = tokens.split(|token| angles.outside(token) && is_punct(token, ','));
    parts.filter(|part| !part.is_empty()).map(parameter).collect()
}

fn parameter(tokens: &[TokenTree]) -> Parameter {
    let mut start = 0;
    while let [hash, TokenTree::Group(_), ..] = &tokens[start..]
        && is_punct(hash, '#')
    {
        start += 2;
    }
    let (attributes, rest) = tokens.split_at(start);
    let colon = rest.iter().enumerate().position(|(at, token)| {
        // One that is no part of `::`.
        let beside = |at: usize| rest.get(at).is_some_and(|token| is_punct(token, ':'));
        is_punct(token, ':') && !beside(at + 1) && !at.checked_sub(1).is_some_and(beside)
    });
    let (pattern, ty) = rest.split_at(colon.unwrap_or(rest.len()));
    match pattern {
        [.., TokenTree::Ident(last)] if last == "self" => {
            Parameter::Receiver(tokens.iter().cloned().collect(), last.clone())
        }
        _ => Parameter::Typed {
            attributes: attributes.iter().cloned().collect(),
            pattern: pattern.iter().cloned().collect(),
            name: name_of(pattern),
            ty: ty.iter().cloned().collect(),
        },
    }
}

fn name_of(pattern: &[TokenTree]) -> Option<Ident> {
    match pattern {
        [TokenTree::Group(passed)] if passed.delimiter() == Delimiter::None => {
            name_of(&passed.stream().into_iter().collect::<Vec<_>>())
        }
        [TokenTree::Ident(name)] => Some(name.clone()),
        [TokenTree::Ident(word), TokenTree::Ident(name)] if word == "mut" => Some(name.clone()),
        _ => None,
    }
}

/// Counts angle brackets.
#[derive(Default)]
pub(crate) struct Angles {
    depth: i32,
    after_dash: bool,
}

impl Angles {
    /// Whether the token stands outside all of them.
    pub(crate) fn outside(&mut self, token: &TokenTree) -> bool {
        let outside = self.depth == 0;
        // The arrow of a function type closes nothing.
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '<' => self.depth += 1,
            TokenTree::Punct(punct) if punct.as_char() == '>' && !self.after_dash => self.depth -= 1,
            _ => {}
        }
        self.after_dash = is_punct(token, '-');
        outside
    }

    /// Whether each that was opened is closed.
    pub(crate) fn are_closed(&self) -> bool {
        self.depth == 0
    }
}
