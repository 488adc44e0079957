//! Tasks (the extension `io.modelcontextprotocol/tasks`): the answer of a call that a client takes later. A task is a wait
//! of the sessions, which keep its record; here are its forms on the wire.

use std::time::{Duration, SystemTime};

use rmcp::model::{
    CallToolResult, ContentBlock, CreateTaskResult, DetailedTask, ErrorData, GetTaskMethod, GetTaskResult,
    InputRequests, InputResponses, JsonObject, ProtocolVersion, Task, TaskPayload, TaskStatus,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

use api::ErrorCode;

use super::caller::Caller;
use super::password_place::PasswordPlace;
use super::text::{self, AnswerContext, seconds};
use super::tool_definitions::{READ_TOOL, refused, structured_task};
use super::url_elicitation::{reply_of, secret_question};
use ptyd_core::action::{
    Action, ActionError, OpenedTask, Outcome, TaskEnd, TaskState, TaskSupport, TaskText, TaskView,
};
use ptyd_core::ids::TaskId;

/// How often a client should ask, in milliseconds.
pub(super) const POLL_MS: u64 = 1_000;
/// Characters of the output's last line that people are shown.
const LINE_CHARS_MAX: usize = 100;
/// Replies in one message: a task asks one question at a time.
const REPLIES_MAX: usize = 8;

/// Whether this request's answer may be a task: the revision has them, and this very request declares them.
pub(super) fn are_declared(context: &RequestContext<RoleServer>) -> bool {
    has_tasks(context) && context.client_capabilities().is_some_and(|client| client.supports_tasks())
}

/// The declarations of one request about tasks.
pub(super) fn support(context: &RequestContext<RoleServer>) -> TaskSupport {
    match sends_to_pages(context) {
        _ if !are_declared(context) => TaskSupport::None,
        true => TaskSupport::TasksThatAsk,
        false => TaskSupport::Tasks,
    }
}

/// Whether the client sends its person to a page.
pub(super) fn sends_to_pages(context: &RequestContext<RoleServer>) -> bool {
    let elicitation = context.client_capabilities().and_then(|client| client.elicitation);
    elicitation.is_some_and(|ways| ways.url.is_some())
}

/// Whether this revision has tasks; it has no requests of the server's own.
pub(super) fn has_tasks(context: &RequestContext<RoleServer>) -> bool {
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
        let text = told(caller, end).await;
        view = act(caller, Action::TellTask { task: view.id.clone(), text }).await?;
    }
    Ok(GetTaskResult::new(detailed(caller, &view).await))
}

/// Takes replies to questions; those to questions that are over are ignored.
pub(super) async fn update(caller: &Caller, id: &str, replies: &InputResponses) -> Result<(), ErrorData> {
    let task = known(id)?;
    let questions = replies.iter().filter_map(|(key, reply)| Some((number(key)?, reply_of(reply))));
    let mut is_known = false;
    for (key, reply) in questions.take(REPLIES_MAX) {
        act(caller, Action::AnswerTask { task: task.clone(), key, reply }).await?;
        is_known = true;
    }
    if is_known { Ok(()) } else { act(caller, Action::Task(task)).await.map(drop) }
}

/// The key of a question.
fn key(number: u32) -> String {
    format!("p{number}")
}

fn number(key: &str) -> Option<u32> {
    key.strip_prefix('p')?.parse().ok()
}

/// Interrupts the command, once.
pub(super) async fn cancel(caller: &Caller, id: &str) -> Result<(), ErrorData> {
    act(caller, Action::CancelTask(known(id)?)).await.map(drop)
}

async fn act(caller: &Caller, action: Action) -> Result<TaskView, ErrorData> {
    match caller.server.dispatch(&caller.principal, action).await {
        Ok(Outcome::Task(view)) => Ok(*view),
        Ok(other) => Err(ErrorData::internal_error(format!("{} is not a task; this is a bug", other.kind()), None)),
        Err(ActionError::NoSession { .. } | ActionError::NoCommand { .. }) => Err(unknown()),
        Err(error @ ActionError::OtherNode { .. }) => Err(on_other_node(&error)),
        Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
    }
}

/// The task is known to another server only.
pub(super) fn on_other_node(error: &ActionError) -> ErrorData {
    ErrorData::invalid_params(error.to_string(), None)
}

fn known(id: &str) -> Result<TaskId, ErrorData> {
    TaskId::parse(id).ok_or_else(unknown)
}

/// The same for a task of somebody else, for one that was never there, and for one that is forgotten.
pub(super) fn unknown() -> ErrorData {
    ErrorData::invalid_params("no such task", None)
}

async fn detailed(caller: &Caller, view: &TaskView) -> DetailedTask {
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
        TaskState::InputRequired { key: number, request, waited } => {
            let message = status_message(*waited, "wants a password");
            let input_requests = InputRequests::from([(key(*number), secret_question(caller, request))]);
            let payload = TaskPayload::InputRequired { input_requests };
            return DetailedTask::new(base(&view.id, times(view.opened_at), payload.status(), message), payload);
        }
        TaskState::Working { waited, last_line, trouble } => {
            let message = status_message(*waited, trouble.as_deref().unwrap_or(last_line));
            let status = TaskStatus::Working;
            return DetailedTask::new(base(&view.id, times(view.opened_at), status, message), TaskPayload::Working);
        }
    };
    let text = match &end.told {
        Some(text) => text.clone(),
        None => told(caller, end).await,
    };
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
pub(super) fn status_message(waited: Duration, last_line: &str) -> String {
    let line: String = text::plain(last_line).chars().take(LINE_CHARS_MAX).collect();
    let waited = seconds(Duration::from_secs(waited.as_secs()));
    if line.is_empty() { waited } else { format!("{waited} · {line}") }
}

fn context(caller: &Caller, end: &TaskEnd) -> (bool, SystemTime, Option<Duration>) {
    (caller.offers(READ_TOOL), end.at, end.quiet)
}

/// The parts of the text that are kept.
async fn told(caller: &Caller, end: &TaskEnd) -> TaskText {
    let before = caller.memory.note(&end.report.session);
    let password = match end.person {
        // A person was sent there.
        Some(_) => PasswordPlace::Told,
        None => caller.password_place(&end.report.session).await,
    };
    // The answers before decide which rows are new, so all are shown.
    let mut end = end.clone();
    if let Some(screen) = &mut end.report.screen {
        screen.compare(None);
    }
    let end = &end;
    let (has_read_tool, now, quiet) = context(caller, end);
    let host = &caller.host;
    let shown = before.as_ref();
    let context = AnswerContext { host, shown, now, quiet, names_command: false, has_read_tool, password };
    let (body, facts) = text::task(end, &context);
    TaskText { from: end.from, facts, screen: end.report.screen.is_some().then_some(body) }
}

/// The output, made again from the journal, or the screen as it was.
fn body(caller: &Caller, end: &TaskEnd, text: &TaskText) -> String {
    let (has_read_tool, now, quiet) = context(caller, end);
    let (host, password) = (&caller.host, PasswordPlace::Told);
    let context = AnswerContext { host, shown: None, now, quiet, names_command: false, has_read_tool, password };
    text.screen.clone().unwrap_or_else(|| text::task(end, &context).0)
}

fn result(text: String, structured: Option<Value>) -> JsonObject {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = structured;
    object(result)
}

pub(super) fn object(result: CallToolResult) -> JsonObject {
    match serde_json::to_value(result) {
        Ok(Value::Object(result)) => result,
        _ => JsonObject::default(),
    }
}

pub(super) fn time(at: SystemTime) -> String {
    jiff::Timestamp::try_from(at).unwrap_or_default().to_string()
}
