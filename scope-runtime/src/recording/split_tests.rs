//! From any event on a lane may keep totals only, and what is shown stays the same.

use std::collections::{BTreeMap, HashMap};

use crate::fold::Fold;
use crate::format::{FieldReader, PAYLOAD, code, has_payload, instance_of};
use crate::pack::Word;
use crate::recording::pieces::{RawChunk, RawLane};
use crate::recording::visitors::Totaller;
use crate::recording::{Recording, join_fold};
use crate::replay::{ChunkWords, Replay};
use crate::totals::PathTotals;

/// Chunks of a lane that are looked at.
const CHUNKS: usize = 3;
/// Places of each kind at which they are split.
const SPLITS: usize = 40;

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
            let whole = self.totals_split_at(&pieces, None);
            let pauses = pauses(&pieces);
            for place in places(&pieces) {
                paused += usize::from(pauses.iter().any(|&(from, to)| from < place && place <= to));
                let split = self.totals_split_at(&pieces, Some(place));
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

        let mut replay = Replay::new(Totaller::new(&self.regions, self.scale), &[]);
        let sequences = &mut (0u64..);
        for piece in before {
            replay.chunk(piece.chunk(sequences.next().expect("it has no end"), 0));
        }
        if let Some(first) = after.first() {
            let (sequence, depth) = (replay.next_sequence(), replay.dead() + replay.open_frames() as u64);
            let mut fold = Fold::new(sequence, depth, first.base, &[]);
            for piece in after {
                fold.chunk(piece.chunk(sequences.next().expect("it has no end"), depth));
                let bytes = fold.to_fields().0;
                fold = Fold::from_fields(&mut FieldReader(&bytes), &[]).expect("what was written is read");
            }
            join_fold(&mut replay, &fold.finish(self.cut_ticks).0, Totaller::join);
        }

        let mut lane = replay.finish(self.cut_ticks).0.finish();
        let end_ns = self.scale.ns(self.cut_ticks);
        let cut = lane.cut + lane.pending.cut(&mut lane.tree, |_| end_ns);
        lane.tree.settle();
        let mut paths: Vec<Vec<u32>> = Vec::new();
        let mut totals = BTreeMap::new();
        for node in lane.tree.nodes() {
            let mut path = node.parent.map(|parent| paths[parent.0 as usize].clone()).unwrap_or_default();
            path.push(node.region.0);
            // Where a path is listed is no matter.
            totals.insert(path.clone(), PathTotals { parent: None, ..node.clone() });
            paths.push(path);
        }
        (cut, totals)
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
/// some next to where they go on.
fn places(pieces: &[Piece]) -> Vec<Place> {
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
        let step = (all.len() / SPLITS).max(1);
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
