//! Why no call stack could be made.

use std::fmt;

use super::input::RegionCalls;

/// Where a call came from and when it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallAt {
    /// Name of its region.
    pub region: String,
    /// Position of that region in the list.
    pub region_index: usize,
    /// Position in that region's stored calls.
    pub call_index: usize,
    /// Entry in ns.
    pub start_ns: i64,
    /// Exit in ns.
    pub end_ns: i64,
    /// Its lane; `None` when the rank is one lane.
    pub lane: Option<i64>,
}

impl CallAt {
    pub(super) fn find(regions: &[RegionCalls<'_>], region: usize, call: usize, lane: Option<i64>) -> CallAt {
        CallAt {
            region: regions[region].name.to_owned(),
            region_index: region,
            call_index: call,
            start_ns: regions[region].starts[call],
            end_ns: regions[region].ends[call],
            lane,
        }
    }
}

impl fmt::Display for CallAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' call {} [{}, {}] ns", self.region, self.call_index, self.start_ns, self.end_ns)
    }
}

/// Recorded intervals from which no call stack can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NestingError {
    /// A call ends before it starts: the first such call in the order of the list.
    EndsBeforeStart(Box<CallAt>),
    /// Two calls of one lane overlap without one containing the other: the first such pair in
    /// call-id order of the inner call.
    Overlap {
        /// The innermost call open when the other starts.
        outer: Box<CallAt>,
        /// The call that starts inside it and ends after it.
        inner: Box<CallAt>,
    },
    /// Times at which the reference's arithmetic overflows; only in [`Mode::Reference`].
    ///
    /// [`Mode::Reference`]: super::Mode::Reference
    ReferenceOverflow,
    /// A column of a region is not as long as its `starts`.
    Columns {
        /// The region's name.
        region: String,
        /// The column's name.
        column: &'static str,
        /// Number of starts.
        expected: usize,
        /// Number of entries in the column.
        found: usize,
    },
    /// 2^32 - 1 calls or more.
    TooManyCalls(usize),
}

impl NestingError {
    /// The lane at fault, when one is known.
    pub fn lane(&self) -> Option<i64> {
        match self {
            NestingError::EndsBeforeStart(call) => call.lane,
            NestingError::Overlap { inner, .. } => inner.lane,
            _ => None,
        }
    }
}

impl fmt::Display for NestingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NestingError::EndsBeforeStart(call) => {
                write!(f, "a recorded call ends before it starts: {call}")
            }
            NestingError::Overlap { outer, inner } => {
                write!(f, "recorded calls are not properly nested")?;
                if let Some(lane) = inner.lane {
                    write!(f, " on lane {lane}")?;
                }
                write!(f, ": {inner} starts inside {outer} but ends after it")
            }
            NestingError::ReferenceOverflow => f.write_str("recorded calls are not properly nested"),
            NestingError::Columns { region, column, expected, found } => {
                write!(f, "region '{region}' has {expected} starts but {found} {column}")
            }
            NestingError::TooManyCalls(calls) => write!(f, "{calls} calls are too many for one rank"),
        }
    }
}

impl std::error::Error for NestingError {}
