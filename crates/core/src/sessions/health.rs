//! The state of the server for its operator: the numbers of sessions, the free disk space, and why it is degraded.

use super::services::Services;
use crate::store::SessionQuery;

/// The reason why the server is degraded, if it is.
pub(crate) fn trouble(services: &Services) -> Option<String> {
    let stalled = match services.sessions.stalled() {
        0 => None,
        1 => Some("1 session waits for room on the disk".to_owned()),
        count => Some(format!("{count} sessions wait for room on the disk")),
    };
    let damaged = services.history.store.is_damaged().then(|| "store.db is damaged and is being rebuilt".to_owned());
    let drains = services.drain.since().map(|_| "the server is draining and refuses new sessions".to_owned());
    let all: Vec<String> = [drains, stalled, damaged].into_iter().flatten().collect();
    (!all.is_empty()).then(|| format!("{}; docs/operations.md has the remedies", all.join("; ")))
}

/// The disk space free for users other than root, and the size of the disk. Blocks on the disk.
pub(crate) fn room(services: &Services) -> Option<(u64, u64)> {
    let disk = rustix::fs::statvfs(services.backends.holders.sessions()).ok()?;
    Some((disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize)))
}

/// The number of live sessions, of those that wait for the disk, and of retained ended ones; unknown numbers are omitted.
pub(crate) async fn counts(services: &Services) -> Vec<(&'static str, usize)> {
    let live = services.sessions.handles().len();
    let ended = services.history.query(|store| store.ended(&SessionQuery::default())).await;
    [("live", Ok(live)), ("stalled", Ok(services.sessions.stalled())), ("ended", ended.map(|(_, total)| total))]
        .into_iter()
        .filter_map(|(state, count)| Some((state, count.ok()?)))
        .collect()
}
