//! What each caller has seen of each session: how far it has read, the screen that it was shown last, and the commands that
//! its last words of were "still running".
//!
//! How far it has read outlives the server: a wait that is asked again sees what came while none ran. It is written a moment
//! later, and at once where somebody waits for it ([`Registry::keeps_read_cursors`]).

use std::collections::HashMap;
use std::sync::Mutex;

use super::registry::{Registry, locked};
use crate::action::ScreenView;
use crate::auth::principal::Principal;
use crate::ids::{CommandId, SessionId};

impl Registry {
    /// How far this caller has read of the session, also before this server.
    pub(super) async fn read_to(&self, principal: &Principal, id: &SessionId) -> Option<u64> {
        if let Some(read_to) = self.read_cursors.read_to(&principal.name, id) {
            return Some(read_to);
        }
        let look = (id.to_string(), principal.name.clone());
        let store = self.store();
        let read_to = tokio::task::spawn_blocking(move || store.look(&look)).await.ok()?.ok().flatten()?;
        self.read_cursors.has_read(&principal.name, id, read_to);
        Some(read_to)
    }

    pub(super) fn has_read(&self, principal: &Principal, id: &SessionId, to: u64) {
        if self.read_cursors.has_read(&principal.name, id, to) {
            self.store().put_look((id.to_string(), principal.name.clone()), to);
        }
    }

    /// Waits until what was read is written down, for whoever must find it there after a crash.
    pub(super) async fn keeps_read_cursors(&self) {
        // A store that cannot be written costs this and no answer.
        let store = self.store();
        let _ = tokio::task::spawn_blocking(move || store.flush()).await;
    }
}

/// By the caller's name and the session.
#[derive(Debug, Default)]
pub(super) struct ReadCursors(Mutex<HashMap<(String, SessionId), ReadCursor>>);

#[derive(Debug, Default)]
struct ReadCursor {
    read_to: Option<u64>,
    /// What each row looked like.
    rows: Option<Vec<u64>>,
    /// Commands whose end it waits to be told of; more than one where one was run inside another.
    running: Vec<CommandId>,
}

impl ReadCursors {
    /// How far this caller has read, as far as this server knows.
    fn read_to(&self, principal: &str, id: &SessionId) -> Option<u64> {
        locked(&self.0).get(&(principal.to_owned(), id.clone()))?.read_to
    }

    /// It has read so far; whether that is news.
    fn has_read(&self, principal: &str, id: &SessionId, to: u64) -> bool {
        let mut all = locked(&self.0);
        let seen = all.entry((principal.to_owned(), id.clone())).or_default();
        seen.read_to.replace(to) != Some(to)
    }

    /// Notes in the screen which of its rows this caller has not been shown yet, and that it is shown them now.
    pub(super) fn shows(&self, principal: &str, id: &SessionId, screen: &mut ScreenView) {
        let mut all = locked(&self.0);
        let before = all.entry((principal.to_owned(), id.clone())).or_default().rows.replace(screen.marks.clone());
        screen.changed = before.map(|before| {
            let is_new = |row: &usize| before.get(*row) != screen.marks.get(*row);
            (0..screen.marks.len()).filter(is_new).filter_map(|row| u16::try_from(row).ok()).collect()
        });
    }

    /// It is told that the command still runs.
    pub(super) fn says_running(&self, principal: &str, id: &SessionId, command: CommandId) {
        let mut all = locked(&self.0);
        let running = &mut all.entry((principal.to_owned(), id.clone())).or_default().running;
        if !running.contains(&command) {
            running.push(command);
        }
    }

    /// It is told how the command ended.
    pub(super) fn says_ended(&self, principal: &str, id: &SessionId, command: CommandId) {
        if let Some(seen) = locked(&self.0).get_mut(&(principal.to_owned(), id.clone())) {
            seen.running.retain(|running| *running != command);
        }
    }

    /// The commands that it was last told were running.
    pub(super) fn running(&self, principal: &str, id: &SessionId) -> Vec<CommandId> {
        locked(&self.0).get(&(principal.to_owned(), id.clone())).map(|seen| seen.running.clone()).unwrap_or_default()
    }

    /// The session has ended: what somebody has still to be told is kept.
    pub(super) fn has_ended(&self, id: &SessionId) {
        locked(&self.0).retain(|(_, of), seen| of != id || !seen.running.is_empty());
    }

    /// The session is no longer kept.
    pub(super) fn forget(&self, id: &SessionId) {
        locked(&self.0).retain(|(_, of), _| of != id);
    }
}
