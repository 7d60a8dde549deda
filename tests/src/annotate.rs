//! Puts the attribute on every function in a Rust source that can have it, into the text, so that lines
//! stay where they are.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, ItemFn, Macro, Signature, TraitItemFn, Visibility};

/// What was done to one or more sources.
#[derive(Debug, Default)]
pub struct Counts {
    /// Functions that have the attribute now.
    pub annotated: usize,
    /// Functions that have not, by the reason.
    pub left_out: BTreeMap<&'static str, usize>,
}

impl Counts {
    /// Adds those of other sources.
    pub fn add(&mut self, other: Counts) {
        self.annotated += other.annotated;
        for (reason, count) in other.left_out {
            *self.left_out.entry(reason).or_default() += count;
        }
    }
}

/// The text with `attribute` in front of every function that has a body.
///
/// # Errors
/// When the text is not a Rust source file.
pub fn annotate(text: &str, attribute: &str) -> syn::Result<(String, Counts)> {
    let file = syn::parse_file(text)?;
    let mut functions = Functions::default();
    functions.visit_file(&file);
    let mut annotated = text.to_owned();
    functions.places.sort_unstable();
    for &place in functions.places.iter().rev() {
        annotated.insert_str(place, &format!("{attribute} "));
    }
    functions.counts.annotated = functions.places.len();
    Ok((annotated, functions.counts))
}

#[derive(Default)]
struct Functions {
    /// Where visibility or signature begin, in bytes from the start of the text.
    places: Vec<usize>,
    counts: Counts,
}

impl Functions {
    fn found(
        &mut self,
        attributes: &[Attribute],
        visibility: &Visibility,
        signature: &Signature,
        has_body: bool,
    ) {
        let reason = if !has_body {
            "declared without a body"
        } else if signature.constness.is_some() {
            "`const fn`: may run in the compiler"
        } else if signature.asyncness.is_some() {
            "`async fn`"
        } else if attributes.iter().any(|attribute| attribute.path().is_ident("naked")) {
            "naked: nothing but assembly"
        } else {
            let start = match visibility {
                Visibility::Inherited => signature.span(),
                shown => shown.span(),
            };
            self.places.push(start.byte_range().start);
            return;
        };
        *self.counts.left_out.entry(reason).or_default() += 1;
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.found(&function.attrs, &function.vis, &function.sig, true);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.found(&function.attrs, &function.vis, &function.sig, true);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        self.found(&function.attrs, &Visibility::Inherited, &function.sig, function.default.is_some());
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let functions = count_functions(call.tokens.clone());
        if functions > 0 {
            *self.counts.left_out.entry("inside a macro: what it makes is not known").or_default() +=
                functions;
        }
    }
}

/// How often a name comes after `fn`.
fn count_functions(tokens: TokenStream) -> usize {
    let mut functions = 0;
    let mut after_fn = false;
    for token in tokens {
        functions += match &token {
            TokenTree::Group(group) => count_functions(group.stream()),
            TokenTree::Ident(_) | TokenTree::Punct(_) if after_fn => 1,
            _ => 0,
        };
        after_fn = matches!(&token, TokenTree::Ident(word) if word == "fn");
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::annotate;

    #[test]
    fn lines_stay_and_what_cannot_have_the_attribute_has_none() {
        let text = "\
/// Doc.
pub(crate) fn a() { fn b() {} }
const fn c() {}
trait T { fn d(&self); fn e(&self) {} }
impl T for u8 { #[inline] unsafe fn d(&self) { é!(fn x() {}) } }
";
        let (annotated, counts) = annotate(text, "#[s]").unwrap();
        let expected = "\
/// Doc.
#[s] pub(crate) fn a() { #[s] fn b() {} }
const fn c() {}
trait T { fn d(&self); #[s] fn e(&self) {} }
impl T for u8 { #[inline] #[s] unsafe fn d(&self) { é!(fn x() {}) } }
";
        assert_eq!(annotated, expected);
        assert_eq!(counts.annotated, 4);
        assert_eq!(counts.left_out.values().sum::<usize>(), 3);
    }
}
