//! Starts a session, or returns the one that an earlier request with the same key or client started.

use std::sync::Arc;

use super::carried_on::CarriedOn;
use super::create_default::create_default;
use crate::action::{ActionError, Create, Created, SessionView};
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::profile::StartFiles;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::launch::created::created;
use crate::sessions::launch::launch_once::launch_once;
use crate::sessions::launch::prepare::new_session;
use crate::sessions::launch::request::{owner, wanted_name};
use crate::sessions::launch::start::NewOwner;
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
    let handle = CarriedOn::new(async move {
        let _turn = turn;
        launch_once(&of_task, &admitted, &id, owner, key.as_deref(), new).await
    })
    .await?;
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
