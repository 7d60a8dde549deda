//! What the object headers of groups and datasets say.
//!
//! `rust-hdf5` reads datasets and text attributes, but has no call for a number on a group, and
//! the schema version is one, and none for where chunks are. So this walks from the superblock to an
//! object, and decodes what it finds there with the message decoders of that crate. Structures: "HDF5 File Format
//! Specification", sections II (superblock), III.A-D (group structures) and IV.A (headers).

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use rust_hdf5::format::btree_v1::BTreeV1Node;
use rust_hdf5::format::dense_attr::read_dense_attributes;
use rust_hdf5::format::dense_link::read_dense_links;
use rust_hdf5::format::local_heap::{LocalHeapHeader, local_heap_get_string};
use rust_hdf5::format::messages::attr_info::AttributeInfoMessage;
use rust_hdf5::format::messages::attribute::AttributeEntry;
use rust_hdf5::format::messages::continuation::ContinuationMessage;
use rust_hdf5::format::messages::link::{LinkMessage, LinkTarget};
use rust_hdf5::format::messages::link_info::LinkInfoMessage;
use rust_hdf5::format::messages::{
    MSG_ATTR_INFO, MSG_ATTRIBUTE, MSG_FLAG_SHARED, MSG_LINK, MSG_LINK_INFO, MSG_OBJ_HEADER_CONTINUATION,
    MSG_SYMBOL_TABLE,
};
use rust_hdf5::format::object_header::{OCHK_SIGNATURE, OHDR_SIGNATURE, ObjectHeader, ObjectHeaderMessage};
use rust_hdf5::format::superblock::{
    SuperblockV0V1, SuperblockV2V3, SymbolTableCache, detect_superblock_version,
};
use rust_hdf5::format::symbol_table::SymbolTableNode;
use rust_hdf5::format::{BlockReader, FormatContext, FormatError, FormatResult};

/// Bytes read at first from a structure that says its size itself.
const PROBE_BYTES: usize = 8192;
/// Header blocks and tree nodes looked at per object; real ones have a handful. Bounds the work
/// that a damaged file can ask for.
const MAX_BLOCKS: usize = 65_536;
/// Soft links followed on the way to an object: as many as the HDF5 library follows.
const MAX_LINKS: usize = 16;

/// A file in which groups can be looked up.
pub(super) struct Headers {
    file: File,
    size: u64,
    /// Position of the superblock, from which all addresses count.
    base: u64,
    root: u64,
    context: FormatContext,
}

impl Headers {
    /// Reads the superblock of `file`.
    pub(super) fn new(file: File) -> FormatResult<Headers> {
        let size = file.metadata().map_err(invalid)?.len();
        let context = FormatContext { sizeof_addr: 8, sizeof_size: 8 };
        let mut headers = Headers { file, size, base: 0, root: 0, context };
        // A user block before the superblock has 512 bytes, or a doubling of that.
        for base in std::iter::once(0).chain((9..48).map(|power| 1 << power)).take_while(|base| *base < size)
        {
            headers.base = base;
            let block = headers.read_block(0, PROBE_BYTES)?;
            match detect_superblock_version(&block) {
                Ok(version) => {
                    headers.take_superblock(version, &block)?;
                    return Ok(headers);
                }
                Err(_) => continue,
            }
        }
        Err(FormatError::InvalidSignature)
    }

    fn take_superblock(&mut self, version: u8, block: &[u8]) -> FormatResult<()> {
        let (sizeof_addr, sizeof_size, end, root) = if version < 2 {
            let superblock = SuperblockV0V1::decode(block)?;
            let root = superblock.root_symbol_table_entry.obj_header_addr;
            (superblock.sizeof_offsets, superblock.sizeof_lengths, superblock.end_of_file_address, root)
        } else {
            let superblock = SuperblockV2V3::decode(block)?;
            let root = superblock.root_group_object_header_address;
            (superblock.sizeof_offsets, superblock.sizeof_lengths, superblock.end_of_file_address, root)
        };
        // Without this, what is missing at the end would read as zeros.
        if end > self.size {
            return Err(invalid(format!("it has {} of {end} bytes", self.size)));
        }
        // The decoders take fields of at most eight bytes.
        if !(1..=8).contains(&sizeof_addr) || !(1..=8).contains(&sizeof_size) {
            return Err(invalid("impossible sizes of addresses and lengths"));
        }
        self.context = FormatContext { sizeof_addr, sizeof_size };
        self.root = root;
        Ok(())
    }

    /// Widths of addresses and lengths in this file.
    pub(super) fn context(&self) -> &FormatContext {
        &self.context
    }

    /// Bytes of the file.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Whether this is the address of what is not there: all bits are set.
    pub(super) fn is_undefined(&self, address: u64) -> bool {
        address == u64::MAX >> (64 - 8 * u32::from(self.context.sizeof_addr))
    }

    /// Attributes of the group at `path`, from the root down; `None` when there is no such group.
    pub(super) fn attributes(&mut self, path: &[&str]) -> FormatResult<Option<Vec<AttributeEntry>>> {
        let Some(messages) = self.object(path)? else { return Ok(None) };
        let mut attributes = Vec::new();
        for message in messages {
            match message.msg_type {
                MSG_ATTRIBUTE if message.flags & MSG_FLAG_SHARED == 0 => {
                    let order = Some(message.creation_index);
                    match AttributeEntry::parse(&message.data, &self.context) {
                        Ok(entry) => attributes.push(entry.with_creation_index(order)),
                        // Its type has a name of its own. Of the root's none may be missing: they say what
                        // the file is.
                        Err(FormatError::UnsupportedFeature(_)) if !path.is_empty() => {}
                        Err(error) => return Err(error),
                    }
                }
                MSG_ATTR_INFO => {
                    let (info, _) = AttributeInfoMessage::decode(&message.data, &self.context)?;
                    let context = self.context;
                    attributes.extend(read_dense_attributes(&info, &context, self)?);
                }
                _ => (),
            }
        }
        // Where the file keeps no order, all indices are equal and the order stays as it is.
        attributes.sort_by_key(AttributeEntry::creation_index);
        Ok(Some(attributes))
    }

    /// All messages of the object at `path`, from the root down; `None` when there is no such object.
    pub(super) fn object(&mut self, path: &[&str]) -> FormatResult<Option<Vec<ObjectHeaderMessage>>> {
        let (mut address, mut links) = (self.root, 0);
        let mut names: Vec<String> = path.iter().rev().map(ToString::to_string).collect();
        while let Some(name) = names.pop() {
            match self.child(address, &name)? {
                Some(LinkTarget::Hard { address: child }) => address = child,
                Some(LinkTarget::Soft { target }) if links < MAX_LINKS => {
                    links += 1;
                    if target.starts_with('/') {
                        address = self.root;
                    }
                    let steps = target.split('/').filter(|step| !["", "."].contains(step));
                    names.extend(steps.rev().map(String::from));
                }
                _ => return Ok(None),
            }
        }
        self.messages(address).map(Some)
    }

    /// What the group at `address` has a link `name` to.
    fn child(&mut self, address: u64, name: &str) -> FormatResult<Option<LinkTarget>> {
        for message in self.messages(address)? {
            let links = match message.msg_type {
                MSG_LINK => vec![LinkMessage::decode(&message.data, &self.context)?.0],
                MSG_LINK_INFO => {
                    let (info, _) = LinkInfoMessage::decode(&message.data, &self.context)?;
                    let context = self.context;
                    read_dense_links(&info, &context, self)?
                }
                MSG_SYMBOL_TABLE => return self.symbol(&message.data, name),
                _ => continue,
            };
            if let Some(link) = links.into_iter().find(|link| link.name == name) {
                return Ok(Some(link.target));
            }
        }
        Ok(None)
    }

    /// Looks `name` up in the symbol table that `message` points to: all leaves of its tree.
    fn symbol(&mut self, message: &[u8], name: &str) -> FormatResult<Option<LinkTarget>> {
        let (address_bytes, length_bytes) = self.widths();
        if message.len() < 2 * address_bytes {
            return Err(invalid("symbol table message is too short"));
        }
        let heap_address = little_endian(&message[address_bytes..2 * address_bytes]);
        let header = self.read_block(heap_address, PROBE_BYTES)?;
        let heap = LocalHeapHeader::decode(&header, address_bytes, length_bytes)?;
        let names = self.read_block(heap.data_addr, usize::try_from(heap.data_size).map_err(invalid)?)?;
        let mut nodes = vec![little_endian(&message[..address_bytes])];
        let mut seen = HashSet::new();
        while let Some(node) = nodes.pop().filter(|node| seen.len() < MAX_BLOCKS && seen.insert(*node)) {
            let block = self.read_block(node, 2 * PROBE_BYTES)?;
            if block.starts_with(b"TREE") {
                let tree = BTreeV1Node::decode(&block, address_bytes, length_bytes, u16::MAX)?;
                nodes.extend(tree.children);
                continue;
            }
            for entry in SymbolTableNode::decode(&block, address_bytes, length_bytes, u16::MAX)?.entries {
                if local_heap_get_string(&names, entry.name_offset)? == name {
                    return Ok(Some(match entry.cache {
                        SymbolTableCache::SoftLink { value_offset } => {
                            let target = local_heap_get_string(&names, u64::from(value_offset))?;
                            LinkTarget::Soft { target }
                        }
                        _ => LinkTarget::Hard { address: entry.obj_header_addr },
                    }));
                }
            }
        }
        Ok(None)
    }

    /// All messages of the object header at `address`, through its continuation blocks.
    fn messages(&mut self, address: u64) -> FormatResult<Vec<ObjectHeaderMessage>> {
        let mut block = self.read_block(address, PROBE_BYTES)?;
        if let Err(FormatError::BufferTooShort { needed, .. }) = ObjectHeader::decode_any(&block) {
            block = self.read_block(address, needed)?;
        }
        let (header, _) = ObjectHeader::decode_any(&block)?;
        let version_2 = block.starts_with(&OHDR_SIGNATURE);
        let ordered = version_2 && header.has_creation_order();
        let mut messages = header.messages;
        let mut seen = HashSet::new();
        let mut position = 0;
        while position < messages.len() {
            let message = &messages[position];
            position += 1;
            if message.msg_type != MSG_OBJ_HEADER_CONTINUATION {
                continue;
            }
            let (next, _) = ContinuationMessage::decode(&message.data, &self.context)?;
            if seen.len() < MAX_BLOCKS && seen.insert(next.offset) {
                let block = self.read_block(next.offset, usize::try_from(next.length).map_err(invalid)?)?;
                messages.extend(continued_messages(&block, version_2, ordered)?);
            }
        }
        Ok(messages)
    }

    fn widths(&self) -> (usize, usize) {
        (self.context.sizeof_addr.into(), self.context.sizeof_size.into())
    }
}

impl BlockReader for Headers {
    /// Never allocates more than what the file still has at `offset`.
    fn read_block(&mut self, offset: u64, len: usize) -> FormatResult<Vec<u8>> {
        let position = self.base.checked_add(offset).filter(|position| *position <= self.size);
        let position = position.ok_or_else(|| invalid(format!("address {offset:#x} is behind the end")))?;
        let len = (self.size - position).min(len as u64);
        let mut block = vec![0; len as usize];
        self.file.seek(SeekFrom::Start(position)).map_err(invalid)?;
        self.file.read_exact(&mut block).map_err(invalid)?;
        Ok(block)
    }
}

/// Messages of a continuation block, whose form is that of the header it continues.
fn continued_messages(
    block: &[u8],
    version_2: bool,
    ordered: bool,
) -> FormatResult<Vec<ObjectHeaderMessage>> {
    let mut rest = block;
    if version_2 {
        let body = block.strip_prefix(&OCHK_SIGNATURE).ok_or(FormatError::InvalidSignature)?;
        rest = &body[..body.len().saturating_sub(CHECKSUM_BYTES)];
    }
    let envelope = match (version_2, ordered) {
        (false, _) => 8,
        (true, false) => 4,
        (true, true) => 6,
    };
    let mut messages = Vec::new();
    // What is left behind the last message is a gap smaller than an envelope.
    while rest.len() >= envelope {
        let (head, body) = rest.split_at(envelope);
        let (msg_type, size, flags) = match version_2 {
            true => (head[0], u16::from_le_bytes([head[1], head[2]]), head[3]),
            // Types above 255 are not defined.
            false => (head[0], u16::from_le_bytes([head[2], head[3]]), head[4]),
        };
        let size = usize::from(size);
        if size > body.len() {
            return Err(FormatError::BufferTooShort { needed: size, available: body.len() });
        }
        let creation_index = if ordered { u16::from_le_bytes([head[4], head[5]]) } else { 0 };
        messages.push(ObjectHeaderMessage { msg_type, flags, creation_index, data: body[..size].to_vec() });
        rest = &body[size..];
    }
    Ok(messages)
}

/// Checksum at the end of a version-2 block.
const CHECKSUM_BYTES: usize = 4;

/// An unsigned integer of at most eight bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn invalid(cause: impl ToString) -> FormatError {
    FormatError::InvalidData(cause.to_string())
}
