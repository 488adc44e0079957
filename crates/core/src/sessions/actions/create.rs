//! Starts a session, or returns the one that an earlier request with the same key or client started.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::time::Instant;

use super::default_session::{self, DefaultSession};
use super::terminate;
use crate::action::{ActionError, ConfinementTier, Create, Created, Foreground, SessionStatus, SessionView};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;
use crate::profile::StartFiles;
use crate::sessions::backends::Backends;
use crate::sessions::drain::Admission;
use crate::sessions::ended::session::EndedSession;
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::launch::again::again;
use crate::sessions::launch::prepare::new_session;
use crate::sessions::launch::request::owner;
use crate::sessions::launch::start;
use crate::sessions::request_fingerprint::asked_for;
use crate::sessions::services::Services;
use crate::sessions::session::Request;

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
            Ok(found) => return again_for(services, principal, &found, request).await.map(not_new),
            Err(ActionError::NoSession { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    let admission = services.drain.admit()?;
    let id = SessionId::random(services.settings.node);
    let owner = owner(principal, request)?;
    let new = new_session(&id, principal, request, StartFiles::User);
    let handle = start::launch(services, &admission, &id, owner, new).await?;
    drop(turn);
    created(services, principal, &handle).await
}

/// Returns a client's live default session. If there is none, starts one, like the last one if there was one.
async fn create_default(
    services: &Arc<Services>,
    principal: &Principal,
    request: &Create,
    client: &str,
) -> Result<Created, ActionError> {
    let turn = default_session::default_turn(services, client).await;
    let (id, owner) = (SessionId::random(services.settings.node), owner(principal, request)?);
    let (admission, handle) = match default_session::default_of(services, principal, client).await? {
        DefaultSession::Live(_, snapshot) => return Ok(not_new(snapshot.view)),
        DefaultSession::Ended(old) => {
            let admission = services.drain.admit()?;
            let handle = launch_again(services, &admission, &old, &id).await?;
            (admission, handle)
        }
        DefaultSession::Nothing => {
            let admission = services.drain.admit()?;
            let new = new_session(&id, principal, request, StartFiles::User);
            let handle = start::launch(services, &admission, &id, owner.clone(), new).await?;
            (admission, handle)
        }
    };
    let Some(reason) = start_files_problem(services, principal, &handle, request).await else {
        drop(turn);
        return default_created(services, principal, &handle).await;
    };
    terminate::end(services, &handle, sys::signal::HUP, limits::TERMINATE_GRACE).await?;
    let id = SessionId::random(services.settings.node);
    let new = new_session(&id, principal, request, StartFiles::Clean);
    let handle = start::launch(services, &admission, &id, owner, new).await?;
    let reason = format!("{reason}; this shell, and each shell after a reset, skips them");
    handle.shared.note_startup_failure("start-up files".to_owned(), reason);
    drop(turn);
    default_created(services, principal, &handle).await
}

async fn default_created(services: &Services, principal: &Principal, handle: &Handle) -> Result<Created, ActionError> {
    let mut created = created(services, principal, handle).await?;
    created.left_behind = left_behind(services, &created.session.owner).await;
    Ok(created)
}

/// The live sessions of this owner whose client has disconnected, the one used last first.
async fn left_behind(services: &Services, owner: &str) -> Vec<SessionView> {
    let live = services.sessions.handles();
    let is_left = |handle: &&Handle| {
        let meta = &handle.shared.meta;
        meta.owner == owner && meta.client.as_ref().is_some_and(|client| services.clients.is_gone(client))
    };
    let mut left: Vec<_> = live.iter().filter(is_left).filter_map(|h| Some((h, h.published()?.0))).collect();
    left.retain(|(_, view)| view.status != SessionStatus::Terminated);
    left.sort_by_key(|(_, view)| std::cmp::Reverse(view.last_activity));
    for (handle, view) in left.iter_mut().take(limits::LEFT_BEHIND_NAMED) {
        if let Ok(now) = services.sessions.live_view(handle).await {
            *view = now;
        }
    }
    left.into_iter().map(|(_, view)| view).collect()
}

/// Waits for the first prompt of a model's default session. Returns the reason if its start-up files prevent the prompt,
/// but none while they ask for input, because a call can answer.
async fn start_files_problem(
    services: &Services,
    principal: &Principal,
    handle: &Handle,
    request: &Create,
) -> Option<String> {
    if !request.is_by_model {
        return None;
    }
    let patience = sys::fault::scaled(limits::START_FILES_WAIT);
    let until = Instant::now() + patience;
    loop {
        let is_late = tokio::time::timeout_at(until, handle.ask(Request::Prompt)).await.is_err();
        let view = match services.sessions.view_of(principal, handle).await {
            Err(ActionError::Ended { reason, .. }) => return Some(format!("they ended it: {reason}")),
            Err(_) => return None,
            Ok(view) => view,
        };
        if let Some(exit) = view.exit {
            return Some(format!("they ended it: {}", exit.reason));
        }
        if view.status != SessionStatus::Creating {
            return None;
        } else if is_late {
            return Some(format!("no prompt came within {} s", patience.as_secs_f32()));
        } else if view.foreground != Foreground::Fullscreen {
            // They ask for input, which a call can give.
            return None;
        }
        // It may be gone in a moment.
        tokio::time::sleep_until(Instant::now() + limits::START_SCREEN_STANDS).await;
        let stands =
            |view: SessionView| view.status == SessionStatus::Creating && view.foreground == Foreground::Fullscreen;
        if services.sessions.live_view(handle).await.is_ok_and(stands) {
            return Some("a program of theirs has the whole screen".to_owned());
        }
    }
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
    let handle = start::launch(services, &admission, &id, owner, again(&id, &old.shared, None)).await?;
    created(services, principal, &handle).await
}

/// Starts a client's default session again, in the directory where its shell has ended by itself. If it cannot begin there,
/// for example because that directory is gone, it begins in the client's.
async fn launch_again(
    services: &Arc<Services>,
    admission: &Admission,
    old: &EndedSession,
    id: &SessionId,
) -> Result<Handle, ActionError> {
    let owner = &old.shared.meta.owner;
    if let Some(cwd) = kept_directory(&services.backends, old) {
        let again = again(id, &old.shared, Some(cwd));
        if let Ok(handle) = start::launch(services, admission, id, owner.clone(), again).await {
            return Ok(handle);
        }
    }
    let id = SessionId::random(services.settings.node);
    start::launch(services, admission, &id, owner.clone(), again(&id, &old.shared, None)).await
}

/// The directory of a shell that ended by itself. A confined session keeps a directory only if it could change it, because
/// the answer must not show whether a hidden directory exists. The folders of a container ended with it.
fn kept_directory(backends: &Backends, old: &EndedSession) -> Option<PathBuf> {
    let (view, host) = (old.view(), &backends.host);
    let is_known = view.confinement != Some(ConfinementTier::Container) && old.ended_by_itself();
    let is_within = |cwd: &PathBuf| {
        old.shared.spec.confinement.as_ref().is_none_or(|rules| {
            let cwd = host.resolved_path(cwd);
            rules.writable.iter().any(|place| cwd.starts_with(place))
        })
    };
    Some(view.cwd).filter(|cwd| is_known && is_within(cwd) && host.file(cwd).is_some_and(|it| it.is_directory))
}

async fn created(services: &Services, principal: &Principal, handle: &Handle) -> Result<Created, ActionError> {
    start::first_prompt(handle).await;
    let session = services.sessions.view_of(principal, handle).await?;
    Ok(Created { session, startup: handle.shared.meta.startup.clone(), is_new: true, left_behind: Vec::new() })
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

/// A session that an earlier request started.
fn not_new(session: SessionView) -> Created {
    Created { session, startup: Vec::new(), is_new: false, left_behind: Vec::new() }
}
