//! Files that are not what they should be: one clear error, and nothing worse.

use std::fs::File;
use std::path::{Path, PathBuf};

use rust_hdf5::format::LibverBound;
use rust_hdf5::format::messages::filter::{FILTER_FLETCHER32, Filter};
use rust_hdf5::{FilterPipeline, H5File, H5Group};

use super::headers::Headers;
use super::{Error, read, write};
use crate::merged::{Events, MergedProfile, MetadataValue, Row};

fn profile(calls: usize) -> MergedProfile {
    let start_ns: Vec<i64> = (0..calls as i64).map(|call| 1_000 + 10 * call).collect();
    let columns = Events {
        duration_ns: vec![7; calls],
        call_ids: Some((0..calls as i64).collect()),
        parent_ids: Some(vec![-1; calls]),
        start_ns,
        ..Events::default()
    };
    MergedProfile {
        metadata: vec![("label".into(), MetadataValue::Text("run".into()))],
        names: vec!["step".into()],
        rows: vec![Row { events: 0..calls, ..Row::default() }],
        events: columns,
        ..MergedProfile::default()
    }
}

/// A sound file of three calls, changed through the HDF5 crate.
fn changed_file(change: impl Fn(&H5File)) -> (tempfile::TempDir, PathBuf) {
    let (folder, path, _) = sound_file(3);
    change_file(&path, change);
    (folder, path)
}

fn change_file(path: &Path, change: impl Fn(&H5File)) {
    let file = H5File::open_rw(path).unwrap();
    change(&file);
    file.close().unwrap();
}

/// The error of reading such a file.
fn changed(change: impl Fn(&H5File)) -> String {
    let (_folder, path) = changed_file(change);
    error(&path)
}

/// The error of reading `path`, with `FILE` for its name.
fn error(path: &Path) -> String {
    let error = read(path).expect_err("the file reads without an error");
    error.to_string().replace(&path.display().to_string(), "FILE")
}

fn group(file: &H5File, name: &str) -> H5Group {
    file.root_group().group(name).unwrap()
}

#[test]
fn what_is_no_profile_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.h5");
    assert!(error(&path).starts_with("failed to open `FILE`: "));
    std::fs::write(&path, "region,calls\nstep,3\n").unwrap();
    assert!(matches!(read(&path), Err(Error::NotHdf5 { .. })), "{}", error(&path));
    std::fs::write(&path, "").unwrap();
    assert!(matches!(read(&path), Err(Error::NotHdf5 { .. })), "{}", error(&path));
    H5File::create(&path).unwrap().close().unwrap();
    assert!(error(&path).starts_with("failed to read `FILE`: it has no attribute `scope_profiler_schema`"));
    #[cfg(unix)]
    assert!(error(Path::new("/dev/null")).contains("it is a pipe or a device"));
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(error(&path).contains("`FILE`"));
}

#[test]
fn unknown_versions_say_what_to_do() {
    let newer = changed(|file| file.set_attr_numeric("scope_profiler_schema", &4i64).unwrap());
    let text = "failed to read `FILE`: it says scope_profiler_schema = 4, and this program knows 1 to 3; \
                update cargo-scope, or write the file with an older version";
    assert_eq!(newer, text);
    let zero = changed(|file| file.set_attr_numeric("scope_profiler_schema", &0i64).unwrap());
    assert!(zero.contains("scope_profiler_schema = 0,"), "{zero}");
    let float = changed(|file| file.set_attr_numeric("scope_profiler_schema", &3.0f64).unwrap());
    assert!(float.contains("scope_profiler_schema = 3.0,"), "{float}");
    let layout = changed(|file| file.set_attr_string("storage_layout", "sparse").unwrap());
    assert!(
        layout.contains("storage_layout = `sparse`, and this program knows columnar and aggregate"),
        "{layout}"
    );
}

#[test]
fn a_missing_dataset_is_named() {
    for dataset in
        ["region_table/names", "rank_region_index/tags", "rank_region_index/ranks", "events/durations"]
    {
        let error = changed(|file| file.delete_dataset(dataset).unwrap());
        assert!(error.starts_with(&format!("failed to read `FILE`: it has no {dataset}, ")), "{error}");
    }
}

#[test]
fn columns_must_fit_together() {
    let short = changed(|file| {
        file.delete_dataset("rank_region_index/source_lines").unwrap();
        let dataset =
            group(file, "rank_region_index").new_dataset::<i64>().shape([2]).create("source_lines").unwrap();
        dataset.write_raw(&[1i64, 2]).unwrap();
    });
    let text = "failed to read rank_region_index/source_lines of `FILE`: \
                it has 2 entries where its neighbours have 1. The file is damaged or truncated";
    assert!(short.starts_with(text), "{short}");
    let square = changed(|file| {
        file.delete_dataset("events/durations").unwrap();
        let dataset = group(file, "events").new_dataset::<i64>().shape([3, 1]).create("durations").unwrap();
        dataset.write_raw(&[1i64, 2, 3]).unwrap();
    });
    assert!(square.contains("events/durations of `FILE`: it has 2 dimensions where 1 is right"), "{square}");
    let text = changed(|file| {
        file.delete_dataset("events/durations").unwrap();
        group(file, "events").write_vlen_strings("durations", &["1", "2", "3"]).unwrap();
    });
    let expected = "failed to read events/durations of `FILE`: it has texts where integers are right, so this is no profile";
    assert!(text.starts_with(expected), "{text}");
    let numbers = changed(|file| {
        file.delete_dataset("region_table/names").unwrap();
        let dataset = group(file, "region_table").new_dataset::<f64>().shape([1]).create("names").unwrap();
        dataset.write_raw(&[1.0]).unwrap();
    });
    let expected = "names of `FILE`: it has floating-point numbers where texts are right";
    assert!(numbers.contains(expected), "{numbers}");
}

#[test]
fn a_size_that_lies_costs_no_memory() {
    for chunk in [1_024, 1 << 38] {
        let error = changed(|file| {
            file.delete_dataset("events/durations").unwrap();
            let huge = group(file, "events")
                .new_dataset::<i64>()
                .shape([1 << 40])
                .max_shape(&[None])
                .chunk(&[chunk]);
            huge.shuffle_deflate(1).create("durations").unwrap();
        });
        let text = "failed to read events/durations of `FILE`: it claims 8796093022208 bytes, more than the file of ";
        assert!(error.starts_with(text), "{error}");
    }
}

#[test]
fn offsets_and_counts_that_lie_are_named() {
    for (column, value) in [
        ("event_offsets", u64::MAX),
        ("event_offsets", 1),
        ("event_offsets", 1 << 40),
        ("event_counts", 4),
        ("event_counts", u64::MAX),
    ] {
        let error = changed(|file| {
            file.delete_dataset(&format!("rank_region_index/{column}")).unwrap();
            let index = group(file, "rank_region_index");
            index.new_dataset::<u64>().shape([1]).create(column).unwrap().write_raw(&[value]).unwrap();
        });
        let text = "failed to read rank_region_index/event_counts of `FILE`: it has a row of calls ";
        assert!(error.starts_with(text), "{column} = {value}: {error}");
    }
}

#[test]
fn an_unknown_filter_is_named() {
    let error = changed(|file| {
        file.delete_dataset("events/durations").unwrap();
        let zstd = Filter { id: 32015, flags: 0, cd_values: vec![3] };
        let column = group(file, "events").new_dataset::<i64>().shape([3]).chunk(&[3]);
        let column =
            column.filter_pipeline(FilterPipeline { filters: vec![zstd] }).create("durations").unwrap();
        column.write_chunk_raw(0, &[1, 2, 3], 0).unwrap();
    });
    let text = "failed to read events/durations of `FILE`: \
                it is compressed by zstd (filter 32015), which is not built in; rewrite the file with `h5repack";
    assert!(error.starts_with(text), "{error}");
}

#[test]
fn a_group_that_holds_itself_is_no_trap() {
    let (_folder, path) = changed_file(|file| {
        group(file, "events").link("self", "/events").unwrap();
        group(file, "events").create_soft_link("round", "/events/round").unwrap();
    });
    assert_eq!(read(&path).unwrap(), profile(3));
}

#[test]
fn a_cut_file_is_an_error_wherever_it_is_cut() {
    for calls in [50, 40_000] {
        let (folder, path, whole) = sound_file(calls);
        for place in 0..1_000 {
            std::fs::write(&path, &whole[..whole.len() * place / 1_000]).unwrap();
            let error = error(&path);
            assert!(error.contains("FILE"), "cut at {place} of 1000: {error}");
        }
        drop(folder);
    }
}

#[test]
fn a_changed_byte_is_an_error_or_another_profile() {
    // A small generator, so that a failure comes back: Marsaglia, "Xorshift RNGs", 2003.
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = move |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit as u64) as usize
    };
    // Undoing the compression of the larger one takes long in a debug build.
    for (calls, changes) in [(50, 10_000), (40_000, 40)] {
        let (folder, path, whole) = sound_file(calls);
        for _ in 0..changes {
            let (mut bytes, place) = (whole.clone(), random(whole.len()));
            bytes[place] = random(256) as u8;
            std::fs::write(&path, &bytes).unwrap();
            if let Err(error) = read(&path) {
                assert!(error.to_string().contains("p.h5"), "byte {place} = {}: {error}", bytes[place]);
            }
        }
        drop(folder);
    }
}

fn sound_file(calls: usize) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.h5");
    write(&profile(calls), &path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    (folder, path, whole)
}

#[test]
fn soft_links_are_followed_to_their_end() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/aggregate.h5");
    // Groups of both forms.
    for is_of_reference in [false, true] {
        let (_folder, path, _) = sound_file(3);
        if is_of_reference {
            std::fs::copy(&reference, &path).unwrap();
        }
        change_file(&path, |file| {
            let links =
                [("table", "/region_table"), ("names", "table/./names"), ("round", "/round"), ("gone", "no")];
            for (name, target) in links {
                file.root_group().create_soft_link(name, target).unwrap();
            }
            group(file, "rank_region_index").create_soft_link("up", "/names").unwrap();
        });
        let mut headers = Headers::new(File::open(&path).unwrap()).unwrap();
        let mut messages = |path: &[&str]| {
            let messages = headers.object(path).unwrap()?;
            Some(messages.into_iter().map(|message| message.data).collect::<Vec<_>>())
        };
        let names = messages(&["region_table", "names"]);
        assert!(names.is_some() && messages(&["names"]) == names, "{is_of_reference}");
        assert_eq!(messages(&["rank_region_index", "up"]), names);
        assert_eq!((messages(&["round"]), messages(&["gone"])), (None, None));
        read(&path).unwrap();
    }
}

#[test]
fn a_chunk_that_is_not_what_its_checksum_says_is_an_error() {
    let durations = [0x1234_5678_9ABC_i64, 5, 7];
    let (_folder, path) = changed_file(|file| {
        file.set_libver_bound(LibverBound::Earliest).unwrap();
        file.delete_dataset("events/durations").unwrap();
        let sum = Filter { id: FILTER_FLETCHER32, flags: 0, cd_values: Vec::new() };
        let column = group(file, "events").new_dataset::<i64>().shape([3]).max_shape(&[None]).chunk(&[3]);
        let column =
            column.filter_pipeline(FilterPipeline { filters: vec![sum] }).create("durations").unwrap();
        column.write_raw(&durations).unwrap();
    });
    assert_eq!(read(&path).unwrap().events.duration_ns, durations);
    let mut bytes = std::fs::read(&path).unwrap();
    let first = durations[0].to_le_bytes();
    let at = bytes.windows(first.len()).rposition(|window| window == first).unwrap();
    bytes[at + first.len()] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = error(&path);
    assert!(
        error.contains("events/durations of `FILE`") && error.contains("is not what its checksum says"),
        "{error}"
    );
}

#[test]
fn regions_that_are_links_count_and_empty_groups_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.h5");
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/schema_1.h5"), &path).unwrap();
    let before = read(&path).unwrap();
    let row = &before.rows[0];
    let (rank, name) = (row.rank, &before.names[row.region as usize]);
    let (regions, target) = (format!("rank{rank}/regions"), format!("/rank{rank}/regions/{name}"));
    change_file(&path, |file| group(file, &regions).create_soft_link("linked", &target).unwrap());
    let after = read(&path).unwrap();
    let linked = after.rows.iter().find(|row| after.names[row.region as usize] == "linked").unwrap();
    assert_eq!((after.rows.len(), linked.events.len()), (before.rows.len() + 1, row.events.len()));

    let (_folder, path) = changed_file(|file| drop(file.create_group("thread_table").unwrap()));
    assert_eq!(read(&path).unwrap(), profile(3));
}
