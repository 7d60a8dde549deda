use scope_runtime::profile::RegionId;
use scope_runtime::totals::{PathId, PathTree};

use super::*;

fn step(paths: &mut PathTree, parent: Option<PathId>, region: u32, times: &[(i64, i64)]) -> PathId {
    let path = paths.step(parent, RegionId(region));
    times.iter().for_each(|&(inclusive_ns, self_ns)| paths.add_call(path, inclusive_ns, self_ns, false));
    path
}

fn summary(names: &[&str], paths: PathTree) -> Summary {
    let names = names.iter().map(|name| name.to_string()).collect();
    Summary { paths: NamedPaths::new(names, paths), ..Summary::default() }
}

/// ```text
/// main 2 s   read 20 us
///            solve 1.9 s   sweep 1.5 s in 1,200 calls
///                          测试 100 ms
/// worker 500 ms
/// ```
fn small() -> Summary {
    let mut paths = PathTree::default();
    let worker = paths.step(None, RegionId(5));
    paths.add_call(worker, 500_000_000, 500_000_000, true);
    let main = step(&mut paths, None, 0, &[(2_000_000_000, 99_980_000)]);
    step(&mut paths, Some(main), 1, &[(20_000, 20_000)]);
    let solve = step(&mut paths, Some(main), 2, &[(1_900_000_000, 300_000_000)]);
    step(&mut paths, Some(solve), 3, &[(1_250_000, 1_250_000); 1200]);
    step(&mut paths, Some(solve), 4, &[(99_999_993, 99_999_993), (7, 7)]);
    summary(&["main", "read\u{1b}[2J", "solve", "sweep", "测试", "worker"], paths)
}

#[test]
fn names_make_room_for_the_numbers_in_a_terminal() {
    let mut paths = PathTree::default();
    let outer = step(&mut paths, None, 0, &[(2_000_000_000, 1_000_000_000)]);
    step(&mut paths, Some(outer), 1, &[(1_000_000_000, 1_000_000_000)]);
    let names = ["solver::multigrid::Hierarchy<f64>::restrict_and_smooth", "测试".repeat(20).as_str()]
        .map(String::from);
    let summary = Summary { paths: NamedPaths::new(names.to_vec(), paths), ..Summary::default() };
    let text = |width| summary.render(&Layout { width, ..Layout::default() });
    let widths = |width| text(width).lines().map(UnicodeWidthStr::width).collect::<Vec<_>>();
    assert!(widths(None).iter().all(|&width| width > 100));
    assert_eq!(text(Some(200)), text(None));
    // Long names are shortened, and where little is left of them, numbers left out.
    for (width, has_min, has_max) in [(95, true, true), (90, false, true), (75, false, false)] {
        let head = text(Some(width)).lines().next().unwrap().to_owned();
        assert_eq!((head.contains("min"), head.contains("max")), (has_min, has_max), "{head}");
        let longest = widths(Some(width)).into_iter().max().unwrap();
        assert!((width as usize - 1..=width as usize).contains(&longest), "{longest}");
    }
    let of_ranks = summary.render(&Layout { width: Some(80), of_ranks: true, ..Layout::default() });
    assert!(of_ranks.contains("imbalance") && !of_ranks.contains("rank-mean"), "{of_ranks}");
    // Neither vanish, and columns that were asked for are there.
    assert!(widths(Some(1)).iter().all(|&width| width > 50));
    let columns = Some(vec![Column::Min, Column::Max]);
    let chosen = summary.render(&Layout { width: Some(1), columns, ..Layout::default() });
    assert!(chosen.contains("min") && chosen.contains("max"), "{chosen}");
}

#[test]
fn the_table_is_a_tree_with_aligned_columns() {
    let mut summary = small();
    summary.title = "heat: 2 threads".into();
    summary.open_calls = 1;
    summary.files = vec![
        OutputFile::hdf5("out dir/profile.h5".into()),
        OutputFile::prof("out/profile_rank0.prof".into()),
        OutputFile::svg("out/flamegraph_rank0.svg".into()),
        OutputFile { path: "out/other".into(), opener: None },
    ];
    let expected = r"heat: 2 threads

call path       calls   inclusive      self  share      mean       min       max
main                1     2.000 s  99.98 ms  80.0%   2.000 s   2.000 s   2.000 s
├─ solve            1     1.900 s  300.0 ms  76.0%   1.900 s   1.900 s   1.900 s
│  ├─ sweep     1,200     1.500 s   1.500 s  60.0%  1.250 ms  1.250 ms  1.250 ms
│  └─ 测试          2    100.0 ms  100.0 ms   4.0%  50.00 ms      7 ns  100.0 ms
└─ read\x1b[2J      1    20.00 us  20.00 us  <0.1%  20.00 us  20.00 us  20.00 us
worker              1*   500.0 ms  500.0 ms  20.0%  500.0 ms  500.0 ms  500.0 ms
* 1 call was still open at the end, and cut there

profile.h5            cargo scope inspect 'out dir/profile.h5'
profile_rank0.prof    snakeviz out/profile_rank0.prof
flamegraph_rank0.svg  open in a browser: out/flamegraph_rank0.svg
other                 out/other
";
    let text = summary.render(&Layout::default());
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn a_table_of_several_ranks_compares_them() {
    let mut paths = PathTree::default();
    let main = step(&mut paths, None, 0, &[(300, 100), (500, 200)]);
    step(&mut paths, Some(main), 1, &[(500, 500)]);
    let mut summary = summary(&["main", "root_only"], paths);
    let of_path = |path: usize, ranks, rank_min_ns, rank_max_ns, imbalance_percent| CallStatistics {
        ranks,
        rank_min_ns,
        rank_max_ns,
        imbalance_percent,
        ..CallStatistics::of_path(&summary.paths.paths.nodes()[path])
    };
    summary.statistics = Some(vec![of_path(0, 2, 300, 500, 25.0), of_path(1, 1, 500, 500, 0.0)]);
    summary.imbalance = vec!["lost to imbalance: 200 ns in main".into()];
    let expected = "\
call path     calls  ranks  inclusive    self  share    mean  rank-mean  rank-min  rank-max  imbalance
main              2      2     800 ns  300 ns   100%  400 ns     400 ns    300 ns    500 ns      25.0%
└─ root_only      1      1     500 ns  500 ns  62.5%  500 ns     500 ns    500 ns    500 ns       0.0%
lost to imbalance: 200 ns in main
";
    let text = summary.render(&Layout { of_ranks: true, ..Layout::default() });
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn shares_of_regions_are_of_the_whole_run() {
    let mut paths = PathTree::default();
    // Own times that overlap, as those of wall time may.
    let main = step(&mut paths, None, 0, &[(100_000, 30_000)]);
    let solve = step(&mut paths, Some(main), 1, &[(90_000, 90_000)]);
    step(&mut paths, Some(solve), 2, &[(50_000, 50_000)]);
    let mut summary = summary(&["main", "solve", "sweep"], paths);
    let shares = |summary: &Summary| {
        let text = summary.render(&Layout::default());
        text.split_whitespace().filter(|word| word.ends_with('%')).map(String::from).collect::<Vec<_>>()
    };
    let of_paths = shares(&summary);
    assert_eq!(of_paths, ["100%", "90.0%", "50.0%"]);
    summary.paths = NamedPaths::merged(&[summary.paths.by_region(), summary.paths.by_region()]);
    assert_eq!(shares(&summary), of_paths);
    // A file that knows regions only.
    summary.paths.whole_ns = None;
    assert_eq!(shares(&summary), ["58.8%", "52.9%", "29.4%"]);
}

#[test]
fn parts_of_a_call_that_counts_elsewhere_have_no_mean() {
    let mut paths = PathTree::default();
    let main = step(&mut paths, None, 0, &[(3_000_000, 0)]);
    let part = paths.step(Some(main), RegionId(1));
    paths.add_self(part, 3_000_000);
    let text = summary(&["main", "moved"], paths).render(&Layout::default());
    let row = text.lines().find(|line| line.contains("moved")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>()[2..],
        ["0", "0", "ns", "3.000", "ms", "0%"],
        "{text}"
    );
}

#[test]
fn colour_changes_nothing_but_styles() {
    let mut summary = small();
    summary.lost_calls = 3;
    summary.title = "heat".into();
    let plain = summary.render(&Layout::default());
    let colored = summary.render(&Layout { color: true, ..Layout::default() });
    assert!(!plain.contains('\u{1b}'));
    assert!(colored.contains("\u{1b}[1mheat\u{1b}[0m"));
    let mut stripped = String::new();
    for (at, piece) in colored.split('\u{1b}').enumerate() {
        stripped.push_str(if at == 0 { piece } else { piece.split_once('m').unwrap().1 });
    }
    assert_eq!(stripped, plain);
}

#[test]
fn wide_trees_show_the_longest_paths_and_say_what_is_left_out() {
    let mut paths = PathTree::default();
    let main = step(&mut paths, None, 0, &[(1_000_000, 0)]);
    for region in 1..=1000 {
        step(&mut paths, Some(main), region, &[(i64::from(region), i64::from(region))]);
    }
    let names: Vec<_> = (0..=1000).map(|region| format!("r{region}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let text = summary(&names, paths).render(&Layout { max_rows: 3, ..Layout::default() });
    let expected = "\
call path  calls  inclusive      self  share      mean       min       max
r0             1   1.000 ms      0 ns   100%  1.000 ms  1.000 ms  1.000 ms
├─ r1000       1   1.000 us  1.000 us   0.1%  1.000 us  1.000 us  1.000 us
└─ r999        1     999 ns    999 ns   0.1%    999 ns    999 ns    999 ns
... 998 more call paths of up to 998 ns; the tree has 2 levels
";
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn a_very_deep_tree_takes_few_lines() {
    let mut paths = PathTree::default();
    let mut path = None;
    for level in 0..100_000 {
        path = Some(step(&mut paths, path, 0, &[(100_000 - level, 1)]));
    }
    let text = summary(&["dig"], paths).render(&Layout::default());
    assert_eq!(text.lines().count(), 18);
    assert!(text.ends_with("\n... 99,984 more call paths of up to 99.98 us; the tree has 100,000 levels\n"));
}

#[test]
fn long_names_keep_both_ends() {
    let mut paths = PathTree::default();
    step(&mut paths, None, 0, &[(10, 10)]);
    let name = format!("begin{}end", "测".repeat(100));
    let text = summary(&[&name], paths).render(&Layout { max_name_width: 20, ..Layout::default() });
    assert!(text.contains("begin测测…测测测end"), "{text}");
}

#[test]
fn what_is_missing_is_said() {
    let summary = Summary { lost_calls: 1234, faulty_calls: 1, ..Summary::default() };
    let expected = "There are no calls to show.\n\
                    ! 1,234 calls are missing: there was no room to record more\n\
                    ! 1 call ended before the start (the clock stepped back), counted as 0 ns\n";
    assert_eq!(summary.render(&Layout::default()), expected);
}

#[test]
fn calls_that_were_dropped_are_counted() {
    let mut paths = PathTree::default();
    for (region, calls, cancelled) in [(0, 5, 0), (1, 1200, 1000), (2, 3, 2)] {
        let path = step(&mut paths, None, region, &[(1000, 1000)]);
        let mut more = paths.nodes()[path.0 as usize].clone();
        (more.calls, more.cancelled) = (calls - 1, cancelled);
        paths.add_totals(path, &more);
    }
    let text = summary(&["main", "request", "accept"], paths).render(&Layout::default());
    assert!(text.ends_with("\n1,002 calls were dropped before completion: `accept`, `request`\n"), "{text}");
}

#[test]
fn many_files_are_counted() {
    let file = |rank| OutputFile::prof(format!("out/profile_rank{rank}.prof").into());
    let summary = Summary { files: (0..2000).map(file).collect(), ..Summary::default() };
    let text = summary.render(&Layout::default());
    assert!(text.ends_with("\n... 1,988 more files beside them\n"));
    assert_eq!(text.lines().count(), 15);
}

#[test]
fn recordings_are_added_up() {
    let mut profile = Profile { lost_calls: 2, open_calls: 1, ..Profile::default() };
    profile.regions.push(scope_runtime::profile::Region {
        name: "main".into(),
        file: String::new(),
        line: 0,
    });
    step(&mut profile.paths, None, 0, &[(10, 10)]);
    let summary = Summary::of_profiles("two ranks", [&profile, &profile]);
    assert_eq!((summary.lost_calls, summary.open_calls), (4, 2));
    assert_eq!(summary.paths.paths.nodes()[0].calls, 2);
}

#[test]
fn paths_are_words_of_a_shell() {
    assert_eq!(in_shell("target/scope/a-b_1.svg"), "target/scope/a-b_1.svg");
    assert_eq!(shlex::split(&in_shell("it's $HOME")).unwrap(), ["it's $HOME"]);
    assert_eq!(in_shell(""), r"''");
}

#[test]
fn nothing_is_shown_below_a_path_that_hardly_counts() {
    let mut paths = PathTree::default();
    let main = step(&mut paths, None, 0, &[(1_000_000, 999_000)]);
    let mut path = step(&mut paths, Some(main), 1, &[(999, 1)]);
    for left in (990..998).rev() {
        path = step(&mut paths, Some(path), 1, &[(left, 1)]);
    }
    let text = summary(&["main", "fib"], paths).render(&Layout::default());
    assert_eq!(text.lines().count(), 4);
    assert!(text.ends_with("... 8 more call paths of up to 997 ns; the tree has 10 levels\n"));
}
