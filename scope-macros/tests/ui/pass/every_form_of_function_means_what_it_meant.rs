//! Every form that a function can have, with a result that shows that its body ran as written.
#![deny(warnings, clippy::all, clippy::pedantic, missing_docs, unsafe_op_in_unsafe_fn)]
#![allow(
    clippy::missing_safety_doc,
    clippy::trivially_copy_pass_by_ref,
    clippy::boxed_local,
    clippy::needless_pass_by_value,
    reason = "the forms are what is tested"
)]

use std::cell::Cell;
use std::fmt::Debug;
use std::panic::Location;

use scope_runtime::scope;

/// Generic over a type, a constant and a lifetime, with bounds.
#[scope]
fn largest<'a, T, const N: usize>(values: &'a [T; N]) -> Option<&'a T>
where
    T: Ord + 'a,
    [T; N]: Sized,
{
    values.iter().max()
}

#[scope]
fn takes_and_gives_impl(values: impl Iterator<Item = u8> + Clone) -> impl Iterator<Item = u8> + Clone {
    values.filter(|value| value % 2 == 0)
}

#[scope]
fn captures_precisely<'a>(text: &'a str, _other: &u8) -> impl Iterator<Item = char> + use<'a> {
    text.chars()
}

/// What the closure takes is known from the return type alone.
#[scope]
fn gives_a_closure(step: usize) -> impl Fn(&str) -> usize {
    move |text| text.len() + step
}

#[scope]
fn gives_a_boxed_closure() -> Box<dyn Fn(&str) -> usize> {
    Box::new(|text| text.len() * 2)
}

#[scope]
fn gives_one_of_two(first: bool) -> Box<dyn Debug> {
    if first { Box::new(1) } else { Box::new("two") }
}

#[scope]
unsafe fn reads(pointer: *const u8) -> u8 {
    // SAFETY: the caller says so.
    unsafe { *pointer }
}

#[scope]
extern "C" fn called_from_c(value: i32) -> i32 {
    value + 1
}

/// Has a name that the linker sees.
#[scope]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scope_macros_test_exported(value: u8) -> u8 {
    value
}

#[scope]
fn never_returns(message: &'static str) -> ! {
    std::panic::resume_unwind(Box::new(message))
}

#[scope]
#[track_caller]
fn called_from() -> &'static Location<'static> {
    Location::caller()
}

/// Has to be looked at.
#[must_use]
#[inline]
#[scope]
#[cfg_attr(all(), doc = "More documentation.")]
#[cfg_attr(any(), no_such_attribute)]
pub fn attributed() -> u8 {
    1
}

#[scope]
fn takes_patterns(
    mut sum: u32,
    (a, b): (u32, u32),
    [first, ..]: [u32; 3],
    _: u8,
    Pair { x, .. }: Pair,
) -> u32 {
    sum += a + b + first + x;
    sum
}

struct Pair {
    x: u32,
    _y: u32,
}

#[scope]
fn takes_what_is_switched_on(#[cfg(any())] _gone: NoSuchType, #[allow(unused_variables)] kept: u8) -> u8 {
    3
}

#[scope]
fn counts_down(from: u32) -> u32 {
    if from == 0 { 0 } else { counts_down(from - 1) }
}

#[scope]
fn holds_others() -> u32 {
    #[scope]
    fn nested() -> u32 {
        mod inner {
            #[scope_runtime::scope]
            pub fn deepest() -> u32 {
                2
            }
        }
        inner::deepest()
    }
    const ONE: u32 = 1;
    nested() + ONE
}

#[scope]
fn has_attributes_inside() -> u8 {
    #![allow(unused_variables)]
    //! Documentation that stands inside.
    let unused = 1;
    2
}

#[scope]
fn leaves_in_many_ways(text: &str) -> Result<u32, std::num::ParseIntError> {
    let Some((left, right)) = text.split_once('+') else {
        return text.parse();
    };
    let sum = 'sum: {
        let left: u32 = left.parse()?;
        if left == 0 {
            break 'sum 100;
        }
        let double = |value: u32| {
            if value > 10 {
                return value;
            }
            value * 2
        };
        double(left) + right.parse::<u32>()?
    };
    Ok(sum)
}

#[scope]
fn is_a_loop() -> u8 {
    let mut count = 0;
    loop {
        count += 1;
        if count == 9 {
            break count;
        }
    }
}

#[scope]
fn r#async(r#type: u8) -> u8 {
    r#type
}

#[scope]
fn gives_a_future() -> impl std::future::Future<Output = u8> {
    async { 4 }
}

#[scope]
fn borrows<'a>(longer: &'a mut Vec<u8>, shorter: &u8) -> &'a mut u8 {
    longer.push(*shorter);
    longer.last_mut().expect("something was pushed")
}

#[scope]
fn begins_with_a_block(values: &[u8]) -> usize {
    const { assert!(size_of::<u8>() == 1) }
    {
        let first = values.len();
        first + 1
    }
}

#[scope]
fn does_nothing() {}

#[derive(Default)]
struct Jar<T = u32> {
    level: T,
    looks: Cell<u32>,
}

impl<T: Copy + Into<u32>> Jar<T> {
    #[scope]
    fn look(&self) -> u32 {
        self.looks.set(self.looks.get() + 1);
        self.looks.get()
    }

    #[scope]
    fn filled(mut self, level: T) -> Self {
        self.level = level;
        self
    }

    #[scope]
    fn boxed(self: Box<Self>) -> u32 {
        self.level.into()
    }

    #[scope]
    fn pinned(self: std::pin::Pin<&mut Self>) -> u32 {
        self.look()
    }

    #[scope]
    fn shared(self: &std::rc::Rc<Self>) -> u32 {
        self.look()
    }
}

trait Vessel {
    const LIMIT: u32 = 5;

    fn level(&self) -> u32;

    #[scope]
    fn is_full(&self) -> bool {
        self.level() >= Self::LIMIT
    }

    #[scope]
    fn make() -> Option<Self>
    where
        Self: Default + Sized,
    {
        Some(Self::default())
    }
}

impl Vessel for Jar {
    #[scope]
    fn level(&self) -> u32 {
        self.level
    }
}

impl<const N: usize> Vessel for [u32; N] {
    #[scope]
    fn level(&self) -> u32 {
        self.iter().sum()
    }
}

/// Runs them all.
pub fn main() {
    assert_eq!(largest(&[1, 7, 3]), Some(&7));
    assert_eq!(takes_and_gives_impl(0..5).collect::<Vec<_>>(), [0, 2, 4]);
    assert_eq!(captures_precisely("ab", &1).count(), 2);
    assert_eq!(gives_a_closure(2)("abc") + gives_a_boxed_closure()("abc"), 11);
    assert_eq!(format!("{:?} {:?}", gives_one_of_two(true), gives_one_of_two(false)), "1 \"two\"");
    // SAFETY: the pointer comes from a reference.
    assert_eq!(unsafe { reads(&7) }, 7);
    assert_eq!(called_from_c(1), 2);
    // SAFETY: the function does nothing that could be unsafe.
    assert_eq!(unsafe { scope_macros_test_exported(3) }, 3);
    let thrown = std::panic::catch_unwind(|| never_returns("thrown")).expect_err("it does not return");
    assert_eq!(thrown.downcast_ref(), Some(&"thrown"));
    assert_eq!(called_from().line(), line!());
    assert_eq!(attributed(), 1);
    assert_eq!(takes_patterns(1, (2, 3), [4, 5, 6], 0, Pair { x: 5, _y: 0 }), 15);
    assert_eq!(takes_what_is_switched_on(8), 3);
    assert_eq!(counts_down(5), 0);
    assert_eq!(holds_others(), 3);
    assert_eq!(has_attributes_inside(), 2);
    assert_eq!(leaves_in_many_ways("4"), Ok(4));
    assert_eq!(leaves_in_many_ways("4+5"), Ok(13));
    assert_eq!(leaves_in_many_ways("0+5"), Ok(100));
    assert!(leaves_in_many_ways("x+5").is_err());
    assert_eq!(is_a_loop(), 9);
    assert_eq!(r#async(6), 6);
    drop(gives_a_future());
    *borrows(&mut vec![1], &2) += 1;
    assert_eq!(begins_with_a_block(&[1, 2]), 3);
    does_nothing();
    let jar = Jar::make().expect("a jar is made").filled(5);
    assert!(jar.is_full() && ![1, 2].is_full());
    assert_eq!(jar.look(), 1);
    let mut jar = Box::pin(jar);
    assert_eq!(jar.as_mut().pinned(), 2);
    assert_eq!(Box::new(Jar { level: 3_u8, looks: Cell::new(0) }).boxed(), 3);
    assert_eq!(std::rc::Rc::new(Jar { level: 3_u8, looks: Cell::new(0) }).shared(), 1);
}
