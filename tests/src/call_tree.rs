//! The calls of one rank as a tree, from the columns of `profile.h5`, and what must hold for it.

use std::collections::BTreeMap;

use cargo_scope::merged::MergedProfile;

/// One call. Times in ns on the recording clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Name of the region.
    pub name: String,
    /// Start.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// Id of the enclosing call.
    pub parent: Option<i64>,
    /// Index of the thread on which it began.
    pub thread: i64,
    /// Index of the task; -1 outside any.
    pub task: i64,
    /// Time in which it was waiting.
    pub await_ns: i64,
}

impl Call {
    /// End minus start.
    pub fn duration_ns(&self) -> i64 {
        self.end_ns - self.start_ns
    }
}

/// Sums over the calls of one path. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSums {
    /// Number of calls.
    pub calls: u64,
    /// Sum of durations.
    pub inclusive_ns: i64,
    /// Sum of the parts of the calls in which no child was open.
    pub self_ns: i64,
}

/// All calls of one rank by id; ids rise in order of entry on a thread.
#[derive(Clone, Debug, Default)]
pub struct CallTree {
    calls: BTreeMap<i64, Call>,
    children: BTreeMap<i64, Vec<i64>>,
}

impl CallTree {
    /// The tree of `rank`.
    ///
    /// # Panics
    /// When the invariants do not hold: ids are unique; a call lies inside its parent, on the same
    /// thread, and after its earlier siblings; and `exclusive_totals` of the file are the sums of
    /// the time left over by children. With tasks: calls of one lane nest, a call waits for no longer
    /// than it lasts, and has a parent that began before.
    #[track_caller]
    pub fn of_rank(profile: &MergedProfile, rank: u32) -> CallTree {
        let events = &profile.events;
        let columns = (&events.call_ids, &events.parent_ids, &events.thread_ids);
        let (Some(ids), Some(parents), Some(threads)) = columns else { panic!("a column is missing") };
        let mut tree = CallTree::default();
        for row in profile.rows.iter().filter(|row| row.rank == rank) {
            let name = &profile.names[row.region as usize];
            for event in row.events.clone() {
                let start_ns = events.start_ns[event];
                let call = Call {
                    name: name.clone(),
                    start_ns,
                    end_ns: start_ns + events.duration_ns[event],
                    parent: Some(parents[event]).filter(|&id| id >= 0),
                    thread: threads[event],
                    task: events.task_ids.as_ref().map_or(-1, |tasks| tasks[event]),
                    await_ns: events.await_ns.as_ref().map_or(0, |await_ns| await_ns[event]),
                };
                assert!(call.end_ns >= call.start_ns, "{call:?}");
                assert_eq!(tree.calls.insert(ids[event], call), None, "call id {}", ids[event]);
            }
        }
        for (&id, call) in &tree.calls {
            tree.children.entry(call.parent.unwrap_or(-1)).or_default().push(id);
        }
        if events.task_ids.is_some() {
            tree.check_lanes();
        } else {
            tree.check_nesting();
            tree.check_exclusive_totals(profile, rank);
        }
        tree
    }

    #[track_caller]
    fn check_lanes(&self) {
        let mut lanes: BTreeMap<(i64, i64), Vec<&Call>> = BTreeMap::new();
        for call in self.calls.values() {
            assert!((0..=call.duration_ns()).contains(&call.await_ns), "{call:?}");
            let parent = call.parent.map(|id| &self.calls[&id]);
            assert!(parent.is_none_or(|parent| parent.start_ns <= call.start_ns), "{call:?} in {parent:?}");
            let lane = if call.task < 0 { (-1, call.thread) } else { (call.task, -1) };
            lanes.entry(lane).or_default().push(call);
        }
        for calls in lanes.values_mut() {
            calls.sort_by_key(|call| (call.start_ns, std::cmp::Reverse(call.end_ns)));
            let mut open: Vec<&Call> = Vec::new();
            for &call in calls.iter() {
                while open.pop_if(|around| around.end_ns <= call.start_ns).is_some() {}
                let around = open.last();
                assert!(around.is_none_or(|around| call.end_ns <= around.end_ns), "{call:?} in {around:?}");
                open.push(call);
            }
        }
    }

    #[track_caller]
    fn check_nesting(&self) {
        let mut free_from = BTreeMap::new();
        for (id, call) in &self.calls {
            let earliest = match call.parent {
                None => i64::MIN,
                Some(parent_id) => {
                    let parent = self.calls.get(&parent_id).unwrap_or_else(|| panic!("parent of {call:?}"));
                    assert!(parent_id < *id && parent.thread == call.thread, "{call:?} in {parent:?}");
                    assert!(call.end_ns <= parent.end_ns, "{call:?} in {parent:?}");
                    parent.start_ns
                }
            };
            let free_from = free_from.entry((call.parent, call.thread)).or_insert(earliest);
            assert!(call.start_ns >= *free_from, "{call:?} starts before {free_from}");
            *free_from = call.end_ns;
        }
    }

    #[track_caller]
    fn check_exclusive_totals(&self, profile: &MergedProfile, rank: u32) {
        let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
        for (&id, call) in &self.calls {
            *sums.entry(&call.name).or_default() += self.self_ns(id, call);
        }
        for row in profile.rows.iter().filter(|row| row.rank == rank) {
            let name = profile.names[row.region as usize].as_str();
            assert_eq!(row.exclusive_total_ns, sums.get(name).copied(), "{name}");
        }
    }

    /// Sum of the gaps between the children of a call.
    fn self_ns(&self, id: i64, call: &Call) -> i64 {
        let mut covered_to = call.start_ns;
        let mut gaps_ns = 0;
        for child in self.children.get(&id).into_iter().flatten().map(|child| &self.calls[child]) {
            gaps_ns += child.start_ns - covered_to;
            covered_to = child.end_ns;
        }
        gaps_ns + call.end_ns - covered_to
    }

    /// The call with this id.
    pub fn get(&self, id: i64) -> Option<&Call> {
        self.calls.get(&id)
    }

    /// Number of calls of the region `name`.
    pub fn count(&self, name: &str) -> usize {
        self.named(name).count()
    }

    /// Number of calls by region.
    pub fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        self.calls.values().for_each(|call| *counts.entry(call.name.as_str()).or_default() += 1);
        counts
    }

    /// The calls of the region `name`, in order of entry on each thread.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Call> {
        self.calls.values().filter(move |call| call.name == name)
    }

    /// For each call of the region `name` the name of its parent, `None` at the top.
    pub fn parents(&self, name: &str) -> Vec<Option<&str>> {
        self.named(name).map(|call| call.parent.map(|id| self.calls[&id].name.as_str())).collect()
    }

    /// Sums by call path; a path holds the names from the root to the leaf.
    pub fn paths(&self) -> BTreeMap<Vec<&str>, PathSums> {
        let mut path_of: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
        let mut paths: BTreeMap<Vec<&str>, PathSums> = BTreeMap::new();
        for (&id, call) in &self.calls {
            let mut path = call.parent.map(|parent| path_of[&parent].clone()).unwrap_or_default();
            path.push(&call.name);
            let sums = paths.entry(path.clone()).or_default();
            sums.calls += 1;
            sums.inclusive_ns += call.duration_ns();
            sums.self_ns += self.self_ns(id, call);
            path_of.insert(id, path);
        }
        paths
    }
}

/// Checks that inclusive = self + sum of children's inclusive, for every path.
///
/// # Panics
/// When it is not.
#[track_caller]
pub fn check_inclusive_times(paths: &BTreeMap<Vec<&str>, PathSums>) {
    let mut children_ns: BTreeMap<&[&str], i64> = BTreeMap::new();
    for (path, sums) in paths {
        *children_ns.entry(&path[..path.len() - 1]).or_default() += sums.inclusive_ns;
    }
    for (path, sums) in paths {
        let children_ns = children_ns.get(path.as_slice()).copied().unwrap_or(0);
        assert_eq!(sums.inclusive_ns, sums.self_ns + children_ns, "{}", path.join(" > "));
    }
}
