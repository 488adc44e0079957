//! Positions in a session's output, as a request names them.

use super::commands;
use crate::action::{ActionError, CommandView, ReadOutput, Since};
use crate::ids::{CommandId, SessionId};
use crate::principal::Principal;
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::services::Services;
use crate::sessions::session::Request;

/// The offset to read from, and the one to stop at if the request has one.
pub(in crate::sessions) async fn position(
    services: &Services,
    principal: &Principal,
    found: &SessionRef,
    read: &ReadOutput,
) -> Result<(u64, Option<u64>), ActionError> {
    let Since::Command(id) = &read.since else {
        return Ok((since(services, principal, found, &read.session, &read.since).await?, None));
    };
    let command = known_command(services, principal, &read.session, *id).await?;
    Ok((command.start_offset, command.end_offset))
}

async fn known_command(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
    id: CommandId,
) -> Result<CommandView, ActionError> {
    let report = Box::pin(commands::command(services, principal, session, id, 1.into())).await?;
    report.command.ok_or_else(|| ActionError::NoCommand { session: session.clone(), id: id.to_string() })
}

/// A position as an offset.
pub(in crate::sessions) async fn since(
    services: &Services,
    principal: &Principal,
    found: &SessionRef,
    session: &SessionId,
    since: &Since,
) -> Result<u64, ActionError> {
    Ok(match since {
        Since::First => 0,
        Since::Offset(at) => *at,
        Since::Last => services.read_cursors.read_to(principal, session).await?.unwrap_or(0),
        Since::Time(when) => match found {
            SessionRef::Live(handle) => handle.ask(|reply| Request::At(*when, reply)).await?,
            SessionRef::Unreachable(unreachable) => return Err(unreachable.error()),
            SessionRef::EndedSession(past) => {
                past.timeline.clock().offset_at(*when, past.timeline.output().scanner.position())
            }
        },
        Since::Command(id) => known_command(services, principal, session, *id).await?.start_offset,
    })
}

/// Waits until this server has read as much as an earlier one had published, if that much exists. Each request costs the
/// actor a turn, in which it reads some output.
pub(super) async fn catch_up(live: &Handle, to: u64) {
    let mut reached = None;
    while to <= live.tail.borrow().journal.0 {
        match live.ask(Request::ViewerLimit).await {
            Ok(shown) if shown.to < to && reached != Some(shown.to) => reached = Some(shown.to),
            // Output that cannot be read is not waited for.
            Ok(_) | Err(_) => return,
        }
    }
}
