//! Loads and stores the read cursors of callers: in memory, and in the store for the next server.

use super::registry::Registry;
use crate::action::ActionError;
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;

impl Registry {
    /// The read cursor of this caller in the session, also from before this server.
    pub(super) async fn read_to(&self, principal: &Principal, id: &SessionId) -> Result<Option<u64>, ActionError> {
        let reader = principal.reader();
        if let Some(read_to) = self.read_cursors.read_to(&reader, id) {
            return Ok(Some(read_to));
        }
        let look = (id.to_string(), reader.clone());
        let store = self.store();
        let read = async move { tokio::task::spawn_blocking(move || store.read_cursor(&look)).await };
        let read = self.in_time(("store.db", limits::DISK_PATIENCE), read).await?;
        // A damaged store only loses the cursor.
        let read_to = read.ok().and_then(Result::ok).flatten();
        if let Some(read_to) = read_to {
            self.read_cursors.has_read(&reader, id, read_to);
        }
        Ok(read_to)
    }

    pub(super) fn has_read(&self, principal: &Principal, id: &SessionId, to: u64) {
        let reader = principal.reader();
        if self.read_cursors.has_read(&reader, id, to) {
            self.store().put_read_cursor((id.to_string(), reader), to);
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
