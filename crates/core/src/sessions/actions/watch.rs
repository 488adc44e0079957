//! Actions of viewers: a cursor in a session's output, typed keys, a ticket for a browser.

use super::report::with_key;
use crate::action::{ActionError, InputBytes, Outcome, SessionEvent, SessionStatus, TicketView, Watching};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::{Grant, Principal, TicketTarget};
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::services::Services;
use crate::sessions::session::{NewInput, Request};
use crate::sessions::target::Target;
use crate::sessions::viewer_cursor::ViewerCursor;
use crate::sessions::viewers::ViewerPlace;

/// A viewer cursor, in a live session or in the records of an ended one.
pub(in crate::sessions) async fn watch(
    services: &Services,
    principal: &Principal,
    id: &SessionId,
    since: Option<u64>,
) -> Result<Outcome, ActionError> {
    let (session, end, feed) = match services.sessions.find(principal, id).await? {
        SessionRef::Live(handle) => {
            let permit = handle.permits.viewer()?;
            let place = ViewerPlace::of_socket(&handle.shared.viewers, principal, permit);
            // The actor answers once the replay of earlier output is complete.
            let mut snapshot = handle.ask(Request::Look).await?;
            let feed = ViewerCursor::live(handle.clone(), since, place);
            // If the first prompt came before the cursor, the cursor gives no event for it.
            if snapshot.view.status == SessionStatus::Creating {
                snapshot = handle.ask(Request::Look).await?;
            }
            (snapshot.view, snapshot.shown_to, feed)
        }
        SessionRef::Unreachable(unreachable) => return Err(unreachable.error()),
        SessionRef::EndedSession(past) => {
            let (view, end) = (past.view(), past.timeline.output().scanner.position());
            let exit = SessionEvent::Exited(view.exit.clone());
            let feed = ViewerCursor::past(&past, since, exit);
            (view, end, feed)
        }
    };
    if let Some(at) = since.filter(|at| *at > end) {
        let problem = format!("{at} is beyond the end of the output, {end}");
        return Err(ActionError::Invalid { field: "since", problem });
    }
    Ok(Outcome::Watching(Box::new(Watching { session, feed: Box::new(feed) })))
}

/// Types for a viewer. Unlike an agent's input it waits for nothing and moves no read cursor of the principal.
pub(in crate::sessions) async fn types(bytes: &[u8], name: &str, target: Target) -> Result<usize, ActionError> {
    if bytes.len() > limits::INPUT_BYTES_MAX {
        let problem = format!("has {} bytes; send at most {} at once", bytes.len(), limits::INPUT_BYTES_MAX);
        return Err(ActionError::Invalid { field: "input", problem });
    }
    let (handle, key, typing) = (target.live?, target.key, target.typing);
    let bytes = InputBytes::Raw(bytes.to_vec());
    let typed =
        |typed| Request::Input(NewInput { bytes, key, is_secret: false, meant_for: None, typing, wait: None, typed });
    let typed = handle.ask(typed).await?.map_err(|error| with_key(error, Some(name)))?;
    Ok(typed.accepted)
}

/// A ticket for the docs, or for a session that the caller may see.
pub(in crate::sessions) async fn ticket(
    services: &Services,
    principal: &Principal,
    place: TicketTarget,
    may_write: bool,
) -> Result<Outcome, ActionError> {
    match &place {
        TicketTarget::Socket(session) => drop(services.sessions.find(principal, session).await?),
        TicketTarget::Docs => {}
    }
    let ticket = services.tickets.issue(Grant { principal: principal.clone(), place, may_write })?;
    Ok(Outcome::Ticket(TicketView { ticket, lifetime: limits::TICKET_LIFETIME }))
}
