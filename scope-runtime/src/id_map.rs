//! A map from pairs of small integers to small integers, for the one look-up per call.
//!
//! Keys are ids that this program gave out, so no one picks them to collide: a multiplication
//! spreads them well enough, in place of the standard map's keyed hash.

/// Marks a free slot; no value is as large.
const FREE: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub(crate) struct IdMap {
    /// A power of two of slots, at most half of them taken; empty at first.
    slots: Vec<(u64, u32)>,
    taken: usize,
}

impl IdMap {
    /// The value of a pair; `new` is stored and given back for a pair not seen before.
    #[inline]
    pub(crate) fn get_or_insert(&mut self, left: u32, right: u32, new: u32) -> u32 {
        debug_assert_ne!(new, FREE);
        let key = u64::from(left) << 32 | u64::from(right);
        if let Some(slot) = self.find(key)
            && self.slots[slot].1 != FREE
        {
            return self.slots[slot].1;
        }
        self.insert(key, new);
        new
    }

    /// The slot that holds `key`, or else the free one where it would go.
    #[inline]
    fn find(&self, key: u64) -> Option<usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let spread = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut at = (spread ^ spread >> 32) as usize & mask;
        loop {
            let &(other, value) = self.slots.get(at)?;
            if value == FREE || other == key {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn insert(&mut self, key: u64, value: u32) {
        if self.slots.len() < 2 * (self.taken + 1) {
            let free = vec![(0, FREE); (4 * (self.taken + 1)).next_power_of_two()];
            for (key, value) in std::mem::replace(&mut self.slots, free) {
                if value != FREE {
                    self.put(key, value);
                }
            }
        }
        self.put(key, value);
        self.taken += 1;
    }

    fn put(&mut self, key: u64, value: u32) {
        let slot = self.find(key).expect("at most half of the slots are taken");
        self.slots[slot] = (key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_keep_their_first_value() {
        let mut map = IdMap::default();
        for round in 0..2 {
            for key in 0..10_000 {
                assert_eq!(map.get_or_insert(key % 7, key, key + round), key);
            }
        }
        assert_eq!(map.get_or_insert(u32::MAX, u32::MAX, 5), 5);
        assert_eq!(map.get_or_insert(u32::MAX, u32::MAX, 6), 5);
    }
}
