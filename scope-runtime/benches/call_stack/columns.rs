//! The workload as columns of calls.

use crate::tree8;

/// Columns of all calls, grouped by region as in a profile file.
pub(crate) struct Columns {
    /// Per region, where its calls end.
    pub(crate) ends_at: Vec<usize>,
    pub(crate) names: Vec<String>,
    pub(crate) starts: Vec<i64>,
    pub(crate) ends: Vec<i64>,
    pub(crate) threads: Vec<i64>,
}

/// A lane in the order of entry.
#[derive(Default)]
struct Lane {
    starts: Vec<i64>,
    ends: Vec<i64>,
    regions: Vec<u32>,
    open: Vec<usize>,
}

impl tree8::Walker for Lane {
    fn enter(&mut self, region: u32, time: i64) {
        self.open.push(self.starts.len());
        self.starts.push(time);
        self.ends.push(time);
        self.regions.push(region);
    }

    fn leave(&mut self, time: i64) {
        self.ends[self.open.pop().expect("an open call")] = time;
    }
}

fn lane(calls: usize, seed: u64) -> Lane {
    let mut lane = Lane::default();
    tree8::walk(calls, seed, &mut lane);
    lane
}

/// `calls` calls on `lanes` lanes.
pub(crate) fn columns(calls: usize, lanes: usize) -> Columns {
    let lanes: Vec<Lane> = (0..lanes).map(|number| lane(calls / lanes, 1000 + number as u64)).collect();
    let mut columns = Columns::empty();
    for region in 0..tree8::REGIONS as u32 {
        for (number, lane) in lanes.iter().enumerate() {
            for call in (0..lane.starts.len()).filter(|call| lane.regions[*call] == region) {
                columns.push(lane.starts[call], lane.ends[call], number as i64);
            }
        }
        columns.close_region(&format!("region_{region:02}"));
    }
    columns
}

impl Columns {
    pub(crate) fn empty() -> Columns {
        let names = Vec::new();
        Columns { ends_at: Vec::new(), names, starts: Vec::new(), ends: Vec::new(), threads: Vec::new() }
    }

    pub(crate) fn push(&mut self, start: i64, end: i64, thread: i64) {
        self.starts.push(start);
        self.ends.push(end);
        self.threads.push(thread);
    }

    /// All calls since the last region are those of this one; a region without calls is left out.
    pub(crate) fn close_region(&mut self, name: &str) {
        if self.ends_at.last().copied().unwrap_or(0) < self.starts.len() {
            self.ends_at.push(self.starts.len());
            self.names.push(name.to_owned());
        }
    }
}
