//! What each caller has seen of each session: its read cursor, the last screen shown to it, and the commands last
//! reported to it as still running.
//!
//! The read cursor outlives the server, so a repeated wait sees output that came while no server ran. It is stored a
//! moment later, and at once where a caller depends on it ([`Registry::keeps_read_cursors`]).

use std::collections::HashMap;
use std::sync::Mutex;

use super::registry::{Registry, locked};
use crate::action::{ActionError, ScreenView};
use crate::ids::{CommandId, SessionId};
use crate::limits;
use crate::principal::Principal;

impl Registry {
    /// The read cursor of this caller in the session, also from before this server.
    pub(super) async fn read_to(&self, principal: &Principal, id: &SessionId) -> Result<Option<u64>, ActionError> {
        if let Some(read_to) = self.read_cursors.read_to(&principal.name, id) {
            return Ok(Some(read_to));
        }
        let look = (id.to_string(), principal.name.clone());
        let store = self.store();
        let read = async move { tokio::task::spawn_blocking(move || store.look(&look)).await };
        let read = self.in_time(("store.db", limits::DISK_PATIENCE), read).await?;
        // A damaged store only loses the cursor.
        let read_to = read.ok().and_then(Result::ok).flatten();
        if let Some(read_to) = read_to {
            self.read_cursors.has_read(&principal.name, id, read_to);
        }
        Ok(read_to)
    }

    pub(super) fn has_read(&self, principal: &Principal, id: &SessionId, to: u64) {
        if self.read_cursors.has_read(&principal.name, id, to) {
            self.store().put_look((id.to_string(), principal.name.clone()), to);
        }
    }

    /// Waits until the read cursors are stored, for a caller that must find its cursor after a crash.
    pub(super) async fn keeps_read_cursors(&self) -> Result<(), ActionError> {
        // If the store cannot be written, only the cursor is lost; the request is still answered.
        let store = self.store();
        let write = async move { tokio::task::spawn_blocking(move || store.flush()).await };
        self.in_time(("store.db", limits::DISK_PATIENCE), write).await.map(drop)
    }
}

/// By caller name and session.
#[derive(Debug, Default)]
pub(super) struct ReadCursors(Mutex<HashMap<(String, SessionId), ReadCursor>>);

#[derive(Debug, Default)]
struct ReadCursor {
    read_to: Option<u64>,
    /// A hash of each row.
    rows: Option<Vec<u64>>,
    /// Commands that were reported to it as running; more than one if one was run inside another.
    running: Vec<CommandId>,
}

impl ReadCursors {
    /// The read cursor, as far as this server has it in memory.
    fn read_to(&self, principal: &str, id: &SessionId) -> Option<u64> {
        locked(&self.0).get(&(principal.to_owned(), id.clone()))?.read_to
    }

    /// Moves the read cursor; returns whether it changed.
    fn has_read(&self, principal: &str, id: &SessionId, to: u64) -> bool {
        let mut all = locked(&self.0);
        let seen = all.entry((principal.to_owned(), id.clone())).or_default();
        seen.read_to.replace(to) != Some(to)
    }

    /// Marks the rows of the screen that changed since this caller's last one, and records this one.
    pub(super) fn shows(&self, principal: &str, id: &SessionId, screen: &mut ScreenView) {
        let mut all = locked(&self.0);
        let before = all.entry((principal.to_owned(), id.clone())).or_default().rows.replace(screen.marks.clone());
        screen.changed = before.map(|before| {
            let is_new = |row: &usize| before.get(*row) != screen.marks.get(*row);
            (0..screen.marks.len()).filter(is_new).filter_map(|row| u16::try_from(row).ok()).collect()
        });
    }

    /// Records that the command was reported to the caller as running.
    pub(super) fn says_running(&self, principal: &str, id: &SessionId, command: CommandId) {
        let mut all = locked(&self.0);
        let running = &mut all.entry((principal.to_owned(), id.clone())).or_default().running;
        if !running.contains(&command) {
            running.push(command);
        }
    }

    /// Records that the end of the command was reported to the caller.
    pub(super) fn says_ended(&self, principal: &str, id: &SessionId, command: CommandId) {
        if let Some(seen) = locked(&self.0).get_mut(&(principal.to_owned(), id.clone())) {
            seen.running.retain(|running| *running != command);
        }
    }

    /// The commands that were last reported to it as running.
    pub(super) fn running(&self, principal: &str, id: &SessionId) -> Vec<CommandId> {
        locked(&self.0).get(&(principal.to_owned(), id.clone())).map(|seen| seen.running.clone()).unwrap_or_default()
    }

    /// The session has ended: keeps only cursors with ends that are still to be reported.
    pub(super) fn has_ended(&self, id: &SessionId) {
        locked(&self.0).retain(|(_, of), seen| of != id || !seen.running.is_empty());
    }

    /// The session is no longer retained.
    pub(super) fn forget(&self, id: &SessionId) {
        locked(&self.0).retain(|(_, of), _| of != id);
    }
}
