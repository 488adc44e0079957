//! Rebuilds the store of ended sessions: a damaged store is rebuilt from the folders before a query is answered, and an
//! unavailable one is an error.
use std::sync::{Arc, Weak};

use super::registry::Registry;
use crate::action::ActionError;
use crate::ids::SessionId;
use crate::limits;
use crate::mutex::locked;
use crate::store::{Store, StoreError};

impl Registry {
    /// Queries the store on the blocking pool; if it proves damaged, waits for the rebuild.
    pub(super) async fn history<T: Send + 'static>(
        &self,
        ask: impl Fn(&Store) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Result<T, ActionError> {
        let failed = |e: &dyn std::fmt::Display| ActionError::Internal { why: format!("the history: {e}") };
        let (store, ask, mut is_first) = (self.store(), Arc::new(ask), true);
        loop {
            if tokio::time::timeout(limits::STORE_PATIENCE, store.whole()).await.is_err() {
                return Err(failed(&"store.db is still being rebuilt from the sessions' folders; retry later"));
            }
            let (asked, ask) = (Arc::clone(&store), Arc::clone(&ask));
            let read = async move { tokio::task::spawn_blocking(move || ask(&asked)).await };
            match self.history.in_time(("store.db", limits::DISK_PATIENCE), read).await?.map_err(|e| failed(&e))? {
                Err(StoreError::Damaged(_)) if is_first => is_first = false,
                answer => return answer.map_err(|e| failed(&e)),
            }
        }
    }

    /// Rebuilds rows whenever some are missing.
    pub fn keep_whole(self: &Arc<Self>) {
        let (registry, store) = (Arc::downgrade(self), self.store());
        let stopping = self.stopping();
        tokio::spawn(async move {
            let mut stopping = std::pin::pin!(stopping);
            loop {
                // A rebuild may have failed, or have come too soon behind another.
                let (is_damaged, again_at) =
                    (store.is_damaged(), tokio::time::Instant::now() + limits::STORE_RETRY_EVERY);
                tokio::select! {
                    () = store.calls() => {}
                    () = tokio::time::sleep_until(again_at), if is_damaged => {}
                    () = &mut stopping => return,
                }
                let Some(registry) = Weak::upgrade(&registry) else { return };
                let _ = tokio::task::spawn_blocking(move || registry.mend()).await;
            }
        });
    }

    fn mend(&self) {
        let store = self.store();
        if store.is_damaged() {
            // A disk that damages the new store at once must not keep a CPU busy.
            if locked(&self.history.next_rebuild_at).is_some_and(|from| std::time::Instant::now() < from) {
                return;
            }
            let pause = match store.begin_anew().and_then(|()| self.record_all(&store)) {
                Ok(count) => {
                    tracing::info!(sessions = count, "the history was rebuilt");
                    limits::STORE_ANEW_EVERY
                }
                Err(e) => {
                    tracing::error!(error = %e, "the history was not rebuilt; it is tried again");
                    limits::STORE_RETRY_EVERY
                }
            };
            *locked(&self.history.next_rebuild_at) = Some(std::time::Instant::now() + pause);
        }
        for id in store.take_incomplete().iter().filter_map(|id| SessionId::parse(id).ok()) {
            self.record(&id);
        }
    }

    /// Stores every session and every command again, from the folders.
    fn record_all(&self, store: &Store) -> Result<usize, StoreError> {
        let folders = self.folders().map_err(|e| StoreError::Unavailable(format!("the sessions' folder: {e}")))?;
        for id in &folders {
            let live = locked(&self.live).get(id).cloned();
            match live {
                Some(handle) => {
                    self.record(id);
                    store.put_session(handle.shared.row(None));
                }
                None => self.bury(id, None, self.holders().liveness(&self.holders().folder(id), None)),
            }
        }
        store.flush()?;
        store.mark_whole();
        Ok(folders.len())
    }
}
