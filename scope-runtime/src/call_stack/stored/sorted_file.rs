//! Calls in no order, sorted through a temporary file that has no name.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::rc::Rc;

use super::StoredCalls;
use super::StoredError;
use super::blocks::{Call, Reader, parts};
use super::windows::Tie;

/// Bytes of a call in the temporary file through which calls in no order are sorted.
pub const SORTED_CALL_BYTES: usize = 4 * 8 + 3 * 4;

/// A sorted part of the calls.
pub(super) struct SortedPart {
    file: Rc<File>,
    /// Position in the file of the next call.
    at: u64,
    left: usize,
}

/// Reads all calls, as many at a time as fit, and writes these sorted by start, `tie` and the list.
pub(super) fn sort<S: StoredCalls>(
    reader: &mut Reader<'_, S>,
    memory: usize,
    tie: Tie,
) -> Result<Vec<SortedPart>, StoredError<S::Error>> {
    let most = (memory / size_of::<Call>()).max(1);
    let file = Rc::new(tempfile::tempfile().map_err(StoredError::Sort)?);
    let mut all = Vec::new();
    let mut calls = Vec::new();
    let block = reader.source.block().max(most.div_ceil(16));
    for (number, region) in (0..).zip(reader.regions) {
        let mut before_ns = 0;
        for part in parts(region.calls.clone(), block) {
            reader.read(number, part, &mut before_ns, &mut calls)?;
            if calls.len() >= most {
                all.push(write(&mut calls, &file, tie).map_err(StoredError::Sort)?);
            }
        }
    }
    all.push(write(&mut calls, &file, tie).map_err(StoredError::Sort)?);
    Ok(all)
}

fn write(calls: &mut Vec<Call>, file: &Rc<File>, tie: Tie) -> io::Result<SortedPart> {
    calls.sort_unstable_by_key(|call| call.order(tie));
    let at = (&**file).seek(SeekFrom::End(0))?;
    let mut out = io::BufWriter::with_capacity(1 << 18, &**file);
    for call in &*calls {
        out.write_all(&bytes(call))?;
    }
    out.flush()?;
    let left = calls.len();
    calls.clear();
    Ok(SortedPart { file: Rc::clone(file), at, left })
}

impl SortedPart {
    pub(super) fn is_at_end(&self) -> bool {
        self.left == 0
    }

    /// Appends the next calls to `into`, at most `most`.
    pub(super) fn read(&mut self, most: usize, into: &mut Vec<Call>) -> io::Result<()> {
        let count = self.left.min(most);
        let mut block = vec![0; count * SORTED_CALL_BYTES];
        (&*self.file).seek(SeekFrom::Start(self.at))?;
        (&*self.file).read_exact(&mut block)?;
        into.extend(block.chunks_exact(SORTED_CALL_BYTES).map(call));
        self.at += block.len() as u64;
        self.left -= count;
        Ok(())
    }
}

fn bytes(call: &Call) -> [u8; SORTED_CALL_BYTES] {
    let mut bytes = [0; SORTED_CALL_BYTES];
    let (wide, narrow) = bytes.split_at_mut(4 * 8);
    let values = [call.start, call.end, call.id, call.parent];
    wide.chunks_exact_mut(8).zip(values).for_each(|(to, value)| to.copy_from_slice(&value.to_le_bytes()));
    let values = [call.call, call.region, call.lane];
    narrow.chunks_exact_mut(4).zip(values).for_each(|(to, value)| to.copy_from_slice(&value.to_le_bytes()));
    bytes
}

fn call(bytes: &[u8]) -> Call {
    let wide = |at: usize| i64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * at + byte]));
    let narrow = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[4 * 8 + 4 * at + byte]));
    Call {
        start: wide(0),
        end: wide(1),
        id: wide(2),
        parent: wide(3),
        call: narrow(0),
        region: narrow(1),
        lane: narrow(2),
    }
}
