//! Begins and ends the drain of this server, and waits until fewer sessions are left.

use std::collections::HashSet;

use tokio::time::Instant;

use crate::action::{ActionError, DrainView, ReadDrain, SessionStatus};
use crate::sessions::services::Services;

/// Drains, or takes sessions again.
pub(in crate::sessions) async fn set(services: &Services, is_draining: bool) -> Result<DrainView, ActionError> {
    services.drain.set(is_draining);
    tracing::info!(is_draining, "the drain was changed");
    // Until then, sessions of an earlier server that have ended could count as live.
    services.sessions.adopted().await;
    view(services)
}

/// The state of the drain; waits while it drains and the number of sessions is the one that the caller knows.
pub(in crate::sessions) async fn read(services: &Services, read: &ReadDrain) -> Result<DrainView, ActionError> {
    let until = Instant::now() + read.wait;
    services.sessions.adopted().await;
    let (mut drain, mut events) = (services.drain.changes(), services.server_events.changes());
    let mut unreachable = services.sessions.adoption.changed.subscribe();
    loop {
        let now = view(services)?;
        if now.since.is_none() || read.sessions != Some(now.sessions) {
            return Ok(now);
        }
        // The senders live as long as the services.
        tokio::select! {
            _ = drain.changed() => {}
            _ = events.changed() => {}
            _ = unreachable.changed() => {}
            () = tokio::time::sleep_until(until) => return Ok(now),
            () = services.sessions.stopping() => return Err(ActionError::Restarting),
        }
    }
}

fn view(services: &Services) -> Result<DrainView, ActionError> {
    // Before the sessions: one that starts meanwhile is in both.
    let starting = services.drain.starting();
    let (handles, unreachable) = services.sessions.everything_live();
    let has_ended = |status: Option<SessionStatus>| status == Some(SessionStatus::Terminated);
    let live = handles.iter().filter(|handle| !has_ended(handle.status())).map(|handle| &handle.shared.id);
    let live: HashSet<_> = live.chain(unreachable.keys()).collect();
    // After the count: a server that stops forgets its sessions, and none of them has ended.
    if services.sessions.is_stopping() {
        return Err(ActionError::Restarting);
    }
    // A restart ends a session before it starts the next one.
    Ok(DrainView { since: services.drain.since(), sessions: live.len().max(starting) })
}
