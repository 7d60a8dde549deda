//! Totals per call path, as rows of the file, and per region, for runs that kept no events.

use std::collections::HashMap;

use crate::profile::{Region, RegionId};
use crate::totals::PathTree;

use crate::merged::{Aggregate, MergedProfile, PathRow};

/// The paths of one rank, parents as positions among them; `region_id` gives the number of a name.
pub(super) fn rows(
    paths: &PathTree,
    regions: &[Region],
    rank: u32,
    mut region_id: impl FnMut(&str) -> u32,
) -> Vec<PathRow> {
    let mut number = |region: RegionId| region_id(&regions[region.0 as usize].name);
    paths.nodes().iter().map(|node| PathRow::new(rank, number(node.region), node)).collect()
}

/// Appends the paths of the next rank; parents become positions among all.
pub(super) fn append(all: &mut Vec<PathRow>, rows: Vec<PathRow>) {
    let before = all.len() as i64;
    let moved = |parent: i64| if parent < 0 { parent } else { parent + before };
    all.extend(rows.into_iter().map(|row| PathRow { parent: moved(row.parent), ..row }));
}

/// Totals per row, each region with all its paths.
pub(super) fn aggregates(profile: &MergedProfile) -> Vec<Aggregate> {
    let mut by_row: HashMap<(u32, u32), Aggregate> = HashMap::new();
    for path in profile.paths.iter().flatten().filter(|path| path.calls > 0) {
        let total = by_row.entry((path.rank, path.region)).or_default();
        total.min_ns = if total.count == 0 { path.min_ns } else { total.min_ns.min(path.min_ns) };
        total.max_ns = total.max_ns.max(path.max_ns);
        total.count += path.calls;
        total.total_ns += path.wall_ns;
        total.exclusive_ns += path.self_ns;
    }
    let of_row = |rank, region| by_row.get(&(rank, region)).copied().unwrap_or_default();
    profile.rows.iter().map(|row| of_row(row.rank, row.region)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merged::Row;

    #[test]
    fn a_region_has_the_totals_of_all_its_paths() {
        let path = |parent, region, calls, inclusive_ns, self_ns, min_ns, max_ns| PathRow {
            parent,
            region,
            calls,
            inclusive_ns,
            self_ns,
            wall_ns: inclusive_ns,
            min_ns,
            max_ns,
            ..PathRow::default()
        };
        let rank = vec![path(-1, 0, 1, 100, 40, 100, 100), path(0, 1, 2, 60, 60, 20, 40)];
        let mut paths = Vec::new();
        append(&mut paths, rank.clone());
        append(&mut paths, rank);
        assert_eq!(paths.iter().map(|path| path.parent).collect::<Vec<_>>(), [-1, 0, -1, 2]);
        paths.push(path(-1, 1, 1, 5, 5, 5, 5));
        let rows = vec![Row::default(), Row { region: 1, ..Row::default() }];
        let totals = aggregates(&MergedProfile { rows, paths: Some(paths), ..MergedProfile::default() });
        let expected = Aggregate { count: 5, total_ns: 125, min_ns: 5, max_ns: 40, exclusive_ns: 125 };
        assert_eq!((totals[0].count, totals[1]), (2, expected));
    }
}
