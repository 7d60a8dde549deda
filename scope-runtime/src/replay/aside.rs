//! Calls that were set aside with the instances in whose polls they were left open.

use std::collections::{BTreeMap, VecDeque, btree_map::Entry};

/// Those of each instance, the innermost first. No instance is without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetAside<T>(BTreeMap<u64, VecDeque<T>>);

impl<T> Default for SetAside<T> {
    fn default() -> Self {
        SetAside(BTreeMap::new())
    }
}

impl<T> SetAside<T> {
    /// A call is set aside around those that were before.
    pub(crate) fn push(&mut self, instance: u64, call: T) {
        self.0.entry(instance).or_default().push_back(call);
    }

    /// Takes the outermost call, which goes on first.
    pub(crate) fn pop(&mut self, instance: u64) -> Option<T> {
        self.take(instance, VecDeque::pop_back)
    }

    /// Takes the innermost call.
    pub(crate) fn take_innermost(&mut self, instance: u64) -> Option<T> {
        self.take(instance, VecDeque::pop_front)
    }

    fn take(&mut self, instance: u64, take: impl FnOnce(&mut VecDeque<T>) -> Option<T>) -> Option<T> {
        let Entry::Occupied(mut calls) = self.0.entry(instance) else { return None };
        let taken = take(calls.get_mut());
        if calls.get().is_empty() {
            calls.remove();
        }
        taken
    }

    /// The n-th from the outermost, which is 0.
    pub(crate) fn nth(&self, instance: u64, nth: u64) -> Option<&T> {
        self.0.get(&instance)?.iter().rev().nth(usize::try_from(nth).ok()?)
    }

    /// How many there are of an instance.
    pub(crate) fn len(&self, instance: u64) -> usize {
        self.0.get(&instance).map_or(0, VecDeque::len)
    }

    /// The calls of each instance.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (u64, &VecDeque<T>)> {
        self.0.iter().map(|(&instance, calls)| (instance, calls))
    }
}
