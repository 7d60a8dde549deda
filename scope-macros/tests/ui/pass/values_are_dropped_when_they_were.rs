//! Parameters, locals and the values of the last expression are dropped in the order of the edition,
//! whichever it is: a function and its measured twin write the same.
#![deny(warnings, clippy::all, clippy::pedantic, missing_docs)]

use std::cell::RefCell;

use scope_runtime::scope;

/// Writes its name down when it is dropped.
struct Noted<'a>(&'a str, &'a RefCell<Vec<String>>);

impl Noted<'_> {
    fn length(&self) -> usize {
        self.0.len()
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0.to_owned());
    }
}

type Notes = RefCell<Vec<String>>;

/// The same function twice, once measured.
macro_rules! twins {
    ($($bare:ident $measured:ident($($parameter:tt)*) -> $result:ty $body:block)*) => {
        $(
            fn $bare($($parameter)*) -> $result $body
            #[scope]
            fn $measured($($parameter)*) -> $result $body
        )*
    };
}

twins! {
    last_expression measured_last_expression(notes: &Notes, _: Noted<'_>, _parameter: Noted<'_>) -> usize {
        let _local = Noted("local", notes);
        Noted("temporary", notes).length()
    }

    leaves_early measured_leaves_early(notes: &Notes, _: Noted<'_>, _parameter: Noted<'_>) -> usize {
        let _outer = Noted("outer", notes);
        if Noted("condition", notes).length() == 9 {
            let _inner = Noted("inner", notes);
            return Noted("returned", notes).length();
        }
        0
    }

    matches measured_matches(notes: &Notes, _first: Noted<'_>, _second: Noted<'_>) -> usize {
        match Noted("scrutinee", notes).length() {
            9 => Noted("arm", notes).length(),
            _ => 0,
        }
    }
}

/// Runs both of each.
pub fn main() {
    let written = |function: fn(&Notes, Noted<'_>, Noted<'_>) -> usize| {
        let notes = Notes::default();
        function(&notes, Noted("first", &notes), Noted("second", &notes));
        notes.into_inner()
    };
    for (bare, measured) in [
        (written(last_expression), written(measured_last_expression)),
        (written(leaves_early), written(measured_leaves_early)),
        (written(matches), written(measured_matches)),
    ] {
        assert!(bare.len() > 3);
        assert_eq!(bare, measured);
    }
}
