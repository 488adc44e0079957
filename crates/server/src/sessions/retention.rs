//! What is kept of sessions that have ended, and for how long: by age, by the room that they take together, by number.
//!
//! Looked at when the server starts and now and then; the oldest go first, and never one that lives.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use super::ledger::micros;
use super::manager::Manager;
use super::purge::occupied;
use crate::ids::SessionId;
use crate::limits;
use crate::store::SessionRow;

/// And at most this many of them: each costs a row and an entry of a folder.
const PASTS_MAX: usize = 10_000;

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retention {
    pub(super) age: Duration,
    pub(super) bytes: u64,
}

impl Manager {
    /// Removes what is no longer to be kept, now and from now on.
    pub(crate) fn keep_tidy(self: &Arc<Self>) {
        let manager = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(manager) = Weak::upgrade(&manager).filter(|m| !m.is_stopping()) {
                let _ = tokio::task::spawn_blocking(move || manager.tidy()).await;
                tokio::time::sleep_until(tokio::time::Instant::now() + limits::RETENTION_EVERY).await;
            }
        });
    }

    /// Removes ended sessions that are too old, and the oldest while all together are too large or too many.
    pub(super) fn tidy(&self) {
        let rows = match self.store().sessions() {
            Ok(rows) => rows,
            Err(e) => {
                tracing::warn!(error = %e, "what has ended is not known, so nothing of it is removed");
                return;
            }
        };
        let mut ended: Vec<SessionRow> = rows.into_iter().filter(|r| r.ended_us.is_some()).collect();
        ended.sort_by_key(|row| std::cmp::Reverse(row.ended_us));
        let too_old = SystemTime::now().checked_sub(self.retention.age).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut bytes = 0u64;
        for (i, row) in ended.iter().enumerate() {
            let Ok(id) = SessionId::parse(&row.id) else { continue };
            // Its row is written a moment before its actor goes.
            if self.is_live(&id) {
                continue;
            }
            let folder = self.folder().join(id.as_str());
            bytes = bytes.saturating_add(occupied(&folder));
            let is_old = row.ended_us.is_some_and(|us| us < micros(too_old));
            if is_old || bytes > self.retention.bytes || i >= PASTS_MAX {
                match self.remove(&id) {
                    Ok(_) => tracing::debug!(session = %id, "an ended session is no longer kept"),
                    Err(e) => tracing::warn!(session = %id, error = %e, "an ended session cannot be removed"),
                }
            }
        }
    }
}
