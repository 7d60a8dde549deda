use super::*;
use crate::format::events::*;
use crate::format::instance_word;

/// Calls as `(region, start, end, depth, cut)` in order of their end.
#[derive(Default)]
struct Calls {
    open: Vec<(u32, u64)>,
    closed: Vec<(u32, u64, u64, usize, Cut)>,
    /// What happened to polls and to what they left open.
    polls: Vec<String>,
}

impl Visitor for Calls {
    fn enter(&mut self, region: u32, at: u64) {
        self.open.push((region, at));
    }
    fn leave(&mut self, at: u64, cut: Cut) {
        let (region, start) = self.open.pop().expect("a call is open");
        self.closed.push((region, start, at, self.open.len(), cut));
    }
    fn begin_poll(&mut self, poll: Poll, at: u64) {
        let words = [(poll.first, " first"), (poll.nested, " nested")];
        let words: String = words.iter().filter(|(holds, _)| *holds).map(|(_, word)| *word).collect();
        self.polls.push(format!("{at}: poll {} of {}{words}", poll.instance, poll.region));
        self.open.push((poll.region, at));
    }
    fn end_poll(&mut self, ended: Option<Ended>, at: u64) {
        let (region, _) = self.open.pop().expect("a poll is open");
        let how = ended.map(|ended| {
            format!(", {} since {}", if ended.cancelled { "cancelled" } else { "completed" }, ended.start)
        });
        self.polls.push(format!("{at}: end of {region}{}", how.unwrap_or_default()));
    }
    fn suspend(&mut self, instance: u64, at: u64) {
        let (region, _) = self.open.pop().expect("a call is open");
        self.polls.push(format!("{at}: {region} aside with {instance}"));
    }
    fn resume(&mut self, instance: u64, at: u64) {
        self.polls.push(format!("{at}: back with {instance}"));
        self.open.push((99, at));
    }
    fn enter_span(&mut self, region: u32, at: u64) {
        self.polls.push(format!("{at}: span {region}"));
        self.open.push((region, at));
    }
    fn begin_part(&mut self, part: Part, at: u64) {
        self.polls.push(format!("{at}: span {} goes on as {}", part.region, part.instance));
        self.open.push((part.region, at));
    }
    fn part_since(&mut self, end: u64) {
        self.polls.push(format!("since {end}"));
    }
    fn end_part(&mut self, instance: u64, at: u64) {
        let (region, _) = self.open.pop().expect("a part is open");
        self.polls.push(format!("{at}: end of a part of {region}, {instance}"));
    }
}

fn replay(chunks: &[(u64, u64, &[u64])], edges: &[(u64, bool)], end: u64) -> (Calls, LaneEnd) {
    let edges: Vec<_> = edges.iter().map(|&(ticks, begins)| SessionEdge { ticks, begins }).collect();
    let mut replay = Replay::new(Calls::default(), &edges);
    for &(sequence, depth, words) in chunks {
        replay.chunk(ChunkWords {
            sequence,
            depth,
            base: 0,
            words: words.iter().copied().map(Word::from_bits),
        });
    }
    replay.finish(end)
}

#[test]
fn events_nest_by_their_order() {
    let words = [enter(0, 1), enter(1, 1), leave(1), enter(1, 5), leave(7), leave(7)];
    let (calls, end) = replay(&[(0, 0, &words)], &[], 9);
    assert_eq!(calls.closed, [(1, 1, 1, 1, Cut::No), (1, 5, 7, 1, Cut::No), (0, 1, 7, 0, Cut::No)]);
    assert_eq!((end.first_ticks, end.last_ticks, end.faulty), (Some(1), 7, 0));
}

#[test]
fn a_region_that_ends_closes_what_is_open_inside_it() {
    let words =
        [enter(0, 1), enter(1, 2), enter(2, 3), event(code::CLOSE_TO, 4), PAYLOAD, enter(3, 5), leave(6)];
    let (calls, _) = replay(&[(0, 0, &words)], &[], 9);
    let expected = [
        (2, 3, 4, 2, Cut::Outlived),
        (1, 2, 4, 1, Cut::Outlived),
        (0, 1, 4, 0, Cut::No),
        (3, 5, 6, 0, Cut::No),
    ];
    assert_eq!(calls.closed, expected);
}

#[test]
fn what_is_open_is_cut_at_the_end_of_the_session_or_of_the_lane() {
    let words = [enter(0, 1), enter(1, 2), leave(12), enter(2, 13), leave(14), leave(15), enter(3, 20)];
    let (calls, _) = replay(&[(0, 0, &words)], &[(10, false), (12, true)], 30);
    let expected = [
        (1, 2, 10, 1, Cut::Open),
        (0, 1, 10, 0, Cut::Open),
        (2, 13, 14, 0, Cut::No),
        (3, 20, 30, 0, Cut::Open),
    ];
    assert_eq!(calls.closed, expected);
}

#[test]
fn what_is_entered_between_two_sessions_is_left_out() {
    let words = [enter(0, 11), enter(1, 21), leave(22), leave(23)];
    let (calls, _) = replay(&[(0, 0, &words)], &[(10, false), (20, true)], 30);
    assert_eq!(calls.closed, [(1, 21, 22, 0, Cut::No)]);
}

#[test]
fn a_missing_chunk_cuts_what_was_open_and_keeps_the_depth() {
    let first = [enter(0, 1), enter(1, 2)];
    let third = [leave(20), enter(2, 21), leave(22), leave(23)];
    let (calls, _) = replay(&[(0, 0, &first), (2, 2, &third)], &[], 30);
    assert_eq!(calls.closed, [(1, 2, 2, 1, Cut::Open), (0, 1, 2, 0, Cut::Open), (2, 21, 22, 0, Cut::No)]);
}

#[test]
fn a_clock_that_steps_back_makes_calls_of_no_length() {
    let words = [enter(0, 50), enter(1, 60), leave(55), event(code::REBASE, 0), PAYLOAD | 10, leave(5)];
    let (calls, end) = replay(&[(0, 0, &words)], &[], 0);
    assert_eq!(calls.closed, [(1, 60, 60, 1, Cut::No), (0, 50, 60, 0, Cut::No)]);
    assert_eq!(end.faulty, 2);
}

/// Both words of an event about an instance of region 7.
fn poll(code: u64, instance: u64, at: u64) -> [u64; 2] {
    [event(code, at), PAYLOAD | instance_word(instance, code::FIRST_REGION + 7)]
}

/// Both words of an event about an instance and a number of frames.
fn frames(code: u64, instance: u64, frames: u64, at: u64) -> [u64; 2] {
    two(code, instance_word(instance, frames), at)
}

#[test]
fn what_a_poll_leaves_open_goes_on_with_the_next_one() {
    let words = [
        &poll(code::FIRST_POLL, 3, 1)[..],
        &[enter(0, 2), enter(1, 3)],
        &frames(code::POLL_END, 3, 0, 4),
        &[enter(2, 5), leave(6)],
        &poll(code::POLL, 3, 10),
        &frames(code::RESUME, 3, 2, 10),
        &[leave(11)],
        &poll(code::FIRST_POLL, 4, 12),
        &two(code::CANCELLED, 12, 13),
        &frames(code::POLL_END, 4, 2, 13),
        &[leave(14)],
        &two(code::COMPLETED, 1, 15),
        &frames(code::POLL_END, 3, 0, 15),
    ]
    .concat();
    let (calls, _) = replay(&[(0, 0, &words)], &[], 20);
    let expected = [
        "1: poll 3 of 7 first",
        "4: 1 aside with 3",
        "4: 0 aside with 3",
        "4: end of 7",
        "10: poll 3 of 7",
        "10: back with 3",
        "10: back with 3",
        "12: poll 4 of 7 first nested",
        "13: end of 7, cancelled since 12",
        "15: end of 7, completed since 1",
    ];
    assert_eq!(calls.polls, expected);
    let expected = [(2, 5, 6, 0, Cut::No), (99, 10, 11, 2, Cut::No), (99, 10, 14, 1, Cut::No)];
    assert_eq!(calls.closed, expected);
}

#[test]
fn what_is_set_aside_is_cut_at_the_end_and_polls_without_a_begin_do_no_harm() {
    let words = [
        &frames(code::POLL_END, 3, 0, 1)[..],
        &two(code::COMPLETED, 0, 1),
        &poll(code::POLL, 3, 1),
        &[enter(0, 2)],
        &frames(code::POLL_END, 3, 0, 4),
        &poll(code::FIRST_POLL, 5, 5),
        &frames(code::RESUME, 5, 1, 5),
        &frames(code::POLL_END, 7, 9, 6),
    ]
    .concat();
    let (calls, _) = replay(&[(0, 0, &words)], &[], 20);
    let expected = [
        "1: poll 3 of 7",
        "4: 0 aside with 3",
        "4: end of 7",
        "5: poll 5 of 7 first",
        "5: span 4294967295",
        "20: end of 7",
        "20: back with 3",
    ];
    assert_eq!(calls.polls, expected);
    let unknown = (UNKNOWN_REGION, 5, 20, 1, Cut::Open);
    assert_eq!(calls.closed, [unknown, (99, 20, 20, 0, Cut::Open)]);
}

#[test]
fn spans_go_on_after_their_end_and_end_like_regions() {
    let words = [
        &[span(5, 1), enter(0, 2), leave(3)][..],
        &end_of_part(8, 4),
        &[span(6, 5), leave(6)],
        &later_part(8, 5, 4, 7),
        &poll(code::FIRST_POLL, 9, 8),
        &two(code::COMPLETED, 8, 9),
        &frames(code::POLL_END, 9, 1, 9),
        &[leave(10)],
    ]
    .concat();
    let (calls, _) = replay(&[(0, 0, &words)], &[], 20);
    let expected = [
        "1: span 5",
        "4: end of a part of 5, 8",
        "5: span 6",
        "7: span 5 goes on as 8",
        "since 4",
        "8: poll 9 of 7 first nested",
        "9: end of 7, completed since 8",
    ];
    assert_eq!(calls.polls, expected);
    assert_eq!(calls.closed, [(0, 2, 3, 1, Cut::No), (6, 5, 6, 0, Cut::No), (5, 7, 10, 0, Cut::No)]);
}

#[test]
fn a_part_of_a_span_is_set_aside_as_regions_are_and_cut_at_the_end() {
    let words = [
        &poll(code::FIRST_POLL, 3, 1)[..],
        &[span(5, 2)],
        &frames(code::POLL_END, 3, 0, 4),
        &poll(code::POLL, 3, 10),
        &frames(code::RESUME, 3, 1, 10),
        &end_of_part(8, 11),
        &later_part(8, 5, 11, 12),
    ]
    .concat();
    let (calls, _) = replay(&[(0, 0, &words)], &[], 20);
    let expected = [
        "1: poll 3 of 7 first",
        "2: span 5",
        "4: 5 aside with 3",
        "4: end of 7",
        "10: poll 3 of 7",
        "10: back with 3",
        "11: end of a part of 99, 8",
        "12: span 5 goes on as 8",
        "since 11",
        "20: end of 7",
    ];
    assert_eq!(calls.polls, expected);
    assert_eq!(calls.closed, [(5, 12, 20, 1, Cut::Open)]);
}

#[test]
fn an_end_of_a_part_that_was_being_made_the_last_one_is_that() {
    // The process was killed between the two words.
    let [_, second] = end_of_part(8, 4);
    let words = [enter(0, 1), span(5, 2), leave(4), second];
    let (calls, _) = replay(&[(0, 0, &words)], &[], 9);
    assert_eq!(calls.closed, [(5, 2, 4, 1, Cut::No), (0, 1, 9, 0, Cut::Open)]);
    // Ends of parts that never began end what is there.
    let (calls, _) = replay(&[(0, 0, &[&[enter(0, 1)][..], &end_of_part(8, 4)].concat())], &[], 9);
    assert_eq!(calls.closed, [(0, 1, 4, 0, Cut::No)]);
    assert_eq!(replay(&[(0, 0, &[end_of_part(8, 4), two(code::SINCE, 1, 4)].concat())], &[], 9).0.closed, []);
}

#[test]
fn leaves_without_a_call_and_cut_pairs_do_no_harm() {
    let words = [leave(1), enter(0, 2), leave(3), event(code::CLOSE_TO, 4)];
    assert_eq!(replay(&[(0, 0, &words)], &[], 9).0.closed, [(0, 2, 3, 0, Cut::No)]);
}
