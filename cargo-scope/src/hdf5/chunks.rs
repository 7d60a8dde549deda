//! Single chunks of a dataset, each found in one step.
//!
//! `rust-hdf5` looks through all chunks of a dataset for each part that it reads: right for large parts,
//! and a hundred times the work where a column of 100,000 chunks is read chunk by chunk, as files of the
//! Python package need it. So this keeps where each chunk is. Structures: "HDF5 File Format
//! Specification", sections III.A.1 (version 1 B-trees, which that package's files have) and IV.A.2.i.

use std::collections::HashSet;

use rust_hdf5::format::btree_v1::ChunkBTreeV1Node;
use rust_hdf5::format::messages::data_layout::DataLayoutMessage;
use rust_hdf5::format::messages::filter::{FILTER_FLETCHER32, apply_filters, reverse_filters_masked_into};
use rust_hdf5::format::messages::{MSG_DATA_LAYOUT, MSG_FILTER_PIPELINE, MSG_FLAG_SHARED};
use rust_hdf5::format::{BlockReader, FormatError, FormatResult};
use rust_hdf5::{ByteOrder, DatatypeMessage, FilterPipeline};

use super::headers::Headers;

/// Bytes of a tree node that are read at first.
const NODE_BYTES: usize = 8192;
const DEEPEST: u8 = 16;
/// A node takes at least so much of the file for each of its children.
const KEY_BYTES: u64 = 24;
const VALUE_BYTES: usize = 8;
const CHECKSUM_BYTES: usize = 4;

/// The chunks of a column of 64-bit integers.
pub(super) struct Chunks {
    /// Number of values in each chunk.
    pub(super) len: usize,
    byte_order: ByteOrder,
    filters: FilterPipeline,
    /// By number; the last may be behind the end of the dataset.
    places: Vec<Place>,
    /// The bytes of a chunk.
    image: Vec<u8>,
}

/// Where a chunk is in the file.
#[derive(Clone, Copy, Default)]
struct Place {
    address: u64,
    /// 0 for a chunk that was never written.
    bytes: u32,
    /// Filters that were left out.
    mask: u32,
}

impl Chunks {
    /// The chunks of the dataset at `path`, which has `values` values in chunks of `len`; `None` for one that
    /// is stored in another way.
    ///
    /// # Errors
    /// When the tree of chunks is damaged, or a chunk is not what was written. Nothing else looks for trees
    /// whose nodes come again and again, or at checksums, so this is to be called also where the dataset is
    /// read in another way.
    pub(super) fn find(
        headers: &mut Headers,
        path: &[&str],
        datatype: &DatatypeMessage,
        values: usize,
        len: usize,
    ) -> FormatResult<Option<Chunks>> {
        let (mut root, mut filters) = (None, Some(FilterPipeline { filters: Vec::new() }));
        for message in headers.object(path)?.unwrap_or_default() {
            match message.msg_type {
                MSG_DATA_LAYOUT => {
                    let (layout, _) = DataLayoutMessage::decode(&message.data, headers.context())?;
                    if let DataLayoutMessage::ChunkedV3 { chunk_dims, b_tree_address } = layout {
                        root = Some((chunk_dims, b_tree_address));
                    }
                }
                MSG_FILTER_PIPELINE if message.flags & MSG_FLAG_SHARED != 0 => filters = None,
                MSG_FILTER_PIPELINE => filters = Some(FilterPipeline::decode(&message.data)?.0),
                _ => (),
            }
        }
        let Some((dims, address)) = root else { return Ok(None) };
        // What the dataset claims was checked against the size of the file; this may be another one, where
        // a name is there twice.
        let is_checked = len > 0 && dims.first().is_some_and(|&first| first == len as u64);
        if !is_checked || headers.is_undefined(address) {
            return Ok(None);
        }
        let keys = headers.size() / KEY_BYTES;
        // One more than can be there is enough to see that some were never written.
        let places = values.div_ceil(len).min(usize::try_from(keys).unwrap_or(usize::MAX).saturating_add(1));
        let places = vec![Place::default(); places];
        let mut tree = Tree { headers, len: len as u64, seen: HashSet::new(), keys, places };
        tree.add_places(address, None)?;
        let places = tree.places;
        if let Some(filters) = &filters {
            check_sums(headers, filters, &places)?;
        }
        // A chunk that was never written has a fill value.
        let is_complete = places.iter().all(|place| place.bytes > 0);
        let (&DatatypeMessage::FixedPoint { size: 8, byte_order, .. }, Some(filters), true, [_, 8]) =
            (datatype, filters, is_complete, &dims[..])
        else {
            return Ok(None);
        };
        Ok(Some(Chunks { len, byte_order, filters, places, image: Vec::new() }))
    }

    /// Reads chunk `number` in place of what is in `values`.
    pub(super) fn read(
        &mut self,
        headers: &mut Headers,
        number: usize,
        values: &mut Vec<i64>,
    ) -> FormatResult<()> {
        let no_chunk = || FormatError::InvalidData(format!("there is no chunk {number}"));
        let &Place { address, bytes, mask } = self.places.get(number).ok_or_else(no_chunk)?;
        let stored = headers.read_block(address, bytes as usize)?;
        self.image.resize(self.len * VALUE_BYTES, 0);
        reverse_filters_masked_into(&self.filters, &stored, mask, &mut self.image)?;
        let (image, _) = self.image.as_chunks::<VALUE_BYTES>();
        values.clear();
        match self.byte_order {
            ByteOrder::LittleEndian => values.extend(image.iter().map(|bytes| i64::from_le_bytes(*bytes))),
            ByteOrder::BigEndian => values.extend(image.iter().map(|bytes| i64::from_be_bytes(*bytes))),
        }
        Ok(())
    }
}

/// Compares chunks with their checksums, which are stored behind them where the last filter makes such.
fn check_sums(headers: &mut Headers, filters: &FilterPipeline, places: &[Place]) -> FormatResult<()> {
    let Some((number, last)) = (0_u32..).zip(&filters.filters).last() else { return Ok(()) };
    if last.id != FILTER_FLETCHER32 {
        return Ok(());
    }
    let checksum = FilterPipeline { filters: vec![last.clone()] };
    let summed = |place: &&Place| place.bytes > 0 && place.mask >> number & 1 == 0;
    for place in places.iter().filter(summed) {
        let stored = headers.read_block(place.address, place.bytes as usize)?;
        let written = &stored[..stored.len().saturating_sub(CHECKSUM_BYTES)];
        if apply_filters(&checksum, written)? != stored {
            let cause = format!("a chunk, at byte {}, is not what its checksum says", place.address);
            return Err(FormatError::InvalidData(cause));
        }
    }
    Ok(())
}

/// A tree of chunks while it is walked.
struct Tree<'a> {
    headers: &'a mut Headers,
    /// Number of values in each chunk.
    len: u64,
    /// Addresses of its nodes so far.
    seen: HashSet<u64>,
    /// As many more children can be in a file of that size.
    keys: u64,
    places: Vec<Place>,
}

impl Tree<'_> {
    /// Finds all chunks below a node of the tree, of which the level is known unless it is the root.
    fn add_places(&mut self, address: u64, level: Option<u8>) -> FormatResult<()> {
        let damaged = |cause: &str| Err(FormatError::InvalidData(format!("its tree of chunks {cause}")));
        if !self.seen.insert(address) {
            return damaged("has a node in two places");
        }
        let node = self.node(address)?;
        if node.level > DEEPEST || level.is_some_and(|level| level != node.level) {
            return damaged("has a node of another level than is right there");
        }
        match self.keys.checked_sub(node.children.len() as u64) {
            Some(keys) => self.keys = keys,
            None => return damaged("has more chunks than the file can hold"),
        }
        for (key, &child) in node.keys.iter().zip(&node.children) {
            if node.level > 0 {
                self.add_places(child, Some(node.level - 1))?;
                continue;
            }
            let number = key.offsets.first().and_then(|at| usize::try_from(at / self.len).ok());
            if let Some(place) = number.and_then(|number| self.places.get_mut(number)) {
                *place = Place { address: child, bytes: key.chunk_size, mask: key.filter_mask };
            }
        }
        Ok(())
    }

    fn node(&mut self, address: u64) -> FormatResult<ChunkBTreeV1Node> {
        let decode = |headers: &mut Headers, bytes: usize| {
            let block = headers.read_block(address, bytes)?;
            ChunkBTreeV1Node::decode(&block, headers.context().sizeof_addr.into(), 1, u16::MAX)
        };
        match decode(self.headers, NODE_BYTES) {
            Err(FormatError::BufferTooShort { needed, .. }) => decode(self.headers, needed),
            node => node,
        }
    }
}
