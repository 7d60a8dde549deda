//! From an attribute in the file to a [`MetadataValue`].

use rust_hdf5::format::global_heap::{GlobalHeapCollection, decode_vlen_reference, vlen_reference_size};
use rust_hdf5::format::messages::attribute::AttributeMessage;
use rust_hdf5::format::{BlockReader, FormatError, FormatResult};
use rust_hdf5::{ByteOrder, DatatypeMessage};

use super::headers::Headers;
use crate::merged::MetadataValue;

/// The value of `attribute`; `None` for a type that no profile has, such as a reference.
pub(super) fn value(
    attribute: &AttributeMessage,
    headers: &mut Headers,
) -> FormatResult<Option<MetadataValue>> {
    let scalar = attribute.dataspace.dims.is_empty();
    let mut values = match &attribute.datatype {
        DatatypeMessage::VarLenString { .. } => {
            variable_texts(attribute, headers)?.into_iter().map(MetadataValue::Text).collect()
        }
        datatype => elements(datatype, &attribute.data),
    };
    if scalar {
        return Ok(values.pop());
    }
    let texts = values.into_iter().map(|value| match value {
        MetadataValue::Text(text) => text,
        MetadataValue::Integer(number) => number.to_string(),
        MetadataValue::Float(number) => number.to_string(),
        MetadataValue::List(texts) => texts.concat(),
    });
    Ok(Some(MetadataValue::List(texts.collect())))
}

/// Elements of fixed size; none for a type that is not known.
fn elements(datatype: &DatatypeMessage, data: &[u8]) -> Vec<MetadataValue> {
    let size = (datatype.element_size() as usize).max(1);
    data.chunks_exact(size).filter_map(|element| fixed_size(datatype, element)).collect()
}

fn fixed_size(datatype: &DatatypeMessage, element: &[u8]) -> Option<MetadataValue> {
    match datatype {
        DatatypeMessage::FixedPoint { byte_order, signed, .. } => {
            let number = integer(&big_endian(element, *byte_order), *signed)?;
            // One that is larger than any with a sign keeps its digits.
            let is_large = !signed && number < 0;
            Some(if is_large {
                MetadataValue::Text(number.cast_unsigned().to_string())
            } else {
                MetadataValue::Integer(number)
            })
        }
        // Python's bool is an enumeration over one byte.
        DatatypeMessage::Enum { base, .. } => fixed_size(base, element),
        DatatypeMessage::FloatingPoint { byte_order, .. } => {
            let bytes = big_endian(element, *byte_order);
            let number = match *bytes {
                [_, _, _, _] => f32::from_be_bytes(bytes.try_into().ok()?).into(),
                _ => f64::from_be_bytes(bytes.try_into().ok()?),
            };
            Some(MetadataValue::Float(number))
        }
        DatatypeMessage::FixedString { padding, .. } => {
            let end = element.iter().position(|byte| *byte == 0).unwrap_or(element.len());
            let text = String::from_utf8_lossy(&element[..end]).into_owned();
            Some(MetadataValue::Text(if *padding == SPACE_PADDED {
                text.trim_end_matches(' ').into()
            } else {
                text
            }))
        }
        _ => None,
    }
}

/// Padding rule of a string type that is filled up with spaces.
const SPACE_PADDED: u8 = 2;

fn big_endian(element: &[u8], order: ByteOrder) -> Vec<u8> {
    match order {
        ByteOrder::BigEndian => element.to_vec(),
        _ => element.iter().rev().copied().collect(),
    }
}

/// The integer in at most eight bytes; `None` for a wider one.
fn integer(bytes: &[u8], signed: bool) -> Option<i64> {
    let negative = signed && bytes.first()? & 0x80 != 0;
    let start = if negative { -1 } else { 0 };
    (bytes.len() <= 8).then(|| bytes.iter().fold(start, |value: i64, byte| value << 8 | i64::from(*byte)))
}

fn variable_texts(attribute: &AttributeMessage, headers: &mut Headers) -> FormatResult<Vec<String>> {
    let size = vlen_reference_size(headers.context());
    attribute.data.chunks_exact(size).map(|reference| variable_text(reference, headers)).collect()
}

/// The text that `reference` points to in a collection of the global heap.
fn variable_text(reference: &[u8], headers: &mut Headers) -> FormatResult<String> {
    let context = *headers.context();
    let (length, address, index) = decode_vlen_reference(reference, &context)?;
    if length == 0 {
        return Ok(String::new());
    }
    let head = headers.read_block(address, COLLECTION_HEAD_BYTES)?;
    let block = headers.read_block(address, GlobalHeapCollection::decode_size(&head, &context)?)?;
    let (collection, _) = GlobalHeapCollection::decode(&block, &context)?;
    let object = u16::try_from(index).ok().and_then(|index| collection.get_object(index));
    let object = object.ok_or_else(|| FormatError::InvalidData(format!("heap has no object {index}")))?;
    let text = &object[..object.len().min(length as usize)];
    Ok(String::from_utf8_lossy(text).into_owned())
}

const COLLECTION_HEAD_BYTES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_sign_is_never_negative() {
        let read = |datatype: DatatypeMessage, number: u64| fixed_size(&datatype, &number.to_le_bytes());
        let large = 1_u64 << 63 | 5;
        assert_eq!(
            read(DatatypeMessage::u64_type(), large),
            Some(MetadataValue::Text("9223372036854775813".into()))
        );
        assert_eq!(read(DatatypeMessage::u64_type(), 7), Some(MetadataValue::Integer(7)));
        assert_eq!(read(DatatypeMessage::i64_type(), u64::MAX), Some(MetadataValue::Integer(-1)));
    }
}
