//! Purges an ended session: its folder, its rows in the store, and its state in memory.
//!
//! The folder goes first. If it cannot be removed, its row stays, so that the session is still listed and can be purged
//! again.

use std::sync::Arc;

use crate::action::{ActionError, SessionStatus, Terminate, TerminatedView};
use crate::ids::SessionId;
use crate::limits;
use crate::mutex::locked;
use crate::principal::Principal;
use crate::sessions::registry::{Registry, SessionRef, on_disk};
use crate::sessions::session::Request;

impl Registry {
    /// Purges an ended session at once; a live one is terminated first with `force`, and refused without.
    pub(in crate::sessions) async fn purge(
        self: &Arc<Self>,
        principal: &Principal,
        request: &Terminate,
    ) -> Result<TerminatedView, ActionError> {
        match self.find(principal, &request.session).await? {
            // Once the shell has exited, the session is not live, even while the holder still ends descendants.
            SessionRef::Live(handle) if !request.force => match handle.ask(Request::Look).await {
                Ok(snapshot) if snapshot.view.status != SessionStatus::Terminated => {
                    return Err(ActionError::Alive { session: request.session.clone() });
                }
                Ok(_) | Err(ActionError::Ended { .. }) => handle.gone().await,
                Err(other) => return Err(other),
            },
            SessionRef::Unreachable(_) if !request.force => {
                return Err(ActionError::Alive { session: request.session.clone() });
            }
            SessionRef::Live(_) | SessionRef::Unreachable(_) | SessionRef::EndedSession(_) => {}
        }
        let mut ended = self.terminate(principal, request).await?;
        let (registry, id) = (Arc::clone(self), request.session.clone());
        let removal = on_disk(move || {
            let freed = registry.remove(&id).map_err(|e| {
                let folder = registry.holders().folder(&id);
                ActionError::Internal { why: format!("{} cannot be removed: {e}", folder.path().display()) }
            })?;
            // Only after its rows are gone, too.
            let store = registry.store();
            store.remove_aside();
            store.flush().map_err(|e| ActionError::Internal {
                why: format!(
                    "its folder is removed; its commands' texts stay in the history until that can be written: {e}"
                ),
            })?;
            Ok(freed)
        });
        // Past its time it goes on: what is asked again finds the session removed.
        ended.freed_bytes = Some(self.history.in_time(("store.db", limits::DISK_PATIENCE), removal).await??);
        tracing::info!(session = %request.session, by = %principal.name, "purged");
        Ok(ended)
    }

    /// Removes the folder of an ended session, and forgets the session; returns the number of freed bytes.
    pub(in crate::sessions) fn remove(&self, id: &SessionId) -> std::io::Result<u64> {
        let folder = self.holders().folder(id);
        let bytes = folder.occupied();
        // A full disk must not keep what is removed to make room.
        if let Err(e) = self.tasks.is_removed(id, folder.clone()) {
            tracing::warn!(session = %id, error = %e, "its tasks will be unknown");
        }
        match folder.remove() {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            Ok(()) | Err(_) => {}
        }
        self.forget_past(id);
        self.read_cursors.forget(id);
        self.tasks.forget(id);
        locked(&self.create_keys.keys).retain(|_, session| session != id);
        self.store().forget(id.as_str());
        Ok(bytes)
    }
}
