//! One error each, on the right word; the item is still there.
use scope_runtime::scope;

#[scope]
pub struct Barrel {
    staves: u8,
}

#[scope]
const DEPTH: u8 = 4;

#[scope]
pub(crate) static WIDTH: u8 = 4;

#[scope]
enum Kind {
    One,
}

#[scope]
type Alias = u8;

#[scope]
use std::fmt::Debug;

#[scope]
macro_rules! made {
    () => {
        1
    };
}

#[scope]
unsafe extern "C" {
    fn abs(value: i32) -> i32;
}

#[scope]
pub const extern "C" fn constant() -> u8 {
    1
}

unsafe extern "C" {
    #[scope]
    fn labs(value: i64) -> i64;
}

trait Sail {
    #[scope]
    fn set(&self);

    #[scope]
    const AREA: u8;

    #[scope]
    type Cloth;
}

#[cfg(target_arch = "x86_64")]
#[scope]
#[unsafe(naked)]
extern "C" fn bare() {
    std::arch::naked_asm!("ret")
}

fn main() {
    let barrel = Barrel { staves: DEPTH + WIDTH + made!() };
    let _ = (Kind::One, Alias::from(barrel.staves), constant());
    let _ = unsafe { (abs(1), labs(1)) };
    bare();
    fn sails<S: Sail + Debug>(sail: S) -> u8 {
        sail.set();
        S::AREA
    }
    let _ = sails::<Rag>;
    #[derive(Debug)]
    struct Rag;
    impl Sail for Rag {
        fn set(&self) {}
        const AREA: u8 = 1;
        type Cloth = u8;
    }
}

#[scope(future)]
async fn is_async() {}

#[scope(future)]
fn returns_nothing() {}

#[scope(future)]
mod block {
    pub(super) fn inside() {}
}
