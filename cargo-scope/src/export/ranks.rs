//! Lists of ranks as users write them.

use std::fmt;
use std::str::FromStr;

use super::Error;
use crate::merged::MAX_RANKS;

/// Ranks to export, parsed from text such as `0,2-4` or `all`.
///
/// # Examples
/// ```
/// use cargo_scope::export::Ranks;
///
/// assert_eq!("0,2-4".parse::<Ranks>()?, Ranks::List(vec![0, 2, 3, 4]));
/// assert!("4-2".parse::<Ranks>().is_err());
/// # Ok::<(), cargo_scope::export::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ranks {
    /// Every rank of the profile; the default, since a file more is no surprise, and one that is
    /// missing is.
    #[default]
    All,
    /// These, in ascending order without repeats.
    List(Vec<u32>),
}

impl FromStr for Ranks {
    type Err = Error;

    /// Reads numbers and ranges with commas or spaces between them, or `all`.
    fn from_str(text: &str) -> Result<Ranks, Error> {
        if text.trim() == "all" {
            return Ok(Ranks::All);
        }
        let bad = || Error::BadRanks { text: text.into() };
        let mut ranks = Vec::new();
        for part in text.split([',', ' ']).map(str::trim).filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first).ok_or_else(bad)?, number(last).ok_or_else(bad)?);
            if first > last {
                return Err(bad());
            }
            ranks.extend(first..=last);
        }
        if ranks.is_empty() {
            return Err(bad());
        }
        ranks.sort_unstable();
        ranks.dedup();
        Ok(Ranks::List(ranks))
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&rank| digits && rank < MAX_RANKS)
}

impl fmt::Display for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ranks::All => f.write_str("all"),
            Ranks::List(ranks) => {
                let ranks: Vec<_> = ranks.iter().map(u32::to_string).collect();
                f.write_str(&ranks.join(","))
            }
        }
    }
}

impl Ranks {
    /// Those of a profile with `ranks` of them; all where none of the list is there.
    pub fn present(&self, ranks: u32) -> Ranks {
        match self {
            Ranks::All => Ranks::All,
            Ranks::List(list) => {
                let present: Vec<u32> = list.iter().copied().filter(|&rank| rank < ranks).collect();
                if present.is_empty() { Ranks::All } else { Ranks::List(present) }
            }
        }
    }

    /// The ranks as numbers, of a profile with `ranks` of them.
    ///
    /// # Errors
    /// When one of them is not below `ranks`.
    pub(super) fn resolve(&self, ranks: u32) -> Result<Vec<u32>, Error> {
        match self {
            Ranks::All => Ok((0..ranks).collect()),
            Ranks::List(list) => match list.iter().find(|&&rank| rank >= ranks) {
                Some(&rank) => Err(Error::InvalidRank { rank, ranks }),
                None => Ok(list.clone()),
            },
        }
    }
}

/// Whether `rank` is one of `ranks`, which are in ascending order.
pub(crate) fn is_among(ranks: &[u32], rank: u32) -> bool {
    ranks.binary_search(&rank).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_read() {
        let list = |text: &str| text.parse::<Ranks>().map(|ranks| ranks.to_string()).ok();
        for (text, expected) in
            [("0,2-4", "0,2,3,4"), ("3 1 1", "1,3"), (" 7 ", "7"), ("all", "all"), ("2-2,", "2")]
        {
            assert_eq!(list(text).as_deref(), Some(expected));
        }
        for text in ["", ",", "-1", "4-2", "1-2-3", "x", "+1", "0-4000000000", "99999999999"] {
            assert_eq!(list(text), None, "{text}");
        }
    }

    #[test]
    fn a_list_can_be_cut_to_the_ranks_that_are_there() {
        let list = Ranks::List(vec![1, 5]);
        assert_eq!(list.present(6), list);
        assert_eq!(list.present(2), Ranks::List(vec![1]));
        assert_eq!(list.present(1), Ranks::All);
    }

    #[test]
    fn a_rank_that_is_not_there_is_named() {
        let error = Ranks::List(vec![0, 2]).resolve(2).unwrap_err();
        assert_eq!(error.to_string(), "there is no rank 2: the profile has 2 rank(s), counted from 0");
    }
}
