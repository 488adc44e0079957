//! Starts a session, or returns the one that an earlier request with the same key or client started.

use std::sync::Arc;

use super::create_default::create_default;
use super::terminate;
use crate::action::{ActionError, Create, Created, SessionView};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;
use crate::profile::StartFiles;
use crate::sessions::drain::Admission;
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::launch::again::again;
use crate::sessions::launch::created::created;
use crate::sessions::launch::launcher::Launcher;
use crate::sessions::launch::prepare::new_session;
use crate::sessions::launch::request::{owner, wanted_name};
use crate::sessions::launch::start::{NewOwner, NewSession, launch};
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
    let owner = NewOwner { owner: owner(principal, request)?, name: wanted_name(principal, request)? };
    let new = new_session(&id, principal, request, StartFiles::User);
    let (of_task, admitted, key) = (Arc::clone(services), admission.clone(), request.key.clone());
    // If the caller goes away meanwhile, the session still starts. A repetition has its turn only then, because it finds no session before.
    let launched = tokio::spawn(async move {
        let _turn = turn;
        launch_once(&of_task, &admitted, &id, owner, key.as_deref(), new).await
    });
    let handle = launched.await.unwrap_or_else(|e| Err(ActionError::Internal { why: e.to_string() }))?;
    created(services, principal, &handle).await
}

/// Starts a session. A directory has its key first, so that no other node starts one with the same key.
async fn launch_once(
    services: &Arc<Services>,
    admission: &Admission,
    id: &SessionId,
    owner: NewOwner,
    key: Option<&str>,
    new: impl FnOnce(&Launcher) -> Result<NewSession, ActionError> + Send + 'static,
) -> Result<Handle, ActionError> {
    // A server without its number starts nothing, and its claim would take the key from the other one's session.
    let directory = services.directory.as_ref().filter(|directory| !directory.is_taken());
    let Some((directory, key)) = directory.zip(key) else {
        return launch(services, admission, id, owner, new).await;
    };
    let name = owner.owner.clone();
    let (elsewhere, is_answered) = directory.claim_create(&name, key, id).await;
    services.server_events.metrics.called_directory("create", is_answered);
    if let Some(other) = elsewhere {
        return Err(ActionError::OtherNode { node: other.node(), id: other.to_string() });
    }
    let launched = launch(services, admission, id, owner, new).await;
    if launched.is_err() && services.create_keys.session(&name, key).is_none() {
        directory.release_create(&name, key, id).await;
    }
    launched
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
    let owner = NewOwner::again(&old.shared.meta);
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
