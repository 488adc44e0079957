//! One tool, a call of it, and its answer.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api::ErrorCode;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::argument_aliases::unknown;
use super::coercion::coerce;
use super::structured;
use crate::http::problem::ProblemResponse;
use crate::mcp::caller::Caller;
use crate::mcp::command_turns::{InTurn, NoTurn};
use crate::mcp::dispatch_port::Boxed;
use crate::mcp::reported_state::ReportedState;
use crate::mcp::schema;
use crate::mcp::text::AnswerContext;
use ptyd_core::action::{
    Action, ActionError, OpenedTask, Outcome, PatternShare, Report, SessionView, TaskNote, TaskSupport, Wait,
};

/// A longer value, in bytes of JSON, is not repeated in the error about it.
const VALUE_SHOWN_MAX: usize = 40;

/// One tool.
pub(in crate::mcp) struct Tool {
    /// Its name in the requirements.
    pub name: &'static str,
    /// Its title for people.
    pub title: &'static str,
    /// Its description for the model: when to use it, when not, an example, and lifetimes.
    pub description: &'static str,
    /// The hints by which hosts decide on approval; all four are set.
    pub annotations: ToolAnnotations,
    /// The schema of its arguments.
    pub schema: JsonObject,
    /// The schema of its answers for clients that request structured ones.
    pub answer: JsonObject,
    /// How a call of it takes part in a session; `None` for a call that neither runs a command nor types.
    pub in_turn: fn(&JsonObject) -> Option<InTurn<'_>>,
    /// Performs it.
    pub call: for<'a> fn(&'a ToolCall<'a>, JsonObject) -> Boxed<'a, Result<Answer, ToolError>>,
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The answer of a tool.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct Answer {
    /// The text for the model.
    pub text: String,
    /// The same facts for programs; beside output only on request, because clients then show the model nothing else.
    pub structured: Option<Value>,
    /// The caller gets the answer later.
    pub task: Option<OpenedTask>,
}

impl Answer {
    /// The answer of a tool that gives no output: the fields are for every client.
    pub fn with_fields(text: String, fields: &impl Serialize) -> Self {
        Self { text, structured: Some(structured::value(fields)), task: None }
    }

    /// The answer that comes later, if this report is of a wait that goes on.
    pub fn of_task(report: &Report) -> Option<Self> {
        let Some(TaskNote::Opened(task)) = &report.task else { return None };
        Some(Self { text: String::new(), structured: None, task: Some(task.clone()) })
    }
}

/// Why a call was not performed; the model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mcp) enum ToolError {
    /// An argument is wrong: how, and the call to make instead.
    Said(String),
    /// The reason, with its code.
    Refused(ErrorCode, String),
    /// The server is about to stop; a shim repeats the request at the next one.
    Restarting,
}

impl ToolError {
    /// The reason in words.
    pub fn why(&self) -> &str {
        match self {
            Self::Said(why) | Self::Refused(_, why) => why,
            Self::Restarting => "the server restarts",
        }
    }
}

impl From<ActionError> for ToolError {
    fn from(error: ActionError) -> Self {
        let why = match &error {
            ActionError::Restarting => return Self::Restarting,
            // Required: an unknown handle is reported as such, with how long one lives.
            ActionError::NoSession { .. } => format!("{error}; ptyd removes a session some time after its end"),
            ActionError::NoCommand { session, id } => {
                format!("no command {id} in session {session}; omit command_id for the newest output of the session")
            }
            ActionError::OtherNode { .. }
            | ActionError::Invalid { .. }
            | ActionError::Busy { .. }
            | ActionError::NotReady { .. }
            | ActionError::NothingRuns { .. }
            | ActionError::InputTooLate { .. }
            | ActionError::Ended { .. }
            | ActionError::Alive { .. }
            | ActionError::Stalled { .. }
            | ActionError::WouldEcho { .. }
            | ActionError::Driven { .. }
            | ActionError::SecretRefused(_)
            | ActionError::Denied { .. }
            | ActionError::PolicyDenied(_)
            | ActionError::ApprovalNeeded(_)
            | ActionError::AlreadyDecided { .. }
            | ActionError::ShutOut
            | ActionError::NoToken { .. }
            | ActionError::Limit { .. }
            | ActionError::KeyReused { .. }
            | ActionError::NameTaken { .. }
            | ActionError::Start { .. }
            | ActionError::Unreachable { .. }
            | ActionError::Exhausted { .. }
            | ActionError::Removing { .. }
            | ActionError::NotRecorded { .. }
            | ActionError::Draining
            | ActionError::Internal { .. } => error.to_string(),
        };
        Self::Refused(ProblemResponse::from(error).code, why)
    }
}

impl From<NoTurn> for ToolError {
    fn from(why: NoTurn) -> Self {
        let (code, why) = match why {
            NoTurn::Full => (
                ErrorCode::LimitReached,
                "not run: too many commands of this client are waiting; send it again when they have returned",
            ),
            NoTurn::TimedOut => (
                ErrorCode::SessionBusy,
                "not run: an earlier command of this client in the session was not answered within this call's timeout; look at \
                 that one first, or give a longer timeout",
            ),
        };
        Self::Refused(code, why.to_owned())
    }
}

impl From<String> for ToolError {
    fn from(why: String) -> Self {
        Self::Said(why)
    }
}

/// One call: its caller, and the key that identifies it when it is sent again.
#[derive(Debug)]
pub(in crate::mcp) struct ToolCall<'a> {
    pub caller: &'a Caller,
    /// The shim's number of this request, which stays the same when the request is sent again after a crash.
    pub key: Option<String>,
    /// How long it has waited for its turn.
    pub waited: Duration,
    /// Whether the caller takes the answer of a long wait later.
    pub tasks: TaskSupport,
    /// Whether the caller has the tool that reads output.
    pub has_read_tool: bool,
}

impl ToolCall<'_> {
    /// Performs one action.
    pub async fn act(&self, action: Action) -> Result<Outcome, ToolError> {
        Ok(self.caller.server.dispatch(&self.caller.principal, action).await?)
    }

    /// The answer of this text, with the structured one if the caller requests it.
    pub fn answer<T: Serialize>(&self, text: String, requested: impl FnOnce(&str) -> T) -> Answer {
        let structured = self.caller.structured.then(|| structured::value(&requested(&text)));
        Answer { text, structured, task: None }
    }

    /// The wait, which becomes a task if the caller takes one.
    pub fn or_as_task(&self, wait: Wait, timeout: Option<Duration>) -> Wait {
        wait.or_as_task(timeout.is_some(), self.tasks)
    }

    /// The caller's share for patterns.
    pub fn patterns(&self) -> Arc<PatternShare> {
        self.caller.server.patterns(&self.caller.principal)
    }

    /// The context of an answer about a session; `shown` is the state reported before, and without it everything is
    /// reported.
    pub async fn context<'t>(
        &'t self,
        session: &SessionView,
        shown: Option<&'t ReportedState>,
        quiet: Option<Duration>,
    ) -> AnswerContext<'t> {
        AnswerContext {
            password: self.caller.password_place(session).await,
            host: &self.caller.host,
            shown,
            now: SystemTime::now(),
            quiet,
            names_command: false,
            has_read_tool: self.has_read_tool,
        }
    }

    /// The state of a session reported before; from now on it is that of `session`.
    pub fn note(&self, session: &SessionView) -> Option<ReportedState> {
        let before = self.caller.memory.note(session);
        if let Some(delivery) = &self.caller.principal.delivery {
            let (memory, id) = (Arc::clone(&self.caller.memory), session.id.clone());
            delivery.or_undo(move || memory.forget(&id));
        }
        before
    }

    /// The same for a report, whose screen is compared with the one that the last answer has shown.
    pub fn note_report(&self, report: &mut Report) -> Option<ReportedState> {
        let before = self.note(&report.session);
        if let Some(screen) = &mut report.screen {
            self.caller.memory.note_screen(&report.session.id, screen);
        }
        before
    }
}

/// Parses the arguments; an error says what is wrong and what is valid.
pub(super) fn read<T: DeserializeOwned + JsonSchema>(
    tool: &'static str,
    mut arguments: JsonObject,
) -> Result<T, ToolError> {
    // Models write null for arguments that they leave out, also within one; a variable without a value is another thing.
    arguments.retain(|_, value| !value.is_null());
    for (_, value) in arguments.iter_mut().filter(|(name, _)| *name != "env") {
        if let Some(fields) = value.as_object_mut() {
            fields.retain(|_, field| !field.is_null());
        }
    }
    let mut arguments = Value::Object(arguments);
    if let Ok(read) = T::deserialize(&arguments) {
        return Ok(read);
    }
    let schema = schema::of::<T>();
    if let (Some(Value::Object(properties)), Value::Object(given)) = (schema.get("properties"), &arguments)
        && let Some(why) = unknown(tool, properties, given)
    {
        return Err(ToolError::Said(why));
    }
    coerce(&schema, &mut arguments);
    serde_path_to_error::deserialize(&arguments).map_err(|error| {
        ToolError::Said(
            missing(&schema, &arguments)
                .or_else(|| misfit(&schema, &arguments))
                .map_or_else(|| format!("{tool}: {}: {}", error.path(), error.inner()), |why| format!("{tool}: {why}")),
        )
    })
}

/// The first argument that the tool requires and the call omits.
fn missing(schema: &JsonObject, arguments: &Value) -> Option<String> {
    let mut required = schema.get("required")?.as_array()?.iter().filter_map(Value::as_str);
    let name = required.find(|name| arguments.get(name).is_none())?;
    Some(format!("{name} is required, {}", with_article(schema["properties"][name]["type"].as_str()?)))
}

/// The first argument of another JSON type than the tool's.
fn misfit(schema: &JsonObject, arguments: &Value) -> Option<String> {
    let fits = |kind: &str, value: &Value| match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" | "integer" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    arguments.as_object()?.iter().find_map(|(name, value)| {
        let kind = schema["properties"][name]["type"].as_str().filter(|kind| !fits(kind, value))?;
        let value = value.to_string();
        let shown = if value.len() > VALUE_SHOWN_MAX { "this value" } else { &value };
        Some(format!("{name} must be {}, not {shown}", with_article(kind)))
    })
}

/// A JSON type as a noun.
fn with_article(kind: &str) -> String {
    format!("{} {kind}", if kind.starts_with(['a', 'i', 'o']) { "an" } else { "a" })
}

/// An outcome of another kind than the action promises.
pub(super) fn mismatch(_: Outcome) -> ToolError {
    let why = "internal error: the answer does not belong to the request; this is a bug in ptyd";
    ToolError::Refused(ErrorCode::Internal, why.to_owned())
}

/// All four annotations in one line: read-only, destructive, idempotent, open world. The title is the tool's own.
pub(super) fn annotations([read_only, destructive, idempotent, open_world]: [bool; 4]) -> ToolAnnotations {
    ToolAnnotations::from_raw(None, Some(read_only), Some(destructive), Some(idempotent), Some(open_world))
}

/// The error that the model reads.
pub(in crate::mcp) fn refused(caller: &Caller, code: ErrorCode, why: String) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(&why)]);
    result.structured_content = caller.structured.then(|| structured::error(code, &why));
    result
}
