//! The state that the store's writer and its readers share: the connection to read from, and the rows that are not written yet.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::{Notify, watch};

use super::file::StoreError;
use super::rows::SessionRow;

/// The state shared by the writer and the readers.
#[derive(Debug)]
pub(super) struct State {
    pub(super) path: PathBuf,
    pub(super) reads: Mutex<Reads>,
    /// Rows that are not on disk yet.
    pub(super) fresh: Mutex<Fresh>,
    pub(super) whole: watch::Sender<Whole>,
    /// Notified when rows have to be rebuilt.
    pub(super) calls: Notify,
}

/// Whether the file has everything that the folders have.
#[derive(Debug, Clone)]
pub(super) enum Whole {
    Yes,
    /// The file is new, and the starting server fills it.
    Filled,
    /// The file is damaged, and has to be rebuilt.
    Damaged,
    /// The last rebuild failed for this reason. The server tries again.
    NotRebuilt(StoreError),
}

impl Whole {
    /// Whether the file has to be rebuilt.
    pub(super) fn is_damaged(&self) -> bool {
        matches!(self, Self::Damaged | Self::NotRebuilt(_))
    }
}

/// The source of reads.
#[derive(Debug)]
pub(super) struct Reads {
    pub(super) connection: Connection,
    /// The writer has not opened the file yet, and has to reopen it for reading.
    pub(super) is_provisional: bool,
    /// The reason why nothing can be read, if that is so.
    pub(super) trouble: Option<StoreError>,
}

/// Sessions whose rows are not written yet. Lists include them, so a full disk hides none.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    /// With the number of the change, which identifies the newest; `None` for a session to remove.
    pub(super) sessions: HashMap<String, (u64, Option<SessionRow>)>,
    pub(super) changes: u64,
    /// Sessions with commands left out because too many rows were waiting.
    pub(super) incomplete: HashSet<String>,
}

/// A poisoned lock only means that another request panicked halfway.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    pub(super) fn fresh(&self) -> MutexGuard<'_, Fresh> {
        locked(&self.fresh)
    }

    /// The file proved damaged: stops reading from it, and requests a rebuild.
    pub(super) fn found_damaged(&self, why: &StoreError) {
        let is_new = self.whole.send_if_modified(|whole| {
            let is_new = !whole.is_damaged();
            if is_new {
                *whole = Whole::Damaged;
            }
            is_new
        });
        if is_new {
            tracing::warn!(error = %why, "it is set aside as store.damaged and rebuilt from the sessions' folders");
        }
        self.calls.notify_one();
    }

    /// Reads use this connection from now on.
    pub(super) fn reads_from(&self, connection: Connection, trouble: Option<StoreError>) {
        *locked(&self.reads) = Reads { connection, is_provisional: false, trouble };
    }

    /// A row of this session was left out for lack of room.
    pub(super) fn left_out(&self, session: String) {
        if self.fresh().incomplete.insert(session.clone()) {
            tracing::warn!(session, "the history cannot keep up; it will be rebuilt from the session's folder");
        }
    }
}

impl Fresh {
    pub(super) fn change(&mut self, id: String, row: Option<SessionRow>) {
        self.changes += 1;
        self.sessions.insert(id, (self.changes, row));
    }
}
