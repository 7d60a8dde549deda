use super::*;
use crate::format::events::*;
use crate::format::{FieldReader, code, message_word};

fn chunk(sequence: u64, depth: u64, words: &[u64]) -> ChunkWords<impl Iterator<Item = Word> + '_> {
    ChunkWords { sequence, depth, base: 0, words: words.iter().copied().map(Word::from_bits) }
}

/// `(parent, region, calls, inclusive, min, max)` of each path.
fn rows(folded: &Folded) -> Vec<(Parent, u32, u64, u64, u64, u64)> {
    let row = |n: &Node| (n.parent, n.region, n.calls, n.inclusive, n.min, n.max);
    folded.nodes.iter().map(row).collect()
}

#[test]
fn siblings_in_turn_and_out_of_turn_are_found_again() {
    let mut words = vec![enter(9, 0)];
    for (n, region) in [0, 1, 2, 0, 1, 2, 2, 0, 1].into_iter().enumerate() {
        let at = 10 * n as u64;
        words.extend([enter(region, at), leave(at + 1 + region)]);
    }
    words.push(leave(100));
    let mut fold = Fold::new(0, 0, 0, &[]);
    fold.chunk(chunk(0, 0, &words));
    let (folded, _) = fold.finish(100);
    let top = Parent::Inherited(0);
    let below = Parent::Node(0);
    let expected =
        [(top, 9, 1, 100, 100, 100), (below, 0, 3, 3, 1, 1), (below, 1, 3, 6, 2, 2), (below, 2, 3, 9, 3, 3)];
    assert_eq!(rows(&folded), expected);
}

#[test]
fn a_fold_that_takes_over_notes_what_it_inherits() {
    let mut fold = Fold::new(3, 2, 0, &[]);
    fold.chunk(chunk(3, 2, &[enter(0, 5), leave(6), leave(7), enter(1, 8), leave(9), enter(1, 10)]));
    // What is stored goes on as if nothing had happened.
    let bytes = fold.to_fields().0;
    let mut stored = Fold::from_fields(&mut FieldReader(&bytes), &[]).expect("what was written is read");
    assert_eq!((stored.first_sequence, stored.next_sequence(), stored.calls()), (3, 4, 2));
    stored.chunk(chunk(4, 2, &[leave(12), leave(14), enter(2, 15)]));
    let (folded, _) = stored.finish(20);
    let ends = [InheritedEnd::Frames(7, 1), InheritedEnd::Frames(14, 1)];
    assert_eq!(folded.inherited_ends, ends);
    let expected = [
        (Parent::Inherited(2), 0, 1, 1, 1, 1),
        (Parent::Inherited(1), 1, 2, 3, 1, 2),
        (Parent::Inherited(0), 2, 1, 5, 5, 5),
    ];
    assert_eq!(rows(&folded), expected);
    assert_eq!(folded.nodes[2].cut, 1);
}

#[test]
fn messages_count_on_the_path_that_is_innermost_inherited_or_not() {
    let sent = |peer, bytes| Word { ticks: message_word(Some(peer), bytes), code: code::MESSAGE };
    let shared = |bytes| Word { ticks: message_word(None, bytes), code: code::MESSAGE + 2 };
    let event = |bits| Word::from_bits(bits);
    let words = [
        sent(3, 8),
        event(enter(5, 2)),
        sent(3, 100),
        sent(0, 7),
        event(leave(4)),
        event(enter(5, 5)),
        sent(3, 50),
        shared(9),
        event(leave(6)),
    ];
    let mut fold = Fold::new(2, 1, 0, &[]);
    fold.chunk(ChunkWords { sequence: 2, depth: 1, base: 0, words: words.into_iter() });
    let bytes = fold.to_fields().0;
    let fold = Fold::from_fields(&mut FieldReader(&bytes), &[]).expect("what was written is read");
    let (folded, _) = fold.finish(10);
    let sizes =
        |messages, bytes, min_bytes, max_bytes| MessageSizes { messages, bytes, min_bytes, max_bytes };
    let (around, inside) = (Parent::Inherited(1), Parent::Node(0));
    let expected = [
        ((inside, MessageKind::Sent, 1), sizes(1, 7, 7, 7)),
        ((inside, MessageKind::Sent, 4), sizes(2, 150, 50, 100)),
        ((inside, MessageKind::Collective, 0), sizes(1, 9, 9, 9)),
        ((around, MessageKind::Sent, 4), sizes(1, 8, 8, 8)),
    ];
    assert_eq!(folded.messages.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_span_in_parts_is_one_call_as_long_as_from_begin_to_end() {
    let words = [
        &[span(5, 10)][..],
        &end_of_part(1, 13),
        &[span(5, 14)],
        &end_of_part(2, 15),
        &later_part(1, 5, 13, 20),
        &[leave(24)],
        &later_part(2, 5, 15, 30),
        &end_of_part(2, 31),
    ]
    .concat();
    let mut fold = Fold::new(0, 0, 0, &[]);
    fold.chunk(chunk(0, 0, &words));
    // What is stored goes on as if nothing had happened.
    let bytes = fold.to_fields().0;
    let mut stored = Fold::from_fields(&mut FieldReader(&bytes), &[]).expect("what was written is read");
    let words = [&later_part(3, 5, 1, 40)[..], &[leave(41)], &later_part(2, 5, 31, 50)].concat();
    stored.chunk(chunk(1, 0, &words));
    let (folded, _) = stored.finish(52);
    let [node] = &folded.nodes[..] else { panic!("one path") };
    // The first is settled, the second cut, the third began on another lane.
    assert_eq!((node.calls, node.cut, node.inclusive), (2, 1, 3 + 1 + 4 + 1 + 1 + 2));
    assert_eq!(node.inclusive.cast_signed() + node.waited, (24 - 10) + (52 - 14));
    assert_eq!((node.min, node.max), (14, 38));
    let owed = Owed { node: 0, ticks: 41 - 1, cut: false };
    let elsewhere = Unsettled { first: None, owed: Some(owed), last: 41 };
    assert_eq!(folded.unsettled, BTreeMap::from([(3, elsewhere)]));
}

#[test]
fn spans_that_may_go_on_are_kept_until_there_are_too_many() {
    let spans = MAX_UNSETTLED as u64 + 1;
    let words = (0..spans).flat_map(|n| [&[span(5, n)][..], &end_of_part(n, n + 1)].concat());
    let mut fold = Fold::new(0, 0, 0, &[]);
    fold.chunk(chunk(0, 0, &words.collect::<Vec<_>>()));
    let (folded, _) = fold.finish(2 * spans);
    assert_eq!(folded.unsettled.len(), MAX_UNSETTLED);
    assert_eq!((folded.nodes[0].calls, folded.nodes[0].min), (spans, 1));
}

#[test]
fn a_part_that_was_open_before_the_fold_is_inherited() {
    let mut fold = Fold::new(3, 1, 0, &[]);
    fold.chunk(chunk(3, 1, &end_of_part(4, 7)));
    assert_eq!(fold.finish(9).0.inherited_ends, [InheritedEnd::Part(4, 7)]);
}

#[test]
fn a_damaged_fold_is_refused() {
    let mut fold = Fold::new(0, 0, 0, &[]);
    let words = [&[span(2, 1)][..], &end_of_part(4, 2), &[enter(0, 5), span(1, 6), leave(7), span(1, 8)]];
    fold.chunk(chunk(0, 0, &words.concat()));
    let bytes = fold.to_fields().0;
    for len in 0..bytes.len() {
        assert!(Fold::from_fields(&mut FieldReader(&bytes[..len]), &[]).is_none(), "{len} bytes");
    }
}
