//! Starts a client's default session, like the last one if there was one.

use std::sync::Arc;

use tokio::time::Instant;

use super::default_session::{self, DefaultSession};
use super::terminate;
use crate::action::{ActionError, Create, Created, Foreground, SessionStatus, SessionView};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;
use crate::profile::StartFiles;
use crate::sessions::handle::Handle;
use crate::sessions::launch::again::launch_again;
use crate::sessions::launch::created::created;
use crate::sessions::launch::prepare::new_session;
use crate::sessions::launch::request::{owner, wanted_name};
use crate::sessions::launch::start::{NewOwner, launch};
use crate::sessions::services::Services;
use crate::sessions::session::Request;

/// Returns a client's live default session. If there is none, starts one, like the last one if there was one.
pub(super) async fn create_default(
    services: &Arc<Services>,
    principal: &Principal,
    request: &Create,
    client: &str,
) -> Result<Created, ActionError> {
    let turn = default_session::default_turn(services, client).await;
    let id = SessionId::random(services.settings.node);
    let owner = NewOwner { owner: owner(principal, request)?, name: wanted_name(principal, request)? };
    let (admission, handle) = match default_session::default_of(services, principal, client).await? {
        DefaultSession::Live(_, snapshot) => return Ok(Created::earlier(snapshot.view)),
        DefaultSession::Ended(old) => {
            let admission = services.drain.admit()?;
            let handle = launch_again(services, &admission, &old, &id).await?;
            (admission, handle)
        }
        DefaultSession::Nothing => {
            let admission = services.drain.admit()?;
            let new = new_session(&id, principal, request, StartFiles::User);
            let handle = launch(services, &admission, &id, owner.clone(), new).await?;
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
    let handle = launch(services, &admission, &id, owner, new).await?;
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
            Err(ActionError::Ended { reason, .. }) => return Some(format!("they ended the shell: {reason}")),
            Err(_) => return None,
            Ok(view) => view,
        };
        if let Some(exit) = view.exit {
            return Some(format!("they ended the shell: {}", exit.reason));
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
            return Some("they run a program that uses the whole screen".to_owned());
        }
    }
}
