//! The read cursor of each reader in each session, with the last screen shown to it and the commands last reported to it
//! as still running.
//!
//! The read cursor outlives the server, so a repeated wait sees output that came while no server ran. It is stored a
//! moment later, and at once where a caller depends on it ([`ReadCursors::flush`]).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::history::History;
use crate::action::{ActionError, ScreenView, ShownScreen};
use crate::ids::{CommandId, SessionId};
use crate::limits;
use crate::mutex::locked;
use crate::principal::Principal;
use crate::store::Store;

/// The read cursors of all readers: in memory, and in the store for the next server.
#[derive(Debug)]
pub(super) struct ReadCursors {
    cursors: Mutex<HashMap<SessionId, Readers>>,
    history: Arc<History>,
}

/// The readers of one session, by [`Principal::reader`].
type Readers = HashMap<String, ReadCursor>;

#[derive(Debug, Default)]
struct ReadCursor {
    read_to: Option<u64>,
    screen: Option<ShownScreen>,
    /// Commands that were reported to it as running; more than one if one was run inside another.
    running: Vec<CommandId>,
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
        Self { cursors: Mutex::default(), history }
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

    /// The same for a request that must not wait for the disk: a cursor that the store does not give at once is unknown.
    pub(super) async fn read_to_if_known(&self, principal: &Principal, id: &SessionId) -> Option<u64> {
        tokio::time::timeout(limits::READ_CURSOR_PATIENCE, self.read_to(principal, id)).await.ok()?.ok()?
    }

    /// Moves the read cursor of this caller.
    pub(super) fn has_read(&self, principal: &Principal, id: &SessionId, to: u64) {
        let reader = principal.reader();
        if self.set(&reader, id, to) {
            self.history.store.put_read_cursor((id.to_string(), reader), to);
        }
    }

    /// Begins the read cursor of a caller that has none in this session: an accepted command or input shows nothing.
    pub(super) async fn begin(&self, principal: &Principal, id: &SessionId, at: u64) {
        if self.read_to_if_known(principal, id).await.is_none() {
            self.has_read(principal, id, at);
        }
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
    fn in_memory(&self, reader: &str, id: &SessionId) -> Option<u64> {
        locked(&self.cursors).get(id)?.get(reader)?.read_to
    }

    /// Sets the read cursor in memory; returns whether it changed.
    fn set(&self, reader: &str, id: &SessionId, to: u64) -> bool {
        let mut all = locked(&self.cursors);
        let seen = entry(&mut all, reader, id);
        seen.read_to.replace(to) != Some(to)
    }

    /// Marks the rows of the screen that changed since this caller's last one, and records this one.
    pub(super) fn shows(&self, reader: &str, id: &SessionId, screen: &mut ScreenView) {
        let mut all = locked(&self.cursors);
        let seen = entry(&mut all, reader, id);
        seen.screen = Some(screen.compare(seen.screen.as_ref()));
    }

    /// Records that the command was reported to the caller as running.
    pub(super) fn reported_running(&self, reader: &str, id: &SessionId, command: CommandId) {
        let mut all = locked(&self.cursors);
        let running = &mut entry(&mut all, reader, id).running;
        if !running.contains(&command) {
            running.push(command);
        }
    }

    /// Records that the end of the command was reported to the caller.
    pub(super) fn reported_ended(&self, reader: &str, id: &SessionId, command: CommandId) {
        if let Some(seen) = locked(&self.cursors).get_mut(id).and_then(|readers| readers.get_mut(reader)) {
            seen.running.retain(|running| *running != command);
        }
    }

    /// The commands that were last reported to it as running.
    pub(super) fn running(&self, reader: &str, id: &SessionId) -> Vec<CommandId> {
        let all = locked(&self.cursors);
        all.get(id).and_then(|readers| readers.get(reader)).map(|seen| seen.running.clone()).unwrap_or_default()
    }

    /// The session has ended: keeps only cursors with ends that are still to be reported.
    pub(super) fn has_ended(&self, id: &SessionId) {
        let mut all = locked(&self.cursors);
        let Some(readers) = all.get_mut(id) else { return };
        readers.retain(|_, seen| !seen.running.is_empty());
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

    #[test]
    fn readers_have_their_own_positions_and_their_number_is_bounded() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(&dir.path().join("store.db")).expect("opened");
        let cursors = ReadCursors::new(Arc::new(History::new(store, dir.path().to_owned())));
        let [session, other] = ["s0-aaaaaaaaaa", "s0-bbbbbbbbbb"].map(|id| SessionId::parse(id).expect("an id"));
        cursors.set("me", &other, 7);
        for number in 0..=limits::READERS_PER_SESSION_MAX {
            assert!(cursors.set(&format!("me\n{number}"), &session, number as u64));
        }
        let newest = limits::READERS_PER_SESSION_MAX;
        assert_eq!(cursors.in_memory(&format!("me\n{newest}"), &session), Some(newest as u64));
        assert_eq!(locked(&cursors.cursors)[&session].len(), newest);
        assert_eq!(cursors.in_memory("me", &other), Some(7));
    }
}
