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

/// Two values, of which the functions use one, or none.
struct Pair<'a>(Noted<'a>, Noted<'a>);

/// The same method twice, once measured.
macro_rules! async_twins {
    ($($bare:ident $measured:ident($($parameter:tt)*) $body:block)*) => {
        #[allow(clippy::unused_async, clippy::unused_self)]
        impl Pair<'_> {
            $(
                async fn $bare($($parameter)*) -> usize $body
                #[scope]
                async fn $measured($($parameter)*) -> usize $body
            )*
        }
    };
}

async_twins! {
    uses_one measured_uses_one(self, notes: &Notes, _: Noted<'_>) {
        let _local = Noted("local", notes);
        self.1.length()
    }

    uses_none measured_uses_none(self, notes: &Notes, _: Noted<'_>) {
        let length = Noted("temporary", notes).length();
        length + 1
    }

    ends_with_one measured_ends_with_one(self, notes: &Notes, argument: Noted<'_>) {
        let _local = Noted("local", notes);
        argument.length() + Noted("temporary", notes).length()
    }

    imports_first measured_imports_first(self, notes: &Notes, _: Noted<'_>) {
        use std::cmp::max;
        max(self.0.length(), Noted("temporary", notes).length())
    }

    moves_one measured_moves_one(mut self, notes: &Notes, _other: Noted<'_>) {
        self.0.0 = "renamed";
        drop(self.0);
        notes.borrow_mut().push("moved".to_owned());
        0
    }
}

/// What is written up to when the future is made, when it is completed, and when it is dropped.
macro_rules! written_by {
    ($method:ident) => {{
        let notes = Notes::default();
        let pair = Pair(Noted("one", &notes), Noted("other", &notes));
        let mut future = Box::pin(pair.$method(&notes, Noted("argument", &notes)));
        notes.borrow_mut().push("made".to_owned());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(std::future::Future::poll(future.as_mut(), &mut context).is_ready());
        notes.borrow_mut().push("completed".to_owned());
        drop(future);
        notes.into_inner()
    }};
}

/// Runs both of each.
pub fn main() {
    for (bare, measured) in [
        (written_by!(uses_one), written_by!(measured_uses_one)),
        (written_by!(uses_none), written_by!(measured_uses_none)),
        (written_by!(ends_with_one), written_by!(measured_ends_with_one)),
        (written_by!(imports_first), written_by!(measured_imports_first)),
        (written_by!(moves_one), written_by!(measured_moves_one)),
    ] {
        assert_eq!((bare.len(), &*bare[0]), (bare.len().max(5), "made"));
        assert_eq!(bare, measured);
    }
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
