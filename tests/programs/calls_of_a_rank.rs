//! As many calls as the argument says, in 20 regions on two levels.

use std::hint::black_box;

use scope_runtime::{region, scope};

macro_rules! leaves {
    ($($name:ident)*) => {
        $(#[scope] fn $name(n: u64) -> u64 { black_box(n) })*
        const LEAVES: &[fn(u64) -> u64] = &[$($name),*];
    };
}
leaves!(a b c d e f g h i j k l m n o p q r s);

fn main() {
    let calls: u64 = std::env::args().nth(1).expect("a number of calls").parse().expect("a number");
    region!("all");
    (1..calls).for_each(|n| _ = LEAVES[n as usize % LEAVES.len()](n));
}
