//! Starts a session, or returns the one that an earlier request with the same key or client started.

use std::sync::Arc;

use super::create_default::create_default;
use super::terminate;
use crate::action::{ActionError, Create, Created, SessionView};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;
use crate::profile::StartFiles;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::launch::again::again;
use crate::sessions::launch::created::created;
use crate::sessions::launch::prepare::new_session;
use crate::sessions::launch::request::owner;
use crate::sessions::launch::start::launch;
use crate::sessions::request_fingerprint::asked_for;
use crate::sessions::services::Services;

/// Starts a session and waits for its first prompt, or returns the one that the same request started earlier, which
/// may have ended since.
pub(in crate::sessions) async fn create(
    services: &Arc<Services>,
    principal: &Principal,
    request: &Create,
) -> Result<Created, ActionError> {
    if let (true, Some(client)) = (request.is_default, &request.client) {
        return create_default(services, principal, request, client).await;
    }
    // Without a key, two requests make two sessions; with one, the second must find the first.
    let mut turn = None;
    if let Some(key) = &request.key {
        let owner = owner(principal, request)?;
        turn = Some(services.create_keys.turn_of_key(&owner, key).await);
        // The key may belong to a session that is being adopted.
        services.sessions.adopted().await;
        let found = match &services.create_keys.session(&owner, key) {
            Some(id) => services.sessions.find(principal, id).await,
            None => Err(ActionError::NoSession { id: String::new(), live: None }),
        };
        match found {
            Ok(found) => return again_for(services, principal, &found, request).await.map(Created::earlier),
            Err(ActionError::NoSession { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    let admission = services.drain.admit()?;
    let id = SessionId::random(services.settings.node);
    let owner = owner(principal, request)?;
    let new = new_session(&id, principal, request, StartFiles::User);
    // A server without its number starts nothing, and its claim would take the key from the other one's session.
    let directory = services.directory.as_ref().filter(|directory| !directory.is_taken());
    let keyed = directory.zip(request.key.as_ref());
    if let Some((directory, key)) = keyed {
        let (elsewhere, is_answered) = directory.claim_create(&owner, key, &id).await;
        services.server_events.metrics.called_directory("create", is_answered);
        if let Some(other) = elsewhere {
            return Err(ActionError::OtherNode { node: other.node(), id: other.to_string() });
        }
    }
    let launched = launch(services, &admission, &id, owner.clone(), new).await;
    if let (Err(_), Some((directory, key))) = (&launched, keyed)
        && services.create_keys.session(&owner, key).is_none()
    {
        directory.release_create(&owner, key, &id).await;
    }
    let handle = launched?;
    drop(turn);
    created(services, principal, &handle).await
}

/// Kills what runs in a session, and starts the same shell again.
pub(in crate::sessions) async fn restart(
    services: &Arc<Services>,
    principal: &Principal,
    session: &SessionId,
) -> Result<Created, ActionError> {
    let old = services.sessions.live(principal, session).await?;
    // Before the end: a server that starts no session anew ends none for that.
    let admission = services.drain.admit()?;
    terminate::end(services, &old, sys::signal::KILL, limits::TERMINATE_GRACE).await?;
    let id = SessionId::random(services.settings.node);
    let owner = old.shared.meta.owner.clone();
    let handle = launch(services, &admission, &id, owner, again(&id, &old.shared, None)).await?;
    created(services, principal, &handle).await
}

/// Records the start-up commands that failed.
pub(in crate::sessions) async fn startup_done(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
    failed: &[(String, String)],
) -> Result<SessionView, ActionError> {
    if let SessionRef::Live(handle) = services.sessions.find(principal, session).await? {
        for (command, reason) in failed {
            handle.shared.note_startup_failure(command.clone(), reason.clone());
        }
    }
    services.sessions.show(principal, session).await
}

/// The answer to a request whose key was used before.
async fn again_for(
    services: &Services,
    principal: &Principal,
    found: &SessionRef,
    request: &Create,
) -> Result<SessionView, ActionError> {
    if found.meta().creation.asked.is_some_and(|asked| asked != asked_for(request)) {
        return Err(ActionError::KeyReused { key: request.key.clone().unwrap_or_default() });
    }
    match found {
        SessionRef::Live(handle) => services.sessions.view_of(principal, handle).await,
        SessionRef::Unreachable(unreachable) => Ok(unreachable.view()),
        SessionRef::EndedSession(past) => Ok(past.view()),
    }
}
