//! What is written, number by number, and that it comes back.

use std::path::Path;

use rust_hdf5::{H5File, StorageLayout};

use super::{ProfileWriter, WriteError, read, read_totals, write};
use crate::export::{ProfOptions, Run, Selection, to_pstats};
use crate::merged::{
    Aggregate, ClockRow, Events, EventsFile, MergedProfile, MessageRow, MetadataValue, PathRow, Row, TaskRow,
    ThreadRow, WaitRow,
};

/// Two regions on rank 0, one of them on rank 2 also; the second row goes back in time, as rows
/// with two lanes do.
fn profile() -> MergedProfile {
    let row = |region, rank, events| Row { region, rank, events, source_line: -1, ..Row::default() };
    MergedProfile {
        metadata: vec![
            ("zebra".into(), MetadataValue::Text("first".into())),
            ("mpi_size".into(), MetadataValue::Integer(4)),
            ("factor".into(), MetadataValue::Float(-0.5)),
            ("arguments".into(), MetadataValue::List(vec!["-n".into(), String::new()])),
        ],
        names: vec!["main".into(), "Grid::step".into()],
        rows: vec![
            Row {
                source_file: "src/main.rs".into(),
                source_line: 7,
                source_text: "fn main() {}".into(),
                tags: vec!["io".into(), "a\"b".into()],
                exclusive_total_ns: Some(60),
                ..row(0, 0, 0..1)
            },
            Row { exclusive_total_ns: Some(0), ..row(1, 0, 1..4) },
            row(1, 2, 4..4),
        ],
        events: Events {
            start_ns: vec![1_000, 1_010, 1_050, 1_020],
            duration_ns: vec![100, 10, 20, 12],
            call_ids: Some(vec![0, 1, 2, 3]),
            parent_ids: Some(vec![-1, 0, 0, -1]),
            thread_ids: Some(vec![0, 0, 0, 1]),
            ..Events::default()
        },
        threads: Some(vec![ThreadRow { name: "main".into(), end_ns: -1, daemon: 1, ..ThreadRow::default() }]),
        ..MergedProfile::default()
    }
}

/// One region with `calls` calls.
fn many(calls: usize) -> MergedProfile {
    let start_ns: Vec<i64> = (0..calls as i64).map(|call| 1_000 + 10 * call).collect();
    let events = Events { duration_ns: vec![7; calls], start_ns, ..Events::default() };
    let rows = vec![Row { events: 0..calls, ..Row::default() }];
    MergedProfile { names: vec!["step".into()], rows, events, ..MergedProfile::default() }
}

/// The profile as it comes back from a file.
fn written_and_read(profile: &MergedProfile) -> MergedProfile {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.h5");
    write(profile, &path).unwrap_or_else(|e| panic!("{e}"));
    read(&path).unwrap_or_else(|e| panic!("{e}"))
}

/// Writes `profile` and looks at it with the HDF5 crate.
fn with_file<T>(profile: &MergedProfile, look: impl Fn(&H5File) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.h5");
    write(profile, &path).unwrap();
    look(&H5File::open(&path).unwrap())
}

fn integers(file: &H5File, dataset: &str) -> Vec<i64> {
    file.dataset(dataset).unwrap().read_numeric_as().unwrap()
}

#[test]
fn a_profile_comes_back_as_it_was() {
    assert_eq!(written_and_read(&profile()), profile());
}

#[test]
fn an_empty_profile_comes_back() {
    assert_eq!(written_and_read(&MergedProfile::default()), MergedProfile::default());
}

#[test]
fn tasks_and_device_times_come_back() {
    let mut tasks = profile();
    tasks.events.task_ids = Some(vec![-1, 0, 0, -1]);
    tasks.events.await_ns = Some(vec![0, 4, 5, 0]);
    tasks.events.gpu_durations_ns = Some(vec![-1, 3, -1, 9]);
    let task = TaskRow {
        steps: 3,
        done_ns: -1,
        kind: "task".into(),
        coro_name: "fetch".into(),
        ..TaskRow::default()
    };
    tasks.tasks = Some(vec![task]);
    assert_eq!(written_and_read(&tasks), tasks);
}

#[test]
fn what_ranks_did_together_comes_back_and_belongs_to_their_paths() {
    let path = |rank, region| PathRow { rank, region, parent: -1, calls: 1, ..PathRow::default() };
    let message = MessageRow {
        rank: 2,
        path: 1,
        kind: 4,
        peer: -1,
        messages: 3,
        bytes: u64::MAX,
        min_bytes: 1,
        max_bytes: 1 << 40,
    };
    let wait = WaitRow { rank: 0, path: 0, calls: 9, wait_ns: 8, last: 7, caused_ns: 6 };
    let clock = ClockRow { rank: 2, at_ns: -5, offset_ns: i64::MIN, uncertainty_ns: 4 };
    let ranks = MergedProfile {
        paths: Some(vec![path(0, 0), path(2, 1)]),
        messages: Some(vec![message]),
        waits: Some(vec![wait]),
        clocks: Some(vec![clock]),
        ..profile()
    };
    assert_eq!(written_and_read(&ranks), ranks);
    for (rank, path) in [(0, 1), (2, 0), (2, 2), (2, u64::MAX)] {
        let wrong =
            MergedProfile { messages: Some(vec![MessageRow { rank, path, ..message }]), ..ranks.clone() };
        let folder = tempfile::tempdir().unwrap();
        let error = write(&wrong, &folder.path().join("profile.h5")).unwrap_err().to_string();
        assert!(error.contains("cargo_scope_messages/paths"), "{error}");
    }
}

#[test]
fn a_rank_that_no_job_has_is_refused() {
    let mut wrong = profile();
    wrong.rows[1].rank = u32::MAX;
    let folder = tempfile::tempdir().unwrap();
    let error = write(&wrong, &folder.path().join("profile.h5")).unwrap_err().to_string();
    assert!(error.contains("rank_region_index/ranks") && error.contains("4294967295"), "{error}");
    wrong.metadata.push(("mpi_size".into(), MetadataValue::Integer(u32::MAX.into())));
    assert_eq!(wrong.ranks(), u32::MAX);
    wrong.rows[1].rank = 6;
    assert_eq!(wrong.ranks(), 7);
}

#[test]
fn totals_are_read_without_the_calls() {
    let path = |region, calls, inclusive_ns| PathRow {
        region,
        parent: -1,
        calls,
        inclusive_ns,
        self_ns: inclusive_ns,
        wall_ns: inclusive_ns,
        ..PathRow::default()
    };
    let with_paths = MergedProfile { paths: Some(vec![path(0, 1, 100), path(1, 3, 42)]), ..profile() };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("profile.h5");
    // What is exported is the same.
    let prof = |profile: &MergedProfile| {
        let runs = [Run { label: "run".into(), profile }];
        let selection = Selection { ranks: "0".parse().unwrap(), ..Selection::default() };
        let stats = to_pstats(&runs, &selection, &ProfOptions::default()).unwrap();
        let mut bytes = Vec::new();
        scope_runtime::pstats::write_prof(&stats[0].stats, &mut bytes).unwrap();
        bytes
    };
    for whole in [with_paths, profile()] {
        write(&whole, &file).unwrap();
        let totals = read_totals(&file).unwrap();
        let metadata = std::fs::metadata(&file).unwrap();
        let (events, events_in) = (Events::default(), Some(EventsFile::new(&file, &metadata)));
        assert_eq!(totals, MergedProfile { events, events_in, ..whole.clone() });
        assert_eq!(prof(&totals), prof(&whole));
    }
}

/// A rank without tasks, one with them, and one without again: what they have not recorded is unknown.
#[test]
fn events_in_pieces_make_the_file_of_all_together() {
    // The second is compressed from the second piece on, and no piece ends where a chunk does.
    for calls in [3, 40_000] {
        let column = |value: i64| vec![value; calls];
        let piece = |rank: u32, with_tasks: bool| Events {
            start_ns: (0..calls as i64).map(|call| 7 * call + i64::from(rank)).collect(),
            duration_ns: (0..calls as i64).map(|call| call % 5).collect(),
            call_ids: Some((0..calls as i64).collect()),
            task_ids: with_tasks.then(|| column(4)),
            await_ns: with_tasks.then(|| column(1)),
            ..Events::default()
        };
        let row = |rank: u32| {
            let begin = calls * rank as usize;
            Row { rank, events: begin..begin + calls, ..Row::default() }
        };
        let mut whole = MergedProfile {
            names: vec!["step".into()],
            rows: (0..3).map(row).collect(),
            ..MergedProfile::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.h5");
        let mut file = ProfileWriter::create(&path).unwrap();
        for rank in 0..3 {
            file.append(&whole.rows[rank as usize..][..1], &piece(rank, rank == 1)).unwrap();
        }
        file.finish(&whole).unwrap();
        (0..3).for_each(|rank| whole.events.append(piece(rank, rank == 1)));
        assert_eq!(whole.events.task_ids.as_ref().unwrap()[calls - 1..=calls], [-1, 4]);
        let read_back = read(&path).unwrap();
        assert!(read_back == whole, "{calls} calls");
    }
}

#[test]
fn a_piece_that_does_not_follow_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.h5");
    let mut file = ProfileWriter::create(&path).unwrap();
    let row = Row { events: 1..2, ..Row::default() };
    let events = Events { start_ns: vec![0], duration_ns: vec![1], ..Events::default() };
    let error = file.append(&[row], &events).unwrap_err().to_string();
    assert!(
        error.contains("rank_region_index/event_counts") && error.contains("a row of calls 1 to 2"),
        "{error}"
    );
    drop(file);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "nothing is left");
}

#[test]
fn task_ids_are_never_alone() {
    let mut tasks = profile();
    tasks.events.task_ids = Some(vec![-1, 0, 0, -1]);
    assert_eq!(written_and_read(&tasks).events.await_ns, Some(vec![0; 4]));
}

#[test]
fn totals_come_back_with_their_source() {
    let mut totals = profile();
    totals.events = Events::default();
    for row in &mut totals.rows {
        (row.events, row.exclusive_total_ns) = (0..0, None);
    }
    let total = |count| Aggregate { count, total_ns: 50, min_ns: 1, max_ns: 40, exclusive_ns: -3 };
    totals.aggregates = Some(vec![total(5), total(u64::MAX), total(0)]);
    assert_eq!(written_and_read(&totals), totals);
}

#[test]
fn starts_are_differences_inside_a_row() {
    let deltas = with_file(&profile(), |file| integers(file, "events/start_deltas"));
    assert_eq!(deltas, [1_000, 1_010, 40, -30]);
}

#[test]
fn starts_wrap_around_as_the_format_says() {
    let mut extreme = many(3);
    extreme.events.start_ns = vec![i64::MAX, i64::MIN, 5];
    assert_eq!(written_and_read(&extreme), extreme);
}

#[test]
fn statistics_are_those_of_the_row() {
    let (members, bytes) = with_file(&profile(), |file| {
        let dataset = file.dataset("rank_region_index/summary_statistics").unwrap();
        (dataset.datatype().unwrap().to_string(), dataset.read_raw_bytes().unwrap())
    });
    assert_eq!(members, "compound(88 bytes, 11 members)");
    let rows: Vec<Vec<[u8; 8]>> =
        bytes.chunks(88).map(|row| row.chunks(8).map(|m| m.try_into().unwrap()).collect()).collect();
    // Calls of row 1: 10, 20, 12 ns from 1010 on, the latest end is 1070.
    let integers: Vec<i64> = rows[1][..9].iter().map(|member| i64::from_le_bytes(*member)).collect();
    assert_eq!(integers, [42, 10, 20, 10, 12, 1_010, 1_070, 0, 0]);
    assert_eq!(f64::from_le_bytes(rows[1][9]), 14.0);
    assert_eq!(f64::from_le_bytes(rows[1][10]), 56.0);
    assert_eq!(rows[2], [[0; 8]; 11]);
}

#[test]
fn names_without_a_row_are_left_out() {
    let mut unused = profile();
    unused.names.insert(0, "never called".into());
    unused.rows.iter_mut().for_each(|row| row.region += 1);
    assert_eq!(written_and_read(&unused), profile());
}

#[test]
fn names_come_back_whatever_they_are() {
    let mut named = profile();
    let names = ["", "a\0b", "a\u{2400}b", "a\0b\0", "\0", "/", "../up", "naïve 🦀", " "];
    named.names = names.iter().map(|name| name.to_string()).collect();
    named.names.push("y".repeat(100_000));
    let row = |region| Row { region, events: 4..4, ..Row::default() };
    named.rows = (0..named.names.len() as u32).map(row).collect();
    assert_eq!(written_and_read(&named), named);
    // Others see a sign in place of NUL, and names as distinct as they were.
    let mut seen =
        with_file(&named, |file| file.dataset("region_table/names").unwrap().read_strings().unwrap());
    assert_eq!(seen[1], "a\u{2400}b\u{2400}");
    assert!(seen.iter().all(|name| !name.contains('\0')));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), named.names.len());
}

#[test]
fn small_profiles_are_plain_and_large_ones_compressed() {
    let layout = |calls| {
        with_file(&many(calls), |file| {
            let dataset = file.dataset("events/durations").unwrap();
            (dataset.storage_layout().unwrap(), dataset.filters().unwrap().len())
        })
    };
    assert_eq!(layout(65_535), (StorageLayout::Contiguous, 0));
    assert_eq!(layout(65_536), (StorageLayout::Chunked, 2));
}

#[test]
fn compressed_columns_come_back() {
    // One chunk short of two, two, and two and a bit.
    for calls in [65_536, 131_071, 131_072, 131_073] {
        let large = many(calls);
        assert!(written_and_read(&large) == large, "{calls}");
    }
}

#[test]
fn chunks_of_one_value_come_back_among_others() {
    use scope_runtime::profile_file::CHUNK;

    let mut profile = many(10 * CHUNK + 5);
    let of = |call: usize| match call / CHUNK {
        4 => call as i64,
        6 => 1,
        _ => -1,
    };
    profile.events.task_ids = Some((0..10 * CHUNK + 5).map(of).collect());
    profile.events.await_ns = Some(vec![0; 10 * CHUNK + 5]);
    assert!(written_and_read(&profile) == profile);
}

#[test]
fn a_contradiction_leaves_the_old_file_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.h5");
    write(&profile(), &path).unwrap();
    let change = |change: fn(&mut MergedProfile)| {
        let mut wrong = profile();
        change(&mut wrong);
        let error = write(&wrong, &path).unwrap_err();
        assert!(matches!(error, WriteError::Inconsistent { .. }), "{error}");
        error.to_string().split_once("the profile's ").unwrap().1.to_string()
    };
    assert_eq!(change(|p| p.rows[1].region = 9), "rank_region_index/region_ids names region 9 of 2 in row 1");
    assert_eq!(
        change(|p| p.rows[1].region = 0),
        "rank_region_index/region_ids has region 0 of rank 0 twice, again in row 1"
    );
    assert_eq!(
        change(|p| p.rows[0].events = 0..2),
        "rank_region_index/event_offsets has two rows that share call 1"
    );
    assert_eq!(
        change(|p| p.rows[1].events = 1..5),
        "rank_region_index/event_counts has a row of calls 1 to 5 of 4"
    );
    assert_eq!(
        change(|p| p.events.start_ns.truncate(3)),
        "events/start_deltas has 3 entries where durations has 4"
    );
    assert_eq!(
        change(|p| p.events.thread_ids = Some(vec![1])),
        "events/thread_ids has 1 entries where durations has 4"
    );
    assert_eq!(
        change(|p| p.aggregates = Some(Vec::new())),
        "rank_region_index/aggregate_counts has 0 entries for 3 rows"
    );
    assert_eq!(read(&path).unwrap(), profile());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "something was left beside the file");
}

#[test]
fn a_failure_to_write_names_the_file() {
    let path = Path::new("/nowhere/profile.h5");
    let error = write(&profile(), path).unwrap_err().to_string();
    assert!(error.starts_with("failed to create `/nowhere/profile.h5`: "), "{error}");
}

#[test]
fn a_failed_rename_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.h5");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("taken"), "").unwrap();
    let error = write(&profile(), &path).unwrap_err().to_string();
    assert!(error.starts_with("failed to rename a finished file to `"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn regions_of_one_name_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.h5");
    let row = |region: u32| Row { region, events: region as usize..region as usize + 1, ..Row::default() };
    let events = Events { start_ns: vec![0, 10, 20, 30], duration_ns: vec![5; 4], ..Events::default() };
    let names = ["x", "x", "x #2", "x"].map(String::from).to_vec();
    let rows = (0..4).map(row).collect();
    write(&MergedProfile { names, rows, events, ..MergedProfile::default() }, &path).unwrap();
    assert_eq!(read(&path).unwrap().names, ["x", "x #3", "x #2", "x #4"]);
}
