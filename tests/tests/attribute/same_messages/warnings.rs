//! Warnings of rustc and clippy: each is still there, and there is no other.
#![warn(clippy::pedantic, missing_docs, unused_qualifications, unreachable_pub)]
#![warn(clippy::let_underscore_must_use, clippy::shadow_unrelated, clippy::undocumented_unsafe_blocks)]
#![warn(clippy::unwrap_used, clippy::panic, clippy::unreachable)]
use scope_runtime::scope;

struct Shed {
    tools: u32,
}

#[scope]
impl Shed {
    fn count(&self) -> u32 {
        self.tools
    }

    fn spare_method(&self) -> u32 {
        self.tools + 1
    }

    fn spare_assoc() -> u32 {
        9
    }
}

#[scope]
fn spare_free(x: u8) -> u8 {
    x
}

#[scope]
fn unused(x: u8) -> u8 {
    let y = 1;
    let mut z = 2;
    z
}

#[scope]
fn unreached() -> u8 {
    return 1;
    2
}

#[scope]
fn never() -> ! {
    panic!("x");
}

#[scope]
fn needless() -> u8 {
    let x = 5;
    return x;
}

#[scope]
fn and_return() -> u8 {
    let x = Some(5).unwrap();
    x
}

#[scope]
fn braces() -> u8 {
    { 7 }
}

#[scope]
fn parens() -> u8 {
    (7)
}

#[scope]
fn must_use() {
    let _ = "5".parse::<u8>();
    "5".parse::<u8>();
}

#[scope]
fn unit() {
    let x = println!();
    drop(x)
}

#[scope]
fn no_semicolon() {
    println!()
}

#[scope]
fn items() -> u8 {
    let x = 1;
    use std::collections::BTreeMap;
    const Y: u8 = 1;
    BTreeMap::from([(x, Y)])[&1]
}

#[scope]
fn recursion(x: u8) -> u8 {
    recursion(x)
}

#[scope]
fn wraps() -> Option<u8> {
    Some(1)
}

#[scope]
fn borrows(x: &Vec<u8>, y: String) -> usize {
    let x = &x.len();
    x + y.len()
}

#[scope]
fn takes_self(x: std::sync::Mutex<u8>) -> u8 {
    let _guard = x.lock().unwrap();
    let _guard = 1;
    *x.lock().unwrap()
}

#[scope]
/// Documented.
pub fn fails() -> Result<(), String> {
    if true {
        Ok(())
    } else {
        Err(String::new())
    }
}

#[scope]
pub fn undocumented() {}

#[scope]
async fn spare_argument(spare: u8) -> u8 {
    std::future::ready(1).await
}

#[scope]
#[must_use]
async fn kept() -> usize {
    std::future::ready(1).await
}

#[scope]
#[allow(clippy::unused_async)]
async fn nothing(#[allow(unused_variables)] x: u8) {}

#[scope]
async fn expects(
    #[expect(unused_variables)] x: u8,
    #[expect(unused_variables)] (y, _): (u8, u8),
    #[expect(non_snake_case)] Z: u8,
    #[expect(clippy::ptr_arg)] list: &Vec<u8>,
) -> usize {
    spare_argument(Z).await;
    spare_argument(2);
    nothing(3).await;
    list.len() + kept().await
}

#[scope]
async fn spare_async() -> u8 {
    std::future::ready(1).await
}

#[scope]
#[expect(dead_code)]
async fn expected_to_be_spare() {
    std::future::ready(1).await;
}

struct Hut;

#[scope]
impl Hut {
    async fn spare_async_method(&self) {
        std::future::ready(1).await;
    }

    fn spare_beside_async(&self) {}
}

fn main() {
    drop(Hut);
    drop(expects(1, (2, 3), 4, &Vec::new()));
    println!("{}", Shed { tools: 2 }.count());
    unused(1);
    unreached();
    needless();
    and_return();
    braces();
    parens();
    must_use();
    unit();
    no_semicolon();
    items();
    recursion(1);
    wraps();
    borrows(&vec![1], String::new());
    takes_self(std::sync::Mutex::new(1));
    let _ = fails();
    undocumented();
    if std::env::args().count() > 5 {
        never();
    }
}
