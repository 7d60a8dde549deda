//! Errors of borrowing and moving.
use scope_runtime::scope;

#[scope]
fn lifetime(x: &str) -> &'static str {
    x
}

#[scope]
fn local() -> &'static str {
    let s = String::new();
    &s
}

#[scope]
fn assigned_twice() -> u32 {
    let x = 5;
    x += 1;
    x
}

#[scope]
fn moved(v: Vec<u8>) -> Vec<u8> {
    drop(v);
    v
}

#[scope]
fn two_borrows(x: &mut Vec<u8>) -> &mut u8 {
    let y = &mut x[0];
    let z = &mut x[1];
    *z = 1;
    y
}

#[scope]
fn last_expression() -> usize {
    let cell = std::cell::RefCell::new(String::new());
    cell.borrow().len()
}

#[scope]
fn closure_outlives() -> impl Fn() -> usize {
    let text = String::new();
    || text.len()
}

#[scope]
fn uninitialised(x: bool) -> u8 {
    let y;
    if x {
        y = 1;
    }
    y
}

fn main() {}
