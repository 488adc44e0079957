//! The history of ended sessions: its store, and the bounds of queries to it.

use std::sync::{Arc, Mutex};

use crate::limits;
use crate::store::Store;

/// The store of ended sessions, with what bounds the queries to it.
#[derive(Debug)]
pub(super) struct History {
    pub(super) store: Arc<Store>,
    /// When the store was last rebuilt from the folders.
    pub(super) rebuilt_at: Mutex<Option<std::time::Instant>>,
    /// Permits for reads from a disk that may hang.
    pub(super) readers: Arc<tokio::sync::Semaphore>,
}

impl History {
    pub(super) fn new(store: Store) -> Self {
        let readers = Arc::new(tokio::sync::Semaphore::new(limits::DISK_READERS_MAX));
        Self { store: Arc::new(store), rebuilt_at: Mutex::default(), readers }
    }
}
