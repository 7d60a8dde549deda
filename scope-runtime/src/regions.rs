//! The regions of a recording: definitions in, the regions that users see out.
//!
//! Several definitions can be one region: equal names given by hand, or one place that was defined
//! twice. Default names of different places that collide get their module path in front, and
//! where that does not tell them apart, their place in the source behind.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::format::FieldReader;
use crate::profile::{Region, RegionId};
use crate::totals::PathTree;

/// A region as the program defined it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Defined {
    by_hand: bool,
    line: u32,
    name: String,
    module: String,
    file: String,
}

impl Defined {
    pub(crate) fn read(fields: &mut FieldReader<'_>) -> Option<Defined> {
        let (by_hand, line) = (fields.u32()? != 0, fields.u32()?);
        Some(Defined { by_hand, line, name: fields.text()?, module: fields.text()?, file: fields.text()? })
    }

    fn with_module(&self) -> String {
        format!("{}::{}", self.module, self.name)
    }

    fn with_place(&self) -> String {
        format!("{} ({}:{})", self.with_module(), self.file, self.line)
    }
}

/// The regions of one recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions {
    /// Index into `all` for each number that events use.
    by_number: Vec<u32>,
    /// All regions; the last stands for numbers without a definition.
    all: Vec<Region>,
    /// Index into `called` for each of `all`.
    called_index: Vec<Option<u32>>,
    called: Vec<Region>,
}

impl Regions {
    /// Regions named by their numbers.
    #[cfg(test)]
    pub(crate) fn numbered(count: usize) -> Regions {
        let defined =
            |number| Defined { by_hand: true, name: format!("region {number}"), ..Defined::default() };
        Regions::resolve((0..count as u32).map(|number| (number, defined(number))).collect())
    }

    /// Gives every definition its region.
    pub(crate) fn resolve(defined: BTreeMap<u32, Defined>) -> Regions {
        let names = final_names(defined.values());
        let mut regions = Regions::default();
        let mut by_name: HashMap<String, u32> = HashMap::new();
        let numbers = defined.last_key_value().map_or(0, |(&number, _)| number as usize + 1);
        let unknown = u32::MAX;
        regions.by_number = vec![unknown; numbers];
        for ((number, definition), name) in defined.into_iter().zip(names) {
            let next = regions.all.len() as u32;
            let id = *by_name.entry(name.clone()).or_insert(next);
            if id == next {
                regions.all.push(Region { name, file: definition.file, line: definition.line });
            }
            regions.by_number[number as usize] = id;
        }
        let last = regions.all.len() as u32;
        regions.all.push(Region { name: "(unknown region)".into(), file: String::new(), line: 0 });
        for id in regions.by_number.iter_mut().filter(|id| **id == unknown) {
            *id = last;
        }
        regions
    }

    /// The region of an event's number, as an index into all regions.
    #[inline]
    pub(crate) fn id(&self, number: u32) -> RegionId {
        let unknown = self.all.len() as u32 - 1;
        RegionId(self.by_number.get(number as usize).copied().unwrap_or(unknown))
    }

    /// Keeps the regions that a path of `tree` names, in the order in which paths first do, and
    /// gives the tree with their new ids.
    pub(crate) fn keep_called(&mut self, tree: PathTree) -> PathTree {
        self.called_index = vec![None; self.all.len()];
        tree.map_regions(|RegionId(old)| {
            let slot = &mut self.called_index[old as usize];
            RegionId(*slot.get_or_insert_with(|| {
                self.called.push(self.all[old as usize].clone());
                self.called.len() as u32 - 1
            }))
        })
    }

    /// A tree with the ids of regions that have calls.
    pub(crate) fn called_tree(&self, tree: PathTree) -> PathTree {
        tree.map_regions(|RegionId(id)| RegionId(self.called_index[id as usize].unwrap_or_default()))
    }

    /// Regions that have calls.
    pub(crate) fn called(&self) -> &[Region] {
        &self.called
    }

    /// The region of an event's number, as an index into the regions that have calls.
    #[inline]
    pub(crate) fn called_id(&self, number: u32) -> RegionId {
        let RegionId(id) = self.id(number);
        RegionId(self.called_index[id as usize].expect("a region that is replayed again has calls"))
    }
}

/// The name of each definition as users see it, in the order given.
fn final_names<'a>(defined: impl Iterator<Item = &'a Defined> + Clone) -> Vec<String> {
    let short = collisions(defined.clone(), |definition| Cow::Borrowed(&definition.name));
    let long =
        collisions(defined.clone().filter(|definition| short.contains(&*definition.name)), |definition| {
            if definition.by_hand {
                Cow::Borrowed(&definition.name)
            } else {
                Cow::Owned(definition.with_module())
            }
        });
    let name = |definition: &Defined| {
        if definition.by_hand || !short.contains(&*definition.name) {
            return definition.name.clone();
        }
        let with_module = definition.with_module();
        if long.contains(&*with_module) { definition.with_place() } else { with_module }
    };
    defined.map(name).collect()
}

/// The names that several places bear. Names given by hand are one region wherever they stand.
fn collisions<'a>(
    defined: impl Iterator<Item = &'a Defined>,
    name: impl Fn(&'a Defined) -> Cow<'a, str>,
) -> HashSet<Cow<'a, str>> {
    let mut first: HashMap<Cow<'a, str>, &Defined> = HashMap::new();
    let mut collisions = HashSet::new();
    for definition in defined {
        let name = name(definition);
        match first.get(&name) {
            None => drop(first.insert(name, definition)),
            Some(other) if *other == definition || (other.by_hand && definition.by_hand) => {}
            Some(_) => drop(collisions.insert(name)),
        }
    }
    collisions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defined(by_hand: bool, name: &str, module: &str, line: u32) -> Defined {
        Defined { by_hand, line, name: name.into(), module: module.into(), file: "src/main.rs".into() }
    }

    fn names(definitions: &[Defined]) -> Vec<String> {
        final_names(definitions.iter())
    }

    #[test]
    fn default_names_that_collide_get_their_module() {
        let twice = defined(false, "step", "app::a", 1);
        let definitions =
            [twice.clone(), defined(false, "step", "app::b", 2), defined(false, "run", "app", 3)];
        assert_eq!(names(&definitions), ["app::a::step", "app::b::step", "run"]);
        assert_eq!(names(&[twice.clone(), twice]), ["step", "step"]);
    }

    #[test]
    fn names_given_by_hand_are_one_region_and_stay() {
        let definitions = [
            defined(true, "io", "app::a", 1),
            defined(true, "io", "app::b", 2),
            defined(false, "io", "app", 3),
        ];
        assert_eq!(names(&definitions), ["io", "io", "app::io"]);
        let regions = Regions::resolve((0..).zip(definitions).collect());
        assert_eq!((regions.id(0), regions.id(1), regions.id(2)), (RegionId(0), RegionId(0), RegionId(1)));
        assert_eq!(regions.all[regions.id(9).0 as usize].name, "(unknown region)");
    }

    #[test]
    fn the_place_tells_apart_what_the_module_does_not() {
        let definitions = [defined(false, "step", "app", 1), defined(false, "step", "app", 9)];
        assert_eq!(names(&definitions), ["app::step (src/main.rs:1)", "app::step (src/main.rs:9)"]);
    }
}
