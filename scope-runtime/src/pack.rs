//! Events as they lie in chunks and blocks: items of four bytes, since most follow the one before soon.
//!
//! ```text
//! item     | ticks since the event before: 20 bits | short code: 12 bits |
//! ```
//!
//! Short codes: 1 a later poll, 2 leave, 3 + n enter region n. With short code 0 a whole word follows in the next two
//! items, lower half first: an event of its own (the upper bits are 1), the second word of the event
//! before (2), or a message (3 and its kind). Item 0 is one that was not written yet.

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
/// Before the two halves of a message of the first kind; those of the others follow.
pub(crate) const MESSAGE: u32 = 3 << SHORT_BITS;
/// Before one of the last kind.
const LAST_MESSAGE: u32 = MESSAGE + (((code::LAST_MESSAGE - code::MESSAGE) as u32) << SHORT_BITS);
/// The short code of a poll that is not an instance's first; the second word follows.
pub(crate) const POLL: u32 = 1;
/// The short code of a leave.
pub(crate) const LEAVE: u32 = 2;
/// The short code of the first region.
pub(crate) const FIRST_REGION: u32 = 3;
/// Subtracting this from an event code gives its short code.
const TO_SHORT: u64 = code::LEAVE - LEAVE as u64;
const _: () = assert!(code::POLL - TO_SHORT == POLL as u64);
const _: () = assert!(code::FIRST_REGION - TO_SHORT == FIRST_REGION as u64);

const SHORT_MASK: u32 = (1 << SHORT_BITS) - 1;

/// The short code of entering a region with this event code; 0 when it has none.
pub(crate) fn short_code(code: u32) -> u32 {
    let short = code.saturating_sub(TO_SHORT as u32);
    if short <= SHORT_MASK { short } else { 0 }
}

/// An event, or the second word of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Ticks since the chunk's base; what it says, for a message.
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
}

impl<I: Iterator<Item = u32>> Words<I> {
    pub(crate) fn of(items: I) -> Words<I> {
        Words { items, ticks: 0 }
    }

    // Inline, so that the state of the iterator stays in registers.
    #[inline(always)]
    fn whole(&mut self, item: u32) -> Option<Word> {
        if !(WORD..=LAST_MESSAGE).contains(&item) {
            return None;
        }
        let (low, high) = (self.items.next()?, self.items.next()?);
        let bits = u64::from(high) << 32 | u64::from(low);
        if let Some(kind) = item.checked_sub(MESSAGE) {
            return Some(Word { ticks: bits, code: code::MESSAGE + u64::from(kind >> SHORT_BITS) });
        }
        let word = Word::from_bits(bits);
        if item == WORD {
            self.ticks = word.ticks;
        }
        Some(word)
    }
}

impl<I: Iterator<Item = u32>> Iterator for Words<I> {
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

    /// At most as many words as items.
    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, self.items.size_hint().1)
    }
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
            item(7, FIRST_REGION),
            item(0, LEAVE),
            WORD,
            word.bits() as u32,
            (word.bits() >> 32) as u32,
            SECOND,
            u32::MAX,
            u32::MAX,
            LAST_MESSAGE,
            5,
            6,
            item(3, POLL),
            SECOND,
            9,
            0,
            item(MAX_DELTA as u32 - 1, SHORT_MASK),
        ];
        let last_region = code::FIRST_REGION + u64::from(SHORT_MASK - FIRST_REGION);
        let expected = [
            event(7, code::FIRST_REGION),
            event(7, code::LEAVE),
            word,
            Word::from_bits(u64::MAX),
            event(6 << 32 | 5, code::LAST_MESSAGE),
            event((1 << 40) + 2, code::POLL),
            Word::from_bits(9),
            event((1 << 40) + MAX_DELTA + 1, last_region),
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
        assert_eq!(words(&[item(3, LEAVE), 8 << SHORT_BITS, 5, 5]), [event(3, code::LEAVE)]);
    }
}
