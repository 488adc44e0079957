//! Replies to programs' terminal queries: typed once, whichever server sends them, and cheap to record.

use journal::{EventsReader, Masks, Offset, Record};
use wire::{FromHolder, ToHolder};

use crate::rig::{Held, PATIENCE};

fn answer(query: u64, bytes: &[u8]) -> ToHolder {
    ToHolder::Answer { query: Offset(query), bytes: bytes.to_vec() }
}

#[test]
// promise: output-5
fn a_flood_of_questions_leaves_no_records() {
    let mut held = Held::running("stty raw -echo; echo READY; exec cat >/dev/null");
    held.shows("READY");
    let size = |held: &Held| EventsReader::open(&held.folder(), Masks::default()).unwrap().len().unwrap();
    let before = size(&held);
    for query in 1..=5_000 {
        held.server.sends(&answer(query, b"x"));
    }
    held.server.sends(&ToHolder::Ping { seq: 7 });
    let is_answered = |frame: &FromHolder| matches!(frame, FromHolder::Done { seq: 7, .. });
    assert!(std::iter::from_fn(|| held.server.hears(PATIENCE)).flatten().any(|frame| is_answered(&frame)));
    assert_eq!(size(&held), before, "5,000 answers");
}

#[test]
// promise: output-5
fn an_answer_is_sent_to_the_server_recorded_for_the_next_one_and_typed_once() {
    let mut held = Held::running("read line; echo \"got=$line=\"; read rest");
    held.server.sends(&answer(5, b"A"));
    let told = std::iter::from_fn(|| held.server.hears(PATIENCE)).flatten();
    let is_told = |frame| matches!(frame, FromHolder::Observed(observed) if observed.answered == Offset(5));
    assert!(told.into_iter().any(is_told));
    let mut next = held.call();
    let tail = next.greets(true).tail;
    let mut events = EventsReader::open(&held.folder(), Masks::default()).unwrap();
    let answered = std::iter::from_fn(|| events.next(tail.events).unwrap())
        .any(|event| Record::decode(event.kind, &event.payload) == Some(Record::Answered { query: Offset(5) }));
    assert!(answered);
    next.sends(&answer(5, b"A"));
    next.sends(&answer(9, b"B\n"));
    held.server = next;
    assert!(held.shows("got=").contains("got=AB="), "{}", held.journal());
}

#[test]
// promise: output-5
fn a_reply_that_comes_when_the_line_was_read_is_not_typed_into_its_program() {
    let mut held = Held::dash();
    let query = "\x1b[6n";
    let shown = held.shows(query);
    let asked = shown.find(query).unwrap() + query.len();
    let text = b"stty -echo; echo READY; IFS= read -r line; echo \"got=$line=\"".to_vec();
    held.server.sends(&ToHolder::Run { seq: 1, key: [0; 16], patience_ms: 30_000, text });
    held.shows("READY");
    held.server.sends(&answer(asked as u64, b"\x1b[1;1R"));
    let bytes = b"typed\n".to_vec();
    held.server.sends(&ToHolder::Input { seq: 2, key: [0; 16], is_secret: false, patience_ms: 30_000, bytes });
    assert!(held.shows("got=").contains("got=typed="), "{}", held.journal());
}
