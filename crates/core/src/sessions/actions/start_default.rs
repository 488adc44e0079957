//! Starts a client's default session, like the last one if there was one.

use std::sync::Arc;

use tokio::time::Instant;

use super::terminate;
use crate::action::{ActionError, Create, Foreground, SessionStatus, SessionView};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;
use crate::profile::StartFiles;
use crate::sessions::ended::session::EndedSession;
use crate::sessions::handle::Handle;
use crate::sessions::launch::again::launch_again;
use crate::sessions::launch::prepare::new_session;
use crate::sessions::launch::request::{owner, wanted_name};
use crate::sessions::launch::start::{NewOwner, launch};
use crate::sessions::services::Services;
use crate::sessions::session::Request;

/// Starts a client's default session: without the user's start-up files, if these prevent the prompt.
pub(super) async fn start_default(
    services: &Arc<Services>,
    principal: &Principal,
    request: &Create,
    earlier: Option<Arc<EndedSession>>,
) -> Result<Handle, ActionError> {
    let id = SessionId::random(services.settings.node);
    let owner = NewOwner { owner: owner(principal, request)?, name: wanted_name(principal, request)? };
    let admission = services.drain.admit()?;
    let handle = match earlier {
        Some(old) => launch_again(services, &admission, &old, &id).await?,
        None => {
            let new = new_session(&id, principal, request, StartFiles::User);
            launch(services, &admission, &id, owner.clone(), new).await?
        }
    };
    let Some(reason) = start_files_problem(services, principal, &handle, request).await else { return Ok(handle) };
    terminate::end(services, &handle, sys::signal::HUP, limits::TERMINATE_GRACE).await?;
    let id = SessionId::random(services.settings.node);
    let new = new_session(&id, principal, request, StartFiles::Clean);
    let handle = launch(services, &admission, &id, owner, new).await?;
    let reason = format!("{reason}; this shell, and each shell after a reset, skips them");
    handle.shared.note_startup_failure("start-up files".to_owned(), reason);
    Ok(handle)
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
