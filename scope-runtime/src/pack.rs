//! Events as they lie in chunks and blocks: items of four bytes, since most follow the one before soon.
//!
//! ```text
//! item     | ticks since the event before: 20 bits | short code: 12 bits |
//! ```
//!
//! Short codes: 1 leave, 2 + n enter region n. With short code 0 a whole word follows in the next two
//! items, lower half first: an event of its own (the upper bits are 1), or the second word of the event
//! before (2). Item 0 is one that was not written yet.

use crate::format::{CODE_BITS, code};

pub(crate) const SHORT_BITS: u32 = 12;
/// Ticks from here on do not fit an item.
pub(crate) const MAX_DELTA: u64 = 1 << (32 - SHORT_BITS);
/// Items of a whole word.
pub(crate) const WORD_ITEMS: usize = 3;
/// Before the two halves of an event.
pub(crate) const WORD: u32 = 1 << SHORT_BITS;
/// Before the two halves of the second word of an event.
pub(crate) const SECOND: u32 = 2 << SHORT_BITS;
/// The short code of a leave.
pub(crate) const LEAVE: u32 = 1;
/// Subtracting this from an event code gives its short code.
const TO_SHORT: u64 = code::LEAVE - LEAVE as u64;
const SHORT_MASK: u32 = (1 << SHORT_BITS) - 1;

/// The short code of entering a region with this event code; 0 when it has none.
pub(crate) fn short_code(code: u32) -> u32 {
    let short = code.saturating_sub(TO_SHORT as u32);
    if short <= SHORT_MASK { short } else { 0 }
}

/// An event, or the second word of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Ticks since the chunk's base.
    pub(crate) ticks: u64,
    pub(crate) code: u64,
}

impl Word {
    pub(crate) fn from_bits(bits: u64) -> Word {
        Word { ticks: bits >> CODE_BITS, code: bits & ((1 << CODE_BITS) - 1) }
    }

    /// What a second word says.
    pub(crate) fn bits(self) -> u64 {
        self.ticks << CODE_BITS | self.code
    }
}

/// Items back to words.
///
/// Ends where the items do, in the middle of a word if need be.
#[derive(Debug)]
pub(crate) struct Words<I> {
    items: I,
    ticks: u64,
    len: usize,
}

impl<I: ExactSizeIterator<Item = u32>> Words<I> {
    pub(crate) fn of(items: I) -> Words<I> {
        Words { len: items.len(), items, ticks: 0 }
    }

    /// How many items were taken so far.
    pub(crate) fn taken(&self) -> usize {
        self.len - self.items.len()
    }

    /// The words before the item of this number.
    pub(crate) fn until(&mut self, item: usize) -> impl Iterator<Item = Word> {
        std::iter::from_fn(move || if self.taken() < item { self.next() } else { None })
    }

    #[cold]
    fn whole(&mut self, item: u32) -> Option<Word> {
        if item != WORD && item != SECOND {
            return None;
        }
        let (low, high) = (self.items.next()?, self.items.next()?);
        let word = Word::from_bits(u64::from(high) << 32 | u64::from(low));
        if item == WORD {
            self.ticks = word.ticks;
        }
        Some(word)
    }
}

impl<I: ExactSizeIterator<Item = u32>> Iterator for Words<I> {
    type Item = Word;

    #[inline(always)]
    fn next(&mut self) -> Option<Word> {
        let item = self.items.next()?;
        let short = item & SHORT_MASK;
        if short == 0 {
            return self.whole(item);
        }
        self.ticks = self.ticks.wrapping_add(u64::from(item >> SHORT_BITS));
        Some(Word { ticks: self.ticks, code: u64::from(short) + TO_SHORT })
    }
}

/// Words as items, each of them whole.
#[cfg(test)]
pub(crate) fn items_of(words: &[u64]) -> Vec<u32> {
    let mut is_second = false;
    let item = |&word: &u64| {
        let before = if is_second { SECOND } else { WORD };
        is_second = !is_second && crate::format::has_payload(Word::from_bits(word).code);
        [before, word as u32, (word >> 32) as u32]
    };
    words.iter().flat_map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(ticks: u64, code: u64) -> Word {
        Word { ticks, code }
    }
    fn words(items: &[u32]) -> Vec<Word> {
        Words::of(items.iter().copied()).collect()
    }
    fn item(delta: u32, short: u32) -> u32 {
        delta << SHORT_BITS | short
    }

    #[test]
    fn items_are_relative_to_the_event_before() {
        let word = event((1 << 40) - 1, code::FIRST_REGION + 9_000);
        let items = [
            item(7, 2),
            item(0, LEAVE),
            WORD,
            word.bits() as u32,
            (word.bits() >> 32) as u32,
            SECOND,
            u32::MAX,
            u32::MAX,
            item(MAX_DELTA as u32 - 1, SHORT_MASK),
        ];
        let last_region = code::FIRST_REGION + u64::from(SHORT_MASK) - 2;
        let expected = [
            event(7, code::FIRST_REGION),
            event(7, code::LEAVE),
            word,
            Word::from_bits(u64::MAX),
            event((1 << 40) + MAX_DELTA - 2, last_region),
        ];
        assert_eq!(words(&items), expected);
        assert_eq!((short_code(last_region as u32), short_code(last_region as u32 + 1)), (SHORT_MASK, 0));
    }

    #[test]
    fn items_that_end_too_early_give_what_is_whole() {
        let whole = [item(3, LEAVE), WORD, 7, 0];
        assert_eq!(words(&whole), [event(3, code::LEAVE), Word::from_bits(7)]);
        for len in 1..4 {
            assert_eq!(words(&whole[..len]), [event(3, code::LEAVE)], "{len} items");
        }
        assert_eq!(words(&[item(3, LEAVE), 0, item(3, LEAVE)]), [event(3, code::LEAVE)]);
        assert_eq!(words(&[item(3, LEAVE), 3 << SHORT_BITS, 5, 5]), [event(3, code::LEAVE)]);
    }
}
