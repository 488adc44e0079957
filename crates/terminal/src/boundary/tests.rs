//! Records and markers, in order, out of order, lost and forged.

use proptest::prelude::*;

use super::*;

fn nonce(word: &str) -> Nonce {
    Nonce::parse(word.as_bytes()).unwrap()
}

fn end(id: u32) -> End {
    End { id, exit: 0, pipestatus: vec![0], flags: Flags::default(), cwd: b"/".to_vec() }
}

fn started(word: &str, id: u32) -> Record {
    Record::Started { nonce: nonce(word), id }
}

fn ended(word: &str, id: u32) -> Record {
    Record::Ended { nonce: nonce(word), end: end(id) }
}

fn lost(id: u32, at: u64) -> Boundary {
    Boundary::Ended { end: end(id), output_end: at, at, marker: None }
}

#[test]
fn a_record_is_read_to_the_letter() {
    assert_eq!(parse_record(b"C;s3cret;n.1;42"), Some(Record::Started { nonce: nonce("n.1"), id: 42 }));
    assert_eq!(
        parse_record(b"D;s;n;7;130;1 0 130;ilncbe;/a;b\n\xff"),
        Some(Record::Ended {
            nonce: nonce("n"),
            end: End {
                id: 7,
                exit: 130,
                pipestatus: vec![1, 0, 130],
                flags: Flags {
                    incomplete: true,
                    hooks_lost: true,
                    not_run_to_end: true,
                    not_begun: true,
                    in_band: true,
                    errexit: true
                },
                cwd: b"/a;b\n\xff".to_vec(),
            }
        })
    );
    assert_eq!(
        parse_record(b"D;s;n;0;0;;;"),
        Some(Record::Ended {
            nonce: nonce("n"),
            end: End { id: 0, exit: 0, pipestatus: vec![], flags: Flags::default(), cwd: vec![] }
        })
    );
    assert_eq!(parse_record(b"P;s;/bin;/sbin:"), Some(Record::Path(b"/bin;/sbin:".to_vec())));
    assert_eq!(parse_record(b"M;s;7.0"), Some(Record::Prompt { nonce: nonce("7.0") }));
}

#[test]
fn a_record_that_breaks_the_grammar_is_ignored() {
    for record in [
        "",
        "C",
        "C;s;n",
        "C;s;n;x",
        "C;s;;1",
        "C;s;n!;1",
        "C;s;n;-1",
        "CC;s;n;1",
        "D;s;n;1;0;0;",
        "D;s;n;1;x;0;;/",
        "D;s;n;1;0;0 x;;/",
        "E;s;n;1",
        "P;s",
    ] {
        assert_eq!(parse_record(record.as_bytes()), None, "{record:?}");
    }
}

#[test]
fn a_command_starts_behind_its_marker_and_ends_before_the_next() {
    let mut boundaries = Boundaries::new();
    assert_eq!(boundaries.record(started("a", 1)), None);
    assert_eq!(
        boundaries.marker(MarkerKind::Start, &nonce("a"), 10, 25),
        [Boundary::Started { id: 1, at: 25, marker: 10..25 }]
    );
    assert_eq!(boundaries.record(ended("a", 1)), None);
    assert_eq!(boundaries.waiting_ends().collect::<Vec<_>>(), [1]);
    assert_eq!(
        boundaries.marker(MarkerKind::End, &nonce("a"), 30, 45),
        [Boundary::Ended { end: end(1), output_end: 30, at: 45, marker: Some(30..45) }]
    );
    assert_eq!(boundaries.waiting_ends().next(), None);
}

#[test]
fn a_marker_without_its_record_or_printed_twice_means_nothing() {
    let mut boundaries = Boundaries::new();
    assert_eq!(boundaries.marker(MarkerKind::End, &nonce("a"), 0, 9), []);
    boundaries.record(ended("a", 1));
    assert_eq!(boundaries.marker(MarkerKind::Start, &nonce("a"), 9, 18), []);
    assert_eq!(boundaries.marker(MarkerKind::End, &nonce("a"), 18, 27).len(), 1);
    assert_eq!(boundaries.marker(MarkerKind::End, &nonce("a"), 27, 36), []);
}

#[test]
fn a_lost_marker_ends_its_command_where_the_next_marker_begins() {
    let mut boundaries = Boundaries::new();
    boundaries.record(ended("a", 1));
    boundaries.record(started("b", 2));
    boundaries.record(ended("c", 2));
    assert_eq!(
        boundaries.marker(MarkerKind::End, &nonce("c"), 50, 60),
        [lost(1, 50), Boundary::Ended { end: end(2), output_end: 50, at: 60, marker: Some(50..60) }]
    );
}

#[test]
// promise: send-4
fn a_start_is_not_lost_when_the_shell_first_ends_what_was_typed_ahead() {
    let mut boundaries = Boundaries::new();
    assert_eq!(boundaries.record(started("a", 4)), None);
    assert_eq!(boundaries.record(ended("b", 0)), None);
    assert_eq!(
        boundaries.marker(MarkerKind::End, &nonce("b"), 10, 20),
        [Boundary::Ended { end: end(0), output_end: 10, at: 20, marker: Some(10..20) }]
    );
    assert_eq!(
        boundaries.marker(MarkerKind::Start, &nonce("a"), 30, 40),
        [Boundary::Started { id: 4, at: 40, marker: 30..40 }]
    );
    // A start whose own command has ended is lost.
    assert_eq!(boundaries.record(started("c", 5)), None);
    assert_eq!(boundaries.record(ended("d", 5)), None);
    boundaries.marker(MarkerKind::End, &nonce("d"), 50, 60);
    assert_eq!(boundaries.marker(MarkerKind::Start, &nonce("c"), 70, 80), []);
}

#[test]
fn a_prompt_is_hidden_and_ends_nothing_even_if_its_record_arrives_after_later_output() {
    let mut boundaries = Boundaries::new();
    let prompt = || Record::Prompt { nonce: nonce("7.0") };
    for record in [started("a", 1), ended("b", 1), prompt(), prompt()] {
        assert_eq!(boundaries.record(record), None);
    }
    let prompt_at = |from| [Boundary::Prompt { marker: from..from + 5 }];
    assert_eq!(boundaries.marker(MarkerKind::End, &nonce("7.0"), 10, 15), prompt_at(10));
    assert_eq!(boundaries.marker(MarkerKind::End, &nonce("7.0"), 20, 25), prompt_at(20), "painted again");
    assert_eq!(boundaries.marker(MarkerKind::End, &nonce("7.0"), 26, 31), []);
    let start = Boundary::Started { id: 1, at: 35, marker: 30..35 };
    assert_eq!(boundaries.marker(MarkerKind::Start, &nonce("a"), 30, 35), [start]);
    assert_eq!(boundaries.waiting_ends().collect::<Vec<_>>(), [1]);
    // Those whose markers are gone cost no end its own place.
    for _ in 0..3 * WAITING_MAX {
        assert_eq!(boundaries.record(prompt()), None);
    }
    let ended = Boundary::Ended { end: end(1), output_end: 40, at: 45, marker: Some(40..45) };
    assert_eq!(boundaries.marker(MarkerKind::End, &nonce("b"), 40, 45), [ended]);
}

#[test]
fn an_end_that_expires_is_placed_once() {
    let mut boundaries = Boundaries::new();
    assert_eq!(boundaries.expire(3, 70), None);
    boundaries.record(ended("a", 3));
    assert_eq!(boundaries.expire(3, 70), Some(lost(3, 70)));
    assert_eq!(boundaries.expire(3, 80), None);
    // Its marker comes late, and once.
    assert_eq!(boundaries.marker(MarkerKind::End, &nonce("a"), 90, 99), [Boundary::Prompt { marker: 90..99 }]);
    assert_eq!(boundaries.marker(MarkerKind::End, &nonce("a"), 100, 109), []);
}

#[test]
// promise: output-3
fn an_end_whose_marker_comes_behind_removed_output_is_there_and_else_where_the_output_continues() {
    let mut boundaries = Boundaries::new();
    boundaries.record(ended("one", 1));
    boundaries.gap(50);
    boundaries.record(ended("two", 2));
    // A second gap does not move it.
    boundaries.gap(60);
    let there = Boundary::Ended { end: end(2), output_end: 90, at: 95, marker: Some(90..95) };
    assert_eq!(boundaries.marker(MarkerKind::End, &nonce("two"), 90, 95), [lost(1, 50), there]);
    boundaries.record(ended("three", 3));
    boundaries.gap(120);
    assert_eq!(boundaries.expire(3, 200), Some(lost(3, 120)));
}

#[test]
fn the_oldest_of_too_many_waiting_ends_is_placed_at_the_last_known_boundary() {
    let mut boundaries = Boundaries::new();
    boundaries.record(started("s", 1));
    boundaries.marker(MarkerKind::Start, &nonce("s"), 5, 20);
    for id in 0..WAITING_MAX as u32 {
        assert_eq!(boundaries.record(ended(&format!("n{id}"), id)), None);
    }
    assert_eq!(boundaries.record(ended("more", 99)), Some(lost(0, 20)));
}

#[test]
fn a_start_outlives_any_number_of_ends_that_were_typed_ahead() {
    let mut boundaries = Boundaries::new();
    boundaries.record(started("s", 1));
    for number in 0..3 * WAITING_MAX {
        boundaries.record(ended(&format!("n{number}"), 0));
    }
    let found = boundaries.marker(MarkerKind::Start, &nonce("s"), 500, 520);
    assert_eq!(found.last(), Some(&Boundary::Started { id: 1, at: 520, marker: 500..520 }));
}

/// The steps of a session: each is a record, its marker, a forgery, a lost marker or a time-out.
#[derive(Clone, Debug)]
enum Step {
    Command { marker_comes: bool },
    Forgery { kind: MarkerKind, nonce_of_command: usize },
    TimeOut,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::bool::weighted(0.8).prop_map(|marker_comes| Step::Command { marker_comes }),
        4 => (prop::sample::select(vec![MarkerKind::Start, MarkerKind::End]), 0usize..80)
            .prop_map(|(kind, nonce_of_command)| Step::Forgery { kind, nonce_of_command }),
        1 => Just(Step::TimeOut),
    ]
}

proptest! {
    #[test]
    // promise: end-2
    fn each_end_record_ends_exactly_one_command_and_forgeries_end_none(
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut boundaries = Boundaries::new();
        let mut ends: Vec<u32> = Vec::new();
        let mut sent: Vec<u32> = Vec::new();
        let mut offset = 0;
        let mut note = |found: &Boundary| if let Boundary::Ended { end, .. } = found { ends.push(end.id) };
        for (index, step) in steps.iter().enumerate() {
            offset += 10;
            match step {
                Step::Command { marker_comes } => {
                    let (word, id) = (format!("n{index}"), index as u32);
                    sent.push(id);
                    boundaries.record(ended(&word, id)).iter().for_each(&mut note);
                    if *marker_comes {
                        let found = boundaries.marker(MarkerKind::End, &nonce(&word), offset, offset + 10);
                        prop_assert_eq!(found.last().and_then(Boundary::marker), Some(offset..offset + 10));
                        found.iter().for_each(&mut note);
                    }
                }
                // The forger knows every nonce that ever stood in the output, but none that is still to come.
                Step::Forgery { kind, nonce_of_command } => {
                    let was_printed = matches!(steps.get(*nonce_of_command), Some(Step::Command { marker_comes: true }))
                        && *nonce_of_command < index;
                    let word = if was_printed { format!("n{nonce_of_command}") } else { format!("guess{index}") };
                    prop_assert_eq!(boundaries.marker(*kind, &nonce(&word), offset, offset + 10), []);
                }
                Step::TimeOut => {
                    let waiting: Vec<u32> = boundaries.waiting_ends().collect();
                    for id in waiting {
                        boundaries.expire(id, offset).iter().for_each(&mut note);
                    }
                }
            }
        }
        let waiting: Vec<u32> = boundaries.waiting_ends().collect();
        for id in waiting {
            boundaries.expire(id, offset).iter().for_each(&mut note);
        }
        ends.sort_unstable();
        prop_assert_eq!(ends, sent);
    }
}
