//! Rebuilds the store of ended sessions. If it is damaged, it is rebuilt from the folders before a query is answered; if it
//! is unavailable, that is an error.
use std::sync::{Arc, Weak};

use super::unwitnessed_end;
use crate::ids::SessionId;
use crate::limits;
use crate::mutex::locked;
use crate::sessions::services::Services;
use crate::store::{Store, StoreError};

/// Rebuilds rows whenever some are missing.
pub fn keep_whole(services: &Arc<Services>) {
    let (stopping, store) = (services.sessions.stopping(), Arc::clone(&services.history.store));
    let services = Arc::downgrade(services);
    tokio::spawn(async move {
        let mut stopping = std::pin::pin!(stopping);
        loop {
            // A rebuild may have failed, or have come too soon behind another.
            let (is_damaged, again_at) = (store.is_damaged(), tokio::time::Instant::now() + limits::STORE_RETRY_EVERY);
            tokio::select! {
                () = store.calls() => {}
                () = tokio::time::sleep_until(again_at), if is_damaged => {}
                () = &mut stopping => return,
            }
            let Some(services) = Weak::upgrade(&services) else { return };
            let _ = tokio::task::spawn_blocking(move || mend(&services)).await;
        }
    });
}

fn mend(services: &Services) {
    let store = Arc::clone(&services.history.store);
    if store.is_damaged() {
        // A disk that damages the new store at once must not keep a CPU busy.
        if locked(&services.history.next_rebuild_at).is_some_and(|from| std::time::Instant::now() < from) {
            return;
        }
        let pause = match store.begin_anew().and_then(|()| record_all(services, &store)) {
            Ok(count) => {
                tracing::info!(sessions = count, "the history was rebuilt");
                limits::STORE_ANEW_EVERY
            }
            Err(e) => {
                tracing::error!(error = %e, "the history was not rebuilt; it is tried again");
                store.mark_not_rebuilt(e);
                limits::STORE_RETRY_EVERY
            }
        };
        *locked(&services.history.next_rebuild_at) = Some(std::time::Instant::now() + pause);
    }
    for id in store.take_incomplete().iter().filter_map(|id| SessionId::parse(id).ok()) {
        unwitnessed_end::record(services, &id);
    }
}

/// Stores every session and every command again, from the folders.
fn record_all(services: &Services, store: &Store) -> Result<usize, StoreError> {
    let folders =
        services.backends.holders.all().map_err(|e| StoreError::Unavailable(format!("the sessions' folder: {e}")))?;
    for id in &folders {
        match services.sessions.handle(id) {
            Some(handle) => {
                unwitnessed_end::record(services, id);
                store.put_session(handle.shared.row(None));
            }
            None => unwitnessed_end::bury(
                services,
                id,
                None,
                services.backends.holders.liveness(&services.backends.holders.folder(id), None),
            ),
        }
    }
    store.flush()?;
    store.mark_whole();
    Ok(folders.len())
}
