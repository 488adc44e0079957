//! Whether an answer reaches its caller: what an action noted as shown is taken back if it does not.
//!
//! The door knows when an answer is delivered, and the sessions know what it shows. Neither knows the other, so an action
//! leaves with the [`Delivery`] of its request how to take back each of its notes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::ids::SessionId;
use crate::mutex::locked;

/// The delivery of one request's answer; clones are of the same one.
#[derive(Clone)]
pub struct Delivery {
    notes: Arc<Mutex<Notes>>,
    received_at: Instant,
}

#[derive(Default)]
struct Notes {
    is_given_up: bool,
    undo: Vec<Box<dyn FnOnce() + Send>>,
    /// How far the answer reads in each session.
    read_to: BTreeMap<SessionId, u64>,
    /// Stores these positions.
    store: Vec<Box<dyn FnOnce() + Send>>,
}

impl Default for Delivery {
    fn default() -> Self {
        Self { notes: Arc::default(), received_at: Instant::now() }
    }
}

impl Delivery {
    /// Whether its request came before this moment.
    pub(crate) fn was_received_before(&self, moment: Instant) -> bool {
        self.received_at < moment
    }

    /// Notes something that the answer shows, unless it is given up already; `note` returns how to take it back. It must
    /// not use the delivery.
    pub fn note<U: FnOnce() + Send + 'static>(&self, note: impl FnOnce() -> U) {
        // Under the lock: a call that comes after the answer was given up must not find the note.
        let mut notes = locked(&self.notes);
        if !notes.is_given_up {
            let undo = note();
            notes.undo.push(Box::new(undo));
        }
    }

    /// Takes a note back if the answer does not reach its caller; at once if it is given up already.
    pub fn or_undo(&self, undo: impl FnOnce() + Send + 'static) {
        let mut notes = locked(&self.notes);
        if !notes.is_given_up {
            notes.undo.push(Box::new(undo));
            return;
        }
        drop(notes);
        undo();
    }

    /// Notes that the answer reads to `read_to` in this session; `store` runs once the answer is delivered.
    pub(crate) fn reads_to(&self, session: &SessionId, read_to: u64, store: impl FnOnce() + Send + 'static) {
        let mut notes = locked(&self.notes);
        if !notes.is_given_up {
            notes.read_to.insert(session.clone(), read_to);
            notes.store.push(Box::new(store));
        }
    }

    /// How far the answer reads in each session, for a client that keeps its own read positions.
    pub fn read_to(&self) -> BTreeMap<SessionId, u64> {
        locked(&self.notes).read_to.clone()
    }

    /// The caller has the answer: its read positions are stored for the next server.
    pub fn delivered(&self) {
        let store = std::mem::take(&mut locked(&self.notes).store);
        store.into_iter().for_each(|store| store());
    }

    /// The answer does not reach its caller: takes all notes back, the last one first.
    pub fn give_up(&self) {
        let notes = {
            let mut notes = locked(&self.notes);
            notes.is_given_up = true;
            notes.store.clear();
            std::mem::take(&mut notes.undo)
        };
        notes.into_iter().rev().for_each(|undo| undo());
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Delivery")
    }
}

/// Two requests of one caller are requests of the same caller.
impl PartialEq for Delivery {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Delivery {}

/// An answer that is not delivered yet: it is given up when this is dropped.
#[derive(Debug)]
pub struct Undelivered(Option<Delivery>);

impl Undelivered {
    /// The answer of a request that has just come.
    pub fn new(delivery: Delivery) -> Self {
        Self(Some(delivery))
    }

    /// It was delivered; the caller may still say that it does not take it.
    pub fn delivered(self) {
        self.on_its_way().iter().for_each(Delivery::delivered);
    }

    /// Its delivery, which another part of the server awaits.
    pub fn on_its_way(mut self) -> Option<Delivery> {
        self.0.take()
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        if let Some(delivery) = &self.0 {
            delivery.give_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(on: &Delivery, log: &Arc<Mutex<Vec<u8>>>, note: u8) {
        let log = Arc::clone(log);
        on.or_undo(move || locked(&log).push(note));
    }

    #[test]
    fn only_an_answer_that_is_abandoned_is_taken_back_the_last_note_first() {
        let log = Arc::default();
        let (lost, arrives) = (Delivery::default(), Delivery::default());
        for note in [1, 2] {
            noted(&lost, &log, note);
            noted(&arrives, &log, note + 10);
        }
        Undelivered::new(arrives.clone()).delivered();
        drop(Undelivered::new(lost.clone()));
        assert_eq!(*locked(&log), [2, 1]);
        noted(&lost, &log, 3);
        assert_eq!(*locked(&log), [2, 1, 3], "a note after that is taken back at once");
        lost.note(|| -> fn() { unreachable!("or is not made at all") });
        lost.give_up();
        arrives.give_up();
        assert_eq!(*locked(&log), [2, 1, 3, 12, 11], "each once; a client may cancel an answer that was under way");
    }

    #[test]
    fn a_read_position_is_stored_when_its_answer_is_delivered_and_never_before() {
        let (session, log) = (SessionId::parse("s0-aaaaaaaaaa").expect("an id"), Arc::new(Mutex::new(Vec::new())));
        let reads = |on: &Delivery, to: u64| {
            let log = Arc::clone(&log);
            on.reads_to(&session, to, move || locked(&log).push(to));
        };
        let (lost, arrives) = (Delivery::default(), Delivery::default());
        reads(&lost, 10);
        reads(&arrives, 20);
        reads(&arrives, 30);
        lost.give_up();
        lost.delivered();
        assert_eq!(*locked(&log), [] as [u64; 0]);
        assert_eq!(arrives.read_to(), BTreeMap::from([(session.clone(), 30)]));
        Undelivered::new(arrives.clone()).delivered();
        arrives.delivered();
        assert_eq!(*locked(&log), [20, 30], "each once");
    }
}
