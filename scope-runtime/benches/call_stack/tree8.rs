//! The workload "tree8": deterministic call trees up to eight deep, about 50 regions.

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
struct Lane {
    starts: Vec<i64>,
    ends: Vec<i64>,
    regions: Vec<u32>,
}

fn splitmix(at: u64, seed: u64) -> u64 {
    let z = (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(seed);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

fn lane(calls: usize, seed: u64, max_depth: u64) -> Lane {
    let mut lane = Lane { starts: vec![0; calls], ends: vec![0; calls], regions: vec![0; calls] };
    let (mut time, mut stack) = (0, Vec::<usize>::new());
    for call in 0..calls {
        let random = splitmix(call as u64, seed);
        let depth = stack.len() as u64;
        let closed = match depth {
            0 => 0,
            depth if depth == max_depth => 1 + (random & 7) % depth,
            depth if random >> 3 & 3 == 0 => (random & 7) % (depth + 1),
            _ => 0,
        };
        for _ in 0..closed {
            time += 50 + (random >> 8 & 63) as i64;
            lane.ends[stack.pop().expect("an open call")] = time;
        }
        time += 100 + (random >> 16 & 127) as i64;
        lane.starts[call] = time;
        let above = stack.last().map_or(0, |parent| lane.regions[*parent] % 6);
        lane.regions[call] = stack.len() as u32 * 6 + ((random >> 24 & 1) as u32 + above) % 6;
        stack.push(call);
    }
    for call in stack.into_iter().rev() {
        time += 50;
        lane.ends[call] = time;
    }
    lane
}

/// `calls` calls on `lanes` lanes.
pub(crate) fn columns(calls: usize, lanes: usize) -> Columns {
    let lanes: Vec<Lane> = (0..lanes).map(|number| lane(calls / lanes, 1000 + number as u64, 8)).collect();
    let regions = lanes.iter().flat_map(|lane| &lane.regions).max().map_or(0, |last| last + 1);
    let mut columns = Columns::empty();
    for region in 0..regions {
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
