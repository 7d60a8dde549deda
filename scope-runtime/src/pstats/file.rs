//! The `.prof` file: a marshalled dict of functions.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, BufWriter, Read, Write};
use std::sync::Arc;

use super::dict::{Caller, Entry, Key, Pstats};
use crate::marshal::{self, MarshalError, Value, Writer};

/// Writes a `.prof` file as `cProfile` would: a dict of (file, line, name) to (cc, nc, tt, ct,
/// callers), callers a dict of the same keys to (nc, cc, tt, ct).
///
/// `to` needs no buffer of its own. Python's `pstats` refuses a file without entries.
///
/// # Errors
///
/// Those of `to`, and `InvalidInput` for a name of 2^31 bytes or more; what was written by then
/// stays.
pub fn write_prof(profile: &Pstats, to: impl Write) -> io::Result<()> {
    let mut buffer = BufWriter::with_capacity(1 << 16, to);
    let mut writer = Writer::new(&mut buffer);
    writer.begin_dict()?;
    for entry in profile.entries() {
        write_key(&mut writer, &entry.key)?;
        writer.begin_tuple(5)?;
        write_numbers(&mut writer, [entry.cc, entry.nc], [entry.tt_s, entry.ct_s])?;
        writer.begin_dict()?;
        for (key, caller) in &entry.callers {
            write_key(&mut writer, key)?;
            writer.begin_tuple(4)?;
            write_numbers(&mut writer, [caller.nc, caller.cc], [caller.tt_s, caller.ct_s])?;
        }
        writer.end_dict()?;
    }
    writer.end_dict()?;
    buffer.flush()
}

fn write_key(writer: &mut Writer<impl Write>, key: &Key) -> io::Result<()> {
    writer.begin_tuple(3)?;
    writer.string(&key.file)?;
    writer.int(key.line)?;
    writer.string(&key.name)
}

fn write_numbers(writer: &mut Writer<impl Write>, counts: [i64; 2], times: [f64; 2]) -> io::Result<()> {
    counts.into_iter().try_for_each(|count| writer.int(count))?;
    times.into_iter().try_for_each(|time| writer.float(time))
}

/// Why a `.prof` file could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProfError {
    /// Reading failed.
    Io(io::Error),
    /// The bytes are no marshalled value.
    Marshal(MarshalError),
    /// The value is not the dict of a profile.
    Shape(&'static str),
}

impl fmt::Display for ProfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfError::Io(error) => write!(f, "failed to read a .prof file: {error}"),
            ProfError::Marshal(error) => write!(f, "not a .prof file: {error}"),
            ProfError::Shape(what) => write!(f, "not a .prof file: {what}"),
        }
    }
}

impl std::error::Error for ProfError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ProfError::Io(error) => Some(error),
            ProfError::Marshal(error) => Some(error),
            ProfError::Shape(_) => None,
        }
    }
}

/// Reads a `.prof` file, whoever wrote it.
///
/// A caller that is one number, as the pure Python profiler writes it, is read as so many calls
/// without times.
///
/// # Errors
///
/// Those of `from`, bytes that are no marshalled value, and a value that is not a dict of functions.
pub fn load_prof(mut from: impl Read) -> Result<Pstats, ProfError> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).map_err(ProfError::Io)?;
    let value = marshal::read(&bytes).map_err(ProfError::Marshal)?;
    let mut names = Names::default();
    let mut profile = Pstats::default();
    for (key, value) in dict(&value)? {
        let key = names.key(key)?;
        let [cc, nc, tt_s, ct_s, callers] = members(value)? else {
            return Err(ProfError::Shape("a function without five numbers"));
        };
        let callers = dict(callers)?.iter().map(|(key, value)| Ok((names.key(key)?, caller(value)?)));
        let callers = distinct(callers.collect::<Result<_, ProfError>>()?);
        profile.insert(Entry {
            key,
            cc: int(cc)?,
            nc: int(nc)?,
            tt_s: float(tt_s)?,
            ct_s: float(ct_s)?,
            callers,
        });
    }
    Ok(profile)
}

/// The last of equal keys, as a Python dict keeps it. Files have none; hostile ones may.
fn distinct(mut callers: Vec<(Key, Caller)>) -> Vec<(Key, Caller)> {
    let mut seen = HashSet::new();
    if !callers.iter().all(|(key, _)| seen.insert(key.clone())) {
        seen.clear();
        callers.reverse();
        callers.retain(|(key, _)| seen.insert(key.clone()));
        callers.reverse();
    }
    callers
}

/// Strings seen so far, so that equal ones are kept once.
#[derive(Default)]
struct Names(HashSet<Arc<str>>);

impl Names {
    fn key(&mut self, value: &Value) -> Result<Key, ProfError> {
        let [Value::Str(file), line, Value::Str(name)] = members(value)? else {
            return Err(ProfError::Shape("a key other than (file, line, name)"));
        };
        Ok(Key { file: self.shared(file), line: int(line)?, name: self.shared(name) })
    }

    fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.0.insert(Arc::clone(&text));
        text
    }
}

fn dict(value: &Value) -> Result<&[(Value, Value)], ProfError> {
    match value {
        Value::Dict(entries) => Ok(entries),
        _ => Err(ProfError::Shape("something other than a dict")),
    }
}

fn members(value: &Value) -> Result<&[Value], ProfError> {
    match value {
        Value::Sequence(members) => Ok(members),
        _ => Err(ProfError::Shape("something other than a tuple")),
    }
}

fn caller(value: &Value) -> Result<Caller, ProfError> {
    if let Value::Int(nc) = *value {
        return Ok(Caller { nc, cc: nc, ..Caller::default() });
    }
    let [nc, cc, tt_s, ct_s] = members(value)? else {
        return Err(ProfError::Shape("a caller without four numbers"));
    };
    Ok(Caller { nc: int(nc)?, cc: int(cc)?, tt_s: float(tt_s)?, ct_s: float(ct_s)? })
}

fn int(value: &Value) -> Result<i64, ProfError> {
    match value {
        Value::Int(int) => Ok(*int),
        Value::Bool(bool) => Ok((*bool).into()),
        _ => Err(ProfError::Shape("something other than an integer")),
    }
}

fn float(value: &Value) -> Result<f64, ProfError> {
    match value {
        Value::Float(float) => Ok(*float),
        Value::Int(int) => Ok(*int as f64),
        _ => Err(ProfError::Shape("something other than a number")),
    }
}
