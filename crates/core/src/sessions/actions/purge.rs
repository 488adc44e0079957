//! Purges an ended session: its folder, its rows in the store, and its state in memory.
//!
//! The folder goes first. If it cannot be removed, its row stays, so that the session is still listed and can be purged
//! again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::terminate;
use crate::action::{ActionError, SessionStatus, Terminate, TerminatedView};
use crate::limits;
use crate::principal::Principal;
use crate::sessions::ended::removal;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::on_disk::on_disk;
use crate::sessions::services::Services;
use crate::sessions::session::Request;

/// Purges an ended session at once; a live one is terminated first with `force`, and refused without.
pub(in crate::sessions) async fn purge(
    services: &Arc<Services>,
    principal: &Principal,
    request: &Terminate,
) -> Result<TerminatedView, ActionError> {
    match services.sessions.find(principal, &request.session).await? {
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
    let mut ended = terminate::terminate(services, principal, request).await?;
    let (remover, id) = (Arc::clone(services), request.session.clone());
    let is_gone = Arc::new(AtomicBool::new(false));
    let goes = Arc::clone(&is_gone);
    let removal = on_disk(move || {
        let freed = removal::remove(&remover, &id).map_err(|e| {
            let folder = remover.backends.holders.folder(&id);
            ActionError::Internal { why: format!("{} cannot be removed: {e}", folder.path().display()) }
        })?;
        goes.store(true, Ordering::Relaxed);
        // Only after its rows are gone, too.
        let store = &remover.history.store;
        store.remove_aside();
        store.flush().map_err(|e| ActionError::Internal {
            why: format!(
                "its folder was removed, but the texts of its commands stay in the history until ptyd can write to it: {e}"
            ),
        })?;
        Ok(freed)
    });
    // Past its time the removal continues, and another request joins it.
    let removed = services.history.in_time(("store.db", limits::DISK_PATIENCE), removal).await.map_err(|e| match e {
        ActionError::Exhausted { .. } if !is_gone.load(Ordering::Relaxed) => {
            let folder = services.backends.holders.folder(&request.session).path().display().to_string();
            ActionError::Removing { folder, patience: limits::DISK_PATIENCE }
        }
        other => other,
    });
    ended.freed_bytes = Some(removed??);
    tracing::info!(session = %request.session, by = %principal.name, "purged");
    Ok(ended)
}
