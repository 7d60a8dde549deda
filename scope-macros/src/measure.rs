//! What the attribute does to an item: a function gets a guard, and in an `impl`, inline module or
//! trait every function with a body does.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::Error;

use crate::arguments::Arguments;
use crate::errors::Errors;
use crate::function::Function;
use crate::items::{self, Item, Kind};

/// An item on which the attribute stands; `None` where its arguments were wrong, then the item is only
/// looked at.
pub(crate) fn marked(item: Item, arguments: Option<Arguments>, errors: &mut Errors) -> TokenStream {
    if arguments.as_ref().is_some_and(|arguments| arguments.skip.is_some()) {
        return item.into_tokens();
    }
    match (item.kind, arguments) {
        (Kind::Function, arguments) => {
            let function = errors.take(Function::of_item(&item));
            let measured = function.zip(arguments).and_then(|(function, arguments)| {
                errors.take(function.check(&arguments))?;
                Some(function.expand(&arguments))
            });
            measured.unwrap_or_else(|| item.into_tokens())
        }
        (Kind::Block, arguments) if item.braces().is_some() => match arguments {
            Some(arguments) => {
                if let Some(word) = &arguments.future {
                    errors.add(Error::new(word.span(), "`future` goes on a function that returns a future"));
                }
                let stays_async = !item.attributes().all(|attribute| attribute.is_inert());
                block(item, &Arguments { stays_async, ..arguments.of_members() }, errors)
            }
            None => item.into_tokens(),
        },
        _ => {
            let reason = "#[scope] goes on a function with a body, an `impl`, an inline `mod` or a `trait`";
            errors.add(Error::new(item.word_span(), reason));
            item.into_tokens()
        }
    }
}

/// The item as it is where nothing is measured, but without the attributes inside, which need not be known by
/// their name there.
pub(crate) fn unmeasured(item: TokenStream) -> TokenStream {
    let block = items::split(item.clone()).into_iter().find(has_marks);
    block.map_or(item, |block| with_members(block, without_marks))
}

/// Whether a member of the block has an attribute of its own.
fn has_marks(block: &Item) -> bool {
    let content = block.braces().filter(|_| block.kind == Kind::Block);
    let is_marked =
        |member: &Item| member.attributes().any(|attribute| attribute.is("scope")) || has_marks(member);
    content.is_some_and(|content| items::split(content.stream()).iter().any(is_marked))
}

fn without_marks(mut member: Item) -> TokenStream {
    member.take_attributes("scope");
    if member.kind == Kind::Block { with_members(member, without_marks) } else { member.into_tokens() }
}

/// A block with its members measured.
fn block(block: Item, arguments: &Arguments, errors: &mut Errors) -> TokenStream {
    with_members(block, |member| self::member(member, arguments, errors))
}

/// A block with other members.
fn with_members(mut block: Item, change: impl FnMut(Item) -> TokenStream) -> TokenStream {
    if let Some(content) = block.braces() {
        let members = items::split(content.stream()).into_iter().map(change).collect();
        let mut changed = Group::new(Delimiter::Brace, members);
        changed.set_span(content.span());
        block.tokens.pop();
        block.tokens.push(TokenTree::Group(changed));
    }
    block.into_tokens()
}

/// An item in a block that has these arguments.
fn member(mut item: Item, arguments: &Arguments, errors: &mut Errors) -> TokenStream {
    if item.attributes().any(|attribute| attribute.may_become("scope")) {
        // When the compiler comes to it, it decides about the item.
        return item.into_tokens();
    }
    match &item.take_attributes("scope")[..] {
        [] => unmarked(item, arguments, errors),
        [own] => {
            let own = errors.take(Arguments::of_tokens(own.arguments()));
            marked(item, own.map(|own| own.within(arguments)), errors)
        }
        [_, second, ..] => {
            errors.add(Error::new(second.span(), "#[scope] is given twice"));
            item.into_tokens()
        }
    }
}

/// An item of a block without an attribute of its own.
fn unmarked(item: Item, arguments: &Arguments, errors: &mut Errors) -> TokenStream {
    match item.kind {
        Kind::Other => return item.into_tokens(),
        Kind::Block => return block(item, arguments, errors),
        Kind::Function => {}
    }
    // What cannot be measured is left out.
    let measured = Function::of_item(&item).map(|function| function.expand(arguments));
    measured.unwrap_or_else(|_| item.into_tokens())
}
