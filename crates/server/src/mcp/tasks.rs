//! Tasks (the extension `io.modelcontextprotocol/tasks`): the answer of a call that a client takes later. A task is a wait
//! of the sessions, which keep its record; here are its forms on the wire.

use std::time::{Duration, SystemTime};

use rmcp::model::{
    CallToolResult, ContentBlock, CreateTaskResult, DetailedTask, ErrorData, GetTaskMethod, GetTaskResult, JsonObject,
    ProtocolVersion, Task, TaskPayload, TaskStatus,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

use api::ErrorCode;

use super::caller::Caller;
use super::text::{self, AnswerContext, seconds};
use super::tool_definitions::{READ_TOOL, refused, structured_task};
use ptyd_core::action::{Action, ActionError, OpenedTask, Outcome, TaskEnd, TaskState, TaskText, TaskView};
use ptyd_core::ids::TaskId;

/// How often a client should ask, in milliseconds.
const POLL_MS: u64 = 1_000;
/// Characters of the output's last line that people are shown.
const LINE_CHARS_MAX: usize = 100;

/// Whether this request's answer may be a task: the revision has them, and this very request declares them.
pub(super) fn are_declared(context: &RequestContext<RoleServer>) -> bool {
    has_tasks(context) && context.client_capabilities().is_some_and(|client| client.supports_tasks())
}

fn has_tasks(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Refuses what earlier revisions do not have; rmcp looks at the declaration only.
pub(super) fn begun(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    if has_tasks(context) { Ok(()) } else { Err(ErrorData::method_not_found::<GetTaskMethod>()) }
}

/// The answer of a call whose result comes later.
pub(super) fn created(task: &OpenedTask) -> CreateTaskResult {
    let message = status_message(task.waited, "");
    CreateTaskResult::new(base(&task.id, (task.at, task.at), TaskStatus::Working, message))
}

/// The present view, with the result of an ended one.
pub(super) async fn get(caller: &Caller, id: &str) -> Result<GetTaskResult, ErrorData> {
    let mut view = act(caller, Action::Task(known(id)?)).await?;
    if let TaskState::Over(end) = &view.state
        && end.told.is_none()
    {
        // Kept, so that every later answer is the same; the first of two at once stays.
        let text = told(caller, end);
        view = act(caller, Action::TellTask { task: view.id.clone(), text }).await?;
    }
    Ok(GetTaskResult::new(detailed(caller, &view)))
}

/// Takes answers to questions. No task asks its client anything yet, and unknown answers are ignored.
pub(super) async fn update(caller: &Caller, id: &str) -> Result<(), ErrorData> {
    act(caller, Action::Task(known(id)?)).await.map(drop)
}

/// Interrupts the command, once.
pub(super) async fn cancel(caller: &Caller, id: &str) -> Result<(), ErrorData> {
    act(caller, Action::CancelTask(known(id)?)).await.map(drop)
}

async fn act(caller: &Caller, action: Action) -> Result<TaskView, ErrorData> {
    match caller.server.dispatch(&caller.principal, action).await {
        Ok(Outcome::Task(view)) => Ok(*view),
        Ok(other) => Err(ErrorData::internal_error(format!("{} is no task; this is a bug", other.kind()), None)),
        Err(ActionError::NoSession { .. } | ActionError::NoCommand { .. }) => Err(unknown()),
        Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
    }
}

fn known(id: &str) -> Result<TaskId, ErrorData> {
    TaskId::parse(id).ok_or_else(unknown)
}

/// The same for a task of somebody else, for one that was never there, and for one that is forgotten.
fn unknown() -> ErrorData {
    ErrorData::invalid_params("no such task", None)
}

fn detailed(caller: &Caller, view: &TaskView) -> DetailedTask {
    let times = |updated| (view.opened_at, updated);
    let end = match &view.state {
        TaskState::Over(end) => end,
        TaskState::Removed { at, cancelled } => {
            let TaskId { session, command, .. } = &view.id;
            let why = format!("session {session} was removed, and with it the output and the end of command {command}");
            let payload = if *cancelled {
                TaskPayload::Cancelled
            } else {
                TaskPayload::Completed { result: object(refused(caller, ErrorCode::SessionNotFound, why.clone())) }
            };
            return DetailedTask::new(base(&view.id, times(*at), payload.status(), why), payload);
        }
        TaskState::Working { waited, last_line, trouble } => {
            let message = status_message(*waited, trouble.as_ref().unwrap_or(last_line));
            let status = TaskStatus::Working;
            return DetailedTask::new(base(&view.id, times(view.opened_at), status, message), TaskPayload::Working);
        }
    };
    let text = end.told.clone().unwrap_or_else(|| told(caller, end));
    let message = text.facts.trim_matches(['[', ']']).to_owned();
    let payload = match end.cancelled {
        Some(true) => TaskPayload::Cancelled,
        Some(false) | None => {
            let whole = body(caller, end, &text) + &text.facts;
            let structured = caller.structured.then(|| structured_task(end, &whole, text.screen.is_some()));
            TaskPayload::Completed { result: result(whole, structured) }
        }
    };
    DetailedTask::new(base(&view.id, times(end.at), payload.status(), message), payload)
}

fn base(id: &TaskId, (opened, updated): (SystemTime, SystemTime), status: TaskStatus, message: String) -> Task {
    Task::new(id.to_string(), status, time(opened), time(updated))
        .with_status_message(message)
        .with_poll_interval_ms(POLL_MS)
}

/// The message about a task that goes on, for a person.
fn status_message(waited: Duration, last_line: &str) -> String {
    let line: String = text::plain(last_line).chars().take(LINE_CHARS_MAX).collect();
    let waited = seconds(Duration::from_secs(waited.as_secs()));
    if line.is_empty() { waited } else { format!("{waited} · {line}") }
}

fn context(caller: &Caller, end: &TaskEnd) -> (bool, SystemTime, Option<Duration>) {
    (caller.offers(READ_TOOL), end.at, end.quiet)
}

/// The parts of the text that are kept.
fn told(caller: &Caller, end: &TaskEnd) -> TaskText {
    let before = caller.memory.note(&end.report.session);
    // Which rows are new depends on the answers before, so all are shown.
    let mut end = end.clone();
    if let Some(screen) = &mut end.report.screen {
        screen.compare(None);
    }
    let end = &end;
    let (has_read_tool, now, quiet) = context(caller, end);
    let host = &caller.host;
    let context = AnswerContext { host, shown: before.as_ref(), now, quiet, names_command: false, has_read_tool };
    let (body, facts) = text::task(end, &context);
    TaskText { from: end.from, facts, screen: end.report.screen.is_some().then_some(body) }
}

/// The output, made again from the journal, or the screen as it was.
fn body(caller: &Caller, end: &TaskEnd, text: &TaskText) -> String {
    let (has_read_tool, now, quiet) = context(caller, end);
    let context = AnswerContext { host: &caller.host, shown: None, now, quiet, names_command: false, has_read_tool };
    text.screen.clone().unwrap_or_else(|| text::task(end, &context).0)
}

fn result(text: String, structured: Option<Value>) -> JsonObject {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = structured;
    object(result)
}

fn object(result: CallToolResult) -> JsonObject {
    match serde_json::to_value(result) {
        Ok(Value::Object(result)) => result,
        _ => JsonObject::default(),
    }
}

fn time(at: SystemTime) -> String {
    jiff::Timestamp::try_from(at).unwrap_or_default().to_string()
}
