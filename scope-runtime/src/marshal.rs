//! Python's `marshal` format, as far as profiles need it: a writer and a reader.
//!
//! Byte layout as in CPython's `Python/marshal.c`, versions 0 to 4. The reader takes any file that
//! `cProfile` or `marshal.dump` wrote (references included) and treats its bytes as hostile: depth,
//! lengths and references are checked before anything is reserved.

use std::fmt;
use std::io::{self, Write};
use std::rc::Rc;

/// A value as marshal stores it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string; lone surrogates are read as U+FFFD.
    Str(Rc<str>),
    /// Bytes.
    Bytes(Rc<[u8]>),
    /// A tuple or list.
    Sequence(Rc<[Value]>),
    /// A dict in the order of the file.
    Dict(Rc<[(Value, Value)]>),
}

/// Why bytes are not a marshalled value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarshalError {
    /// Offset of the byte at fault.
    pub at: usize,
    what: &'static str,
}

impl fmt::Display for MarshalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "marshalled data has {} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for MarshalError {}

/// Writes values one after the other; a dict is [`begin_dict`](Self::begin_dict), then keys and
/// values in turn, then [`end_dict`](Self::end_dict).
#[derive(Debug)]
pub struct Writer<W: Write>(W);

impl<W: Write> Writer<W> {
    /// Writes to `to`, which should be buffered.
    pub fn new(to: W) -> Writer<W> {
        Writer(to)
    }

    /// Begins a dict.
    ///
    /// # Errors
    ///
    /// Those of the writer below, as for all that follow.
    pub fn begin_dict(&mut self) -> io::Result<()> {
        self.0.write_all(b"{")
    }

    /// Ends a dict.
    ///
    /// # Errors
    ///
    /// Those of the writer below.
    pub fn end_dict(&mut self) -> io::Result<()> {
        self.0.write_all(b"0")
    }

    /// Begins a tuple; its `len` members follow.
    ///
    /// # Errors
    ///
    /// Those of the writer below.
    pub fn begin_tuple(&mut self, len: u8) -> io::Result<()> {
        self.0.write_all(&[b')', len])
    }

    /// An integer: four bytes when it fits, else digits of 15 bits.
    ///
    /// # Errors
    ///
    /// Those of the writer below.
    pub fn int(&mut self, value: i64) -> io::Result<()> {
        if let Ok(value) = i32::try_from(value) {
            self.0.write_all(b"i")?;
            return self.0.write_all(&value.to_le_bytes());
        }
        let size = value.unsigned_abs();
        let digits = (u64::BITS - size.leading_zeros()).div_ceil(15);
        let signed = if value < 0 { -(digits as i32) } else { digits as i32 };
        self.0.write_all(b"l")?;
        self.0.write_all(&signed.to_le_bytes())?;
        (0..digits)
            .try_for_each(|digit| self.0.write_all(&((size >> (15 * digit)) as u16 & 0x7fff).to_le_bytes()))
    }

    /// A float, bit for bit.
    ///
    /// # Errors
    ///
    /// Those of the writer below.
    pub fn float(&mut self, value: f64) -> io::Result<()> {
        self.0.write_all(b"g")?;
        self.0.write_all(&value.to_le_bytes())
    }

    /// A string.
    ///
    /// # Errors
    ///
    /// Those of the writer below, and `InvalidInput` for 2^31 bytes or more.
    pub fn string(&mut self, value: &str) -> io::Result<()> {
        let len = i32::try_from(value.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a string of 2^31 bytes or more"))?;
        self.0.write_all(b"u")?;
        self.0.write_all(&len.to_le_bytes())?;
        self.0.write_all(value.as_bytes())
    }
}

/// Reads one value; bytes after it are not looked at, as in Python.
///
/// # Errors
///
/// Bytes that end too early, types that profiles do not have (code, sets, complex numbers,
/// integers beyond 64 bits), nesting deeper than 100, references to nothing.
///
/// # Examples
/// ```
/// use scope_runtime::marshal::{Value, Writer, read};
///
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes);
/// writer.begin_tuple(2)?;
/// writer.int(7)?;
/// writer.string("seven")?;
/// assert_eq!(read(&bytes)?, Value::Sequence([Value::Int(7), Value::Str("seven".into())].into()));
/// assert!(read(&bytes[..3]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(bytes: &[u8]) -> Result<Value, MarshalError> {
    Reader { bytes, at: 0, seen: Vec::new() }.value(100)?.ok_or(MarshalError { at: 0, what: "no value" })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Values that later references may name; `None` while one is being read.
    seen: Vec<Option<Value>>,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, what: &'static str) -> Result<T, MarshalError> {
        Err(MarshalError { at: self.at, what })
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], MarshalError> {
        let Some(taken) = self.bytes[self.at..].get(..len) else { return self.fail("an early end") };
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MarshalError> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("as many bytes as asked for"))
    }

    fn i32(&mut self) -> Result<i32, MarshalError> {
        self.array().map(i32::from_le_bytes)
    }

    fn len(&mut self) -> Result<usize, MarshalError> {
        let len = self.i32()?;
        usize::try_from(len).or_else(|_| self.fail("a negative length"))
    }

    /// The next value; `None` for the mark that ends a dict.
    fn value(&mut self, depth_left: usize) -> Result<Option<Value>, MarshalError> {
        if depth_left == 0 {
            return self.fail("values nested too deeply");
        }
        let [code] = self.array()?;
        let slot = (code & 0x80 != 0).then_some(self.seen.len());
        if slot.is_some() {
            self.seen.push(None);
        }
        let value = match code & 0x7f {
            b'0' => return Ok(None),
            b'r' => self.reference()?,
            b'N' => Value::None,
            b'T' => Value::Bool(true),
            b'F' => Value::Bool(false),
            b'i' => Value::Int(self.i32()?.into()),
            b'I' => Value::Int(i64::from_le_bytes(self.array()?)),
            b'l' => self.long()?,
            b'g' => Value::Float(f64::from_le_bytes(self.array()?)),
            b'f' => self.float_text()?,
            b's' => {
                let len = self.len()?;
                Value::Bytes(self.take(len)?.into())
            }
            text @ (b'z' | b'Z' | b'a' | b'A' | b'u' | b't') => self.string(text)?,
            b')' => {
                let [len] = self.array()?;
                self.sequence(len.into(), depth_left)?
            }
            b'(' | b'[' => {
                let len = self.len()?;
                self.sequence(len, depth_left)?
            }
            b'{' => self.dict(depth_left)?,
            _ => return self.fail("a type that profiles do not have"),
        };
        if let Some(slot) = slot {
            self.seen[slot] = Some(value.clone());
        }
        Ok(Some(value))
    }

    fn some_value(&mut self, depth_left: usize) -> Result<Value, MarshalError> {
        match self.value(depth_left)? {
            Some(value) => Ok(value),
            None => self.fail("an end in place of a value"),
        }
    }

    fn reference(&mut self) -> Result<Value, MarshalError> {
        let number = self.len()?;
        match self.seen.get(number) {
            Some(Some(value)) => Ok(value.clone()),
            _ => self.fail("a reference to nothing"),
        }
    }

    fn long(&mut self) -> Result<Value, MarshalError> {
        let signed = self.i32()?;
        let mut size = 0_u128;
        if signed.unsigned_abs() > 5 {
            return self.fail("an integer beyond 64 bits");
        }
        for digit in 0..signed.unsigned_abs() {
            let value = u16::from_le_bytes(self.array()?);
            if value > 0x7fff {
                return self.fail("a digit out of range");
            }
            size |= u128::from(value) << (15 * digit);
        }
        let size = i128::try_from(size).unwrap_or(i128::MAX);
        let value = if signed < 0 { -size } else { size };
        i64::try_from(value).map(Value::Int).or_else(|_| self.fail("an integer beyond 64 bits"))
    }

    fn float_text(&mut self) -> Result<Value, MarshalError> {
        let [len] = self.array()?;
        let text = std::str::from_utf8(self.take(len.into())?).ok();
        match text.and_then(|text| text.parse().ok()) {
            Some(float) => Ok(Value::Float(float)),
            None => self.fail("a float that is no number"),
        }
    }

    fn string(&mut self, code: u8) -> Result<Value, MarshalError> {
        let len = if matches!(code, b'z' | b'Z') { self.array::<1>()?[0].into() } else { self.len()? };
        let bytes = self.take(len)?;
        let text: Rc<str> = match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            // `a` is ASCII by contract and Latin-1 in fact; lone surrogates are not UTF-8.
            Err(_) if matches!(code, b'u' | b't') => String::from_utf8_lossy(bytes).into(),
            Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
        };
        Ok(Value::Str(text))
    }

    fn sequence(&mut self, len: usize, depth_left: usize) -> Result<Value, MarshalError> {
        // Each member takes a byte at least, so the length of the rest bounds what is reserved.
        if len > self.bytes.len() - self.at {
            return self.fail("a length beyond the end");
        }
        let members: Result<Vec<_>, _> = (0..len).map(|_| self.some_value(depth_left - 1)).collect();
        Ok(Value::Sequence(members?.into()))
    }

    fn dict(&mut self, depth_left: usize) -> Result<Value, MarshalError> {
        let mut entries = Vec::new();
        while let Some(key) = self.value(depth_left - 1)? {
            entries.push((key, self.some_value(depth_left - 1)?));
        }
        Ok(Value::Dict(entries.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Writer<&mut Vec<u8>>) -> io::Result<()>) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut Writer::new(&mut bytes)).unwrap();
        bytes
    }

    #[test]
    fn integers_come_back() {
        for value in [0, -1, 1 << 31, (1 << 31) - 1, -(1 << 31) - 1, 1 << 62, i64::MAX, i64::MIN] {
            assert_eq!(read(&written(|to| to.int(value))), Ok(Value::Int(value)));
        }
    }

    #[test]
    fn references_are_followed() {
        // ("ab", "ab") with the second by reference.
        let bytes = b"\xa9\x02\xda\x02abr\x01\x00\x00\x00";
        let text = Value::Str("ab".into());
        assert_eq!(read(bytes), Ok(Value::Sequence([text.clone(), text].into())));
    }

    #[test]
    fn hostile_bytes_are_errors() {
        let deep = [b')', 1].repeat(100_000);
        let cases: [&[u8]; 8] = [
            b"",
            b"(\xff\xff\xff\x7f",
            b"u\xff\xff\xff\x7fa",
            b"u\xff\xff\xff\xff",
            b"r\x00\x00\x00\x00",
            b"\xa9\x01r\x00\x00\x00\x00",
            b"l\xff\xff\xff\x7f",
            &deep,
        ];
        for bytes in cases {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
    }
}
