use super::*;
use crate::merged::{Aggregate, Events, Row, TaskRow};

/// ```text
/// rank 0  a [0 ............. 100]     rank 1  a [50,60]
///           b [10 ........ 90]
///             c [20,30]
/// ```
/// `b` of rank 0 is stored in front of `a`, and nothing but the times says who called whom.
fn profile() -> MergedProfile {
    let row = |region, rank, call: usize| Row {
        region,
        rank,
        source_line: -1,
        events: call..call + 1,
        ..Row::default()
    };
    MergedProfile {
        names: ["b", "a", "c"].map(String::from).to_vec(),
        rows: vec![row(0, 0, 0), row(1, 0, 1), row(2, 0, 2), row(1, 1, 3)],
        events: Events {
            start_ns: vec![10, 0, 20, 50],
            duration_ns: vec![80, 100, 10, 10],
            ..Events::default()
        },
        ..MergedProfile::default()
    }
}

fn run(profile: &MergedProfile) -> Vec<Run<'_>> {
    vec![Run { label: "run".into(), profile }]
}

fn select(include: &[&str], exclude: &[&str]) -> Selection {
    let list = |patterns: &[&str]| patterns.iter().map(|pattern| pattern.to_string()).collect();
    Selection { ranks: Ranks::All, include: list(include), exclude: list(exclude), view: View::Busy }
}

/// Name, self time and inclusive time of every entry, in ns.
fn entries(stats: &RankStats) -> Vec<(String, i64, i64)> {
    let ns = |seconds: f64| (seconds * 1e9).round() as i64;
    let entry = |entry: &Entry| (entry.key.name.to_string(), ns(entry.tt_s), ns(entry.ct_s));
    stats.stats.entries().iter().map(entry).collect()
}

fn named(entries: &[(&str, i64, i64)]) -> Vec<(String, i64, i64)> {
    entries.iter().map(|&(name, self_ns, inclusive_ns)| (name.to_string(), self_ns, inclusive_ns)).collect()
}

#[test]
fn each_rank_has_its_dict_with_a_root() {
    let profile = profile();
    let all = to_pstats(&run(&profile), &Selection::default(), &ProfOptions::default()).unwrap();
    let first = named(&[("a", 20, 100), ("a > b", 70, 80), ("a > b > c", 10, 10), ("<run rank 0>", 0, 100)]);
    assert_eq!(entries(&all[0]), first);
    assert_eq!(entries(&all[1]), named(&[("a", 10, 10), ("<run rank 1>", 0, 10)]));
    let options = ProfOptions { root: Some("everything".into()), call_paths: false };
    let one = Selection { ranks: Ranks::List(vec![1]), ..Selection::default() };
    let all = to_pstats(&run(&profile), &one, &options).unwrap();
    assert_eq!(entries(&all[0]), named(&[("a", 10, 10), ("everything", 0, 10)]));
}

#[test]
fn hidden_calls_give_their_time_to_the_nearest_kept_one() {
    let expected = named(&[("a", 90, 100), ("a > c", 10, 10), ("<run rank 0>", 0, 100)]);
    let mut profile = profile();
    for with_ids in [false, true] {
        if with_ids {
            profile.events.call_ids = Some(vec![1, 0, 2, 0]);
            profile.events.parent_ids = Some(vec![0, -1, 1, -1]);
        }
        for selection in [select(&["a", "c"], &[]), select(&[], &["b"]), select(&["."], &["b", "x"])] {
            let all = to_pstats(&run(&profile), &selection, &ProfOptions::default()).unwrap();
            assert_eq!(entries(&all[0]), expected);
        }
    }
}

#[test]
fn hidden_calls_are_no_obstacle_where_intervals_decide() {
    let mut profile = profile();
    // `b` ends behind `a`, and no ids say what is right.
    profile.events.duration_ns[0] = 200;
    profile.events.call_ids = Some(vec![-1; 4]);
    profile.events.parent_ids = Some(vec![-1; 4]);
    let all = to_pstats(&run(&profile), &select(&[], &["b"]), &ProfOptions::default()).unwrap();
    let expected = [("a", 90, 100), ("a > c", 10, 10), ("<run rank 0>", 0, 100)];
    assert_eq!(entries(&all[0]), named(&expected));
    let (paths, statistics) =
        statistics(&profile, &select(&[], &["b"]), By::Path, &mut LeftOut::default()).unwrap();
    let found: Vec<_> =
        statistics.iter().map(|of| (of.calls, of.self_ns, of.spread.map(|spread| spread.p50_ns))).collect();
    assert_eq!(paths.names, ["a", "c"]);
    assert_eq!(found, [(2, 100, Some(55.0)), (1, 10, Some(10.0))]);
}

/// As in files of the Python package that tracked tasks.
#[test]
fn times_are_called_what_they_are() {
    let mut profile = profile();
    profile.tasks = Some(vec![TaskRow::default()]);
    let root = |profile: &MergedProfile, view| {
        let selection = Selection { view, ..Selection::default() };
        let all = to_pstats(&run(profile), &selection, &ProfOptions::default()).unwrap();
        entries(&all[0]).pop().unwrap().0
    };
    for view in [View::Busy, View::Linked, View::WallByLane] {
        assert_eq!(root(&profile, view), "<run rank 0, wall time by lane>");
    }
    profile.paths = Some(Vec::new());
    assert_eq!(root(&profile, View::Busy), "<run rank 0, busy time>");
    assert_eq!(root(&profile, View::Wall), "<run rank 0, wall time>");
}

/// As the Python package writes them for regions of a compiled library, or a rank without a call graph.
#[test]
fn wall_time_is_found_where_calls_have_no_ids_of_their_own() {
    let mut profile = profile();
    profile.tasks = Some(vec![TaskRow::default()]);
    let selection = Selection { view: View::Wall, ..Selection::default() };
    let expected = [("a", 20, 100), ("a > b", 70, 80), ("a > b > c", 10, 10)];
    let no_ids = [None, Some(vec![-1, 0, 1, 0]), Some(vec![1, 1, 2, 0]), Some(vec![-1; 4])];
    for ids in no_ids {
        profile.events.parent_ids = ids.as_ref().map(|_| vec![-1, -1, 0, -1]);
        profile.events.call_ids = ids;
        let all = to_pstats(&run(&profile), &selection, &ProfOptions::default()).unwrap();
        assert_eq!(entries(&all[0])[..3], named(&expected), "{:?}", profile.events.call_ids);
    }
}

#[test]
fn patterns_match_at_the_start_of_a_name() {
    let mut profile = profile();
    profile.names = ["in a", "a in", "c"].map(String::from).to_vec();
    let all = to_pstats(&run(&profile), &select(&["in|x"], &[]), &ProfOptions::default()).unwrap();
    assert_eq!(entries(&all[0])[0], ("in a".into(), 80, 80));
    assert_eq!(entries(&all[1]), named(&[("<run rank 1>", 0, 0)]));
}

#[test]
fn errors_say_what_is_wrong() {
    let profile = profile();
    let error = |selection: &Selection| {
        to_pstats(&run(&profile), selection, &ProfOptions::default()).unwrap_err().to_string()
    };
    let text = "run: none of the 3 region(s) matches the filters, which apply at the start of a name";
    assert_eq!(error(&select(&["nothing"], &[])), text);
    let text = "run: there is no rank 7: the profile has 2 rank(s), counted from 0";
    assert_eq!(error(&Selection { ranks: Ranks::List(vec![0, 7]), ..Selection::default() }), text);
    assert!(error(&select(&["("], &[])).starts_with("`(` is no regular expression: "));
    let none = to_pstats(&[], &Selection::default(), &ProfOptions::default()).unwrap_err();
    assert_eq!(none.to_string(), "no profile was given");
    let totals = MergedProfile { aggregates: Some(vec![Aggregate::default()]), ..MergedProfile::default() };
    let error = to_pstats(&run(&totals), &Selection::default(), &ProfOptions::default()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("run: the profile has totals per region only") && !text.contains('\n'),
        "{text}"
    );
}

#[test]
fn a_lane_that_does_not_nest_is_reported_and_left_out() {
    let mut profile = profile();
    profile.events.thread_ids = Some(vec![0, 0, 1, 0]);
    profile.events.duration_ns[0] = 200;
    let (runs, all) = (run(&profile), &Selection::default());
    let folder = tempfile::tempdir().unwrap();
    type Make<'a> = &'a dyn Fn(&mut LeftOut);
    let makes: [Make; 6] = [
        &|left_out| drop(statistics(&profile, all, By::Path, left_out).unwrap()),
        &|left_out| drop(rank_statistics(&profile, all, left_out).unwrap()),
        &|left_out| drop(named_paths(&profile, all, left_out).unwrap()),
        &|left_out| {
            export_prof(&runs, &folder.path().join("p"), all, &ProfOptions::default(), left_out).unwrap();
        },
        &|left_out| {
            export_flame(&runs, &folder.path().join("p"), all, &FlameOptions::default(), left_out).unwrap();
        },
        &|left_out| {
            let options = FlameOptions::default();
            export_merged_flame(&runs, &folder.path().join("p"), all, &options, left_out).unwrap();
        },
    ];
    for make in makes {
        let mut left_out = LeftOut::default();
        make(&mut left_out);
        let lines: Vec<_> = left_out.lines().collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("rank 0: a lane is left out: recorded calls are not properly nested"));
    }
    let all = to_pstats(&run(&profile), &Selection::default(), &ProfOptions::default()).unwrap();
    assert_eq!(entries(&all[0]), named(&[("c", 10, 10), ("<run rank 0>", 0, 10)]));
}

#[test]
fn files_are_named_by_run_and_rank() {
    let folder = tempfile::tempdir().unwrap();
    let profile = profile();
    let mut runs = run(&profile);
    let all = Selection::default();
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_string();
    let path = folder.path().join("new/flamegraph.svg");
    let files = export_flame(&runs, &path, &all, &FlameOptions::default(), &mut LeftOut::default()).unwrap();
    assert_eq!(files.iter().map(name).collect::<Vec<_>>(), ["flamegraph_rank0.svg", "flamegraph_rank1.svg"]);
    assert!(std::fs::read_to_string(&files[1]).unwrap().contains(">run rank 1</text>"));
    runs.push(Run { label: "second run".into(), profile: &profile });
    let files =
        export_merged_flame(&runs, &path, &all, &FlameOptions::default(), &mut LeftOut::default()).unwrap();
    assert_eq!(
        files.iter().map(name).collect::<Vec<_>>(),
        ["flamegraph_run.svg", "flamegraph_second_run.svg"]
    );
    let merged = std::fs::read_to_string(&files[1]).unwrap();
    assert!(merged.contains(">second run, 2 ranks together</text>"));
    assert!(merged.contains("<title>a (110 ns, 100%, self 30 ns, 2 calls)</title>"));
    let files = export_prof(
        &runs,
        &folder.path().join("p.prof"),
        &all,
        &ProfOptions::default(),
        &mut LeftOut::default(),
    )
    .unwrap();
    let names: Vec<_> = files.iter().map(name).collect();
    assert_eq!(
        names,
        ["p_run_rank0.prof", "p_run_rank1.prof", "p_second_run_rank0.prof", "p_second_run_rank1.prof"]
    );
    let loaded = pstats::load_prof(std::fs::File::open(&files[0]).unwrap()).unwrap();
    assert_eq!(loaded.entries().len(), 4);
}

#[test]
fn no_calls_make_files_that_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let profile = MergedProfile::default();
    let all = Selection::default();
    let path = folder.path().join("flamegraph.svg");
    for files in [
        export_flame(&run(&profile), &path, &all, &FlameOptions::default(), &mut LeftOut::default()).unwrap(),
        export_merged_flame(&run(&profile), &path, &all, &FlameOptions::default(), &mut LeftOut::default())
            .unwrap(),
    ] {
        assert!(std::fs::read_to_string(&files[0]).unwrap().contains("Nothing to show: no calls"));
    }
    let all = to_pstats(&run(&profile), &all, &ProfOptions::default()).unwrap();
    assert_eq!(entries(&all[0]), named(&[("<run rank 0>", 0, 0)]));
}
