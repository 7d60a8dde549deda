//! Compares everything that a vector expects with what is computed.

use std::fmt::Debug;

use scope_runtime::call_stack::{
    CallArrays, Mode, NestingError, RegionCalls, UNKNOWN_LANE, build_call_arrays, build_call_stack,
};
use scope_runtime::pstats::{
    CallerOrder, Entry, Key, Keys, Pstats, PstatsOptions, Recursion, Sums, build_pstats_dict,
};
use serde_json::Value;

use crate::sha256::sha256;
use crate::vector::{ints, regions};

type Checked = Result<(), String>;

/// Checks one vector; the error says what differs.
pub(crate) fn check(vector: &Value) -> Checked {
    if vector["format"] != "scope-oracle-1" {
        return Err(format!("format {}", vector["format"]));
    }
    let regions = regions(vector);
    let regions: Vec<RegionCalls<'_>> = regions.iter().map(|region| region.calls()).collect();
    let expected = &vector["expected"];
    answer(&regions, Mode::Reference, expected).map_err(|what| format!("reference mode: {what}"))?;
    let correct = if vector["correct"].is_null() { expected } else { &vector["correct"] };
    answer(&regions, Mode::Default, correct).map_err(|what| format!("default mode: {what}"))?;
    if let Ok(calls) = build_call_arrays(&regions, Mode::Default) {
        better(&calls, &correct["pstats"], &vector["better"]["pstats"])?;
    }
    Ok(())
}

/// Arrays, totals, split, paths and the four profiles, floats to the bit; or the error.
fn answer(regions: &[RegionCalls<'_>], mode: Mode, expected: &Value) -> Checked {
    let built = build_call_arrays(regions, mode);
    let calls = match (built, expected["error"]["message"].as_str()) {
        (Ok(calls), None) => calls,
        (Err(error), Some(message)) => return same_error(&error, message),
        (Ok(_), Some(message)) => return Err(format!("no error, expected: {message}")),
        (Err(error), None) => return Err(format!("unexpected error: {error}")),
    };
    arrays(&calls, &expected["calls"])?;
    exclusive_totals(&calls, &expected["exclusive_totals_ns"])?;
    if !expected["split_by_lane"].is_null() {
        split(&calls, &expected["split_by_lane"])?;
    }
    if !expected["call_paths"].is_null() {
        let paths: Vec<String> = build_call_stack(&calls, 0.0).map(|call| call.call_path()).collect();
        equal("call_paths", &paths, &texts(&expected["call_paths"]))?;
    }
    for (name, variant) in expected["pstats"].as_object().ok_or("no pstats")? {
        pstats(&calls, variant, &PstatsOptions::reference(), 0.0)
            .map_err(|what| format!("pstats {name}: {what}"))?;
    }
    Ok(())
}

fn same_error(error: &NestingError, message: &str) -> Checked {
    let fits = match error {
        NestingError::EndsBeforeStart(_) => message == "a recorded call ends before it starts",
        NestingError::Overlap { outer, inner } => {
            let call = |call: &scope_runtime::call_stack::CallAt| {
                let name = python_repr(&call.region);
                format!("{name} call {} [{}, {}] ns", call.call_index, call.start_ns, call.end_ns)
            };
            message.contains(&format!(": {} starts inside {} but ends", call(inner), call(outer)))
        }
        NestingError::ReferenceOverflow => message == "recorded calls are not properly nested",
        _ => false,
    };
    if fits { Ok(()) } else { Err(format!("error '{error}', expected '{message}'")) }
}

fn python_repr(name: &str) -> String {
    let quote = if name.contains('\'') && !name.contains('"') { '"' } else { '\'' };
    let mut text = String::from(quote);
    for letter in name.chars() {
        match letter {
            '\n' => text += "\\n",
            '\r' => text += "\\r",
            '\t' => text += "\\t",
            '\\' => text += "\\\\",
            letter if letter == quote => text.extend(['\\', letter]),
            letter => text.push(letter),
        }
    }
    text.push(quote);
    if text.is_empty() { "\n".to_owned() } else { text }
}

fn equal<T: PartialEq + Debug>(what: &str, found: &[T], expected: &[T]) -> Checked {
    if found.len() != expected.len() {
        return Err(format!("{what}: {} values, expected {}", found.len(), expected.len()));
    }
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        Some(at) => Err(format!("{what}[{at}]: {:?}, expected {:?}", found[at], expected[at])),
        None => Ok(()),
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().expect("a list").iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn wide(column: &[u32]) -> Vec<i64> {
    column.iter().map(|value| (*value).into()).collect()
}

/// Parents with -1 at the top.
fn parents(calls: &CallArrays) -> Vec<i64> {
    (0..calls.len()).map(|id| calls.parent_of(id).map_or(-1, |parent| parent as i64)).collect()
}

fn region_indexes(calls: &CallArrays) -> Vec<i64> {
    calls.region_index.iter().map(|region| region as i64).collect()
}

fn lanes(calls: &CallArrays) -> Vec<i64> {
    (0..calls.len()).filter_map(|id| calls.lane(id)).collect()
}

fn arrays(calls: &CallArrays, expected: &Value) -> Checked {
    equal("names", calls.names(), &texts(&expected["names"]))?;
    let files = expected["source_files"].as_array().expect("a list").iter();
    let files: Vec<Option<String>> = files.map(|file| file.as_str().map(str::to_owned)).collect();
    equal("source_files", calls.source_files(), &files)?;
    let lines: Vec<Option<i64>> =
        expected["source_lines"].as_array().expect("a list").iter().map(Value::as_i64).collect();
    equal("source_lines", calls.source_lines(), &lines)?;
    let columns = [
        ("region_index", region_indexes(calls)),
        ("call_index", wide(&calls.call_index)),
        ("start_ns", calls.start_ns.clone()),
        ("end_ns", calls.end_ns.clone()),
        ("depth", wide(&calls.depth)),
        ("parent", parents(calls)),
        ("exclusive_ns", calls.exclusive_ns.clone()),
        ("lane", lanes(calls)),
    ];
    columns.iter().try_for_each(|(name, found)| equal(name, found, &ints(&expected[*name])))
}

fn exclusive_totals(calls: &CallArrays, expected: &Value) -> Checked {
    let Some(expected) = expected.as_object() else { return Ok(()) };
    if expected.len() != calls.names().len() {
        return Err(format!("exclusive_totals_ns: {} regions", calls.names().len()));
    }
    for (name, total) in calls.names().iter().zip(calls.exclusive_totals_ns()) {
        let expected = expected.get(name).and_then(Value::as_i64);
        if expected != Some(total) {
            return Err(format!("exclusive_totals_ns of {name}: {total}, expected {expected:?}"));
        }
    }
    Ok(())
}

fn split(calls: &CallArrays, expected: &Value) -> Checked {
    let parts = calls.split_by_lane();
    let expected = expected.as_array().ok_or("split_by_lane is no list")?;
    let numbers: Vec<i64> = parts.iter().map(|(lane, _)| *lane).collect();
    let expected_numbers: Vec<i64> = expected.iter().filter_map(|part| part["lane"].as_i64()).collect();
    equal("split_by_lane", &numbers, &expected_numbers)?;
    for ((lane, part), expected) in parts.iter().zip(expected) {
        let columns = [
            ("region_index", region_indexes(part)),
            ("call_index", wide(&part.call_index)),
            ("depth", wide(&part.depth)),
            ("parent", parents(part)),
            ("exclusive_ns", part.exclusive_ns.clone()),
            ("lane_column", lanes(part)),
        ];
        for (name, found) in columns {
            equal(name, &found, &ints(&expected[name])).map_err(|what| format!("lane {lane}: {what}"))?;
        }
    }
    let merged = CallArrays::merge_lanes(&parts);
    let single = numbers == [UNKNOWN_LANE] && calls.lane.is_none();
    if !calls.is_empty() && !single && merged.as_ref() != Some(calls) {
        return Err("merge_lanes does not undo split_by_lane".to_owned());
    }
    Ok(())
}

/// Checks the profiles of default mode. `better` has those that differ from the reference's.
fn better(calls: &CallArrays, expected: &Value, better: &Value) -> Checked {
    let to_the_bit = PstatsOptions { recursion: Recursion::Ancestors, ..PstatsOptions::reference() };
    let exact = PstatsOptions { sums: Sums::Exact, ..to_the_bit.clone() };
    let Some(variants) = expected.as_object() else { return Ok(()) };
    for (name, variant) in variants {
        let variant = if better[name].is_null() { variant } else { &better[name] };
        for (options, tolerance) in [(&to_the_bit, 0.0), (&exact, 1e-12)] {
            pstats(calls, variant, options, tolerance)
                .map_err(|what| format!("better pstats {name}, {:?} sums: {what}", options.sums))?;
        }
    }
    Ok(())
}

fn pstats(calls: &CallArrays, expected: &Value, options: &PstatsOptions, tolerance: f64) -> Checked {
    let by_path = expected["call_paths"].as_bool().ok_or("no call_paths")?;
    let profile = build_pstats_dict(calls, expected["root_name"].as_str(), by_path, options);
    if Some(profile.len() as u64) != expected["entry_count"].as_u64() {
        return Err(format!("{} entries, expected {}", profile.len(), expected["entry_count"]));
    }
    if let Some(stats) = expected["stats"].as_array() {
        for (found, expected) in profile.entries().iter().zip(stats) {
            entry(found, expected, tolerance).map_err(|what| format!("entry {:?}: {what}", found.key))?;
        }
    }
    // By path, the two kinds of recursion give the same text; it is long, so it is digested once.
    if tolerance == 0.0 && (!by_path || options.recursion == Recursion::Reference) {
        let digest = sha256(canonical(&profile).as_bytes());
        if expected["sha256"] != digest.as_str() {
            return Err(format!("sha256 {digest}, expected {}", expected["sha256"]));
        }
    }
    let order = PstatsOptions { callers: CallerOrder::Pstats, keys: Keys::Unique, ..options.clone() };
    let unique = build_pstats_dict(calls, expected["root_name"].as_str(), by_path, &order);
    if unique.len() < profile.len() {
        return Err(format!("{} entries with unique keys", unique.len()));
    }
    Ok(())
}

fn key(value: &Value) -> Key {
    let text = |at: usize| value[at].as_str().expect("text").into();
    Key { file: text(0), line: value[1].as_i64().expect("a line"), name: text(2) }
}

fn entry(found: &Entry, expected: &Value, tolerance: f64) -> Checked {
    if found.key != key(&expected["key"]) {
        return Err(format!("expected {}", expected["key"]));
    }
    let expected_numbers = [&expected["cc"], &expected["nc"], &expected["tt"], &expected["ct"]];
    numbers([found.cc, found.nc], [found.tt_s, found.ct_s], expected_numbers, tolerance)?;
    let expected = expected["callers"].as_array().ok_or("no callers")?;
    if expected.len() != found.callers.len() {
        return Err(format!("{} callers, expected {}", found.callers.len(), expected.len()));
    }
    for ((caller, found), expected) in found.callers.iter().zip(expected) {
        if *caller != key(&expected[0]) {
            return Err(format!("caller {caller:?}, expected {}", expected[0]));
        }
        let expected = [0, 1, 2, 3].map(|at| &expected[1][at]);
        numbers([found.nc, found.cc], [found.tt_s, found.ct_s], expected, tolerance)?;
    }
    Ok(())
}

fn numbers(counts: [i64; 2], times: [f64; 2], expected: [&Value; 4], tolerance: f64) -> Checked {
    let same_counts = counts.into_iter().zip(expected).all(|(count, value)| value.as_i64() == Some(count));
    let same_times = times.into_iter().zip(&expected[2..]).all(|(time, value)| {
        let value = value.as_f64().expect("a time");
        time.to_bits() == value.to_bits() || (time - value).abs() <= tolerance * value.abs()
    });
    if same_counts && same_times {
        return Ok(());
    }
    Err(format!("{counts:?} {times:?}, expected {expected:?}"))
}

/// The text that the digest is of: entries and callers by key, times as the bits of the floats.
fn canonical(profile: &Pstats) -> String {
    let line = |mark: &str, key: &Key, counts: [i64; 2], times: [f64; 2]| {
        let [a, b] = counts;
        let [tt, ct] = times.map(f64::to_bits);
        format!("{mark}{}\t{}\t{}\t{a}\t{b}\t{tt:016x}\t{ct:016x}\n", key.file, key.line, key.name)
    };
    let mut entries: Vec<&Entry> = profile.entries().iter().collect();
    entries.sort_by_key(|entry| &entry.key);
    let mut text = String::new();
    for entry in entries {
        text += &line("", &entry.key, [entry.cc, entry.nc], [entry.tt_s, entry.ct_s]);
        let mut callers = entry.callers.clone();
        callers.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (key, caller) in callers {
            text += &line("<\t", &key, [caller.nc, caller.cc], [caller.tt_s, caller.ct_s]);
        }
    }
    if text.is_empty() { "\n".to_owned() } else { text }
}
