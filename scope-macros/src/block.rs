//! An `impl`, inline module or trait: every function with a body inside is measured.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Path, Token};

use crate::arguments::Arguments;
use crate::errors::Errors;
use crate::function::{Function, Refusal};
use crate::items::{self, Item, Kind};

/// The block with its functions measured.
pub(crate) fn expand(block: Item, arguments: &Arguments, errors: &mut Errors) -> TokenStream {
    let Some(content) = block.braces() else { return block.into_tokens() };
    let members = items::split(content.stream());
    let members = members.into_iter().map(|member| expand_member(member, arguments, errors));
    let mut measured = Group::new(Delimiter::Brace, members.collect());
    measured.set_span(content.span());
    let mut tokens = block.tokens;
    tokens.pop();
    tokens.into_iter().chain([TokenTree::Group(measured)]).collect()
}

fn expand_member(member: Item, arguments: &Arguments, errors: &mut Errors) -> TokenStream {
    if member.kind == Kind::Other || has_attribute_of_its_own(&member.tokens) {
        return member.into_tokens();
    }
    if member.kind == Kind::Block {
        return expand(member, arguments, errors);
    }
    match Function::parse(member.tokens.iter().cloned().collect()) {
        Ok(function) => return function.expand(arguments),
        Err(Refusal::LeftOut(_)) => {}
        Err(Refusal::Wrong(error)) => {
            errors.add(error);
        }
    }
    member.into_tokens()
}

/// Whether `#[scope(..)]` stands at the member itself, perhaps in `cfg_attr`: then that decides
/// alone, when the compiler comes to it.
fn has_attribute_of_its_own(member: &[TokenTree]) -> bool {
    let attributes = |input: ParseStream<'_>| {
        let attributes = input.call(Attribute::parse_outer)?;
        input.parse::<TokenStream>().map(|_| attributes)
    };
    let attributes = attributes.parse2(member.iter().cloned().collect()).unwrap_or_default();
    attributes.iter().any(|attribute| is_scope(attribute.path()) || may_become_scope(attribute))
}

/// The attribute under its own name; whether another name stands for it, tokens do not tell.
fn is_scope(path: &Path) -> bool {
    path.segments.last().is_some_and(|last| last.ident == "scope")
}

/// Whether this is `#[cfg_attr(.., scope)]`.
fn may_become_scope(attribute: &Attribute) -> bool {
    if !attribute.path().is_ident("cfg_attr") {
        return false;
    }
    let content = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    content.is_ok_and(|content| content.iter().skip(1).any(|meta| is_scope(meta.path())))
}
