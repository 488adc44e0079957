//! The history of ended sessions: its store, and the bounds of queries to it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::action::ActionError;
use crate::limits;
use crate::store::{Store, StoreError};

/// The store of ended sessions, with what bounds the queries to it.
#[derive(Debug)]
pub(super) struct History {
    pub(super) store: Arc<Store>,
    /// The store is not rebuilt from the folders before this time.
    pub(super) next_rebuild_at: Mutex<Option<std::time::Instant>>,
    /// Permits for reads from a disk that may hang.
    readers: Arc<tokio::sync::Semaphore>,
    /// The sessions' folder, for the message about its disk.
    folder: PathBuf,
}

impl History {
    pub(super) fn new(store: Store, folder: PathBuf) -> Self {
        let readers = Arc::new(tokio::sync::Semaphore::new(limits::DISK_READERS_MAX));
        Self { store: Arc::new(store), next_rebuild_at: Mutex::default(), readers, folder }
    }

    /// Reads from a disk that may hang: the caller gets an answer in time, and the number of waiting threads is
    /// bounded.
    pub(super) async fn in_time<T: Send + 'static>(
        &self,
        (what, patience): (&str, Duration),
        read: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ActionError> {
        let places = Arc::clone(&self.readers);
        let done = async {
            let place = places.acquire_owned().await;
            // A read that has begun keeps its permit to its end, even if the caller has timed out.
            tokio::spawn(async move {
                let _place = place;
                read.await
            })
            .await
        };
        match tokio::time::timeout(patience, done).await {
            Ok(done) => done.map_err(|e| ActionError::Internal { why: e.to_string() }),
            Err(_) => {
                let disk = self.folder.display();
                let why = format!(
                    "the disk of {disk} did not return {what} within {patience:?}; live sessions are not affected"
                );
                Err(ActionError::Exhausted { why })
            }
        }
    }

    /// Queries the store on the blocking pool; if it proves damaged, waits for the rebuild.
    pub(super) async fn query<T: Send + 'static>(
        &self,
        ask: impl Fn(&Store) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Result<T, ActionError> {
        let failed = |e: &dyn std::fmt::Display| ActionError::Internal { why: format!("the history: {e}") };
        let (store, ask, mut is_first) = (Arc::clone(&self.store), Arc::new(ask), true);
        loop {
            match tokio::time::timeout(limits::STORE_PATIENCE, store.whole()).await {
                Ok(Ok(())) => {}
                Ok(Err(e)) => {
                    return Err(failed(&format!("store.db is damaged, and the last rebuild failed; retry later: {e}")));
                }
                Err(_) => {
                    return Err(failed(&"store.db is still being rebuilt from the sessions' folders; retry later"));
                }
            }
            let (asked, ask) = (Arc::clone(&store), Arc::clone(&ask));
            let read = async move { tokio::task::spawn_blocking(move || ask(&asked)).await };
            match self.in_time(("store.db", limits::DISK_PATIENCE), read).await?.map_err(|e| failed(&e))? {
                Err(StoreError::Damaged(_)) if is_first => is_first = false,
                answer => return answer.map_err(|e| failed(&e)),
            }
        }
    }
}
