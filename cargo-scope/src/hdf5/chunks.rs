//! Single chunks of a dataset, each found in one step.
//!
//! `rust-hdf5` looks through all chunks of a dataset for each part that it reads: right for large parts,
//! and a hundred times the work where a column of 100,000 chunks is read chunk by chunk, as files of the
//! Python package need it. So this keeps where each chunk is. Structures: "HDF5 File Format
//! Specification", sections III.A.1 (version 1 B-trees, which that package's files have) and IV.A.2.i.

use rust_hdf5::format::btree_v1::ChunkBTreeV1Node;
use rust_hdf5::format::messages::data_layout::DataLayoutMessage;
use rust_hdf5::format::messages::filter::reverse_filters_masked_into;
use rust_hdf5::format::messages::{MSG_DATA_LAYOUT, MSG_FILTER_PIPELINE, MSG_FLAG_SHARED};
use rust_hdf5::format::{BlockReader, FormatError, FormatResult};
use rust_hdf5::{ByteOrder, DatatypeMessage, FilterPipeline};

use super::headers::Headers;

/// Bytes of a tree node that are read at once; larger ones are not known here.
const NODE_BYTES: usize = 8192;
const DEEPEST: u8 = 16;
const VALUE_BYTES: usize = 8;

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
    /// The chunks of the dataset at `path`, which has `values` values; `None` for one that is stored in
    /// another way.
    pub(super) fn find(
        headers: &mut Headers,
        path: &[&str],
        datatype: &DatatypeMessage,
        values: usize,
    ) -> Option<Chunks> {
        let &DatatypeMessage::FixedPoint { size: 8, byte_order, .. } = datatype else { return None };
        let (mut root, mut filters) = (None, FilterPipeline { filters: Vec::new() });
        for message in headers.object(path).ok()?? {
            match message.msg_type {
                MSG_DATA_LAYOUT => {
                    match DataLayoutMessage::decode(&message.data, headers.context()).ok()?.0 {
                        DataLayoutMessage::ChunkedV3 { chunk_dims, b_tree_address } => {
                            root = Some((*chunk_dims.first()?, b_tree_address));
                        }
                        _ => return None,
                    }
                }
                MSG_FILTER_PIPELINE if message.flags & MSG_FLAG_SHARED != 0 => return None,
                MSG_FILTER_PIPELINE => filters = FilterPipeline::decode(&message.data).ok()?.0,
                _ => (),
            }
        }
        let (len, address) = root?;
        let len = usize::try_from(len).ok().filter(|&len| len > 0)?;
        // What the dataset claims was checked against the size of the file.
        let mut places = vec![Place::default(); values.div_ceil(len)];
        add_places(headers, address, len as u64, DEEPEST, &mut places).ok()?;
        // A chunk that was never written has a fill value.
        let is_complete = places.iter().all(|place| place.bytes > 0);
        is_complete.then(|| Chunks { len, byte_order, filters, places, image: Vec::new() })
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

/// Finds all chunks below a node of the tree.
fn add_places(
    headers: &mut Headers,
    address: u64,
    len: u64,
    levels: u8,
    places: &mut [Place],
) -> FormatResult<()> {
    let block = headers.read_block(address, NODE_BYTES)?;
    let node = ChunkBTreeV1Node::decode(&block, headers.context().sizeof_addr.into(), 1, u16::MAX)?;
    if node.level >= levels {
        return Err(FormatError::InvalidData("the tree of chunks is too deep".into()));
    }
    for (key, &child) in node.keys.iter().zip(&node.children) {
        if node.level > 0 {
            add_places(headers, child, len, node.level, places)?;
        } else if let Some(place) = key.offsets.first().and_then(|at| places.get_mut((at / len) as usize)) {
            *place = Place { address: child, bytes: key.chunk_size, mask: key.filter_mask };
        }
    }
    Ok(())
}
