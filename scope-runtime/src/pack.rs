//! Words as they lie in blocks: half the size, since most events follow the one before soon.
//!
//! An item of 32 bits holds the ticks since the event before in its upper 22 bits and a short code
//! in its lower 10: 1 leave, 2 + 2n enter region n, 3 + 2n begin a span of region n. Item 0 says that a
//! whole word follows in the next two items, lower half first. Unpacking gives back exactly the words
//! that were packed.

use crate::format::{CODE_BITS, code, has_payload};

const SHORT_BITS: u32 = 10;
const MAX_DELTA: u64 = 1 << (32 - SHORT_BITS);
const VERBATIM: u32 = 0;
const LEAVE: u64 = 1;
const FIRST_REGION: u64 = 2;
const FIRST_SPAN: u64 = 3;
/// Stands for a code that has no short one.
const NO_SHORT: u64 = u64::MAX;
const CODE_MASK: u64 = (1 << CODE_BITS) - 1;

/// The short code of an event, which may be too long.
#[inline]
fn shorten(event: u64) -> u64 {
    match event {
        code::LEAVE => LEAVE,
        code::FIRST_SPAN.. => (event - code::FIRST_SPAN) * 2 + FIRST_SPAN,
        code::FIRST_REGION.. => (event - code::FIRST_REGION) * 2 + FIRST_REGION,
        _ => NO_SHORT,
    }
}

/// The event of a short code.
#[inline]
fn lengthen(short: u64) -> u64 {
    match short {
        LEAVE => code::LEAVE,
        _ if short % 2 == FIRST_SPAN % 2 => code::FIRST_SPAN + short / 2 - FIRST_SPAN / 2,
        // Nobody packs a short code of 0.
        _ => code::FIRST_REGION + (short / 2).saturating_sub(FIRST_REGION / 2),
    }
}

/// Appends `words` to `items`.
pub(crate) fn pack(words: impl Iterator<Item = u64>, items: &mut Vec<u32>) {
    let mut before = 0;
    let mut is_second = false;
    for word in words {
        let (ticks, event) = (word >> CODE_BITS, word & CODE_MASK);
        let delta = ticks.wrapping_sub(before);
        let short = shorten(event);
        if delta < MAX_DELTA && short < 1 << SHORT_BITS && !is_second {
            items.push((delta << SHORT_BITS | short) as u32);
            before = ticks;
        } else {
            items.extend([VERBATIM, word as u32, (word >> 32) as u32]);
            // The second word of a pair is a number, whatever it looks like.
            is_second = !is_second && has_payload(event);
            if !is_second && event >= code::LEAVE {
                before = ticks;
            }
        }
    }
}

/// Appends the words that were packed to `words`; stops where the items end in the middle of one.
pub(crate) fn unpack(items: impl Iterator<Item = u32>, words: &mut Vec<u64>) {
    let mut items = items;
    let mut before = 0_u64;
    let mut is_second = false;
    while let Some(item) = items.next() {
        if item != VERBATIM {
            let short = u64::from(item) & ((1 << SHORT_BITS) - 1);
            before = before.wrapping_add(u64::from(item >> SHORT_BITS));
            words.push(before << CODE_BITS | lengthen(short));
            continue;
        }
        let (Some(low), Some(high)) = (items.next(), items.next()) else { return };
        let word = u64::from(high) << 32 | u64::from(low);
        words.push(word);
        let event = word & CODE_MASK;
        is_second = !is_second && has_payload(event);
        if !is_second && event >= code::LEAVE {
            before = word >> CODE_BITS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::PAYLOAD;

    fn there_and_back(words: &[u64]) -> usize {
        let (mut items, mut back) = (Vec::new(), Vec::new());
        pack(words.iter().copied(), &mut items);
        unpack(items.iter().copied(), &mut back);
        assert_eq!(back, words);
        items.len()
    }

    fn event(ticks: u64, code: u64) -> u64 {
        ticks << CODE_BITS | code
    }

    #[test]
    fn usual_events_take_half_the_room() {
        let words: Vec<_> = (0..100).map(|n| event(n * 40, [256, code::LEAVE][n as usize % 2])).collect();
        assert_eq!(there_and_back(&words), 100);
    }

    #[test]
    fn every_word_comes_back() {
        let region = code::FIRST_REGION;
        let words = [
            event(5, region),
            event(5, region + 510),
            event(5, region + 511),
            event(5, code::FIRST_SPAN),
            event(5, code::FIRST_SPAN + 510),
            event(5, code::FIRST_SPAN + 511),
            event(5, CODE_MASK),
            event(5 + MAX_DELTA - 1, code::LEAVE),
            event(5 + 2 * MAX_DELTA, code::LEAVE),
            event(3, region + CODE_MASK - 300),
            event(4, code::CLOSE_TO),
            PAYLOAD | 2,
            event(6, code::LEAVE),
            code::REBASE,
            PAYLOAD | event(1 << 38, code::REBASE),
            event(0, code::LEAVE),
            event(9, code::LANE_END),
            u64::MAX,
            event((1 << 40) - 1, region),
            event(0, 100),
            event(1, region),
        ];
        there_and_back(&words);
        there_and_back(&[]);
    }

    #[test]
    fn items_that_end_too_early_give_what_is_whole() {
        let mut words = Vec::new();
        unpack([257 << SHORT_BITS | LEAVE as u32, VERBATIM, 7].into_iter(), &mut words);
        assert_eq!(words, [event(257, code::LEAVE)]);
    }
}
