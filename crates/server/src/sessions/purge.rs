//! Removes what is kept of an ended session: its folder, its rows in the store, what is remembered of it in memory.
//!
//! The folder goes first. Whatever cannot be removed keeps its row, so that it is listed and can be asked to go again.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use super::registry::{Found, Registry, locked, on_disk};
use super::session::Request;
use crate::action::{ActionError, SessionStatus, Terminate, TerminatedView};
use crate::auth::principal::Principal;
use crate::ids::SessionId;

/// What stat(2) counts blocks in, whatever the file system's own are.
const BLOCK_BYTES: u64 = 512;

impl Registry {
    /// Removes an ended session at once; one that lives is ended first where that is forced, and refused where it is not.
    pub(super) async fn purge(
        self: &Arc<Self>,
        principal: &Principal,
        request: &Terminate,
    ) -> Result<TerminatedView, ActionError> {
        match self.find(principal, &request.session).await? {
            // When the shell has gone and the holder still clears up, the session is no live one any more.
            Found::Live(handle) if !request.force => match handle.ask(Request::Look).await {
                Ok(snapshot) if snapshot.view.status != SessionStatus::Terminated => {
                    return Err(ActionError::Alive { session: request.session.clone() });
                }
                Ok(_) | Err(ActionError::Ended { .. }) => handle.gone().await,
                Err(other) => return Err(other),
            },
            Found::Unreachable(_) if !request.force => {
                return Err(ActionError::Alive { session: request.session.clone() });
            }
            Found::Live(_) | Found::Unreachable(_) | Found::EndedSession(_) => {}
        }
        let mut ended = self.terminate(principal, request).await?;
        let (manager, id) = (Arc::clone(self), request.session.clone());
        let freed = on_disk(move || {
            let freed = manager.remove(&id).map_err(|e| {
                let folder = manager.folder().join(id.as_str());
                ActionError::Internal { why: format!("{} cannot be removed: {e}", folder.display()) }
            })?;
            // Not before its rows are gone, too.
            let store = manager.store();
            store.remove_aside();
            store.flush().map_err(|e| ActionError::Internal {
                why: format!(
                    "its folder is removed; its commands' texts stay in the history until that can be written: {e}"
                ),
            })?;
            Ok(freed)
        });
        ended.freed_bytes = Some(freed.await?);
        tracing::info!(session = %request.session, by = %principal.name, "purged");
        Ok(ended)
    }

    /// Removes the folder of a session that has ended, and forgets it; gives the bytes that were freed.
    pub(super) fn remove(&self, id: &SessionId) -> std::io::Result<u64> {
        let folder = self.folder().join(id.as_str());
        let bytes = occupied(&folder);
        match std::fs::remove_dir_all(&folder) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            Ok(()) | Err(_) => {}
        }
        self.forget_past(id);
        self.read_cursors.forget(id);
        locked(&self.keys).retain(|_, session| session != id);
        self.store().forget(id.as_str());
        Ok(bytes)
    }
}

/// What a session's folder takes on the disk; freed parts of a journal take nothing.
pub(super) fn occupied(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|m| m.blocks() * BLOCK_BYTES).sum()
}
