//! A column of events, which comes in pieces: rank by rank, of how many calls is known at the end only.
//!
//! No more of it is in memory than the chunks that the library takes at a time.

use super::library::{CHUNK, Library, Numbers};

/// A column in the making.
pub(super) struct Growing<L: Library> {
    name: &'static str,
    /// The dataset, once values went to the file.
    column: Option<L::Column>,
    /// Values that are not in the file yet.
    pending: Vec<i64>,
    len: usize,
}

impl<L: Library> Growing<L> {
    pub(super) fn new(name: &'static str) -> Growing<L> {
        Growing { name, column: None, pending: Vec::new(), len: 0 }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Appends the values at `0..len`; with a group, full chunks go to a dataset there.
    pub(super) fn append(
        &mut self,
        group: Option<&L::Group>,
        len: usize,
        value: impl Fn(usize) -> i64,
    ) -> Result<(), String> {
        self.len += len;
        let Some(group) = group else {
            self.pending.extend((0..len).map(value));
            return Ok(());
        };
        let most = CHUNK * L::chunks_at_a_time();
        let mut from = 0;
        loop {
            let to = len.min(from + most.saturating_sub(self.pending.len()));
            self.pending.extend((from..to).map(&value));
            if self.pending.len() < most {
                return Ok(());
            }
            from = to;
            let full = self.pending.len() / CHUNK * CHUNK;
            self.write(group, full)?;
        }
    }

    /// Writes what is left, and gives the dataset its length.
    pub(super) fn finish(mut self, group: &L::Group, compress: bool) -> Result<(), String> {
        if !compress {
            return L::numbers(group, self.name, Numbers::I64(&self.pending));
        }
        self.write(group, self.pending.len())?;
        self.column.map_or(Ok(()), |column| L::end(column, self.len))
    }

    /// Takes the first pending values to the file; the last chunk may be short.
    fn write(&mut self, group: &L::Group, values: usize) -> Result<(), String> {
        let column = match &mut self.column {
            Some(column) => column,
            none => none.insert(L::column(group, self.name, Numbers::I64(&[]))?),
        };
        L::append(column, Numbers::I64(&self.pending[..values]))?;
        self.pending.drain(..values);
        Ok(())
    }
}
