//! The one decision of the reference that follows from its arithmetic and not from its rules.

use std::collections::HashMap;

use super::input::RegionCalls;

/// Whether the reference rejects these calls because doubling a time overflows.
///
/// It counts the calls that have ended when another starts, with times doubled in 64 bits. Times
/// on both sides of 2^62 wrap differently; a count beyond the calls begun so far is an error there.
pub(super) fn overflows(regions: &[RegionCalls<'_>]) -> bool {
    const LIMIT: u64 = 1 << 62;
    let large = |time: &i64| time.unsigned_abs() >= LIMIT;
    if !regions.iter().any(|region| region.starts.iter().chain(region.ends).any(large)) {
        return false;
    }
    let mut lanes: HashMap<i64, Vec<(i64, i64)>> = HashMap::new();
    for region in regions {
        for (at, (&start, &end)) in region.starts.iter().zip(region.ends).enumerate() {
            lanes.entry(region.lane_number(at)).or_default().push((start, end));
        }
    }
    lanes.into_values().any(|mut calls| {
        calls.sort_by_key(|&(start, end)| (start, std::cmp::Reverse(end)));
        let double = |time: i64| time.wrapping_mul(2);
        let mut closed: Vec<i64> =
            calls.iter().map(|&(start, end)| double(end).wrapping_add(i64::from(start == end))).collect();
        closed.sort_unstable();
        let ended = |start: i64| closed.partition_point(|end| *end <= double(start));
        calls.iter().enumerate().any(|(begun, &(start, _))| ended(start) > begun)
    })
}
