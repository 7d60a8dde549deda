//! From any event on a lane may keep totals only, and what is shown stays the same.

use std::collections::{BTreeMap, HashMap};

use crate::clock::{ClockPair, TickScale};
use crate::fold::Fold;
use crate::format::events::*;
use crate::format::{FieldReader, PAYLOAD, code, has_payload, instance_of, instance_word};
use crate::model::Random;
use crate::pack::Word;
use crate::recording::pieces::{RawChunk, RawLane};
use crate::recording::total::{cut_pending, session_ends};
use crate::recording::visitors::{LaneTotals, Pending, Totaller};
use crate::recording::{Recording, join_fold};
use crate::regions::Regions;
use crate::replay::{ChunkWords, Replay, SessionEdge};
use crate::totals::{PathTotals, PathTree};

/// Chunks of a lane that are looked at.
const CHUNKS: usize = 3;
/// Places of each kind at which they are split.
const SPLITS: usize = 40;
/// When a session ends, and the next one begins, on some random lanes.
const SESSION_END: u64 = 150;
const SESSION_BEGIN: u64 = 200;
/// Regions of random lanes.
const REGIONS: u64 = 4;

/// Words that follow each other, relative to `base`.
#[derive(Clone)]
struct Piece {
    base: u64,
    words: Vec<Word>,
}

impl Recording {
    /// Splits the events of each lane at many places, and compares the totals with those of all.
    pub(crate) fn assert_that_totals_may_begin_anywhere(&self) {
        let mut paused = 0;
        for lane in &self.lanes {
            let pieces = self.pieces(lane);
            let lane = Lane {
                regions: &self.regions,
                scale: self.scale,
                end: self.cut_ticks,
                before: &[],
                edges: &self.session_edges,
            };
            let whole = lane.totals_split_at(&pieces, None);
            let pauses = pauses(&pieces);
            for place in places(&pieces, SPLITS) {
                paused += usize::from(pauses.iter().any(|&(from, to)| from < place && place <= to));
                let split = lane.totals_split_at(&pieces, Some(place));
                assert!(split == whole, "split at {place:?}:\n{}", differences(&split, &whole));
            }
        }
        assert!(paused > 20, "{paused} places at which regions are set aside are few");
    }

    fn pieces(&self, lane: &RawLane) -> Vec<Piece> {
        let piece = |(&sequence, chunk): (&u64, &RawChunk)| {
            let mut bytes = Vec::new();
            let chunk = chunk.words(sequence, &self.file, &mut bytes).expect("the chunk is sound");
            Piece { base: chunk.base, words: chunk.words.collect() }
        };
        lane.chunks.iter().take(CHUNKS).map(piece).collect()
    }
}

/// Which lane is totalled.
#[derive(Clone, Copy)]
struct Lane<'a> {
    regions: &'a Regions,
    scale: TickScale,
    /// Ticks at its end.
    end: u64,
    /// What happened on another lane.
    before: &'a [u64],
    edges: &'a [SessionEdge],
}

impl Lane<'_> {
    /// Totals of what another lane did.
    fn replay(&self, words: &[u64]) -> LaneTotals {
        let mut replay = Replay::new(Totaller::new(self.regions, self.scale), self.edges);
        let words = words.iter().copied().map(Word::from_bits).collect();
        replay.chunk(Piece { base: 0, words }.chunk(0, 0));
        replay.finish(self.end).0.finish()
    }

    /// The totals by path, the events from a place on (piece, word) being folded.
    fn totals_split_at(&self, pieces: &[Piece], place: Option<Place>) -> Totals {
        let (at_piece, at_word) = place.unwrap_or((pieces.len(), 0));
        let mut before = pieces[..at_piece].to_vec();
        let mut after = pieces[at_piece..].to_vec();
        if let Some(first) = after.first_mut() {
            let rest = first.words.split_off(at_word);
            let words = std::mem::replace(&mut first.words, rest);
            before.push(Piece { base: first.base, words });
        }

        let mut replay = Replay::new(Totaller::new(self.regions, self.scale), self.edges);
        let sequences = &mut (0u64..);
        for piece in before {
            replay.chunk(piece.chunk(sequences.next().expect("it has no end"), 0));
        }
        if let Some(first) = after.first() {
            // As a lane does that goes on in an empty chunk.
            let next = after.iter().find_map(|piece| Some(piece.base + piece.words.first()?.ticks));
            let begin = next.unwrap_or(first.base);
            let (sequence, depth) = (replay.next_sequence(), replay.dead() + replay.open_frames() as u64);
            let mut fold = Fold::new(sequence, depth, begin, self.edges);
            for piece in after {
                fold.chunk(piece.chunk(sequences.next().expect("it has no end"), depth));
                let bytes = fold.to_fields().0;
                fold = Fold::from_fields(&mut FieldReader(&bytes), self.edges)
                    .expect("what was written is read");
            }
            join_fold(&mut replay, fold, self.end, Totaller::join);
        }

        self.sum([replay.finish(self.end).0.finish(), self.replay(self.before)])
    }

    /// The totals of lanes by path, and the number of calls that were cut.
    fn sum(&self, lanes: [LaneTotals; 2]) -> Totals {
        let mut cut = 0_u64;
        let (mut tree, mut pending) = (PathTree::default(), Pending::default());
        for lane in lanes {
            let paths = tree.add_tree(&lane.tree);
            pending.add_all(lane.pending, &paths);
            cut = cut.saturating_add(lane.cut);
        }
        pending.settle_spans(&mut tree);
        let ends = session_ends(self.edges, self.scale);
        let open = cut_pending(pending, &mut tree, &ends, self.scale.ns(self.end));
        let mut paths: Vec<Vec<u32>> = Vec::new();
        let mut totals = BTreeMap::new();
        for node in tree.nodes() {
            let mut path = node.parent.map(|parent| paths[parent.0 as usize].clone()).unwrap_or_default();
            path.push(node.region.0);
            // Where a path is listed is no matter.
            totals.insert(path.clone(), PathTotals { parent: None, ..node.clone() });
            paths.push(path);
        }
        (cut.saturating_add(open), totals)
    }
}

/// Number of a piece and of a word in it.
type Place = (usize, usize);

type Totals = (u64, BTreeMap<Vec<u32>, PathTotals>);

impl Piece {
    fn chunk(self, sequence: u64, depth: u64) -> ChunkWords<impl Iterator<Item = Word>> {
        ChunkWords { sequence, depth, base: self.base, words: self.words.into_iter() }
    }
}

/// Places between two events: some anywhere, some next to the end of a poll that sets regions aside, and
/// some next to where they go on; about so many of each.
fn places(pieces: &[Piece], splits: usize) -> Vec<Place> {
    let (mut anywhere, mut aside, mut resumed) = (Vec::new(), Vec::new(), Vec::new());
    for (number, piece) in pieces.iter().enumerate() {
        let mut word = 0;
        while word < piece.words.len() {
            let code = piece.words[word].code;
            assert!(code != code::REBASE, "pieces have one base each");
            let next = word + 1 + usize::from(has_payload(code));
            let of_kind = match code {
                code::POLL_END => &mut aside,
                code::RESUME => &mut resumed,
                _ => &mut anywhere,
            };
            of_kind.extend([(number, word), (number, next)]);
            word = next;
        }
    }
    let some = |all: Vec<Place>| {
        let step = (all.len() / splits).max(1);
        all.into_iter().step_by(step)
    };
    [anywhere, aside, resumed].into_iter().flat_map(some).collect()
}

/// From where to where an instance has regions set aside that go on.
fn pauses(pieces: &[Piece]) -> Vec<(Place, Place)> {
    let mut aside = HashMap::new();
    let mut pauses = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        for (word, events) in piece.words.windows(2).enumerate() {
            let (instance, _) = instance_of(events[1].bits() & !PAYLOAD);
            match events[0].code {
                code::POLL_END => drop(aside.insert(instance, (number, word))),
                code::RESUME => pauses.extend(aside.remove(&instance).map(|begin| (begin, (number, word)))),
                _ => {}
            }
        }
    }
    pauses
}

fn differences(split: &Totals, whole: &Totals) -> String {
    let paths = whole.1.keys().chain(split.1.keys()).filter(|path| split.1.get(*path) != whole.1.get(*path));
    let rows = paths.map(|path| format!("{path:?}\n  {:?}\n  {:?}\n", split.1.get(path), whole.1.get(path)));
    format!("cut {} {}\n{}", split.0, whole.0, rows.collect::<String>())
}

/// A frame that is open on a lane.
#[derive(Clone, Copy)]
enum Frame {
    Region,
    /// A part of a span, of this region and with its number.
    Span(u64, u64),
    /// Of an instance that began at these ticks.
    Poll(u64, u64),
}

/// The events of a lane on which regions, polls and spans nest in each other in any way.
#[derive(Default)]
struct LaneEvents {
    words: Vec<u64>,
    at: u64,
    open: Vec<Frame>,
    /// Instances between two polls: number, begin, and what is set aside with them.
    pending: Vec<(u64, u64, Vec<Frame>)>,
    /// Spans of which a part has ended: number, region, and when.
    ended: Vec<(u64, u64, u64)>,
    numbers: u64,
    /// Frames that are open since before the session.
    old: usize,
}

impl LaneEvents {
    fn random(seed: u64) -> Vec<u64> {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let ended = (0..random.below(3)).map(|number| (number, number % REGIONS, 0)).collect();
        let mut lane = LaneEvents { ended, numbers: 10, ..LaneEvents::default() };
        for _ in 0..20 + random.below(40) {
            lane.at += 1 + random.below(20);
            if lane.at > SESSION_END && lane.at < SESSION_BEGIN {
                lane.begin_session();
            }
            lane.step(&mut random);
        }
        lane.words
    }

    /// What has begun before goes on no more, but what is open still ends.
    fn begin_session(&mut self) {
        self.at = SESSION_BEGIN + 1;
        self.old = self.open.len();
        self.pending.clear();
        self.ended.clear();
    }

    fn step(&mut self, random: &mut Random) {
        let (at, region, depth) = (self.at, random.below(REGIONS), self.open.len());
        match random.below(if depth > 6 { 4 } else { 10 }) {
            0..4 => self.end_innermost(random),
            4 | 5 => {
                self.words.push(enter(region, at));
                self.open.push(Frame::Region);
            }
            6 => {
                self.words.push(span(region, at));
                self.open.push(Frame::Span(region, self.numbers));
                self.numbers += 1;
            }
            7 if !self.ended.is_empty() => {
                let (number, region, since) = take(&mut self.ended, random);
                self.words.extend(later_part(number, region, since, at));
                self.open.push(Frame::Span(region, number));
            }
            8 if !self.pending.is_empty() => {
                let (number, begin, aside) = take(&mut self.pending, random);
                self.words.extend(two(
                    code::POLL,
                    instance_word(number, code::FIRST_REGION + number % REGIONS),
                    at,
                ));
                if !aside.is_empty() {
                    self.words.extend(two(code::RESUME, instance_word(number, aside.len() as u64), at));
                }
                self.open.push(Frame::Poll(number, begin));
                self.open.extend(aside);
            }
            _ => {
                let (number, word) = (self.numbers, self.numbers % REGIONS);
                self.words.extend(two(
                    code::FIRST_POLL,
                    instance_word(number, code::FIRST_REGION + word),
                    at,
                ));
                self.open.push(Frame::Poll(number, at));
                self.numbers += 1;
            }
        }
    }

    fn end_innermost(&mut self, random: &mut Random) {
        let at = self.at;
        self.old = self.old.min(self.open.len());
        // A poll may end with what is open in it.
        let poll = self.open.iter().rposition(|frame| matches!(frame, Frame::Poll(..)));
        let poll = poll.filter(|&poll| poll + 1 == self.open.len() || random.below(3) == 0);
        if let Some(index) = poll
            && let Frame::Poll(number, begin) = self.open[index]
        {
            let aside = self.open.split_off(index + 1);
            self.open.pop();
            let ends = random.below(3) == 0;
            if ends {
                let code = if random.below(2) == 0 { code::COMPLETED } else { code::CANCELLED };
                self.words.extend(two(code, begin, at));
            }
            if aside.is_empty() {
                self.words.push(leave(at));
            } else {
                self.words.extend(two(code::POLL_END, instance_word(number, index as u64), at));
            }
            if !ends && index >= self.old {
                self.pending.push((number, begin, aside));
            }
            return;
        }
        match self.open.pop() {
            Some(Frame::Span(region, number)) if random.below(3) > 0 => {
                self.words.extend(end_of_part(number, at));
                if self.open.len() >= self.old {
                    self.ended.push((number, region, at));
                }
            }
            Some(_) => self.words.push(leave(at)),
            None => {}
        }
    }
}

fn take<T>(all: &mut Vec<T>, random: &mut Random) -> T {
    let index = random.below(all.len() as u64) as usize;
    all.swap_remove(index)
}

/// Cuts words between two events, into so many pieces or fewer.
fn in_pieces(words: Vec<Word>, count: usize) -> Vec<Piece> {
    let whole = [Piece { base: 0, words }];
    let mut cuts: Vec<usize> = places(&whole, count).into_iter().map(|(_, word)| word).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let [Piece { words, .. }] = &whole;
    let begins = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([words.len()]);
    let piece = |(begin, end): (usize, usize)| Piece { base: 0, words: words[begin..end].to_vec() };
    begins.zip(ends).filter(|(begin, end)| begin < end).map(piece).collect()
}

/// Has `work` done with a random lane, in pieces.
fn with_random_lane(seed: u64, work: impl FnOnce(Lane<'_>, &[Piece])) {
    let regions = Regions::numbered(REGIONS as usize);
    let scale = TickScale::between(ClockPair { ticks: 0, ns: 0 }, ClockPair { ticks: 1000, ns: 1000 });
    // Some spans have their first part on another lane.
    let before: Vec<u64> = (0..3)
        .flat_map(|number| [&[span(number % REGIONS, number)][..], &end_of_part(number, number)].concat())
        .collect();
    let edge = |ticks, begins| SessionEdge { ticks, begins };
    let edges = if seed.is_multiple_of(3) {
        vec![edge(SESSION_END, false), edge(SESSION_BEGIN, true)]
    } else {
        vec![]
    };
    let words = LaneEvents::random(seed).into_iter().map(Word::from_bits).collect();
    let lane = Lane { regions: &regions, scale, end: 5000, before: &before, edges: &edges };
    work(lane, &in_pieces(words, 1 + seed as usize % 3));
}

#[test]
fn totals_may_take_over_at_any_event() {
    for seed in 0..400 {
        with_random_lane(seed, |lane, pieces| {
            let whole = lane.totals_split_at(pieces, None);
            for place in places(pieces, usize::MAX) {
                let split = lane.totals_split_at(pieces, Some(place));
                assert!(split == whole, "seed {seed} split at {place:?}:\n{}", differences(&split, &whole));
            }
        });
    }
}

#[test]
fn damaged_totals_do_no_harm() {
    let mut random = Random(1);
    let mut accepted = 0;
    for seed in 0..3000 {
        with_random_lane(seed, |lane, pieces| {
            let mut replay = Replay::new(Totaller::new(lane.regions, lane.scale), lane.edges);
            let Some((before, after)) = pieces.split_first() else { return };
            replay.chunk(before.clone().chunk(0, 0));
            let depth = replay.dead() + replay.open_frames() as u64;
            let mut fold = Fold::new(1, depth, replay.last_ticks(), lane.edges);
            for (piece, sequence) in after.iter().zip(1..) {
                fold.chunk(piece.clone().chunk(sequence, depth));
            }
            let mut bytes = fold.to_fields().0;
            for _ in 0..1 + random.below(3) {
                let at = 4 * random.below(bytes.len() as u64 / 4) as usize;
                let values = [0, 1, 7, u64::MAX, 1 << 63, i64::MAX as u64, random.below(u64::MAX)];
                let value = values[random.below(values.len() as u64) as usize].to_le_bytes();
                let len = (bytes.len() - at).min(if random.below(2) == 0 { 4 } else { 8 });
                bytes[at..at + len].copy_from_slice(&value[..len]);
            }
            if let Some(fold) = Fold::from_fields(&mut FieldReader(&bytes), lane.edges) {
                accepted += 1;
                join_fold(&mut replay, fold, lane.end, Totaller::join);
                lane.sum([replay.finish(lane.end).0.finish(), lane.replay(lane.before)]);
            }
        });
    }
    assert!(accepted > 1000, "{accepted} folds are few");
}
