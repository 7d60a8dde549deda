//! Files that compile without a warning and do what they did without the attribute. They are
//! compiled in other editions by the member `tests`.

#![allow(unreachable_pub, reason = "what the files have in public is public where they are crates")]

#[path = "ui/pass/async_functions_mean_what_they_meant.rs"]
mod async_functions_mean_what_they_meant;
#[path = "ui/pass/blocks_are_measured_as_a_whole.rs"]
mod blocks_are_measured_as_a_whole;
#[path = "ui/pass/every_form_of_function_means_what_it_meant.rs"]
mod every_form_of_function_means_what_it_meant;
#[path = "ui/pass/macro_rules_make_functions.rs"]
mod macro_rules_make_functions;
#[path = "ui/pass/names_of_the_user_mean_nothing_to_the_guard.rs"]
mod names_of_the_user_mean_nothing_to_the_guard;
#[path = "ui/pass/values_are_dropped_when_they_were.rs"]
mod values_are_dropped_when_they_were;

#[test]
fn async_functions_mean_what_they_meant() {
    async_functions_mean_what_they_meant::main();
}

#[test]
fn blocks_are_measured_as_a_whole() {
    blocks_are_measured_as_a_whole::main();
}

#[test]
fn every_form_of_function_means_what_it_meant() {
    every_form_of_function_means_what_it_meant::main();
}

#[test]
fn macro_rules_make_functions() {
    macro_rules_make_functions::main();
}

#[test]
fn names_of_the_user_mean_nothing_to_the_guard() {
    names_of_the_user_mean_nothing_to_the_guard::main();
}

#[test]
fn values_are_dropped_when_they_were() {
    values_are_dropped_when_they_were::main();
}
