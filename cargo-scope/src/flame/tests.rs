//! Pictures read back with a strict XML parser.

use scope_runtime::profile::RegionId;
use scope_runtime::totals::PathTree;

use super::*;
use crate::names::visible;

/// A frame as the picture shows it.
struct Shown {
    title: String,
    label: String,
    x: u64,
    width: u64,
    y: u32,
}

impl Shown {
    /// The title without its numbers.
    fn name(&self) -> &str {
        self.title.rsplit_once(" (").unwrap().0
    }
}

fn svg(paths: &NamedPaths, options: &FlameOptions) -> String {
    let mut picture = Vec::new();
    write_svg(paths, options, &mut picture).unwrap();
    String::from_utf8(picture).unwrap()
}

fn shown(picture: &str) -> Vec<Shown> {
    let document = roxmltree::Document::parse(picture).unwrap();
    let frames = document.descendants().find(|node| node.attribute("id") == Some("frames")).unwrap();
    let frame = |group: roxmltree::Node<'_, '_>| {
        let child =
            |tag: &str| group.children().find(|node| node.has_tag_name(("http://www.w3.org/2000/svg", tag)));
        let rect = child("rect").unwrap();
        let number =
            |name| rect.attribute(("http://github.com/jonhoo/inferno", name)).unwrap().parse().unwrap();
        Shown {
            title: child("title").unwrap().text().unwrap().to_string(),
            label: child("text").unwrap().text().unwrap_or("").to_string(),
            x: number("x"),
            width: number("w"),
            y: rect.attribute("y").unwrap().parse().unwrap(),
        }
    };
    frames.children().filter(|node| node.is_element()).map(frame).collect()
}

/// `main` with one child of 1 ms for each name, and 1 ms of its own.
fn below_main(names: &[String]) -> NamedPaths {
    let mut paths = PathTree::default();
    let main = paths.step(None, RegionId(0));
    for region in 1..=names.len() as u32 {
        let child = paths.step(Some(main), RegionId(region));
        paths.add_call(child, 1_000_000, 1_000_000, false);
    }
    let children_ns = 1_000_000 * names.len() as i64;
    paths.add_call(main, children_ns + 1_000_000, 1_000_000, false);
    NamedPaths::new(std::iter::once("main".to_string()).chain(names.iter().cloned()).collect(), paths)
}

#[test]
fn without_call_paths_a_region_is_one_frame_as_wide_as_its_own_time() {
    // `step` runs below `main`, and inside itself.
    let mut paths = PathTree::default();
    let main = paths.step(None, RegionId(0));
    let outer = paths.step(Some(main), RegionId(1));
    let inner = paths.step(Some(outer), RegionId(1));
    paths.add_call(inner, 20, 20, false);
    paths.add_call(outer, 50, 30, false);
    paths.add_call(main, 100, 50, false);
    let paths = NamedPaths::new(["main", "step"].map(String::from).to_vec(), paths);
    let options =
        FlameOptions { root: Some("every <thing>".into()), call_paths: false, ..FlameOptions::default() };
    let mut titles: Vec<_> = shown(&svg(&paths, &options)).into_iter().map(|frame| frame.title).collect();
    titles.sort_unstable();
    let expected = [
        "every <thing> (100 ns, 100%)",
        "main (50 ns, 50.0%, self 50 ns, 1 call)",
        "step (50 ns, 50.0%, self 50 ns, 2 calls)",
    ];
    assert_eq!(titles, expected);
}

fn case_names(file: &str) -> Vec<String> {
    let path = format!("{}/../tests/cases/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| line.starts_with('{'));
    let name =
        |line| serde_json::from_str::<serde_json::Value>(line).unwrap()["name"].as_str().unwrap().to_string();
    lines.map(name).collect()
}

fn wide_and_narrow() -> [FlameOptions; 4] {
    let narrow = FlameOptions { width: Some(300), fixed_width: true, ..FlameOptions::default() };
    [
        FlameOptions::default(),
        FlameOptions { no_javascript: true, ..narrow.clone() },
        narrow,
        FlameOptions { no_javascript: true, ..FlameOptions::default() },
    ]
}

#[test]
fn hostile_names_are_shown_as_they_are() {
    for file in ["svg-01_hostile_names.jsonl", "export-05_names.jsonl"] {
        let names = case_names(file);
        assert!(names.len() >= 12);
        let paths = below_main(&names);
        for options in wide_and_narrow() {
            let picture = svg(&paths, &options);
            let frames = shown(&picture);
            let mut found: Vec<_> = frames.iter().map(Shown::name).collect();
            let mut expected: Vec<_> = names.iter().map(|name| visible(name)).collect();
            // One of the names is `main` as well.
            expected.extend(["all".into(), "main".into()]);
            found.sort();
            expected.sort();
            assert_eq!(found, expected);
            assert!(frames.iter().all(|frame| frame.name() == "all" || frame.title.ends_with(", 1 call)")));
        }
    }
}

#[test]
fn titles_are_shown_as_they_are() {
    let title = "</title><script>a\u{1b}b\u{ffff}</script>";
    for options in wide_and_narrow() {
        for paths in [below_main(&[]), NamedPaths::default()] {
            let picture = svg(&paths, &FlameOptions { title: Some(title.into()), ..options.clone() });
            let document = roxmltree::Document::parse(&picture).unwrap();
            let text = document.descendants().find(|node| node.attribute("id") == Some("title")).unwrap();
            assert_eq!(text.text(), Some("</title><script>a\\x1bb\\u{ffff}</script>"));
        }
    }
}

/// ```text
/// main 100 (self 20)   b 50   a 30
///                      c 50
/// ```
fn small() -> NamedPaths {
    let mut paths = PathTree::default();
    let main = paths.step(None, RegionId(0));
    let b = paths.step(Some(main), RegionId(1));
    let a = paths.step(Some(main), RegionId(2));
    let c = paths.step(Some(b), RegionId(3));
    for (path, inclusive_ns, self_ns) in [(main, 100, 20), (b, 50, 0), (a, 30, 30), (c, 50, 50)] {
        paths.add_call(path, inclusive_ns, self_ns, path == main);
    }
    NamedPaths::new(["main", "a b", "a", "c"].map(String::from).to_vec(), paths)
}

#[test]
fn widths_are_inclusive_times_and_siblings_go_by_name() {
    let mut frames = shown(&svg(&small(), &FlameOptions::default()));
    frames.sort_by_key(|frame| (std::cmp::Reverse(frame.y), frame.x));
    let found: Vec<_> = frames.iter().map(|frame| (frame.title.as_str(), frame.x, frame.width)).collect();
    let expected = [
        ("all (100 ns, 100%)", 0, 100),
        ("main (100 ns, 100%, self 20 ns, 1 call, 1 cut at the end)", 0, 100),
        ("a (30 ns, 30.0%, self 30 ns, 1 call)", 20, 30),
        ("a b (50 ns, 50.0%, self 0 ns, 1 call)", 50, 50),
        ("c (50 ns, 50.0%, self 50 ns, 1 call)", 50, 50),
    ];
    assert_eq!(found, expected);
    assert_eq!(frames[1].label, "main");
}

#[test]
fn folded_lines_count_own_time() {
    let mut text = Vec::new();
    write_folded(&small(), &mut text).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "main 20\nmain;a 30\nmain;a b;c 50\n");
}

#[test]
fn folded_lines_keep_names_apart() {
    let names = case_names("export-05_names.jsonl");
    let mut text = Vec::new();
    write_folded(&below_main(&names), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut frames: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("main;")).collect();
    assert!(frames.iter().all(|frame| frame.ends_with(" 1000000") && !frame.contains(';')));
    frames.sort();
    frames.dedup();
    assert_eq!(frames.len(), names.len());
    assert!(text.starts_with("main 1000000\n"));
}

#[test]
fn a_very_deep_tree_is_cut_and_says_so() {
    let mut paths = PathTree::default();
    let mut path = None;
    for level in 0..100_000 {
        let next = paths.step(path, RegionId(0));
        paths.add_call(next, 100_000 - level, 1, false);
        path = Some(next);
    }
    let paths = NamedPaths::new(vec!["dig".into()], paths);
    let options = FlameOptions { threshold_percent: 0.0, ..FlameOptions::default() };
    let picture = svg(&paths, &options);
    assert_eq!(shown(&picture).len(), 501);
    assert!(picture.contains(">99,500 levels below the first 500 left out<"));
    assert!(picture.len() < 500_000, "{}", picture.len());
    let mut text = Vec::new();
    write_folded(&paths, &mut text).unwrap();
    assert!(text.ends_with(b";dig 99501\n"));
}

#[test]
fn narrow_paths_are_left_out_and_counted() {
    let mut paths = PathTree::default();
    let wide = paths.step(None, RegionId(0));
    paths.add_call(wide, 90_000, 90_000, false);
    for region in 1..=1000 {
        let narrow = paths.step(None, RegionId(region));
        paths.add_call(narrow, 10, 10, false);
    }
    let names = (0..=1000).map(|region| format!("region {region}")).collect();
    let picture = svg(&NamedPaths::new(names, paths), &FlameOptions::default());
    let titles: Vec<_> = shown(&picture).into_iter().map(|frame| frame.title).collect();
    let expected = [
        "all (100.0 us, 100%)",
        "region 0 (90.00 us, 90.0%, self 90.00 us, 1 call)",
        r"\(narrow paths) (10.00 us, 10.0%)",
    ];
    assert_eq!(titles.len(), 3);
    assert!(expected.iter().all(|title| titles.iter().any(|found| found == title)), "{titles:?}");
    assert!(picture.contains(">1,000 call paths below 0.1% left out<"));
}

#[test]
fn an_empty_profile_says_why() {
    let mut zero = small();
    zero.paths = PathTree::default();
    let path = zero.paths.step(None, RegionId(0));
    zero.paths.add_call(path, 0, 0, false);
    for options in wide_and_narrow() {
        for (paths, why) in [
            (&NamedPaths::default(), "Nothing to show: no calls were recorded."),
            (&zero, "Nothing to show: the one call took less than a tick of the clock."),
        ] {
            let picture = svg(paths, &options);
            let document = roxmltree::Document::parse(&picture).unwrap();
            assert!(document.descendants().any(|node| node.text() == Some(why)));
        }
    }
}

#[test]
fn more_time_than_there_can_be_leaves_a_sound_picture() {
    let mut paths = PathTree::default();
    for region in 0..4 {
        let path = paths.step(None, RegionId(region));
        paths.add_call(path, i64::MAX, i64::MAX, false);
    }
    let paths = NamedPaths::new(["a", "b", "c", "d"].map(String::from).to_vec(), paths);
    let widths: Vec<_> = shown(&svg(&paths, &FlameOptions::default())).iter().map(|one| one.width).collect();
    let quarter = i64::MAX as u64 / 4;
    assert_eq!(widths.iter().filter(|width| **width == quarter).count(), 4, "{widths:?}");
}

#[test]
fn a_clock_that_stepped_back_leaves_a_sound_picture() {
    let mut paths = small();
    let main = paths.paths.step(None, RegionId(0));
    paths.paths.add_call(main, 0, -90, false);
    let frames = shown(&svg(&paths, &FlameOptions::default()));
    assert_eq!(frames.iter().filter(|frame| frame.width == 80).count(), 2);
}

#[test]
fn size_and_script_are_as_asked() {
    let head = |options: FlameOptions| {
        let picture = svg(&small(), &options);
        let document = roxmltree::Document::parse(&picture).unwrap();
        let root = document.root_element();
        let scripts =
            document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "script")));
        (root.attribute("width").map(str::to_string), root.attribute("onload").is_some(), scripts.count())
    };
    let options = FlameOptions::default();
    assert_eq!(head(options.clone()), (Some("1200".into()), true, 1));
    assert_eq!(head(FlameOptions { width: Some(800), ..options.clone() }), (None, true, 1));
    assert_eq!(head(FlameOptions { no_javascript: true, ..options.clone() }), (None, false, 0));
    let fixed = FlameOptions { width: Some(800), fixed_width: true, no_javascript: true, ..options };
    assert_eq!(head(fixed), (Some("800".into()), false, 0));
}
