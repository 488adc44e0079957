//! Types input for a caller, and knows a session's named actions.

use std::sync::Arc;

use super::execute;
use super::report::{self, plain_report, with_key};
use super::task_wait::{self, TaskWait, Waited, open_ports};
use crate::action::{ActionError, EndedBy, Input, InputBytes, NamedAction, Report, TextView};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;
use crate::sessions::render::{range, typed_echo};
use crate::sessions::services::Services;
use crate::sessions::session::{NewInput, Request};
use crate::sessions::target::Target;
use crate::sessions::wait_external_conditions::{self, ExternalConditions};

pub(in crate::sessions) async fn input(
    services: &Arc<Services>,
    principal: &Principal,
    request: &Input,
    target: Target,
) -> Result<Report, ActionError> {
    let (handle, key, typing) = (target.live?, target.key, target.typing);
    let size = match &request.bytes {
        InputBytes::Raw(bytes) => bytes.len(),
        InputBytes::Paste { text, .. } => text.len(),
        InputBytes::Keys(_) => 0,
    };
    if size > limits::INPUT_BYTES_MAX {
        let problem = format!("has {size} bytes; send at most {} at once", limits::INPUT_BYTES_MAX);
        return Err(ActionError::Invalid { field: "input", problem });
    }
    let _permit = request.wait.as_ref().map(|_| handle.permits.wait()).transpose()?;
    let seen = services.read_cursors.read_to_if_known(principal, &request.session).await;
    let Input { bytes, is_secret, is_hidden, wait, meant_for, .. } = request.clone();
    let is_secret = is_secret || is_hidden;
    let wait = wait.map(|wait| task_wait::with_grace(services, wait));
    let asked = wait.clone();
    let outside = ExternalConditions::of(&handle, wait.as_ref(), false).await?;
    let typed = {
        let input = |typed| Request::Input(NewInput { bytes, key, is_secret, meant_for, typing, wait, typed });
        handle.ask(input).await?
    };
    let typed = typed.map_err(|e| with_key(e, request.key.as_deref()))?;
    let asked = asked.map(|wait| wait.shortened_by(typed.ignored_by.as_deref()));
    let mut report = match typed.finished {
        Some(finished) => {
            let ports = open_ports(&handle, asked.as_ref());
            let finished = async { finished.await.map_err(|_| handle.why_gone()) };
            let mut finished =
                wait_external_conditions::either(&handle, finished, outside, (None, Some(typed.from))).await?;
            finished.accepted_bytes = Some(typed.accepted);
            // The answer begins with the program's output from before the input that the caller has not been shown.
            if let (Some(command), Some(seen)) = (&finished.snapshot.command, seen) {
                finished.from = finished.from.min(seen.max(command.start_offset));
            }
            if request.without_echo
                && finished.from == typed.from
                && let InputBytes::Raw(bytes) = &request.bytes
            {
                let shown = &finished.snapshot;
                let to = shown.command.as_ref().and_then(|c| c.end_offset).unwrap_or(shown.shown_to);
                let read = |from, to| range::read(&handle.shared.reader, from, to);
                let cols = shown.view.cols;
                // The output that is read has masks, too.
                let mut typed_bytes = bytes.clone();
                handle.shared.folder.masks().mask(&mut typed_bytes);
                finished.from = typed_echo::end(typed.shown_by, &typed_bytes, (typed.from, to), cols, read);
            }
            let key = request.key.clone();
            let task = asked.map(|wait| TaskWait { wait, ports, background: None, key });
            let finished = match task_wait::or_task(services, principal, &handle, finished, task).await? {
                Waited::Task(report) => return Ok(*report),
                Waited::Finished(finished) => *finished,
            };
            report::report(services, principal, &handle, finished, request.budget).await?
        }
        None => {
            let (view, all) = execute::after(services, principal, &handle).await?;
            let running = all.into_iter().find(|c| view.current_command == Some(c.id));
            let output = TextView { from: typed.from, to: typed.from, ..TextView::default() };
            let mut report = plain_report(view, running, EndedBy::Accepted, output);
            report.accepted_bytes = Some(typed.accepted);
            report
        }
    };
    (report.is_typed_at_prompt, report.ignored_by) = (typed.is_at_prompt, typed.ignored_by);
    if request.wait.is_some() {
        report::is_shown(&services.read_cursors, principal, &mut report);
    } else {
        services.read_cursors.begin(principal, &request.session, report.output.from).await;
    }
    Ok(report)
}

/// The session's named action.
pub(in crate::sessions) async fn named_action(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
    name: &str,
) -> Result<NamedAction, ActionError> {
    let handle = services.sessions.live(principal, session).await?;
    let known = &handle.shared.meta.named_actions;
    known.get(name).cloned().ok_or_else(|| {
        let all: Vec<&str> = known.keys().map(String::as_str).collect();
        let problem = match all.as_slice() {
            [] => "this session has none; the request that starts a session defines them".to_owned(),
            all => format!("this session has {}", all.join(", ")),
        };
        ActionError::Invalid { field: "action", problem }
    })
}
