//! Every wrong argument is an error of its own that says what is allowed.
use scope_runtime::scope;

#[scope(label = "x")]
fn unknown_key() {}

#[scope("x")]
fn no_key() {}

#[scope(name)]
fn no_value() {}

#[scope(name = )]
fn empty_value() {}

#[scope(name = 5)]
fn wrong_type() {}

#[scope(name = b"x")]
fn bytes() {}

#[scope(name = concat!("a", "b"))]
fn not_a_literal() {}

#[scope(name = "x"y)]
fn suffix() {}

#[scope(crate = "scope_runtime")]
fn path_as_text() {}

#[scope(name = "x", name = "y")]
fn twice() {}

#[scope(skip, skip)]
fn skipped_twice() {}

#[scope(skip, name = "x")]
fn skipped_and_named() {}

#[scope(name = "x" crate = scope_runtime)]
fn no_comma() {}

#[scope(, name = "x")]
fn comma_first() {}

fn main() {
    unknown_key();
    no_key();
    no_value();
    empty_value();
    wrong_type();
    bytes();
    not_a_literal();
    suffix();
    path_as_text();
    twice();
    skipped_twice();
    skipped_and_named();
    no_comma();
    comma_first();
}
