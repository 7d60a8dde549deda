//! Regions as the running program knows them: static call sites and the registry of names.
//!
//! Numbers are given once per process and stay valid over sessions and forks; each recording
//! holds the definition of every region that was known when it began or came later.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};

use crate::format::{Fields, code, kind};
use crate::item_path;
use crate::lane::{self, Guard};
use crate::pack;
use crate::recorder::Recorder;

/// One place in the source that the attribute or [`region!`](crate::region) has marked.
///
/// Made by the macro `__site!` as a `static`; registered when it is entered for the first time. Its
/// fields are for that macro: a literal is less work for the compiler than the call of a `const fn`, and
/// a program may have thousands.
pub struct Site {
    #[doc(hidden)]
    pub codes: Codes,
    /// Written by the user: all of the name, or what stands in front of the one made from the item.
    #[doc(hidden)]
    pub name: &'static str,
    /// Gives the path of an item inside the function, as the compiler prints it; empty where the user has
    /// named the region.
    #[doc(hidden)]
    pub item: fn() -> &'static str,
    #[doc(hidden)]
    pub module: &'static str,
    #[doc(hidden)]
    pub file: &'static str,
    #[doc(hidden)]
    pub line: u32,
}

/// What stands for a site in events.
#[doc(hidden)]
pub struct Codes {
    /// Event code of the region; 0 until registered.
    code: AtomicU32,
    /// Its short code (`pack.rs`); 0 where it has none.
    short_code: AtomicU32,
}

impl Codes {
    /// Those of a site that was not entered yet.
    #[expect(clippy::declare_interior_mutable_const, reason = "each site has codes of its own")]
    pub const NONE: Codes = Codes { code: AtomicU32::new(0), short_code: AtomicU32::new(0) };
}

impl Site {
    /// A site with a name given by hand.
    #[doc(hidden)]
    pub const fn named(name: &'static str, module: &'static str, file: &'static str, line: u32) -> Site {
        Site { codes: Codes::NONE, name, item: || "", module, file, line }
    }

    /// A site that is in no recording, to measure what entering one costs.
    pub(crate) const fn of_nothing() -> Site {
        let (code, short_code) = (code::FIRST_REGION as u32, pack::FIRST_REGION);
        let codes = Codes { code: AtomicU32::new(code), short_code: AtomicU32::new(short_code) };
        Site { codes, ..Site::named("", "", "", 0) }
    }

    /// Enters the region until the guard is dropped.
    #[doc(hidden)]
    // As for the drop of the guard.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn enter(&'static self) -> Guard {
        lane::enter_site(self)
    }

    /// The event code, 0 when not registered yet.
    #[inline]
    pub(crate) fn code(&self) -> u64 {
        u64::from(self.codes.code.load(Relaxed))
    }

    /// The short code, 0 when not registered yet or when there is none.
    #[inline]
    pub(crate) fn short_code(&self) -> u32 {
        self.codes.short_code.load(Relaxed)
    }

    /// The event code, registering the site if need be.
    #[cold]
    pub(crate) fn register(&'static self) -> u64 {
        let mut registry = lock_registry();
        // Another thread may have been first.
        if self.code() == 0 {
            let Site { name, module, file, line, .. } = *self;
            let item = (self.item)();
            let by_hand = item.is_empty();
            let name = if by_hand { name } else { name_from_path(name, item, module).leak() };
            let code = registry.define(Definition { name, module, file, line, by_hand });
            self.codes.code.store(code, Relaxed);
            self.codes.short_code.store(pack::short_code(code), Relaxed);
        }
        self.code()
    }
}

/// What names a region: its site, or its event code.
#[derive(Clone, Copy)]
pub(crate) enum Region {
    Site(&'static Site),
    Code(u64),
}

impl Region {
    /// The event code, 0 when not registered yet.
    #[inline]
    pub(crate) fn code(self) -> u64 {
        match self {
            Region::Site(site) => site.code(),
            Region::Code(code) => code,
        }
    }

    /// The event code, registering the site if need be.
    pub(crate) fn register(self) -> u64 {
        match self {
            Region::Site(site) => site.register(),
            Region::Code(code) => code,
        }
    }
}

/// What is known about a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) module: &'static str,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
    pub(crate) by_hand: bool,
}

impl Definition {
    fn write_to(&self, recorder: &Recorder, number: u32) {
        let fields = Fields::default()
            .u32(u32::from(self.by_hand))
            .u32(self.line)
            .text(self.name)
            .text(self.module)
            .text(self.file);
        recorder.append(kind::REGION, number, &fields.0);
    }
}

/// All regions of the process; the index is the region's number.
#[derive(Default)]
pub(crate) struct Registry {
    definitions: Vec<Definition>,
    recorder: Option<&'static Recorder>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { definitions: Vec::new(), recorder: None });

/// Event codes of names that were made while the program ran.
static BY_NAME: RwLock<Option<HashMap<&'static str, u32>>> = RwLock::new(None);

pub(crate) fn lock_registry() -> MutexGuard<'static, Registry> {
    crate::lock(&REGISTRY)
}

pub(crate) type NamesGuard = RwLockWriteGuard<'static, Option<HashMap<&'static str, u32>>>;

pub(crate) fn lock_names() -> NamesGuard {
    BY_NAME.write().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    /// Writes all definitions to `recorder`, and from now on each new one.
    pub(crate) fn attach(&mut self, recorder: &'static Recorder) {
        for (number, definition) in self.definitions.iter().enumerate() {
            definition.write_to(recorder, number as u32);
        }
        self.recorder = Some(recorder);
    }

    /// Forgets the recording of the process that this one was forked from.
    pub(crate) fn detach(&mut self) {
        self.recorder = None;
    }

    /// Gives the region a number and returns its event code.
    fn define(&mut self, definition: Definition) -> u32 {
        let last = code::MAX_REGIONS as usize - 1;
        let number = self.definitions.len().min(last);
        let definition = if number == last {
            Definition { name: "(other names)", module: "", file: "", line: 0, by_hand: true }
        } else {
            definition
        };
        if self.definitions.len() <= last {
            self.definitions.push(definition);
            if let Some(recorder) = self.recorder {
                definition.write_to(recorder, number as u32);
            }
        }
        code::FIRST_REGION as u32 + number as u32
    }
}

/// The event code of a region whose name was made while the program ran. The first place that
/// enters the name is the region's place.
pub(crate) fn code_of_name(name: &str, place: &'static Location<'static>) -> u64 {
    code_of_named(name, || ("", place.file(), place.line()))
}

/// The same with module, file and line of the place, asked for where the name is new.
pub(crate) fn code_of_named(name: &str, place: impl FnOnce() -> (&'static str, &'static str, u32)) -> u64 {
    let known = BY_NAME.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(&code) = known.as_ref().and_then(|names| names.get(name)) {
        return u64::from(code);
    }
    drop(known);
    let mut names = lock_names();
    let names = names.get_or_insert_default();
    if let Some(&code) = names.get(name) {
        return u64::from(code);
    }
    let name: &'static str = String::from(name).leak();
    let (module, file, line) = place();
    let definition = Definition { name, module, file, line, by_hand: true };
    let code = lock_registry().define(definition);
    names.insert(name, code);
    u64::from(code)
}

/// The name of the function that holds the item, behind what its block's functions have in front.
fn name_from_path(prefix: &str, item: &str, module: &str) -> String {
    let path = item_path::path_below_module(item, module);
    if prefix.is_empty() { path } else { format!("{prefix}::{path}") }
}
