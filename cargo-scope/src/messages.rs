//! What MPI did, as tables: messages, waiting, and the clocks of the ranks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use scope_runtime::profile::{MessageKind, MessageSizes};
use scope_runtime::text_table::aligned;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::export::is_among;
use crate::imbalance;
use crate::merged::{MergedProfile, MessageRow};
use crate::names::visible;
use crate::units::{bytes, count, duration};

/// Messages of one kind on one call path, of all ranks.
#[derive(Default)]
struct Sums {
    ranks: BTreeSet<u32>,
    peers: BTreeSet<i64>,
    sizes: MessageSizes,
}

/// The tables of these ranks, given in ascending order; a line where there is nothing to show.
pub fn report(profile: &MergedProfile, ranks: &[u32]) -> String {
    let tables = [messages(profile, ranks), waiting(profile, ranks), clocks(profile, ranks)];
    let tables: Vec<String> = tables.into_iter().flatten().collect();
    if tables.is_empty() {
        return "No calls of MPI were recorded: they are with the feature `mpi` of scope-runtime.\n".into();
    }
    tables.join("\n")
}

fn messages(profile: &MergedProfile, ranks: &[u32]) -> Option<String> {
    let mut sums: BTreeMap<(String, &str), Sums> = BTreeMap::new();
    for row in profile.messages.iter().flatten().filter(|row| is_among(ranks, row.rank)) {
        let sum = sums.entry((path_name(profile, row.path), kind_name(row.kind))).or_default();
        sum.ranks.insert(row.rank);
        sum.peers.extend((row.peer >= 0).then_some(row.peer));
        sum.sizes.add(&sizes(row));
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| Reverse(sum.sizes.bytes));
    let heads = ["messages", "kind", "ranks", "peers", "number", "bytes", "mean", "min", "max"];
    let mut rows = vec![heads.map(String::from)];
    rows.extend(sums.iter().map(|((path, kind), Sums { ranks, peers, sizes })| {
        let mean = sizes.bytes / sizes.messages.max(1);
        let numbers = [sizes.bytes, mean, sizes.min_bytes, sizes.max_bytes].map(bytes);
        let counts = [ranks.len() as u64, peers.len() as u64, sizes.messages].map(count);
        let ([ranks, peers, messages], [bytes, mean, min, max]) = (counts, numbers);
        [path.clone(), kind.to_string(), ranks, peers, messages, bytes, mean, min, max]
    }));
    (rows.len() > 1).then(|| aligned(&rows, b"<<>>>>>>>", UnicodeWidthStr::width))
}

fn waiting(profile: &MergedProfile, ranks: &[u32]) -> Option<String> {
    let heads = ["waiting for the last rank", "calls", "waited", "for rank", "which is last in"];
    let mut rows = vec![heads.map(String::from)];
    rows.extend(imbalance::waiting(profile, ranks).into_iter().map(|waiting| {
        let (last, calls) = waiting.last;
        [
            visible(&waiting.region).into_owned(),
            count(waiting.calls),
            duration(waiting.wait_ns),
            waiting.latest.to_string(),
            format!("{} of {}", count(last), count(calls)),
        ]
    }));
    (rows.len() > 1).then(|| aligned(&rows, b"<>>>>", UnicodeWidthStr::width))
}

fn clocks(profile: &MergedProfile, ranks: &[u32]) -> Option<String> {
    let heads = ["clock of", "behind rank 0", "uncertainty"];
    let mut rows = vec![heads.map(String::from)];
    let of_ranks = profile.clocks.iter().flatten().filter(|row| is_among(ranks, row.rank));
    rows.extend(
        of_ranks
            .map(|row| [format!("rank {}", row.rank), duration(row.offset_ns), duration(row.uncertainty_ns)]),
    );
    let note = "A difference that is not larger than its uncertainty counts as none.\n";
    (rows.len() > 1).then(|| aligned(&rows, b"<>>", UnicodeWidthStr::width) + note)
}

/// The rows as JSON, of these ranks, given in ascending order: messages, waits and clocks.
pub fn json(profile: &MergedProfile, ranks: &[u32]) -> [(&'static str, Value); 3] {
    let is_of_ranks = |rank: u32| is_among(ranks, rank);
    let path = |path: u64| path_names(profile, path);
    let messages = profile.messages.iter().flatten().filter(|row| is_of_ranks(row.rank)).map(|row| {
        json!({
            "rank": row.rank,
            "path": path(row.path),
            "kind": kind_name(row.kind),
            "peer": (row.peer >= 0).then_some(row.peer),
            "messages": row.messages,
            "bytes": row.bytes,
            "min_bytes": row.min_bytes,
            "max_bytes": row.max_bytes,
        })
    });
    let waits = profile.waits.iter().flatten().filter(|row| is_of_ranks(row.rank)).map(|row| {
        json!({
            "rank": row.rank,
            "path": path(row.path),
            "calls": row.calls,
            "wait_ns": row.wait_ns,
            "last": row.last,
            "caused_ns": row.caused_ns,
        })
    });
    let clocks = profile.clocks.iter().flatten().filter(|row| is_of_ranks(row.rank)).map(|row| {
        json!({
            "rank": row.rank,
            "at_ns": row.at_ns,
            "offset_ns": row.offset_ns,
            "uncertainty_ns": row.uncertainty_ns,
        })
    });
    [("messages", messages.collect()), ("waits", waits.collect()), ("clocks", clocks.collect())]
}

fn sizes(row: &MessageRow) -> MessageSizes {
    let MessageRow { messages, bytes, min_bytes, max_bytes, .. } = *row;
    MessageSizes { messages, bytes, min_bytes, max_bytes }
}

fn kind_name(kind: i8) -> &'static str {
    match usize::try_from(kind).ok().and_then(|kind| MessageKind::ALL.get(kind)) {
        Some(MessageKind::Sent) => "sent",
        Some(MessageKind::Received) => "received",
        Some(MessageKind::Collective) => "collective",
        Some(MessageKind::Written) => "written",
        Some(MessageKind::Read) => "read",
        None => "unknown",
    }
}

/// The names of a path, the outermost first.
fn path_names(profile: &MergedProfile, path: u64) -> Vec<&str> {
    let paths = profile.paths.as_deref().unwrap_or_default();
    let mut names = Vec::new();
    let mut next = usize::try_from(path).ok();
    while let Some(path) = next.and_then(|path| paths.get(path)) {
        names.push(profile.names[path.region as usize].as_str());
        next = usize::try_from(path.parent).ok();
    }
    names.reverse();
    names
}

/// A path in one line: as much of its end as tells it apart mostly.
fn path_name(profile: &MergedProfile, path: u64) -> String {
    const SHOWN: usize = 3;
    let names = path_names(profile, path);
    let hidden = names.len().saturating_sub(SHOWN);
    let shown: Vec<_> = names[hidden..].iter().map(|name| visible(name)).collect();
    format!("{}{}", if hidden > 0 { "… / " } else { "" }, shown.join(" / "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merged::{ClockRow, PathRow, WaitRow};

    fn two_ranks() -> MergedProfile {
        let path = |rank, parent, region| PathRow { rank, parent, region, ..PathRow::default() };
        let message = |rank, path, kind, peer, messages, bytes, min_bytes, max_bytes| MessageRow {
            rank,
            path,
            kind,
            peer,
            messages,
            bytes,
            min_bytes,
            max_bytes,
        };
        MergedProfile {
            names: ["main", "MPI_Send", "MPI_Barrier"].map(String::from).to_vec(),
            paths: Some(vec![
                path(0, -1, 0),
                path(0, 0, 1),
                path(0, 0, 2),
                path(1, -1, 0),
                path(1, 3, 1),
                path(1, 3, 2),
            ]),
            messages: Some(vec![
                message(0, 1, 0, 1, 3, 3000, 500, 2000),
                message(1, 4, 0, 0, 1, 8, 8, 8),
                message(1, 5, 2, -1, 2, 0, 0, 0),
            ]),
            waits: Some(vec![
                WaitRow { rank: 0, path: 2, calls: 2, wait_ns: 700, last: 0, caused_ns: 0 },
                WaitRow { rank: 1, path: 5, calls: 2, wait_ns: 0, last: 2, caused_ns: 700 },
            ]),
            clocks: Some(vec![ClockRow { rank: 1, at_ns: 5, offset_ns: -1500, uncertainty_ns: 40 }]),
            ..MergedProfile::default()
        }
    }

    #[test]
    fn the_tables_add_ranks_and_peers_up() {
        let expected = "\
messages            kind        ranks  peers  number     bytes   mean    min       max
main / MPI_Send     sent            2      2       4  2.938 KiB  752 B    8 B  1.953 KiB
main / MPI_Barrier  collective      1      0       2        0 B    0 B    0 B        0 B

waiting for the last rank  calls  waited  for rank  which is last in
MPI_Barrier                    4  700 ns         1            2 of 2

clock of  behind rank 0  uncertainty
rank 1        -1.500 us        40 ns
A difference that is not larger than its uncertainty counts as none.
";
        let text = report(&two_ranks(), &[0, 1]);
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeezed(&text), squeezed(expected), "\n{text}");
        assert!(report(&MergedProfile::default(), &[0]).starts_with("No calls of MPI"));
    }

    #[test]
    fn json_has_each_row() {
        let [(_, messages), (_, waits), (_, clocks)] = json(&two_ranks(), &[1]);
        assert_eq!(messages[0]["path"], json!(["main", "MPI_Send"]));
        assert_eq!((&messages[0]["peer"], &messages[1]["peer"]), (&json!(0), &Value::Null));
        assert_eq!((waits.as_array().unwrap().len(), &clocks[0]["offset_ns"]), (1, &json!(-1500)));
    }
}
