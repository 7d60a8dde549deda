//! The columns that a table can have, and the orders of its rows.

use std::cmp::Reverse;
use std::str::FromStr;

use clap::ValueEnum;

use crate::export::{CallStatistics, Spread};
use crate::paths::NamedPaths;
use crate::units::{count, duration, share};

/// A column of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Column {
    /// Number of calls
    Calls,
    /// Number of ranks with a call
    Ranks,
    /// From begin to end; of recursive calls the outermost
    Inclusive,
    /// The same, as long as a thread ran them
    Busy,
    /// Sum of all durations, those of recursive calls too
    Total,
    /// Busy time without that of direct children
    #[value(name = "self")]
    SelfTime,
    /// Part of the busy time in that of all
    Share,
    /// Mean duration
    Mean,
    /// Shortest duration
    Min,
    /// Longest duration
    Max,
    /// Duration of the call that began first
    First,
    /// Duration of the call that ended last
    Last,
    /// Standard deviation
    Std,
    /// Median duration
    P50,
    /// 95th percentile
    P95,
    /// 99th percentile
    P99,
    /// Mean sum of the ranks with a call
    RankMean,
    /// Sum of the rank with least time, of those with a call
    RankMin,
    /// Sum of the rank with most time
    RankMax,
    /// By how much the rank with most time exceeds the mean
    Imbalance,
    /// Time in which at least one call was open
    Coverage,
}

impl Column {
    /// Those of the table at the end of a run; `Busy` only where calls did not run all of their time.
    pub const USUAL: [Column; 8] = [
        Column::Calls,
        Column::Inclusive,
        Column::Busy,
        Column::SelfTime,
        Column::Share,
        Column::Mean,
        Column::Min,
        Column::Max,
    ];

    /// Those for several ranks, which are compared.
    pub const OF_RANKS: [Column; 11] = [
        Column::Calls,
        Column::Ranks,
        Column::Inclusive,
        Column::Busy,
        Column::SelfTime,
        Column::Share,
        Column::Mean,
        Column::RankMean,
        Column::RankMin,
        Column::RankMax,
        Column::Imbalance,
    ];

    /// Whether the sums of a path tell it.
    pub fn is_usual(self) -> bool {
        Column::USUAL.contains(&self)
    }

    pub(super) fn head(self) -> &'static str {
        match self {
            Column::Calls => "calls",
            Column::Ranks => "ranks",
            Column::Inclusive => "inclusive",
            Column::Busy => "busy",
            Column::Total => "total",
            Column::SelfTime => "self",
            Column::Share => "share",
            Column::Mean => "mean",
            Column::Min => "min",
            Column::Max => "max",
            Column::First => "first",
            Column::Last => "last",
            Column::Std => "std",
            Column::P50 => "p50",
            Column::P95 => "p95",
            Column::P99 => "p99",
            Column::RankMean => "rank-mean",
            Column::RankMin => "rank-min",
            Column::RankMax => "rank-max",
            Column::Imbalance => "imbalance",
            Column::Coverage => "coverage",
        }
    }

    /// The value as people read it; empty where it is not known.
    pub(super) fn cell(self, row: &CallStatistics, total_ns: i64) -> String {
        match self {
            Column::Calls => count(row.calls),
            Column::Ranks => count(row.ranks.into()),
            Column::Share => share(row.busy_ns, total_ns),
            Column::Imbalance => format!("{:.1}%", row.imbalance_percent),
            _ => self.number(row).map_or(String::new(), |ns| duration(ns.round() as i64)),
        }
    }

    /// The value as a number, times in ns; `None` where it is not known.
    fn number(self, row: &CallStatistics) -> Option<f64> {
        let spread = |get: fn(&Spread) -> f64| row.spread.as_ref().map(get);
        // Parts of a call that counts elsewhere are no call.
        let of_calls = |ns: i64| (row.calls > 0).then_some(ns as f64);
        match self {
            Column::Calls => Some(row.calls as f64),
            Column::Ranks => Some(row.ranks.into()),
            Column::Inclusive => Some(row.inclusive_ns as f64),
            Column::Busy | Column::Share => Some(row.busy_ns as f64),
            Column::Total => Some(row.total_ns as f64),
            Column::SelfTime => Some(row.self_ns as f64),
            Column::Mean => row.mean_ns(),
            Column::Min => of_calls(row.min_ns),
            Column::Max => of_calls(row.max_ns),
            Column::First => spread(|spread| spread.first_ns as f64),
            Column::Last => spread(|spread| spread.last_ns as f64),
            Column::Std => spread(|spread| spread.std_ns),
            Column::P50 => spread(|spread| spread.p50_ns),
            Column::P95 => spread(|spread| spread.p95_ns),
            Column::P99 => spread(|spread| spread.p99_ns),
            Column::RankMean => Some(row.total_ns as f64 / f64::from(row.ranks.max(1))),
            Column::RankMin => Some(row.rank_min_ns as f64),
            Column::RankMax => Some(row.rank_max_ns as f64),
            Column::Imbalance => Some(row.imbalance_percent),
            Column::Coverage => spread(|spread| spread.coverage_ns as f64),
        }
    }
}

/// What orders the rows of a table, in a tree those below the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By a column, the largest first.
    Column(Column),
    /// By name, in the order of the letters' numbers.
    Name,
    /// By the start of the first call.
    Start,
}

impl FromStr for Order {
    type Err = String;

    /// Reads the name of a column, `name` or `start`.
    fn from_str(text: &str) -> Result<Order, String> {
        match text {
            "name" => Ok(Order::Name),
            "start" => Ok(Order::Start),
            _ => Column::from_str(text, false).map(Order::Column).map_err(|_| {
                let columns: Vec<_> = Column::value_variants().iter().map(|column| column.head()).collect();
                format!("no such order; give `name`, `start` or a column: {}", columns.join(", "))
            }),
        }
    }
}

impl Order {
    /// Whether the sums of the paths tell it.
    pub fn is_usual(self) -> bool {
        match self {
            Order::Column(column) => column.is_usual(),
            Order::Name => true,
            Order::Start => false,
        }
    }

    /// The place of each path in this order; equal ones by name.
    pub(super) fn places(self, paths: &NamedPaths, rows: &[CallStatistics]) -> Vec<usize> {
        let nodes = paths.paths.nodes();
        let key = |at: usize| match self {
            Order::Column(column) => column.number(&rows[at]).map(|number| -number),
            Order::Name => Some(0.0),
            Order::Start => rows[at].spread.map(|spread| spread.start_ns as f64),
        };
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        order.sort_by(|&a, &b| {
            let unknown_last = |at: usize| key(at).unwrap_or(f64::INFINITY);
            unknown_last(a)
                .total_cmp(&unknown_last(b))
                .then_with(|| paths.name(nodes[a].region).cmp(paths.name(nodes[b].region)))
                .then(a.cmp(&b))
        });
        let mut places = vec![0; order.len()];
        order.into_iter().enumerate().for_each(|(place, at)| places[at] = place);
        places
    }
}

/// The place of each path by inclusive time, as the table at the end of a run has them.
pub(super) fn usual_places(paths: &NamedPaths) -> Vec<usize> {
    let nodes = paths.paths.nodes();
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|&at| (Reverse(nodes[at].inclusive_ns), at));
    let mut places = vec![0; order.len()];
    order.into_iter().enumerate().for_each(|(place, at)| places[at] = place);
    places
}

#[cfg(test)]
mod tests {
    use scope_runtime::profile::RegionId;

    use super::*;

    #[test]
    fn every_column_has_the_name_that_selects_it() {
        for column in Column::value_variants() {
            assert_eq!(Column::from_str(column.head(), false), Ok(*column));
            assert_eq!(column.head().parse(), Ok(Order::Column(*column)));
        }
        assert!("speed".parse::<Order>().unwrap_err().contains("`name`, `start` or a column: calls, ranks"));
    }

    #[test]
    fn orders_put_what_is_unknown_last() {
        let names = ["c", "a", "b"].map(String::from).to_vec();
        let mut paths = NamedPaths { names, ..NamedPaths::default() };
        for region in 0..3 {
            paths.paths.step(None, RegionId(region));
        }
        let spread = |start_ns| Spread {
            start_ns,
            first_ns: 0,
            last_ns: 0,
            std_ns: 0.0,
            p50_ns: 0.0,
            p95_ns: 0.0,
            p99_ns: 0.0,
            coverage_ns: 0,
        };
        let row = |calls, spread| CallStatistics { calls, spread, ..CallStatistics::default() };
        let rows = [row(1, Some(spread(20))), row(5, None), row(1, Some(spread(10)))];
        assert_eq!(Order::Name.places(&paths, &rows), [2, 0, 1]);
        assert_eq!(Order::Start.places(&paths, &rows), [1, 2, 0]);
        assert_eq!(Order::Column(Column::Calls).places(&paths, &rows), [2, 0, 1]);
        let row = |calls, total_ns| CallStatistics { calls, total_ns, ..CallStatistics::default() };
        let rows = [row(3, 5), row(0, 9), row(2, 3)];
        assert_eq!(Order::Column(Column::Mean).places(&paths, &rows), [0, 2, 1]);
        assert_eq!(Column::Mean.cell(&rows[0], 9), "2 ns");
    }
}
