//! Terminates a session: its holder ends it, or is killed if it does not answer.

use std::time::Duration;

use super::terminate_unreachable;
use crate::action::{ActionError, Terminate, TerminatedView};
use crate::limits;
use crate::principal::Principal;
use crate::sessions::backends::Backends;
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::services::Services;
use crate::sessions::session::{Ended, Request};

pub(in crate::sessions) async fn terminate(
    services: &Services,
    principal: &Principal,
    request: &Terminate,
) -> Result<TerminatedView, ActionError> {
    match services.sessions.find(principal, &request.session).await? {
        SessionRef::EndedSession(past) => {
            Ok(TerminatedView { session: past.view(), killed: 0, left: 0, was_over: true, freed_bytes: None })
        }
        SessionRef::Unreachable(unreachable) => {
            terminate_unreachable::end_unreachable(services, &unreachable, request).await
        }
        SessionRef::Live(handle) => {
            let signo = if request.force { sys::signal::KILL } else { request.signo.unwrap_or(sys::signal::HUP) };
            let ended = end(services, &handle, signo, request.grace.unwrap_or(limits::TERMINATE_GRACE)).await?;
            let session = services.sessions.show(principal, &request.session).await?;
            Ok(TerminatedView { session, killed: ended.killed, left: ended.left, was_over: false, freed_bytes: None })
        }
    }
}

/// Ends a session, and waits until none of its processes is left and its actor has recorded the end. SIGKILL ends
/// it even if its holder does not answer.
pub(super) async fn end(
    services: &Services,
    handle: &Handle,
    signo: i32,
    grace: Duration,
) -> Result<Ended, ActionError> {
    let grace_ms = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
    let asked = handle.ask(|reply| Request::Terminate { signo, grace_ms, reply }).await;
    if services.sessions.is_stopping() {
        return Err(ActionError::Restarting);
    }
    let ended = match asked {
        Ok(Ok(ended)) => ended,
        Ok(Err(ActionError::Unreachable { .. })) if signo == sys::signal::KILL => {
            force(&services.backends, handle).await?
        }
        Ok(Err(error)) => return Err(error),
        Err(_) => Ended { killed: 0, left: 0 },
    };
    if tokio::time::timeout(limits::HOLDER_LEAVES, handle.mailbox.closed()).await.is_ok() {
        return Ok(ended);
    }
    let why = "it was ended, but its holder has not exited yet: it may wait for the disk".to_owned();
    match signo == sys::signal::KILL {
        true => force(&services.backends, handle).await,
        false => Err(ActionError::Unreachable { session: handle.shared.id.clone(), why }),
    }
}

async fn force(backends: &Backends, handle: &Handle) -> Result<Ended, ActionError> {
    let ended = terminate_unreachable::kill_holder(backends, &handle.shared.id, &handle.shared.folder, None).await?;
    let _ = tokio::time::timeout(limits::HOLDER_LEAVES, handle.mailbox.closed()).await;
    Ok(ended)
}
