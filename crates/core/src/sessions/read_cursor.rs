//! The read cursor of each reader in each session, with the last screen shown to it and the commands whose ends it has yet
//! to learn.
//!
//! The read cursor outlives the server, so a repeated wait sees output that came while no server ran. It is stored once the
//! answer is delivered, a moment later, and at once if a caller depends on it ([`ReadCursors::flush`]). A client that keeps
//! its own read positions tells them to the next server ([`ReadCursors::resume`]).
//!
//! It all changes while an answer is made; if the answer is not delivered, the change is undone ([`crate::delivery`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::history::History;
use crate::action::{ActionError, ScreenView, ShownScreen};
use crate::ids::{CommandId, SessionId};
use crate::limits;
use crate::mutex::locked;
use crate::principal::Principal;
use crate::store::Store;

/// The read cursors of all readers: in memory, and in the store for the next server.
#[derive(Debug, Clone)]
pub(super) struct ReadCursors {
    cursors: Arc<Mutex<HashMap<SessionId, Readers>>>,
    history: Arc<History>,
}

/// The readers of one session, by [`Principal::reader`].
type Readers = HashMap<String, ReadCursor>;

#[derive(Debug, Default)]
struct ReadCursor {
    read_to: Option<u64>,
    /// When an answer that had moved it was given up.
    taken_back: Option<Instant>,
    screen: Option<ShownScreen>,
    /// Commands whose ends it has yet to learn: ptyd reported them to it as running, or did not report them at all.
    unreported: Vec<CommandId>,
    /// The newest command whose call was given up before its answer, while the caller has not been told that it runs.
    given_up: Option<CommandId>,
}

/// The cursor of this reader; a new one takes the place of another if the session has too many.
fn entry<'a>(all: &'a mut HashMap<SessionId, Readers>, reader: &str, id: &SessionId) -> &'a mut ReadCursor {
    let readers = all.entry(id.clone()).or_default();
    let is_full = readers.len() >= limits::READERS_PER_SESSION_MAX && !readers.contains_key(reader);
    if let Some(other) = readers.keys().next().filter(|_| is_full).cloned() {
        // It reads on from its stored position.
        readers.remove(&other);
    }
    readers.entry(reader.to_owned()).or_default()
}

impl ReadCursors {
    pub(super) fn new(history: Arc<History>) -> Self {
        Self { cursors: Arc::default(), history }
    }

    /// The read cursor of this caller in the session, also from before this server.
    pub(super) async fn read_to(&self, principal: &Principal, id: &SessionId) -> Result<Option<u64>, ActionError> {
        let reader = principal.reader();
        if let Some(read_to) = self.in_memory(&reader, id) {
            return Ok(Some(read_to));
        }
        let key = (id.to_string(), reader.clone());
        // A damaged store only loses the cursor.
        let read_to = self.on_store(move |store| store.read_cursor(&key)).await?.ok().and_then(Result::ok).flatten();
        if let Some(read_to) = read_to {
            self.set(&reader, id, read_to);
        }
        Ok(read_to)
    }

    /// The same for a request that must not wait for the disk: a cursor that the store does not return at once is unknown.
    pub(super) async fn read_to_if_known(&self, principal: &Principal, id: &SessionId) -> Option<u64> {
        tokio::time::timeout(limits::READ_CURSOR_PATIENCE, self.read_to(principal, id)).await.ok()?.ok()?
    }

    /// Moves the read cursor of this caller behind the output that its answer shows. If the cursor was taken back since the
    /// request came, it stays: what was lost may lie before the output that this answer shows.
    pub(super) fn has_read(&self, principal: &Principal, id: &SessionId, (from, to): (u64, u64)) {
        let mut moved = None;
        self.note(principal, id, |reader| {
            moved = {
                let mut all = locked(&self.cursors);
                let seen = entry(&mut all, reader, id);
                let is_older =
                    |at| principal.delivery.as_ref().is_some_and(|delivery| delivery.was_received_before(at));
                if seen.taken_back.is_some_and(is_older) { None } else { Some(seen.read_to.replace(to)) }
            };
            let before = moved.map(|before| before.unwrap_or(from));
            move |cursors, reader, id| before.into_iter().for_each(|before| cursors.take_back_to(reader, id, before))
        });
        let Some(before) = moved.filter(|before| *before != Some(to)) else { return };
        let key = (id.to_string(), principal.reader());
        let history = Arc::clone(&self.history);
        let Some(delivery) = &principal.delivery else { return history.store.put_read_cursor(key, to) };
        if before.is_none() {
            // If this answer is lost with the server, the next server reads from here.
            history.store.put_read_cursor(key.clone(), from);
        }
        delivery.reads_to(id, to, move || history.store.put_read_cursor(key, to));
    }

    /// The client of an earlier server has the output up to here. The stored position lies behind it if that server ended before it
    /// stored more, and ahead of it if the client was shown the result of a task.
    pub(super) async fn resume(&self, principal: &Principal, id: &SessionId, read_to: u64) {
        if self.read_to_if_known(principal, id).await.is_none_or(|known| known < read_to) {
            self.move_to(&principal.reader(), id, read_to);
        }
    }

    /// Begins the read cursor of a caller that has none in this session: an accepted command or input shows nothing.
    pub(super) async fn begin(&self, principal: &Principal, id: &SessionId, at: u64) {
        if self.read_to_if_known(principal, id).await.is_none() {
            self.begin_at(principal, id, at);
        }
    }

    /// Begins the read cursor of a caller that has none.
    pub(super) fn begin_at(&self, principal: &Principal, id: &SessionId, at: u64) {
        self.move_to(&principal.reader(), id, at);
    }

    fn move_to(&self, reader: &str, id: &SessionId, to: u64) {
        if self.set(reader, id, to) != Some(to) {
            self.history.store.put_read_cursor((id.to_string(), reader.to_owned()), to);
        }
    }

    /// The output behind `at` was not shown.
    fn take_back_to(&self, reader: &str, id: &SessionId, at: u64) {
        if self.in_memory(reader, id).is_none_or(|read_to| at < read_to) {
            entry(&mut locked(&self.cursors), reader, id).taken_back = Some(Instant::now());
            self.move_to(reader, id, at);
        }
    }

    /// Notes what the caller's answer shows; what `note` returns takes it back if the answer is not delivered.
    fn note<U: FnOnce(&Self, &str, &SessionId) + Send + 'static>(
        &self,
        principal: &Principal,
        id: &SessionId,
        note: impl FnOnce(&str) -> U,
    ) {
        let reader = principal.reader();
        let Some(delivery) = &principal.delivery else { return drop(note(&reader)) };
        delivery.note(|| {
            let (undo, cursors, id) = (note(&reader), self.clone(), id.clone());
            move || undo(&cursors, &reader, &id)
        });
    }

    /// Takes a note back if the caller's answer is not delivered.
    fn or_undo(
        &self,
        principal: &Principal,
        id: &SessionId,
        undo: impl FnOnce(&Self, &str, &SessionId) + Send + 'static,
    ) {
        let Some(delivery) = &principal.delivery else { return };
        let (cursors, reader, id) = (self.clone(), principal.reader(), id.clone());
        delivery.or_undo(move || undo(&cursors, &reader, &id));
    }

    /// Waits until the read cursors are stored, for a caller that must find its cursor after a crash.
    pub(super) async fn flush(&self) -> Result<(), ActionError> {
        // If the store cannot be written, only the cursor is lost; the request is still answered.
        self.on_store(Store::flush).await.map(drop)
    }

    async fn on_store<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Store) -> T + Send + 'static,
    ) -> Result<Result<T, tokio::task::JoinError>, ActionError> {
        let store = Arc::clone(&self.history.store);
        let asked = async move { tokio::task::spawn_blocking(move || ask(&store)).await };
        self.history.in_time(("store.db", limits::DISK_PATIENCE), asked).await
    }

    /// The read cursor, as far as this server has it in memory.
    pub(super) fn in_memory(&self, reader: &str, id: &SessionId) -> Option<u64> {
        locked(&self.cursors).get(id)?.get(reader)?.read_to
    }

    /// Sets the read cursor in memory; returns where it was.
    fn set(&self, reader: &str, id: &SessionId, to: u64) -> Option<u64> {
        entry(&mut locked(&self.cursors), reader, id).read_to.replace(to)
    }

    /// Marks the rows of the screen that changed since this caller's last one, and records this one.
    pub(super) fn shows(&self, principal: &Principal, id: &SessionId, screen: &mut ScreenView) {
        let mut all = locked(&self.cursors);
        let seen = entry(&mut all, &principal.reader(), id);
        seen.screen = Some(screen.compare(seen.screen.as_ref()));
        drop(all);
        self.or_undo(principal, id, |cursors, reader, id| {
            // Without a screen to compare with, all rows of the next one count as new.
            let mut all = locked(&cursors.cursors);
            all.get_mut(id).and_then(|readers| readers.get_mut(reader)).into_iter().for_each(|seen| seen.screen = None);
        });
    }

    /// The caller has yet to learn the end of this command, which was reported to it as running.
    pub(super) fn note_running(&self, principal: &Principal, id: &SessionId, command: CommandId) {
        self.add_unreported(&principal.reader(), id, command);
    }

    /// The same, but only if the answer that now begins is not delivered: nothing else tells that the command ran.
    /// Its output began behind `from`.
    pub(super) fn note_running_unless_delivered(
        &self,
        principal: &Principal,
        id: &SessionId,
        command: CommandId,
        from: u64,
    ) {
        self.or_undo(principal, id, move |cursors, reader, id| {
            cursors.add_unreported(reader, id, command);
            cursors.set_given_up(reader, id, Some(command));
            if cursors.in_memory(reader, id).is_none() {
                cursors.move_to(reader, id, from);
            }
        });
    }

    fn add_unreported(&self, reader: &str, id: &SessionId, command: CommandId) {
        let mut all = locked(&self.cursors);
        let unreported = &mut entry(&mut all, reader, id).unreported;
        if !unreported.contains(&command) {
            unreported.push(command);
        }
    }

    fn set_given_up(&self, reader: &str, id: &SessionId, command: Option<CommandId>) {
        entry(&mut locked(&self.cursors), reader, id).given_up = command;
    }

    /// Whether the call of this command was given up, and the caller has not been told so.
    pub(super) fn is_given_up(&self, principal: &Principal, id: &SessionId, command: CommandId) -> bool {
        let all = locked(&self.cursors);
        let seen = all.get(id).and_then(|readers| readers.get(&principal.reader()));
        seen.is_some_and(|seen| seen.given_up == Some(command))
    }

    /// The caller's answer tells that the command runs although its call was given up.
    pub(super) fn note_given_up_told(&self, principal: &Principal, id: &SessionId, command: CommandId) {
        self.note(principal, id, |reader| {
            self.set_given_up(reader, id, None);
            move |cursors, reader, id| cursors.set_given_up(reader, id, Some(command))
        });
    }

    /// The caller's answer tells the end of the command.
    pub(super) fn note_end_reported(&self, principal: &Principal, id: &SessionId, command: CommandId) {
        self.note(principal, id, |reader| {
            if let Some(seen) = locked(&self.cursors).get_mut(id).and_then(|readers| readers.get_mut(reader)) {
                seen.unreported.retain(|unreported| *unreported != command);
            }
            move |cursors, reader, id| cursors.add_unreported(reader, id, command)
        });
    }

    /// The commands whose ends it has yet to learn.
    pub(super) fn unreported(&self, principal: &Principal, id: &SessionId) -> Vec<CommandId> {
        let all = locked(&self.cursors);
        let seen = all.get(id).and_then(|readers| readers.get(&principal.reader()));
        seen.map(|seen| seen.unreported.clone()).unwrap_or_default()
    }

    /// The session has ended: keeps only cursors with ends that are still to be reported.
    pub(super) fn has_ended(&self, id: &SessionId) {
        let mut all = locked(&self.cursors);
        let Some(readers) = all.get_mut(id) else { return };
        readers.retain(|_, seen| !seen.unreported.is_empty());
        if readers.is_empty() {
            all.remove(id);
        }
    }

    /// The session is no longer retained.
    pub(super) fn forget(&self, id: &SessionId) {
        locked(&self.cursors).remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Delivery;

    #[tokio::test]
    async fn an_answer_that_is_not_delivered_has_shown_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(&dir.path().join("store.db")).expect("opened");
        let cursors = ReadCursors::new(Arc::new(History::new(store, dir.path().to_owned())));
        let session = SessionId::parse("s0-aaaaaaaaaa").expect("an id");
        let asks = || Principal { delivery: Some(Delivery::default()), ..Principal::local() };
        let given_up = |principal: Principal| principal.delivery.expect("it has one").give_up();
        let read_to = async || cursors.read_to(&Principal::local(), &session).await.expect("a cursor");
        let first = asks();
        cursors.has_read(&first, &session, (10, 20));
        cursors.note_end_reported(&first, &session, CommandId(1));
        assert_eq!((read_to().await, cursors.unreported(&first, &session)), (Some(20), vec![]));
        given_up(first);
        assert_eq!(
            (read_to().await, cursors.unreported(&Principal::local(), &session)),
            (Some(10), vec![CommandId(1)])
        );
        // Of two answers at once the lost one decides: better twice than never.
        let (second, third, beside) = (asks(), asks(), asks());
        cursors.has_read(&second, &session, (10, 30));
        cursors.has_read(&third, &session, (30, 40));
        given_up(second.clone());
        assert_eq!(read_to().await, Some(10));
        given_up(third);
        assert_eq!(read_to().await, Some(10), "what is given up later moves no cursor forward");
        cursors.has_read(&beside, &session, (30, 50));
        assert_eq!(read_to().await, Some(10), "nor does an answer to a request that came before that");
        cursors.has_read(&second, &session, (10, 60));
        assert_eq!(read_to().await, Some(10), "nor one that is made after it was given up");
        // The session ended meanwhile, and the next server finds the cursor in the store.
        let last = asks();
        cursors.has_read(&last, &session, (10, 50));
        assert_eq!(read_to().await, Some(50));
        cursors.forget(&session);
        given_up(last);
        cursors.flush().await.expect("stored");
        cursors.forget(&session);
        assert_eq!(read_to().await, Some(10));
    }

    #[test]
    fn readers_have_their_own_positions_and_their_number_is_bounded() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(&dir.path().join("store.db")).expect("opened");
        let cursors = ReadCursors::new(Arc::new(History::new(store, dir.path().to_owned())));
        let [session, other] = ["s0-aaaaaaaaaa", "s0-bbbbbbbbbb"].map(|id| SessionId::parse(id).expect("an id"));
        cursors.set("me", &other, 7);
        for number in 0..=limits::READERS_PER_SESSION_MAX {
            assert_eq!(cursors.set(&format!("me\n{number}"), &session, number as u64), None);
        }
        let newest = limits::READERS_PER_SESSION_MAX;
        assert_eq!(cursors.in_memory(&format!("me\n{newest}"), &session), Some(newest as u64));
        assert_eq!(locked(&cursors.cursors)[&session].len(), newest);
        assert_eq!(cursors.in_memory("me", &other), Some(7));
    }
}
