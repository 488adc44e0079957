//! Starts a session and runs the start-up commands of its profile before it is announced.

use std::sync::Arc;

use super::caller::{Caller, mismatch};
use crate::action::{
    Action, ActionError, Budget, CommandStatus, Created, Execute, Outcome, SessionView, TargetShell, Wait,
};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;

/// Performs an action that starts a session, and runs the commands that its outcome names. They are run to the end even
/// if the client goes away meanwhile.
pub(super) async fn start(caller: Caller<'_>, action: Action) -> Result<Created, ActionError> {
    let mut created = match caller.act(action).await? {
        Outcome::Created(created) => *created,
        other => return Err(mismatch(&other)),
    };
    let commands = std::mem::take(&mut created.startup);
    if commands.is_empty() {
        return Ok(created);
    }
    let (dispatch, soft_timeout) = (caller.dispatch.detached(), caller.soft_timeout);
    let time_limits = Arc::clone(caller.time_limits);
    // The commands are the configuration's: neither a token that is revoked meanwhile nor a log-out stops them.
    let principal =
        Principal { pass: None, log_in: None, delivery: None, approval_wait: None, ..caller.principal.clone() };
    let session = created.session.id.clone();
    let all = tokio::spawn(async move {
        let caller = Caller { dispatch: &*dispatch, principal: &principal, soft_timeout, time_limits: &time_limits };
        run(caller, session, commands).await
    });
    created.session = all.await.map_err(|e| ActionError::Internal { why: e.to_string() })??;
    Ok(created)
}

async fn run(caller: Caller<'_>, session: SessionId, commands: Vec<String>) -> Result<SessionView, ActionError> {
    let mut failed = Vec::new();
    for command in commands {
        let execute = Execute {
            session: session.clone(),
            command: command.clone(),
            shell: TargetShell::Own,
            allowed_in: None,
            wait: Some(Wait::at_most(limits::STARTUP_TIMEOUT)),
            time_limit: None,
            key: None,
            budget: Budget::NONE,
        };
        let (reason, may_go_on) = match caller.report(Action::Execute(execute)).await {
            Err(e) => (e.to_string(), false),
            Ok(report) => match report.command {
                Some(c) if c.status == CommandStatus::Running => {
                    (format!("it still runs after {} s", limits::STARTUP_TIMEOUT.as_secs()), false)
                }
                Some(c) if c.exit_code == Some(0) => continue,
                Some(c) => {
                    let code = c.exit_code.map(|code| format!("it exited with {code}"));
                    let reason = code.or(c.error).unwrap_or_else(|| "how it ended is not known".to_owned());
                    (reason, c.status != CommandStatus::Terminated)
                }
                None => ("how it ended is not known".to_owned(), true),
            },
        };
        failed.push((command, reason));
        if !may_go_on {
            break;
        }
    }
    caller.session(Action::StartupDone { session, failed }).await
}
