//! Return types that the body gives another meaning, or that cannot be written out.

use std::cell::RefCell;
use std::error::Error;
use std::fmt::{self, Display};
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use scope_runtime::scope;

#[derive(Debug)]
pub struct Failed;

impl Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed")
    }
}

impl Error for Failed {}

type Result<T> = std::result::Result<T, Failed>;

#[scope]
async fn imports_the_same_name() -> Result<u8> {
    #![allow(clippy::no_effect_underscore_binding)]
    use std::io::Result;
    fn read() -> Result<u8> {
        Ok(7)
    }
    read().map_err(|_| Failed)
}

#[scope]
async fn defines_the_same_name(given: Result<u8>) -> Result<u8> {
    let length = given?;
    #[allow(clippy::items_after_statements, dead_code)]
    enum Result {
        None,
    }
    Ok(length + 1)
}

#[scope]
async fn part_is_opaque(fails: bool) -> std::result::Result<impl Display, Box<dyn Error>> {
    if fails {
        return Err(Box::new(Failed));
    }
    Ok(5)
}

#[scope]
async fn parts_are_opaque() -> (impl Display, Vec<(impl Fn(&u8) -> Option<u8> + use<>, u8)>, Box<dyn Error>) {
    fn next(x: &u8) -> Option<u8> {
        x.checked_add(1)
    }
    ("text", vec![(next, 2)], Box::new(Failed))
}

const N: usize = 2;

#[scope]
async fn shadows_a_constant() -> [u8; N] {
    let first = 1;
    #[allow(clippy::items_after_statements)]
    const N: u8 = 3;
    [first, N]
}

#[scope]
async fn array_of_opaque() -> Result<[impl Display; 2]> {
    Ok([1_u8, 2])
}

#[scope]
async fn borrows_an_argument_to_the_end(given: RefCell<u8>) -> u8 {
    *given.borrow()
}

#[scope]
#[must_use]
async unsafe fn is_unsafe() -> u8 {
    8
}

#[scope]
async unsafe fn never_ends() -> ! {
    std::process::exit(0)
}

#[scope(future)]
fn boxed_and_opaque(x: u8) -> Pin<Box<impl Future<Output = u8>>> {
    Box::pin(async move { x })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("nothing waits"),
    }
}

pub fn main() {
    assert_eq!(block_on(imports_the_same_name()).unwrap(), 7);
    assert_eq!(block_on(defines_the_same_name(Ok(1))).unwrap(), 2);
    assert_eq!(block_on(part_is_opaque(false)).unwrap().to_string(), "5");
    assert_eq!(block_on(part_is_opaque(true)).err().unwrap().to_string(), "failed");
    let (text, functions, error) = block_on(parts_are_opaque());
    assert_eq!((text.to_string(), (functions[0].0)(&functions[0].1)), ("text".into(), Some(3)));
    assert_eq!(error.to_string(), "failed");
    assert_eq!(block_on(boxed_and_opaque(9)), 9);
    assert_eq!(block_on(shadows_a_constant()), [1, 3]);
    assert_eq!(block_on(array_of_opaque()).unwrap().map(|one| one.to_string()), ["1", "2"]);
    assert_eq!(block_on(borrows_an_argument_to_the_end(RefCell::new(4))), 4);
    // SAFETY: it does nothing.
    assert_eq!(block_on(unsafe { is_unsafe() }), 8);
    // SAFETY: as above; it is not polled.
    drop(unsafe { never_ends() });
}
