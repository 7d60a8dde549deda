//! That calls which are told one by one come to lie in a file as if all had been in memory.

use std::path::Path;

use rust_hdf5::H5File;
use scope_runtime::profile::{Lane, LaneId, Profile, Region, RegionId};
use scope_runtime::recording::{Call, CallLink, CallSink, Info, Parent, Tasks};
use scope_runtime::totals::PathTree;

use super::{ProfileWriter, read, write};
use crate::collect::{self, Merger, RankRecording, RunInfo};

/// A rank whose calls are made up while they are visited: on each of three lanes 40,000 of seven regions,
/// inside each other, the last of them being open from begin to end.
struct MadeUp {
    info: Info,
    profile: Profile,
    tasks: Tasks,
}

const REGIONS: u32 = 7;
const CALLS_OF_A_LANE: u32 = 40_000;
/// The last begin of all lies before.
const END_NS: i64 = 10 * CALLS_OF_A_LANE as i64;

impl MadeUp {
    fn rank(rank: u32) -> MadeUp {
        let region = |number: u32| Region { name: format!("region {number}"), file: String::new(), line: 0 };
        let lane = |number: u32| Lane {
            name: format!("lane {number}"),
            os_thread: 1,
            first_ns: 0,
            last_ns: END_NS,
            ended: true,
            cpu_ns: None,
        };
        let profile = Profile {
            rank,
            regions: (0..REGIONS).map(region).collect(),
            lanes: (0..3).map(lane).collect(),
            ..Profile::default()
        };
        let mut made_up =
            MadeUp { info: Info { rank, ranks: 3, ..Info::default() }, profile, tasks: Tasks::default() };
        for lane in 0..3 {
            let mut calls: Vec<Call> = Vec::new();
            made_up.visit_calls(LaneId(lane), &mut calls);
            for call in calls {
                let path = made_up.profile.paths.step(None, call.region);
                made_up.profile.paths.add_call(path, 1, 1, false);
            }
        }
        made_up
    }
}

impl RankRecording for MadeUp {
    fn info(&self) -> &Info {
        &self.info
    }

    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn visit_calls(&self, lane: LaneId, sink: &mut impl CallSink) {
        let mut seed = u64::from(self.info.rank * 3 + lane.0) + 1;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut open = vec![(0, sink.begin(RegionId(REGIONS - 1), 0, Parent::None, None))];
        for call in 1..CALLS_OF_A_LANE {
            let now_ns = 10 * i64::from(call);
            while open.len() > 1 && (open.len() > 8 || random(2) == 0) {
                let (_, kept) = open.pop().expect("there is one");
                sink.end(kept, now_ns - random(10) as i64, None, false);
            }
            let region = RegionId(random(u64::from(REGIONS) - 1) as u32);
            let (around, kept) = *open.last().expect("the outermost stays");
            let begun = sink.begin(region, now_ns, Parent::Call(around), Some(&kept));
            open.push((call, begun));
        }
        open.into_iter().rev().for_each(|(_, kept)| sink.end(kept, END_NS, None, false));
    }

    fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    fn links(&self) -> Vec<CallLink> {
        Vec::new()
    }

    fn linked_paths(&self) -> Option<PathTree> {
        None
    }
}

/// Adds ranks to a file one by one.
fn add_all(mut merger: Merger, ranks: &[MadeUp], path: &Path) -> Result<(), collect::Error> {
    let mut file: ProfileWriter = ProfileWriter::create(path)?;
    for rank in ranks {
        merger.add(Path::new("rank.scope"), rank, &mut file)?;
    }
    file.finish(&merger.finish(&RunInfo::default())?)?;
    Ok(())
}

fn statistics(path: &Path) -> Vec<u8> {
    let file = H5File::open(path).unwrap();
    file.dataset("rank_region_index/summary_statistics").unwrap().read_raw_bytes().unwrap()
}

#[test]
fn calls_told_one_by_one_lie_where_those_in_memory_do() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, told) = (folder.path().join("whole.h5"), folder.path().join("told.h5"));
    let mut ranks = [0, 1, 2].map(MadeUp::rank);
    let at = Path::new("rank.scope");
    let in_memory = [0, 1, 2].map(|rank| (at, MadeUp::rank(rank)));
    let merged = collect::merge(&in_memory, &RunInfo::default()).unwrap();
    write(&merged, &whole).unwrap();
    add_all(Merger::default(), &ranks, &told).unwrap();
    assert!(read(&told).unwrap() == read(&whole).unwrap());
    assert_eq!(statistics(&told), statistics(&whole));

    // Where the totals of a rank are not those of its calls, they are to be counted.
    let path = ranks[1].profile.paths.step(None, RegionId(3));
    ranks[1].profile.paths.add_call(path, 1, 1, false);
    let error = add_all(Merger::default(), &ranks, &told).unwrap_err();
    assert!(matches!(error, collect::Error::WrongTotals { .. }), "{error}");
    add_all(Merger::that_counts(), &ranks, &told).unwrap();
    assert_eq!(read(&told).unwrap().events, read(&whole).unwrap().events);
}
