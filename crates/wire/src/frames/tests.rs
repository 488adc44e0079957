//! Tests of the frames: every kind there and back, and nothing taken that is cut or of another kind.

use super::*;

#[test]
fn every_frame_is_read_back_as_it_was_written_at_any_cut() {
    let tail = Tail { journal: Offset(7), events: 64 };
    let to = [
        ToHolder::Kill,
        ToHolder::Hello { protocol: 1, attaches: true },
        ToHolder::Run { seq: 1, key: [9; 16], patience_ms: 5, text: b"true\n".to_vec() },
        ToHolder::Input { seq: 2, key: NO_KEY, is_secret: true, patience_ms: 6, bytes: b"x".to_vec() },
        ToHolder::Resize { seq: 3, cols: 80, rows: 24 },
        ToHolder::Signal { seq: 4, target: Target::Process(77), signo: 15 },
        ToHolder::Signal { seq: 4, target: Target::Session, signo: 15 },
        ToHolder::Answer { query: Offset(1 << 40), bytes: b"\x1b[0n".to_vec() },
        ToHolder::Terminate { seq: 5, signo: 1, grace_ms: 1000 },
        ToHolder::Report { seq: 6 },
        ToHolder::Ping { seq: 7 },
        ToHolder::Limited { limit: 1, command: 2, count: 1 << 40 },
        ToHolder::Type {
            seq: 8,
            key: [7; 16],
            patience_ms: 9,
            is_inside: true,
            nonce: 1 << 50,
            text: b"1 + 1".to_vec(),
            line: b"1 + 1\n".to_vec(),
        },
        ToHolder::Judge {
            command: 3,
            status: 1,
            boundary: 2,
            is_hookless: true,
            end: Offset(1 << 41),
            time_us: 1 << 51,
            why: b"the hooks are gone".to_vec(),
        },
    ];
    let stream: Vec<u8> = to.iter().flat_map(ToHolder::encode).collect();
    for cut in [1, 2, 3, 7, 1000] {
        let mut frames = Frames::default();
        let mut seen = Vec::new();
        for part in stream.chunks(cut) {
            frames.push(part);
            while let Some(frame) = frames.next_frame().unwrap() {
                seen.push(ToHolder::decode(frame).unwrap());
            }
        }
        assert_eq!(seen, to);
    }
    let from = [
        FromHolder::Hello(Hello { protocol: 1, holder_pid: 2, shell_pid: 3, cols: 4, rows: 5, command: 6, tail }),
        FromHolder::Tail(tail),
        FromHolder::Observed(Observed { answered: Offset(11), is_new: true, facts: facts() }),
        FromHolder::Done { seq: 1, status: Status::Stalled, value: 4096, shown_by: ShownBy::Editor },
        FromHolder::Displaced,
    ];
    for frame in from {
        assert_eq!(FromHolder::decode(frame.encode().get(4..).unwrap()), Some(frame));
    }
}

/// A program in a read of the terminal, as the holder that sent it has written it.
const FACTS: &str =
    "foreground group 8 quiet 0 modes isig\njob modes icanon echo isig icrnl\nprocess 9\nfirst reads 1024\n";

fn facts() -> Observation {
    FACTS.parse().unwrap()
}

#[test]
// promise: crash-5
fn facts_are_text_behind_two_fields_and_a_later_holder_adds_words() {
    let head = [kind::OBSERVED, 5, 0, 0, 0, 0, 0, 0, 0, 1];
    let text = FACTS.replace("quiet 0", "quiet 0 later 1") + "later 1\n";
    let decoded = FromHolder::decode(&[&head, text.as_bytes()].concat()).unwrap();
    let observed = Observed { answered: Offset(5), is_new: true, facts: facts() };
    assert_eq!(decoded, FromHolder::Observed(observed.clone()));
    let state = State {
        foreground: Activity::Reads,
        canonical: true,
        echo: true,
        isig: true,
        group: 8,
        pid: 9,
        answered: Offset(5),
    };
    assert_eq!(observed.state(), state);
    for other in [&b"\xff"[..], b"facts of another kind"] {
        assert_eq!(FromHolder::decode(&[&head, other].concat()), None);
    }
}

#[test]
// promise: crash-5
fn the_kill_frame_never_changes() {
    assert_eq!(ToHolder::Kill.encode(), [1, 0, 0, 0, 1]);
}

#[test]
// promise: crash-5
fn unknown_kinds_are_ignored_and_longer_payloads_are_read() {
    assert_eq!(ToHolder::decode(&[0x7e, 1, 2]), None);
    assert_eq!(ToHolder::decode(&[kind::PING, 1, 0, 0, 0, 99, 99]), Some(ToHolder::Ping { seq: 1 }));
    let mut frames = Frames::default();
    frames.push(&u32::MAX.to_le_bytes());
    assert_eq!(frames.next_frame(), Err(FrameTooLarge));
}
