//! Errors of types, in all places of a function's body.
use scope_runtime::scope;

#[scope]
fn gives_nothing_but_a_number() {
    5
}

#[scope]
fn semicolon_too_many() -> u32 {
    let x = 5;
    x;
}

#[scope]
fn wrong_type() -> u32 {
    "x"
}

#[scope]
fn text_for_string() -> String {
    println!("x");
    "abc"
}

#[scope]
fn empty() -> u32 {}

#[scope]
fn not_wrapped() -> Option<u32> {
    5
}

#[scope]
fn no_iterator() -> impl Iterator<Item = u32> {
    5
}

#[scope]
fn no_else() -> u32 {
    if true { 5 }
}

#[scope]
fn question_mark() {
    let _ = Some(5)?;
}

#[scope]
fn wrong_ok() -> Result<(), String> {
    Ok(5)
}

#[scope]
fn returns() -> ! {}

#[scope]
fn not_boxed() -> Box<dyn Fn(u8)> {
    |x| ()
}

#[scope]
fn breaks() -> u32 {
    loop {
        break "x";
    }
}

#[scope]
fn not_all(x: u32) {
    match x {
        0 => {}
    }
}

#[scope]
fn early() -> u32 {
    return "a";
}

#[scope]
fn bound<T>(x: T) -> String {
    x.to_string()
}

#[scope]
fn unknown() {
    no_such_function();
}

#[scope]
fn conversion() -> Result<u32, String> {
    let x: u32 = "5".parse()?;
    x
}

#[scope]
fn two_types() -> impl std::fmt::Debug {
    if true {
        return 5u8;
    }
    "x"
}

#[scope]
fn in_a_loop() -> i32 {
    for i in 0..3 {
        i
    }
}

struct Grid;

trait Step {
    fn step(&self) -> u32;
}

#[scope]
impl Step for Grid {
    fn step(&self, by: u32) -> u32 {
        by
    }

    fn stop(&self) {}
}

#[scope]
impl Grid {
    fn wrong(&self) -> u32 {
        self.cells
    }
}

fn main() {
    empty(1);
}
