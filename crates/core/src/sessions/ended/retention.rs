//! Retention of ended sessions: by age, by total size, by number, and by free disk space.
//!
//! Checked at the server's start and from time to time; the oldest are removed first, and never a live one.
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use super::removal;
use crate::ids::SessionId;
use crate::limits;
use crate::sessions::health;
use crate::sessions::services::Services;
use crate::sessions::timeline::micros;
use crate::store::SessionRow;

/// The most that are retained: each costs a row and a directory entry.
pub(in crate::sessions) const PASTS_MAX: usize = 10_000;

/// Removes sessions beyond retention, now and from now on.
pub fn start_retention(services: &Arc<Services>) {
    let services = Arc::downgrade(services);
    tokio::spawn(async move {
        // A starting server has more urgent things to read, and knows which sessions live only after that.
        let adoption = Weak::upgrade(&services).map(|services| services.sessions.adoption.is_done.subscribe());
        if let Some(mut adoption) = adoption {
            let _ = tokio::time::timeout(limits::RETENTION_EVERY, adoption.wait_for(|is_done| *is_done)).await;
        }
        while let Some(services) = Weak::upgrade(&services).filter(|m| !m.sessions.is_stopping()) {
            let now = tokio::time::Instant::now();
            let server_events = Arc::clone(&services.server_events);
            let again = tokio::task::spawn_blocking(move || enforce_retention(&services)).await;
            // A session that waits for disk space does not wait for the next interval.
            let next = now + again.unwrap_or(limits::RETENTION_EVERY);
            let _ = tokio::time::timeout_at(next, server_events.stalled.notified()).await;
        }
    });
}

/// Removes ended sessions that are too old, and the oldest while all together are too large or too many.
/// Returns when to look again: soon if it spared a session because its end is so recent.
pub(in crate::sessions) fn enforce_retention(services: &Services) -> Duration {
    let rows = match services.history.store.sessions() {
        Ok(rows) => rows,
        Err(e) => {
            tracing::warn!(error = %e, "the list of ended sessions cannot be read; none is removed");
            return limits::RETENTION_EVERY;
        }
    };
    let mut ended: Vec<SessionRow> = rows.into_iter().filter(|r| r.ended_us.is_some()).collect();
    ended.sort_by_key(|row| std::cmp::Reverse(row.ended_us));
    // A clock that was set ahead makes no session old.
    let now = sys::time::steady_wall();
    let ago = |age| micros(now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH));
    let stays = sys::fault::scaled(limits::ENDED_SESSION_STAYS);
    let (too_old, recent) = (ago(services.settings.retention.age), ago(stays));
    let mut is_one_spared = false;
    let mut bytes = 0u64;
    // The newest first, so that the older ones go if the newer ones fill the limit.
    let mut kept = Vec::new();
    for (i, row) in ended.iter().enumerate() {
        let Ok(id) = SessionId::parse(&row.id) else { continue };
        // A session's row is written a moment before its actor goes.
        if services.sessions.is_live(&id) {
            continue;
        }
        bytes = bytes.saturating_add(services.backends.holders.folder(&id).occupied());
        let ended_before = |us| row.ended_us.is_some_and(|ended| ended < us);
        let is_too_much = bytes > services.settings.retention.bytes || i >= PASTS_MAX;
        if ended_before(too_old) || is_too_much && ended_before(recent) {
            remove_expired(services, &id);
        } else {
            is_one_spared |= is_too_much;
            kept.push((id, ended_before(recent)));
        }
    }
    while let (true, Some((id, may_go))) = (lacks_room(services), kept.pop()) {
        if !may_go {
            is_one_spared = true;
            break;
        }
        tracing::info!(session = %id, "an ended session makes room on the disk");
        remove_expired(services, &id);
    }
    if is_one_spared { stays } else { limits::RETENTION_EVERY }
}

fn remove_expired(services: &Services, id: &SessionId) {
    match removal::remove(services, id) {
        Ok(_) => tracing::debug!(session = %id, "an ended session is no longer kept"),
        Err(e) => tracing::warn!(session = %id, error = %e, "an ended session cannot be removed"),
    }
}

/// Whether less disk space is free than required.
fn lacks_room(services: &Services) -> bool {
    health::room(services)
        .is_some_and(|(free, all)| free < services.settings.retention.free.min(all / limits::RETENTION_FREE_PART))
}
