//! What the attribute says about what it cannot do, word for word.

#[test]
fn errors_are_one_each_and_on_the_right_word() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}
