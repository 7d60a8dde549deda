//! Totals of all lanes. Lanes are replayed at the same time where there is much to replay, and put
//! together in their order, so that the outcome is that of one after the other.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::clock::TickScale;
use crate::os;
use crate::profile::{CollectiveCall, Lane, MessageSizes, Messages, Profile};
use crate::recording::visitors::{LaneTotals, Pending, Totaller};
use crate::recording::{LaneResult, Recording};
use crate::replay::SessionEdge;
use crate::totals::{PathId, PathTree};

/// Below so many bytes of events a thread more is not worth its start.
const BYTES_PER_THREAD: u64 = 4 << 20;
/// More threads would only be in the way of what else the machine does.
const MOST_THREADS: usize = 8;

/// Runs what it is given on the calling thread, which is one that was started for it or the one that
/// opened the recording.
pub(crate) type Around = fn(&mut dyn FnMut());

/// When sessions were ended by call, in ns and in order.
pub(super) fn session_ends(edges: &[SessionEdge], scale: TickScale) -> Vec<i64> {
    edges.iter().filter(|edge| !edge.begins).map(|edge| scale.ns(edge.ticks)).collect()
}

/// Counts the instances of async regions that did not end, each cut at the end of its session, the last
/// one's being `end_ns`; gives their number. Then the tree's inclusive times are whole.
pub(super) fn cut_pending(pending: Pending, tree: &mut PathTree, ends_ns: &[i64], end_ns: i64) -> u64 {
    let cut = pending.cut(tree, |session| ends_ns.get(session as usize).copied().unwrap_or(end_ns));
    tree.settle();
    cut
}

impl Recording {
    pub(super) fn session_ends(&self) -> Vec<i64> {
        session_ends(&self.session_edges, self.scale)
    }

    /// Fills the profile. What runs on threads of its own runs in `around`.
    pub(super) fn total(&mut self, lost_calls: u64, first_ticks: u64, around: Around) {
        let mut profile = Profile { rank: self.info.rank, lost_calls, ..Profile::default() };
        let (mut tree, mut pending) = (PathTree::default(), Pending::default());
        let mut messages = BTreeMap::new();
        let mut last_ticks = self.cut_ticks;
        let mut damaged = 0;
        let mut is_async = false;
        for (raw, result) in self.lanes.iter().zip(self.replay_all(around)) {
            let (totals, end) = (result.visitor, result.end);
            damaged += result.damaged;
            let cut_here = result.totals_begin.map(|ticks| self.scale.ns(ticks));
            profile.timeline_end_ns = profile.timeline_end_ns.into_iter().chain(cut_here).min();
            is_async |= totals.is_async;
            profile.open_calls = profile.open_calls.saturating_add(totals.cut);
            let paths = tree.add_tree(&totals.tree);
            pending.add_all(totals.pending, &paths);
            let in_tree = |PathId(path): PathId| paths[path as usize];
            for ((path, kind, peer), sizes) in totals.messages {
                messages.entry((in_tree(path), kind, peer)).or_insert_with(MessageSizes::default).add(&sizes);
            }
            let calls = totals.collectives.into_iter();
            profile.collectives.extend(calls.map(|call| CollectiveCall { path: in_tree(call.path), ..call }));
            profile.faulty_calls = profile.faulty_calls.saturating_add(end.faulty);
            last_ticks = last_ticks.max(end.last_ticks);
            let first_ticks = end.first_ticks.unwrap_or(raw.start_ticks).min(raw.start_ticks);
            profile.lanes.push(Lane {
                name: raw.name.clone(),
                os_thread: raw.os_thread,
                first_ns: self.scale.ns(first_ticks),
                last_ns: self.scale.ns(end.last_ticks.max(first_ticks)),
                ended: end.cpu_ns.is_some(),
                cpu_ns: end.cpu_ns.and_then(|ns| i64::try_from(ns).ok()),
            });
        }
        let row = |((path, kind, peer), sizes)| Messages { path, kind, peer, sizes };
        profile.messages = messages.into_iter().map(row).collect();
        self.is_async = is_async;
        self.info.damaged += damaged;
        profile.start_ns = self.scale.ns(first_ticks);
        profile.end_ns = self.scale.ns(last_ticks);
        pending.settle_spans(&mut tree);
        if self.is_async {
            let cut = cut_pending(pending, &mut tree, &self.session_ends(), profile.end_ns);
            profile.open_calls = profile.open_calls.saturating_add(cut);
        }
        profile.paths = self.regions.keep_called(tree);
        profile.regions = self.regions.called().to_vec();
        self.profile = profile;
    }

    /// The totals of each lane, in the order of lanes.
    fn replay_all(&self, around: Around) -> Vec<LaneResult<LaneTotals>> {
        let results: Vec<OnceLock<LaneResult<LaneTotals>>> =
            self.lanes.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(number) = Some(next.fetch_add(1, Relaxed)).filter(|&number| number < results.len())
            {
                let mut totaller = Totaller::new(&self.regions, self.scale);
                totaller.keeps_collectives = self.keeps_collectives;
                let result = self.replay(&self.lanes[number], totaller, Totaller::join);
                let _ = results[number].set(result.map(Totaller::finish));
            }
        };
        std::thread::scope(|threads| {
            // Where a thread cannot be had, those there are take its share.
            os::with_signals_blocked(|| {
                for _ in 1..self.threads() {
                    let builder = std::thread::Builder::new().name("scope-total".into());
                    let _ = builder.spawn_scoped(threads, || around(&mut { work }));
                }
            });
            work();
        });
        results.into_iter().map(|result| result.into_inner().expect("every lane was taken")).collect()
    }

    /// How many threads are worth it.
    fn threads(&self) -> usize {
        let bytes: u64 = self.lanes.iter().map(|lane| lane.event_bytes()).sum();
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let most = self.lanes.len().min(processors).min(MOST_THREADS);
        usize::try_from(bytes / BYTES_PER_THREAD).unwrap_or(most).min(most)
    }
}
