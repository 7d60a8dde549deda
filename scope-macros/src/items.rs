//! Where items begin and end in a stream of tokens.
//!
//! Bodies are not parsed: that would cost time in every build, and what no parser knows yet passes
//! through as it is.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use crate::attribute::Attribute;
use crate::signature::Angles;

/// One item with its attributes.
pub(crate) struct Item {
    pub(crate) kind: Kind,
    pub(crate) tokens: Vec<TokenTree>,
    /// Index of the word that tells which item it is.
    word: usize,
}

/// What the attribute can do with an item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `fn`, with or without a body.
    Function,
    /// `impl`, `mod`, `trait`: items stand in its braces, if it has any.
    Block,
    /// Any other item, or an inner attribute of what the items stand in.
    Other,
}

impl Item {
    /// The braces that it ends with.
    pub(crate) fn braces(&self) -> Option<Group> {
        match self.tokens.last() {
            Some(TokenTree::Group(group)) => braces(group),
            _ => None,
        }
    }

    /// Index of the word that tells which item it is.
    pub(crate) fn word(&self) -> usize {
        self.word
    }

    /// Where the word stands that tells which item it is.
    pub(crate) fn word_span(&self) -> Span {
        self.tokens[self.word].span()
    }

    /// Where the name of a function stands.
    pub(crate) fn name_span(&self) -> Span {
        self.tokens.get(self.word + 1).map_or_else(|| self.word_span(), TokenTree::span)
    }

    /// Where `const`, `async` or another such word stands in front of the telling word.
    pub(crate) fn qualifier(&self, qualifier: &str) -> Option<Span> {
        let is_it = |token: &&TokenTree| matches!(token, TokenTree::Ident(ident) if ident == qualifier);
        self.tokens[..self.word].iter().find(is_it).map(TokenTree::span)
    }

    pub(crate) fn attributes(&self) -> impl Iterator<Item = Attribute> {
        self.tokens[..skip_attributes(&self.tokens)].chunks_exact(2).filter_map(Attribute::of_tokens)
    }

    /// Takes out the attributes of this name.
    pub(crate) fn take_attributes(&mut self, name: &str) -> Vec<Attribute> {
        let mut taken = Vec::new();
        let mut at = 0;
        while at < skip_attributes(&self.tokens) {
            match Attribute::of_tokens(&self.tokens[at..at + 2]).filter(|attribute| attribute.is(name)) {
                Some(attribute) => {
                    taken.push(attribute);
                    self.tokens.drain(at..at + 2);
                    self.word -= 2;
                }
                None => at += 2,
            }
        }
        taken
    }

    pub(crate) fn into_tokens(self) -> TokenStream {
        self.tokens.into_iter().collect()
    }
}

/// How an item goes on after its qualifiers.
enum Start {
    /// To the first braces or semicolon.
    Braced(Kind),
    /// To the semicolon: there may be braces before it.
    Semicolon,
    /// Not by a word that only items start with: the call of a macro, or a statement.
    Unknown,
}

/// The items that stand one after the other.
pub(crate) fn split(content: TokenStream) -> Vec<Item> {
    let tokens: Vec<TokenTree> = content.into_iter().collect();
    let mut items = Vec::new();
    let mut rest = &tokens[..];
    while !rest.is_empty() {
        let attributes = skip_attributes(rest);
        if let Some(passed) = rest.get(attributes).and_then(passed_item) {
            items.extend(split(rest[..attributes].iter().cloned().chain(passed).collect()));
            rest = &rest[attributes + 1..];
            continue;
        }
        let (kind, word, length) = first_item(rest);
        let (item, after) = rest.split_at(length);
        items.push(Item { kind, tokens: item.iter().map(visible).collect(), word });
        rest = after;
    }
    items
}

/// What an item consists of that `macro_rules!` passes on as `$item:item`, in invisible delimiters.
fn passed_item(token: &TokenTree) -> Option<TokenStream> {
    let TokenTree::Group(group) = token else { return None };
    let ends_an_item = match group.stream().into_iter().last()? {
        TokenTree::Group(last) => braces(&last).is_some(),
        last => is_punct(&last, ';'),
    };
    (group.delimiter() == Delimiter::None && ends_an_item).then(|| group.stream())
}

/// The body of a function. Taking a stream apart is what costs most here, so it is done once.
pub(crate) struct Body {
    content: TokenStream,
    pub(crate) tokens: Vec<TokenTree>,
    pub(crate) span: Span,
}

impl Body {
    pub(crate) fn of_group(group: &Group) -> Body {
        let content = group.stream();
        Body { tokens: content.clone().into_iter().collect(), content, span: group.span() }
    }

    /// Other content in braces at the same place.
    pub(crate) fn with_content(&self, content: TokenStream) -> Group {
        let mut group = Group::new(Delimiter::Brace, content);
        group.set_span(self.span);
        group
    }

    /// The body as it stands.
    pub(crate) fn whole(&self) -> Group {
        self.with_content(self.content.clone())
    }

    /// Cuts it behind the inner attributes.
    pub(crate) fn split_attributes(&self) -> (TokenStream, TokenStream) {
        self.split_at(inner_attributes(&self.tokens))
    }

    /// Cuts it behind the inner attributes and items that it begins with: inner attributes come first by
    /// the language, items because clippy wants them there.
    ///
    /// It is not taken apart where there are invisible delimiters, see [`visible`], unless the language asks for
    /// it.
    pub(crate) fn split(&self) -> (TokenStream, TokenStream) {
        let length = leading_items(&self.tokens);
        let is_invisible = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::None);
        let stays_whole =
            self.tokens.iter().any(is_invisible) && inner_attribute(&self.tokens[..length]) == 0;
        self.split_at(if stays_whole { 0 } else { length })
    }

    fn split_at(&self, length: usize) -> (TokenStream, TokenStream) {
        if length == 0 {
            return (TokenStream::new(), self.content.clone());
        }
        let (first, rest) = self.tokens.split_at(length);
        (first.iter().map(visible).collect(), rest.iter().map(visible).collect())
    }

    /// Whether there are items among its statements.
    pub(crate) fn has_items(&self) -> bool {
        let first = inner_attributes(&self.tokens);
        let begins_statement = |at: usize| at == first || ends_statement(&self.tokens[at - 1]);
        let is_item = |at: usize| !matches!(item_start(&self.tokens[at..]).0, Start::Unknown);
        (first..self.tokens.len()).any(|at| begins_statement(at) && is_item(at))
    }
}

/// Whether a statement can end with this token.
fn ends_statement(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is_punct(token, ';'),
    }
}

/// The token, or an expression, type or pattern that `macro_rules!` passes on, in parentheses instead of invisible
/// delimiters, if it has an operator: a stream that is taken apart and put together again loses what these
/// mean, and `$a * 2` becomes `1 + 1 * 2`.
pub(crate) fn visible(token: &TokenTree) -> TokenTree {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
            match &tokens[..] {
                [inner @ TokenTree::Group(_)] => visible(inner),
                tokens if has_operator(tokens) => {
                    let mut group = Group::new(Delimiter::Parenthesis, group.stream());
                    group.set_span(Span::mixed_site().located_at(token.span()));
                    group.into()
                }
                _ => token.clone(),
            }
        }
        _ => token.clone(),
    }
}

/// Whether an operator stands in these tokens outside angle brackets that are closed, so that what stands beside
/// them could take a part of them. Not in a statement or item, beside which nothing does.
fn has_operator(tokens: &[TokenTree]) -> bool {
    let (start, _) = item_start(tokens);
    let is_statement = !matches!(start, Start::Unknown) || word(tokens, 0).is_some_and(|word| word == "let");
    let mut angles = Angles::default();
    let mut found = false;
    for (at, token) in tokens.iter().enumerate() {
        let outside = angles.outside(token);
        let before_is = |character| at > 0 && is_punct(&tokens[at - 1], character);
        found |= outside
            && match token {
                TokenTree::Punct(punct) => match punct.as_char() {
                    '+' | '-' | '*' | '/' | '%' | '^' | '&' | '|' | '=' => true,
                    // Behind a name it calls a macro.
                    '!' => at == 0,
                    '.' => before_is('.'),
                    _ => false,
                },
                TokenTree::Ident(word) => word == "as",
                _ => false,
            };
    }
    !is_statement && (found || !angles.are_closed())
}

/// How many tokens at the beginning of a function's body are inner attributes and items.
fn leading_items(body: &[TokenTree]) -> usize {
    let mut length = 0;
    loop {
        let rest = &body[length..];
        let inner = inner_attribute(rest);
        let start = item_start(rest);
        length += match start {
            _ if inner > 0 => inner,
            (Start::Unknown, _) => return length,
            (start, at) => end_of(rest, &start, at),
        };
    }
}

/// Kind, telling word and length of the item that the tokens begin with.
fn first_item(tokens: &[TokenTree]) -> (Kind, usize, usize) {
    let inner = inner_attribute(tokens);
    if inner > 0 {
        return (Kind::Other, 0, inner);
    }
    let (start, at) = item_start(tokens);
    let kind = if let Start::Braced(kind) = start { kind } else { Kind::Other };
    (kind, at.min(tokens.len() - 1), end_of(tokens, &start, at))
}

/// How many tokens at the beginning are inner attributes.
fn inner_attributes(tokens: &[TokenTree]) -> usize {
    let mut length = 0;
    while inner_attribute(&tokens[length..]) > 0 {
        length += inner_attribute(&tokens[length..]);
    }
    length
}

/// Length of `#![..]`, 0 for other tokens.
fn inner_attribute(tokens: &[TokenTree]) -> usize {
    match tokens {
        [hash, mark, TokenTree::Group(_), ..] if is_punct(hash, '#') && is_punct(mark, '!') => 3,
        _ => 0,
    }
}

fn skip_attributes(tokens: &[TokenTree]) -> usize {
    let mut at = 0;
    while let [hash, TokenTree::Group(_), ..] = &tokens[at..]
        && is_punct(hash, '#')
    {
        at += 2;
    }
    at
}

fn skip_visibility(tokens: &[TokenTree], mut at: usize) -> usize {
    if let Some(TokenTree::Group(group)) = tokens.get(at)
        && group.delimiter() == Delimiter::None
    {
        // `$vis:vis`, which may be empty.
        at += 1;
    } else if word(tokens, at).is_some_and(|word| word == "pub") {
        at += 1;
        if let Some(TokenTree::Group(group)) = tokens.get(at)
            && group.delimiter() == Delimiter::Parenthesis
        {
            at += 1;
        }
    }
    at
}

/// What begins behind attributes, visibility and qualifiers, and where.
fn item_start(tokens: &[TokenTree]) -> (Start, usize) {
    skip_qualifiers(tokens, skip_visibility(tokens, skip_attributes(tokens)))
}

/// Goes over `default`, `const`, `async`, `unsafe`, `extern "C"` to the word that tells the item.
fn skip_qualifiers(tokens: &[TokenTree], mut at: usize) -> (Start, usize) {
    loop {
        let Some(here) = word(tokens, at) else { return (Start::Unknown, at) };
        let next = word(tokens, at + 1);
        let next_is = |words: &[&str]| next.is_some_and(|next| words.iter().any(|word| next == word));
        let start = match here.to_string().as_str() {
            "fn" => Start::Braced(Kind::Function),
            "impl" | "mod" | "trait" => Start::Braced(Kind::Block),
            "struct" | "enum" => Start::Braced(Kind::Other),
            // Elsewhere a name as any other.
            "union" if next.is_some_and(|next| next != "as") => Start::Braced(Kind::Other),
            "macro_rules" if tokens.get(at + 1).is_some_and(|token| is_punct(token, '!')) => {
                Start::Braced(Kind::Other)
            }
            "use" | "type" => Start::Semicolon,
            "extern" if next_is(&["crate"]) => Start::Semicolon,
            "extern" => {
                let behind_abi =
                    at + 1 + usize::from(matches!(tokens.get(at + 1), Some(TokenTree::Literal(_))));
                if matches!(tokens.get(behind_abi), Some(TokenTree::Group(_))) {
                    return (Start::Braced(Kind::Other), at);
                }
                at = behind_abi;
                continue;
            }
            "const" | "async" | "unsafe" | "default"
                if next_is(&["fn", "unsafe", "async", "extern", "impl", "trait", "mod", "const"]) =>
            {
                at += 1;
                continue;
            }
            // `const { .. }` and `static || ..` are expressions.
            "const" | "static" if next.is_some_and(|next| next != "move") => Start::Semicolon,
            _ => Start::Unknown,
        };
        return (start, at);
    }
}

/// Number of tokens up to the end of the item whose telling word is at `at`.
fn end_of(tokens: &[TokenTree], start: &Start, at: usize) -> usize {
    let mut angles = 0_i32;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token {
            TokenTree::Punct(punct) => match punct.as_char() {
                ';' => return index + 1,
                '<' => angles += 1,
                // The arrow of a return type closes nothing.
                '>' if !is_punct(&tokens[index - 1], '-') => angles -= 1,
                _ => {}
            },
            // Braces between angle brackets are the argument of a const parameter.
            TokenTree::Group(group)
                if angles == 0 && !matches!(start, Start::Semicolon) && braces(group).is_some() =>
            {
                return index + 1;
            }
            _ => {}
        }
    }
    tokens.len()
}

/// The group with braces; one that `macro_rules!` passes on as `$body:block` comes in invisible
/// delimiters.
pub(crate) fn braces(group: &Group) -> Option<Group> {
    match group.delimiter() {
        Delimiter::Brace => Some(group.clone()),
        Delimiter::None => {
            let mut tokens = group.stream().into_iter();
            match (tokens.next(), tokens.next()) {
                (Some(TokenTree::Group(inner)), None) => braces(&inner),
                _ => None,
            }
        }
        _ => None,
    }
}

fn word(tokens: &[TokenTree], at: usize) -> Option<&Ident> {
    match tokens.get(at) {
        Some(TokenTree::Ident(ident)) => Some(ident),
        _ => None,
    }
}

pub(crate) fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

pub(crate) fn is_word(token: &TokenTree, text: &str) -> bool {
    matches!(token, TokenTree::Ident(word) if word == text)
}
