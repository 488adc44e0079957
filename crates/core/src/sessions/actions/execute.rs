//! Executes a command for a caller: hands it to the session and waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::carried_on::CarriedOn;
use super::commands;
use super::report::{self, CLEARING_UP, plain_report, with_key};
use super::task_wait::{self, TaskWait, Waited, open_ports};
use crate::action::{ActionError, CommandView, EndedBy, Execute, Report, SessionView, TextView, Wait};
use crate::ids::CommandId;
use crate::principal::Principal;
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::services::Services;
use crate::sessions::session::{Request, Started};
use crate::sessions::target::Target;
use crate::sessions::wait_external_conditions::{self, ExternalConditions};

/// How long a command waits for the prompt if its caller does not wait for its end: it asked for no wait, or for a wait of
/// 0 s. A shell reports its prompt before its editor takes the terminal.
const PATIENCE_WITHOUT_WAIT: Duration = Duration::from_secs(5);

pub(in crate::sessions) async fn execute(
    services: &Arc<Services>,
    principal: &Principal,
    request: &Execute,
    target: Target,
) -> Result<Report, ActionError> {
    let (handle, key) = (target.live?, target.key);
    // A command that waits for the keyboard does not outlive its caller.
    let (typing, _caller) = target.typing.with_caller();
    let _permit = request.wait.as_ref().map(|_| handle.permits.wait()).transpose()?;
    let wait = request.wait.clone().map(|wait| task_wait::with_grace(services, wait));
    let patience = wait.as_ref().map(Wait::left).filter(|left| !left.is_zero()).unwrap_or(PATIENCE_WITHOUT_WAIT);
    let patience_ms = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    let (text, shell) = (request.command.clone().into_bytes(), request.shell);
    let allowed_in = request.allowed_in.clone();
    let outside = ExternalConditions::of(&handle, wait.as_ref(), false).await?;
    let asked = wait.clone();
    let run = move |started| Request::Run { text, key, patience_ms, wait, shell, allowed_in, typing, started };
    let started = start_command(services, principal, &handle, run).await?;
    let started = started.map_err(|e| with_cancelled(services, principal, with_key(e, request.key.as_deref())))?;
    if !started.is_history {
        services.server_events.spans.handed_over(&request.session, CommandId(started.id));
    }
    let mut report = match started.finished {
        None if started.is_history => {
            commands::command(services, principal, &request.session, CommandId(started.id), request.budget).await?
        }
        Some(finished) => {
            let ports = open_ports(&handle, asked.as_ref());
            let finished = async { finished.await.map_err(|_| handle.why_gone()) };
            let finished =
                wait_external_conditions::either(&handle, finished, outside, (Some(started.id), None)).await?;
            let before = finished.snapshot.before_command;
            let size = (finished.snapshot.view.cols, request.budget.quarter());
            let background = report::background(&services.read_cursors, principal, &handle, before, size).await;
            let begins = background.as_ref().map(|text| (text.from, text.to));
            let key = request.key.clone();
            let task = asked.map(|wait| TaskWait { wait, ports, background: begins, key });
            let finished = match task_wait::or_task(services, principal, &handle, finished, task).await? {
                Waited::Task(report) => return Ok(*report),
                Waited::Finished(finished) => *finished,
            };
            let shown = background.as_ref().map_or(0, |text| text.head.len() + text.tail.len());
            let budget = request.budget.less(shown);
            Report { background, ..report::report(services, principal, &handle, finished, budget).await? }
        }
        None => {
            let (view, all) = after(services, principal, &handle).await?;
            let command = all.into_iter().find(|c| c.id.0 == started.id);
            let at = command.as_ref().map_or(0, |c| c.start_offset);
            let output = TextView { from: at, to: at, ..TextView::default() };
            plain_report(view, command, EndedBy::Accepted, output)
        }
    };
    if request.wait.is_some() {
        report::is_shown(&services.read_cursors, principal, &mut report);
    } else {
        report.read_before = services.read_cursors.in_memory(&principal.reader(), &request.session).unwrap_or(0);
        services.read_cursors.begin(principal, &request.session, report.output.from).await;
    }
    Ok(report)
}

/// Adds to a refusal that the call of the running command was cancelled, because that has left it running.
fn with_cancelled(services: &Services, principal: &Principal, error: ActionError) -> ActionError {
    match error {
        ActionError::Busy { session, with, command: Some(command), may_be_a_shell }
            if services.read_cursors.is_given_up(principal, &session, command) =>
        {
            let with = format!("{with}, whose call was cancelled");
            ActionError::Busy { session, with, command: Some(command), may_be_a_shell }
        }
        other => other,
    }
}

/// Hands a command over. It may start after its caller has gone; then the caller is told its end later.
async fn start_command(
    services: &Arc<Services>,
    principal: &Principal,
    handle: &Handle,
    run: impl FnOnce(oneshot::Sender<Result<Started, ActionError>>) -> Request + Send + 'static,
) -> Result<Result<Started, ActionError>, ActionError> {
    if principal.delivery.is_none() {
        return handle.ask(run).await;
    }
    // Output behind the cursor was not shown to this caller; behind this place, if it has none.
    let from = handle.tail.borrow().journal.0;
    services.read_cursors.read_to_if_known(principal, &handle.shared.id).await;
    let (services, principal, handle) = (Arc::clone(services), principal.clone(), handle.clone());
    let started = async move {
        let started = handle.ask(run).await?;
        if let Ok(started) = &started {
            let (id, command) = (&handle.shared.id, CommandId(started.id));
            services.read_cursors.note_running_unless_delivered(&principal, id, command, from);
        }
        Ok(started)
    };
    CarriedOn::new(started).await
}

/// The session after the action. If the action has ended the session, its records answer, and that is not an error.
pub(super) async fn after(
    services: &Services,
    principal: &Principal,
    handle: &Handle,
) -> Result<(SessionView, Vec<CommandView>), ActionError> {
    match handle.ask(Request::Commands).await {
        Ok((snapshot, all)) => Ok((snapshot.view, all)),
        Err(ended @ ActionError::Ended { .. }) => {
            let _ = tokio::time::timeout(CLEARING_UP, handle.gone()).await;
            match services.sessions.find(principal, &handle.shared.id).await? {
                SessionRef::EndedSession(past) => Ok((past.view(), past.commands())),
                SessionRef::Live(_) | SessionRef::Unreachable(_) => Err(ended),
            }
        }
        Err(other) => Err(other),
    }
}
