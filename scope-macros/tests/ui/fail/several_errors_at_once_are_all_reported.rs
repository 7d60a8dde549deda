//! Errors of arguments and item together, and those of all members of a block; nothing follows from
//! them, since all items are there.
use scope_runtime::scope;

#[scope(name = 1, label = "x", crate, skip = 1)]
const fn four_arguments_and_a_const_fn() {}

#[scope(nom = "x")]
struct Barrel {
    staves: u8,
}

#[scope]
impl Barrel {
    #[scope(name = 1)]
    fn wrong_argument(&self) {}

    #[scope]
    const fn const_by_itself(&self) {}

    #[scope]
    const DEPTH: u8 = 4;

    #[scope]
    #[scope(name = "x")]
    fn twice(&self) {}

    #[scope = "x"]
    fn not_in_parentheses(&self) {}

    #[scope(skip)]
    const fn left_out(&self) {}

    const fn left_out_by_itself(&self) {}
}

fn main() {
    four_arguments_and_a_const_fn();
    let barrel = Barrel { staves: Barrel::DEPTH };
    barrel.wrong_argument();
    barrel.const_by_itself();
    barrel.twice();
    barrel.not_in_parentheses();
    barrel.left_out();
    barrel.left_out_by_itself();
    println!("{}", barrel.staves);
}
