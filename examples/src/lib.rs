//! What the examples share. The programs are beside this folder, one file each.

use std::collections::BTreeMap;
use std::fmt;

/// Numbers of calls that a program counted by itself.
///
/// A profiler does not need this: the examples count so that a test can compare the profile with
/// what really happened. Each thread fills its own and they are added up at the end, because a
/// shared counter would make the threads wait for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls(BTreeMap<&'static str, u64>);

impl Calls {
    /// Counts one call of `region`.
    pub fn count(&mut self, region: &'static str) {
        *self.0.entry(region).or_default() += 1;
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Calls) {
        for (region, calls) in &other.0 {
            *self.0.entry(region).or_default() += calls;
        }
    }

    /// The sum of both, for `reduce` and `fold`.
    pub fn plus(mut self, other: Calls) -> Calls {
        self.add(&other);
        self
    }
}

impl fmt::Display for Calls {
    /// One line per region, in alphabetical order: `calls <number> <region>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (region, calls) in &self.0 {
            writeln!(f, "calls {calls} {region}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_printed_by_name() {
        let mut here = Calls::default();
        here.count("sweep");
        here.count("sweep");
        let mut there = Calls::default();
        there.count("sweep");
        there.count("exchange");
        assert_eq!(here.plus(there).to_string(), "calls 1 exchange\ncalls 3 sweep\n");
    }
}
