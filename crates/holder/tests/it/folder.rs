//! A holder whose folder is removed, or only moved.

use std::time::Duration;

use journal::{EndReason, EventsReader, Masks, Record};
use wire::{FromHolder, ToHolder};

use crate::rig::{Held, PATIENCE, ends_within};

#[test]
// promise: stop-2
fn a_holder_whose_folder_was_removed_says_so_and_ends_with_its_tree() {
    let mut held = Held::running("setsid sh -c 'echo \"daemon $$ END\"; exec sleep 1000' & read rest");
    let shown = held.shows("END");
    let daemon: u32 = shown.split_whitespace().nth(1).unwrap().parse().unwrap();
    let mut events = EventsReader::open(&held.folder(), Masks::default()).unwrap();
    std::fs::remove_dir_all(held.folder()).unwrap();
    assert!(held.ends_within(PATIENCE) && ends_within(daemon, PATIENCE));
    let size = events.len().unwrap();
    let told = std::iter::from_fn(|| events.next(size).unwrap()).any(|event| {
        let record = Record::decode(event.kind, &event.payload);
        matches!(record, Some(Record::Ending { reason: EndReason::HOLDER, text: b"the session's folder was removed" }))
    });
    assert!(told);
}

#[test]
// promise: stop-2
fn a_holder_whose_folder_was_moved_continues_and_removes_its_socket_there() {
    let mut held = Held::running("read rest");
    let (here, there) = (held.folder(), held.folder().with_file_name("moved"));
    std::fs::rename(&here, &there).unwrap();
    // Something that is removed and is not the journal.
    std::fs::write(there.join("note"), "").unwrap();
    std::fs::remove_file(there.join("note")).unwrap();
    std::fs::create_dir(&here).unwrap();
    std::fs::write(here.join(wire::SOCKET_FILE), "another one's").unwrap();
    held.server.sends(&ToHolder::Ping { seq: 7 });
    let answered = std::iter::from_fn(|| held.server.hears(PATIENCE)).flatten();
    assert!(answered.into_iter().any(|frame| matches!(frame, FromHolder::Done { seq: 7, .. })));
    held.server.sends(&ToHolder::Kill);
    assert!(held.ends_within(PATIENCE));
    assert!(here.join(wire::SOCKET_FILE).exists() && !there.join(wire::SOCKET_FILE).exists());
}

#[test]
// promise: stop-2
fn a_holder_that_is_idle_does_not_wake_up_to_look_for_its_folder() {
    let held = Held::running("while :; do read rest; done");
    // By now the start is over.
    assert!(!held.ends_within(Duration::from_secs(4)));
    let wakes = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", held.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
        line.split_whitespace().last().unwrap().parse::<u64>().unwrap()
    };
    let before = wakes();
    assert!(!held.ends_within(Duration::from_secs(3)));
    // A program that reads is sampled once a second; without a waiting caller it is not.
    let woke = wakes() - before;
    assert!(woke <= 4, "{woke} times in 3 s");
}
