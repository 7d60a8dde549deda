//! Calls that are read block by block are those that are read as a whole, and nest alike.

use std::path::{Path, PathBuf};

use scope_runtime::call_stack::stored::{
    CallColumn, Options, Starts, StoredCalls, StoredRegion, nest_stored_calls,
};
use scope_runtime::call_stack::{BadLanes, RegionCalls, build_good_lanes};
use scope_runtime::totals::PathTree;

use super::calls::FileCalls;
use super::chunks::Chunks;
use super::headers::Headers;
use super::source::Source;
use super::{Error, read, read_totals, write};
use crate::export::{By, LeftOut, ProfOptions, Run, Selection, View, statistics, to_pstats};
use crate::merged::{Events, MergedProfile, Row};

fn with_small(path: &Path, small: usize) -> Result<FileCalls<'_>, Error> {
    FileCalls::with_small(Source::open(path)?, small)
}

/// The files of the Python package, of schema 2 and 3, which have calls.
fn reference_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let has_calls = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.ends_with(".h5") && name != "aggregate.h5" && name != "schema_1.h5"
    };
    let files: Vec<_> = files.filter(has_calls).collect();
    assert!(files.len() >= 14, "{files:?}");
    files
}

/// Two ranks of some threads, the calls of a region thread by thread; every other one in no order.
fn written(folder: &Path, calls: usize) -> PathBuf {
    let mut profile =
        MergedProfile { names: ["outer", "inner"].map(String::from).into(), ..Default::default() };
    let mut events = Events { thread_ids: Some(Vec::new()), ..Events::default() };
    for (rank, region) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let first = events.start_ns.len();
        for call in 0..calls as i64 {
            let (thread, at) = (call * 3 / calls as i64, call % (calls as i64 / 3 + 1));
            let at = if rank == 1 { at * 7919 % 1_000_003 } else { at };
            events.start_ns.push(100 * at + thread + 10 * i64::from(region));
            events.duration_ns.push(if region == 0 { 90 } else { call % 7 });
            events.thread_ids.as_mut().unwrap().push(thread);
        }
        profile.rows.push(Row { region, rank, events: first..events.start_ns.len(), ..Row::default() });
    }
    let path = folder.join("profile.h5");
    write(&MergedProfile { events, ..profile }, &path).unwrap();
    path
}

fn column(events: &Events, column: CallColumn) -> Option<&Vec<i64>> {
    match column {
        CallColumn::Start => Some(&events.start_ns),
        CallColumn::Duration => Some(&events.duration_ns),
        CallColumn::Thread => events.thread_ids.as_ref(),
        CallColumn::Task => events.task_ids.as_ref(),
        CallColumn::Id => events.call_ids.as_ref(),
        CallColumn::Parent => events.parent_ids.as_ref(),
    }
}

const COLUMNS: [CallColumn; 6] = [
    CallColumn::Start,
    CallColumn::Duration,
    CallColumn::Thread,
    CallColumn::Task,
    CallColumn::Id,
    CallColumn::Parent,
];

/// Any part of any column, also across the borders of chunks.
fn check_parts(profile: &MergedProfile, calls: &mut FileCalls<'_>) {
    for wanted in COLUMNS {
        let expected = column(&profile.events, wanted);
        assert_eq!(calls.has(wanted), expected.is_some(), "{wanted:?}");
        let Some(expected) = expected else { continue };
        for row in &profile.rows {
            for (cut_front, cut_back) in [(0, 0), (1, 0), (0, 1), (2, 1)] {
                let part = row.events.start + cut_front..row.events.end.saturating_sub(cut_back);
                if part.start >= part.end {
                    continue;
                }
                let mut values = vec![7];
                calls.read(wanted, part.clone(), &mut values).unwrap();
                let mut expected = expected[part.clone()].to_vec();
                if wanted == CallColumn::Start && calls.has_differences() {
                    let before =
                        |at: usize| if at == row.events.start { 0 } else { profile.events.start_ns[at - 1] };
                    expected.iter_mut().zip(part).for_each(|(start, at)| *start -= before(at));
                }
                assert_eq!(values, expected, "{wanted:?} {cut_front} {cut_back}");
            }
        }
    }
}

/// The paths of each rank, in blocks of the least size and through a file.
fn check_nesting(profile: &MergedProfile, calls: &mut FileCalls<'_>) {
    for rank in 0..profile.ranks() {
        let rows: Vec<_> = profile.rows.iter().filter(|row| row.rank == rank).collect();
        let ends: Vec<Vec<i64>> = rows
            .iter()
            .map(|row| {
                row.events
                    .clone()
                    .map(|at| profile.events.start_ns[at] + profile.events.duration_ns[at])
                    .collect()
            })
            .collect();
        let in_memory = rows.iter().zip(&ends).map(|(row, ends)| {
            let of = |wanted| column(&profile.events, wanted).map(|values| &values[row.events.clone()]);
            RegionCalls {
                thread_ids: of(CallColumn::Thread),
                task_ids: of(CallColumn::Task),
                call_ids: of(CallColumn::Id),
                parent_ids: of(CallColumn::Parent),
                ..RegionCalls::new("region", &profile.events.start_ns[row.events.clone()], ends)
            }
        });
        let in_memory: Vec<_> = in_memory.collect();
        let expected = build_good_lanes(&in_memory, BadLanes::Drop).unwrap();
        let paths = PathTree::from_calls(&expected.calls);
        let starts: Vec<_> =
            rows.iter().map(|row| Starts::find(calls, row.events.clone()).unwrap()).collect();
        let regions = rows.iter().zip(&starts);
        let regions: Vec<_> = regions
            .map(|(row, starts)| StoredRegion {
                name: "region",
                calls: row.events.clone(),
                starts,
                is_hidden: false,
            })
            .collect();
        for memory in [96 << 20, 1 << 16] {
            let options = Options { memory, ..Options::default() };
            let nested = nest_stored_calls(calls, &regions, &options, &mut ()).unwrap();
            assert_eq!(nested.paths.nodes(), paths.nodes());
            assert_eq!(nested.errors, expected.errors);
        }
    }
}

#[test]
fn calls_of_every_file_of_the_reference_are_read_in_blocks() {
    for path in reference_files() {
        let profile = read(&path).unwrap();
        for small in [0, 1 << 20] {
            let mut calls = with_small(&path, small).unwrap();
            // Chunks of 128 entries are found one by one.
            let in_chunks = small == 0 && (path.ends_with("gzip.h5") || path.ends_with("lzf.h5"));
            assert_eq!(calls.block() == 128, in_chunks);
            check_parts(&profile, &mut calls);
            check_nesting(&profile, &mut calls);
        }
    }
}

#[test]
fn calls_of_our_own_files_are_read_in_blocks() {
    let folder = tempfile::tempdir().unwrap();
    // The second is compressed, in several chunks.
    for count in [50, 60_000] {
        let path = written(folder.path(), count);
        let profile = read(&path).unwrap();
        let mut calls = with_small(&path, 0).unwrap();
        check_parts(&profile, &mut calls);
        check_nesting(&profile, &mut calls);
    }
}

/// One message that names file and dataset, as for a file that is read as a whole.
#[test]
fn a_damaged_chunk_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.h5");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/gzip.h5");
    let mut bytes = std::fs::read(source).unwrap();
    // Every stream of zlib begins with this, for the levels that are in use.
    let begins = |at: &usize| bytes[*at] == 0x78 && [0x01, 0x5e, 0x9c, 0xda].contains(&bytes[at + 1]);
    let streams: Vec<usize> = (0..bytes.len() - 64).filter(begins).collect();
    streams.iter().for_each(|at| bytes[at + 2..at + 20].fill(0xff));
    std::fs::write(&path, bytes).unwrap();
    let mut calls = with_small(&path, 0).unwrap();
    for (column, name) in [(CallColumn::Start, "start_deltas"), (CallColumn::Duration, "durations")] {
        let error = calls.read(column, 0..200, &mut Vec::new()).unwrap_err().to_string();
        let begin = format!("failed to read events/{name} of `{}`: ", path.display());
        assert!(error.starts_with(&begin) && error.contains("damaged or truncated"), "{error}");
    }
    let profile = read_totals(&path).unwrap();
    let error = statistics(&profile, &Selection::default(), By::Path, &mut LeftOut::default())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("failed to read events/start_deltas of `"), "{error}");
}

/// Only its level says how deep a tree is, so nodes that share what is below them make it as large as one
/// likes.
#[test]
fn a_tree_that_shares_its_nodes_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.h5");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/gzip.h5");
    let mut bytes = std::fs::read(source).unwrap();
    // Layouts of chunks in one dimension, and the address of their trees.
    let layouts = (0..bytes.len() - 11).filter(|at| bytes[*at..].starts_with(&[3, 2, 2]));
    let address = |at: usize| u64::from_le_bytes(bytes[at + 3..at + 11].try_into().unwrap());
    let is_tree = |at: u64| bytes.get(at as usize..).is_some_and(|node| node.starts_with(b"TREE\x01"));
    let trees: Vec<_> = layouts.map(|at| (at, address(at))).filter(|tree| is_tree(tree.1)).collect();
    assert!(trees.len() >= 2, "{trees:?}");
    for (layout, leaf) in trees {
        let mut below = leaf;
        for level in 1..=9 {
            let node = bytes.len() as u64;
            let key = [128_u64, 0, 0].map(u64::to_le_bytes).concat();
            bytes.extend([&b"TREE\x01"[..], &[level, 2, 0], &[0xff; 16]].concat());
            for _ in 0..2 {
                bytes.extend([&key[..], &below.to_le_bytes()].concat());
            }
            bytes.extend(&key);
            below = node;
        }
        bytes[layout + 3..layout + 11].copy_from_slice(&below.to_le_bytes());
    }
    std::fs::write(&path, bytes).unwrap();
    let in_blocks = |small| ("events/start_deltas", with_small(&path, small).err());
    for (object, error) in [in_blocks(0), in_blocks(1 << 20), ("region_table/names", read(&path).err())] {
        let error = error.unwrap().to_string();
        let begin = format!("failed to read {object} of `{}`: ", path.display());
        assert!(error.starts_with(&begin) && error.contains("has a node in two places"), "{error}");
    }
}

/// Only the chunks of the dataset whose sizes were checked are taken.
#[test]
fn chunks_of_another_size_than_was_checked_are_not_taken() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/gzip.h5");
    let mut headers = Headers::new(std::fs::File::open(&path).unwrap()).unwrap();
    let dataset = rust_hdf5::H5File::open(&path).unwrap().dataset("events/start_deltas").unwrap();
    let (datatype, values) = (dataset.datatype().unwrap(), dataset.total_elements());
    let mut find = |len| Chunks::find(&mut headers, &["events", "start_deltas"], &datatype, values, len);
    assert!(find(128).unwrap().is_some());
    assert!([0, 64, 256].into_iter().all(|len| find(len).unwrap().is_none()));
}

/// The exports and tables, with what is left in the file and with all in memory.
#[test]
fn what_is_made_of_calls_in_a_file_is_what_is_made_of_them_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    for path in reference_files().into_iter().chain([written(folder.path(), 5_000)]) {
        let (whole, in_file) = (read(&path).unwrap(), read_totals(&path).unwrap());
        assert!(in_file.events_in.is_some() && in_file.events == Events::default());
        let name = whole.names.last().cloned().unwrap_or_default();
        let views = [View::Busy, View::Linked, View::Wall, View::WallByLane];
        for (view, exclude) in views.into_iter().flat_map(|view| [(view, vec![]), (view, vec![name.clone()])])
        {
            let selection = Selection { view, exclude, ..Selection::default() };
            for by in [By::Path, By::Region] {
                let of = |profile| {
                    let tables = statistics(profile, &selection, by, &mut LeftOut::default());
                    tables.map(|(paths, statistics)| (paths.names, statistics)).map_err(|e| e.to_string())
                };
                assert_eq!(of(&in_file), of(&whole), "{path:?} {selection:?}");
                let options = ProfOptions { call_paths: by == By::Path, ..ProfOptions::default() };
                let of = |profile| {
                    let runs = [Run { label: "run".into(), profile }];
                    let stats = to_pstats(&runs, &selection, &options);
                    let stats =
                        stats.map(|ranks| ranks.into_iter().map(|rank| rank.stats).collect::<Vec<_>>());
                    stats.map_err(|e| e.to_string())
                };
                assert_eq!(of(&in_file), of(&whole), "{path:?} {selection:?}");
            }
        }
    }
}

/// A run that ends between two steps of a command puts its own file there.
#[test]
fn calls_are_not_taken_from_another_file_than_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), 50);
    let profile = read_totals(&path).unwrap();
    let make = |view| {
        statistics(&profile, &Selection { view, ..Selection::default() }, By::Path, &mut LeftOut::default())
    };
    assert!(make(View::Busy).is_ok());
    written(folder.path(), 50);
    let with_tasks = MergedProfile { tasks: Some(Vec::new()), ..profile.clone() };
    let whole = statistics(
        &with_tasks,
        &Selection { view: View::Wall, ..Selection::default() },
        By::Path,
        &mut LeftOut::default(),
    );
    for result in [make(View::Busy), whole] {
        let text = format!(
            "failed to read `{}`: another file was put in its place, or it was changed, while it was read; \
             run the command again",
            path.display()
        );
        assert_eq!(result.unwrap_err().to_string(), text);
    }
}
