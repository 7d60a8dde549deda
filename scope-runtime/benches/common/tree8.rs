//! The workload "tree8": deterministic call trees up to eight deep, about 50 regions.

/// Does what a program with this workload does.
pub(crate) trait Walker {
    /// Enters a region, a number below [`REGIONS`], at this time.
    fn enter(&mut self, region: u32, time: i64);
    /// Leaves the innermost open region at this time.
    fn leave(&mut self, time: i64);
}

fn splitmix(at: u64, seed: u64) -> u64 {
    let z = (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(seed);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

const MAX_DEPTH: u64 = 8;

/// Six per level.
pub(crate) const REGIONS: usize = (MAX_DEPTH as usize + 1) * 6;

/// A lane of `calls` calls, step by step.
pub(crate) fn walk(calls: usize, seed: u64, walker: &mut impl Walker) {
    let (mut time, mut stack) = (0, Vec::<u32>::new());
    for call in 0..calls {
        let random = splitmix(call as u64, seed);
        let depth = stack.len() as u64;
        let closed = match depth {
            0 => 0,
            MAX_DEPTH => 1 + (random & 7) % depth,
            depth if random >> 3 & 3 == 0 => (random & 7) % (depth + 1),
            _ => 0,
        };
        for _ in 0..closed {
            time += 50 + (random >> 8 & 63) as i64;
            stack.pop();
            walker.leave(time);
        }
        time += 100 + (random >> 16 & 127) as i64;
        let above = stack.last().map_or(0, |region| region % 6);
        let region = stack.len() as u32 * 6 + ((random >> 24 & 1) as u32 + above) % 6;
        stack.push(region);
        walker.enter(region, time);
    }
    for _ in stack {
        time += 50;
        walker.leave(time);
    }
}
