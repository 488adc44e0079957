//! The position of each reader in each session: its read cursor, the last screen shown to it, and the commands last
//! reported to it as still running.
//!
//! The read cursor outlives the server, so a repeated wait sees output that came while no server ran. It is stored a
//! moment later, and at once where a caller depends on it ([`Registry::keeps_read_cursors`]).

use std::collections::HashMap;
use std::sync::Mutex;

use crate::action::ScreenView;
use crate::ids::{CommandId, SessionId};
use crate::limits;
use crate::mutex::locked;

/// By reader ([`Principal::reader`]) and session.
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

/// The cursor of this reader; a new one takes the place of another if the session has too many.
fn entry<'a>(
    all: &'a mut HashMap<(String, SessionId), ReadCursor>,
    reader: &str,
    id: &SessionId,
) -> &'a mut ReadCursor {
    let key = (reader.to_owned(), id.clone());
    if !all.contains_key(&key) {
        let mut others = all.keys().filter(|(_, of)| of == id);
        if let Some(other) = others.nth(limits::READERS_PER_SESSION_MAX - 1).cloned() {
            // It reads on from its stored position.
            all.remove(&other);
        }
    }
    all.entry(key).or_default()
}

impl ReadCursors {
    /// The read cursor, as far as this server has it in memory.
    pub(super) fn read_to(&self, reader: &str, id: &SessionId) -> Option<u64> {
        locked(&self.0).get(&(reader.to_owned(), id.clone()))?.read_to
    }

    /// Moves the read cursor; returns whether it changed.
    pub(super) fn has_read(&self, reader: &str, id: &SessionId, to: u64) -> bool {
        let mut all = locked(&self.0);
        let seen = entry(&mut all, reader, id);
        seen.read_to.replace(to) != Some(to)
    }

    /// Marks the rows of the screen that changed since this caller's last one, and records this one.
    pub(super) fn shows(&self, reader: &str, id: &SessionId, screen: &mut ScreenView) {
        let mut all = locked(&self.0);
        let before = entry(&mut all, reader, id).rows.replace(screen.marks.clone());
        screen.changed = before.map(|before| {
            let is_new = |row: &usize| before.get(*row) != screen.marks.get(*row);
            (0..screen.marks.len()).filter(is_new).filter_map(|row| u16::try_from(row).ok()).collect()
        });
    }

    /// Records that the command was reported to the caller as running.
    pub(super) fn reported_running(&self, reader: &str, id: &SessionId, command: CommandId) {
        let mut all = locked(&self.0);
        let running = &mut entry(&mut all, reader, id).running;
        if !running.contains(&command) {
            running.push(command);
        }
    }

    /// Records that the end of the command was reported to the caller.
    pub(super) fn reported_ended(&self, reader: &str, id: &SessionId, command: CommandId) {
        if let Some(seen) = locked(&self.0).get_mut(&(reader.to_owned(), id.clone())) {
            seen.running.retain(|running| *running != command);
        }
    }

    /// The commands that were last reported to it as running.
    pub(super) fn running(&self, reader: &str, id: &SessionId) -> Vec<CommandId> {
        locked(&self.0).get(&(reader.to_owned(), id.clone())).map(|seen| seen.running.clone()).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_have_their_own_positions_and_their_number_is_bounded() {
        let cursors = ReadCursors::default();
        let [session, other] = ["s0-aaaaaaaaaa", "s0-bbbbbbbbbb"].map(|id| SessionId::parse(id).expect("an id"));
        cursors.has_read("me", &other, 7);
        for number in 0..=limits::READERS_PER_SESSION_MAX {
            assert!(cursors.has_read(&format!("me\n{number}"), &session, number as u64));
        }
        let newest = limits::READERS_PER_SESSION_MAX;
        assert_eq!(cursors.read_to(&format!("me\n{newest}"), &session), Some(newest as u64));
        assert_eq!(locked(&cursors.0).keys().filter(|(_, of)| *of == session).count(), newest);
        assert_eq!(cursors.read_to("me", &other), Some(7));
    }
}
