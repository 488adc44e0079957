//! Waits for a caller: for the end of a command, a pattern, silence, or a condition outside of the terminal.

use std::sync::Arc;

use super::task_wait::{TaskWait, Waited, open_ports};
use super::wait_external_conditions::{self, ExternalConditions};
use crate::action::{ActionError, Budget, Report, Wait};
use crate::ids::{CommandId, SessionId};
use crate::principal::Principal;
use crate::sessions::handle::Handle;
use crate::sessions::registry::{Registry, SessionRef};
use crate::sessions::session::Request;

impl Registry {
    /// The caller has the output of this session up to here, as far as there is such a session.
    pub(crate) async fn resume_reading(&self, principal: &Principal, id: &SessionId, read_to: u64) {
        if self.holders().folder(id).path().exists() {
            self.read_cursors.resume(principal, id, read_to).await;
        }
    }

    pub(in crate::sessions) async fn wait(
        self: &Arc<Self>,
        principal: &Principal,
        session: &SessionId,
        wait: Wait,
        command: Option<CommandId>,
        budget: Budget,
        moves_cursor: bool,
    ) -> Result<Report, ActionError> {
        let handle = match self.find(principal, session).await? {
            SessionRef::Live(handle) => handle,
            SessionRef::Unreachable(unreachable) => return Err(unreachable.error()),
            SessionRef::EndedSession(past) => {
                return self.past_report(principal, &past, budget).await;
            }
        };
        let _permit = handle.permits.wait()?;
        let wait = self.with_grace(wait);
        let from = self.waits_from(principal, &handle, wait.pattern.is_some()).await?;
        let outside = ExternalConditions::of(&handle, Some(&wait), true).await?;
        let command = command.map(|c| c.0);
        let (asked, ports) = (wait.clone(), open_ports(&handle, Some(&wait)));
        let finished = handle.ask(|reply| Request::Wait { wait, command, from: Some(from), reply });
        let finished = wait_external_conditions::either(&handle, finished, outside, (command, Some(from))).await?;
        let task = Some(TaskWait { wait: asked, ports, background: None, key: None });
        let finished = match self.or_task(principal, &handle, finished, task).await? {
            Waited::Task(report) => return Ok(*report),
            Waited::Finished(finished) => *finished,
        };
        let mut report = self.report(principal, &handle, finished, budget).await?;
        if !moves_cursor {
            return Ok(report);
        }
        self.is_shown(principal, &mut report);
        Ok(report)
    }

    /// The offset where unread output begins for this caller. For a pattern the read cursor is stored before the wait,
    /// so that a repeated wait, also one at the next server, begins at the same offset.
    async fn waits_from(&self, principal: &Principal, handle: &Handle, has_pattern: bool) -> Result<u64, ActionError> {
        let id = &handle.shared.id;
        let from = match self.read_cursors.read_to(principal, id).await? {
            Some(from) => from,
            None => {
                let from = handle.ask(Request::ViewerLimit).await?.to;
                self.read_cursors.begin_at(principal, id, from);
                from
            }
        };
        if has_pattern {
            self.read_cursors.flush().await?;
        }
        Ok(from)
    }
}
