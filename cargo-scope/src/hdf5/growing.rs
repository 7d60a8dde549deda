//! A column of events, which comes in pieces: rank by rank, of how many calls is known at the end only.
//!
//! No more of it is in memory than a chunk for each thread that compresses.

use rust_hdf5::{H5Group, Hdf5Error};

use super::column::{self, CHUNK, Chunked};

/// Most chunks that are compressed at a time; more threads would only make more memory of it.
const MOST_AT_A_TIME: usize = 16;

/// A column in the making.
pub(super) struct Growing {
    name: &'static str,
    /// The dataset, once values went to the file.
    dataset: Option<Chunked<i64>>,
    /// Values that are not in the file yet.
    pending: Vec<i64>,
    len: usize,
}

impl Growing {
    pub(super) fn new(name: &'static str) -> Growing {
        Growing { name, dataset: None, pending: Vec::new(), len: 0 }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Appends the values at `0..len`; with a group, full chunks go to a dataset there.
    pub(super) fn append(
        &mut self,
        group: Option<&H5Group>,
        len: usize,
        value: impl Fn(usize) -> i64,
    ) -> Result<(), Hdf5Error> {
        self.len += len;
        let Some(group) = group else {
            self.pending.extend((0..len).map(value));
            return Ok(());
        };
        let most = CHUNK * rayon::current_num_threads().min(MOST_AT_A_TIME);
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
    pub(super) fn finish(mut self, group: &H5Group, compress: bool) -> Result<(), Hdf5Error> {
        if !compress {
            return column::write(group, self.name, false, self.pending.into_iter());
        }
        self.write(group, self.pending.len())?;
        self.dataset.map_or(Ok(()), |dataset| dataset.finish(self.len))
    }

    /// Takes the first pending values to the file; the last chunk may be short.
    fn write(&mut self, group: &H5Group, values: usize) -> Result<(), Hdf5Error> {
        let dataset = match &mut self.dataset {
            Some(dataset) => dataset,
            none => none.insert(Chunked::create(group, self.name)?),
        };
        dataset.write(&self.pending[..values])?;
        self.pending.drain(..values);
        Ok(())
    }
}
