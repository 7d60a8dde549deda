//! A column of small numbers in the narrowest integers that hold them.

use crate::room::room;

/// Numbers below a limit known beforehand: one, two or four bytes each.
///
/// Most programs have fewer than 256 regions and lanes, so that a rank with 10^7 calls saves
/// 30 MB per column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SmallColumn {
    /// Every value is below 2^8.
    U8(Vec<u8>),
    /// Every value is below 2^16.
    U16(Vec<u16>),
    /// Any 32-bit value.
    U32(Vec<u32>),
}

/// Runs `$body` with `$values` bound to the vector inside.
macro_rules! each_width {
    ($column:expr, $values:ident => $body:expr) => {
        match $column {
            SmallColumn::U8($values) => $body,
            SmallColumn::U16($values) => $body,
            SmallColumn::U32($values) => $body,
        }
    };
}

impl SmallColumn {
    /// An empty column for `capacity` values, all of them below `limit`.
    pub fn below(limit: usize, capacity: usize) -> SmallColumn {
        match limit {
            0..=0x100 => SmallColumn::U8(room(capacity)),
            0x101..=0x1_0000 => SmallColumn::U16(room(capacity)),
            _ => SmallColumn::U32(room(capacity)),
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        each_width!(self, values => values.len())
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `at`.
    ///
    /// # Panics
    ///
    /// When `at` is not below the length.
    #[inline]
    pub fn get(&self, at: usize) -> usize {
        each_width!(self, values => values[at] as usize)
    }

    /// All values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Appends `values`, each of them below the limit; the width is chosen once for all.
    pub(crate) fn extend(&mut self, values: impl Iterator<Item = u32>) {
        match self {
            SmallColumn::U8(column) => column.extend(values.map(|value| value as u8)),
            SmallColumn::U16(column) => column.extend(values.map(|value| value as u16)),
            SmallColumn::U32(column) => column.extend(values),
        }
    }

    /// A column of the same width with the values at `picked`, in that order.
    pub(crate) fn pick(&self, picked: &[u32]) -> SmallColumn {
        let at = |&at: &u32| at as usize;
        match self {
            SmallColumn::U8(values) => SmallColumn::U8(picked.iter().map(|i| values[at(i)]).collect()),
            SmallColumn::U16(values) => SmallColumn::U16(picked.iter().map(|i| values[at(i)]).collect()),
            SmallColumn::U32(values) => SmallColumn::U32(picked.iter().map(|i| values[at(i)]).collect()),
        }
    }
}
