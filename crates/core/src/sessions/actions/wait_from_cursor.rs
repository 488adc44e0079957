//! Waits for a caller: for the end of a command, a pattern, silence, or a condition outside of the terminal.

use std::sync::Arc;

use super::task_wait::{self, TaskWait, Waited, open_ports};
use super::{commands, report};
use crate::action::{ActionError, Budget, Report, Wait};
use crate::ids::{CommandId, SessionId};
use crate::principal::Principal;
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::read_cursor::ReadCursors;
use crate::sessions::services::Services;
use crate::sessions::session::Request;
use crate::sessions::wait_external_conditions::{self, ExternalConditions};

/// Records that the caller has the output of this session up to here, if the session exists.
pub(crate) async fn resume_reading(services: &Services, principal: &Principal, id: &SessionId, read_to: u64) {
    if services.backends.holders.folder(id).path().exists() {
        services.read_cursors.resume(principal, id, read_to).await;
    }
}

pub(in crate::sessions) async fn wait(
    services: &Arc<Services>,
    principal: &Principal,
    session: &SessionId,
    wait: Wait,
    command: Option<CommandId>,
    budget: Budget,
    moves_cursor: bool,
) -> Result<Report, ActionError> {
    let handle = match services.sessions.find(principal, session).await? {
        SessionRef::Live(handle) => handle,
        SessionRef::Unreachable(unreachable) => return Err(unreachable.error()),
        SessionRef::EndedSession(past) => {
            return commands::past_report(&services.read_cursors, principal, &past, budget).await;
        }
    };
    let _permit = handle.permits.wait()?;
    let wait = task_wait::with_grace(services, wait);
    let from = waits_from(&services.read_cursors, principal, &handle, wait.pattern.is_some()).await?;
    let outside = ExternalConditions::of(&handle, Some(&wait), true).await?;
    let command = command.map(|c| c.0);
    let (asked, ports) = (wait.clone(), open_ports(&handle, Some(&wait)));
    let finished = handle.ask(|reply| Request::Wait { wait, command, from: Some(from), reply });
    let finished = wait_external_conditions::either(&handle, finished, outside, (command, Some(from))).await?;
    let task = Some(TaskWait { wait: asked, ports, background: None, key: None });
    let finished = match task_wait::or_task(services, principal, &handle, finished, task).await? {
        Waited::Task(report) => return Ok(*report),
        Waited::Finished(finished) => *finished,
    };
    let mut report = report::report(services, principal, &handle, finished, budget).await?;
    if !moves_cursor {
        return Ok(report);
    }
    report::is_shown(&services.read_cursors, principal, &mut report);
    Ok(report)
}

/// The offset where unread output begins for this caller. For a pattern, the read cursor is stored before the wait. So a
/// repeated wait begins at the same offset, even at the next server.
async fn waits_from(
    cursors: &ReadCursors,
    principal: &Principal,
    handle: &Handle,
    has_pattern: bool,
) -> Result<u64, ActionError> {
    let id = &handle.shared.id;
    let from = match cursors.read_to(principal, id).await? {
        Some(from) => from,
        None => {
            let from = handle.ask(Request::ViewerLimit).await?.to;
            cursors.begin_at(principal, id, from);
            from
        }
    };
    if has_pattern {
        cursors.flush().await?;
    }
    Ok(from)
}
