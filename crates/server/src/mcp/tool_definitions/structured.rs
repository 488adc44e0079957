//! The answers for programs (`ptyd mcp --structured`), by the names of terminal-management.md §5: beside the same text as ever.
//!
//! Everything is from the views of which that text is made. The text marks repeated lines, characters that nobody sees and
//! what it leaves out; the output here is what was printed.

use api::{Connection, Dimensions, ErrorCode};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::session;
use crate::mcp::schema;
use ptyd_core::action::{
    CommandStatus, CommandView, EndedBy, Report, SessionStatus, SessionView, TaskEnd, TerminatedView, TextView,
};

/// The output of a session, and the command that it is of.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OutputAnswer {
    /// The session.
    session_id: String,
    /// The command to which the call refers; otherwise the running command, or the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    command_id: Option<String>,
    /// The state of the command. failed: it did not run, or it is unknown whether it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("enum" = ["running", "completed", "failed", "terminated"]))]
    status: Option<&'static str>,
    /// Its exit code, once the shell has reported one.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// The exit code of the last line that was typed at the prompt, if the wait ended with it and the shell reported the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_exit_code: Option<i32>,
    /// Why the command failed or has no exit code, or why ptyd did not perform the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The command's output as printed, the rows of the screen, or the matching lines.
    output: String,
    /// The range omitted from a long output.
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<OmittedOutput>,
    /// Unread output of commands that have ended meanwhile, and of background jobs.
    #[serde(skip_serializing_if = "String::is_empty")]
    earlier_output: String,
    /// The position after the output: pass it as since to get_terminal_output.
    marker: String,
    /// Why the wait ended, if the call waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("enum" = [
        "accepted", "ended", "matched", "listens", "input_wanted", "stopped", "quiet", "timed_out", "exited",
    ]))]
    ended_by: Option<EndedBy>,
    /// The state of the session.
    #[schemars(extend("enum" = ["creating", "running", "terminated"]))]
    session_status: &'static str,
    /// The state of the session's foreground, while it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("enum" = [
        "idle", "running", "input_wanted", "password_wanted", "fullscreen", "stopped",
    ]))]
    foreground: Option<&'static str>,
    /// The text's line of facts.
    facts: String,
}

/// A range that an output leaves out of its middle.
#[derive(Debug, Serialize, JsonSchema)]
struct OmittedOutput {
    /// The number of characters of output before the range.
    after: usize,
    /// The number of bytes in the range.
    bytes: u64,
    /// The position where the range begins: pass it as since to get_terminal_output.
    since: String,
}

impl OutputAnswer {
    /// The answer to a command, an input or a wait, with its text.
    pub fn of(report: &Report, text: &str) -> Self {
        let output = &report.output;
        let answer = Self::read(&report.session, text, output.to);
        let answer = if report.screen.is_some() { answer } else { answer.printed(output) };
        let background = report.background.as_deref();
        answer.earlier(background).about(report.command.as_ref()).after(Some(report.ended_by)).line(report.line_exit)
    }

    /// The answer to a reading that ends at this position: the lines of its text but the last.
    pub fn read(session: &SessionView, text: &str, to: u64) -> Self {
        let (output, facts) = text.split_at(text.rfind('\n').map_or(0, |last| last + 1));
        Self {
            session_id: session.id.to_string(),
            command_id: session.current_command.map(|id| id.to_string()),
            status: session.current_command.map(|_| "running"),
            exit_code: None,
            line_exit_code: None,
            error: None,
            output: output.to_owned(),
            omitted: None,
            earlier_output: String::new(),
            marker: format!("o:{to}"),
            ended_by: None,
            session_status: session::status(session.status),
            foreground: (session.status != SessionStatus::Terminated).then(|| session.foreground.name()),
            facts: facts.to_owned(),
        }
    }

    /// The state of a session whose output the caller reads later.
    pub fn unread(session: &SessionView, text: &str) -> Self {
        Self { marker: "last".to_owned(), ..Self::read(session, text, session.end_offset) }
    }

    /// The same with output as it was printed.
    pub fn printed(self, text: &TextView) -> Self {
        let omitted = text.omitted.as_ref().map(|omitted| OmittedOutput {
            after: text.head.chars().count(),
            bytes: omitted.bytes(),
            since: format!("o:{}", omitted.kept().start),
        });
        Self { output: format!("{}{}", text.head, text.tail), omitted, ..self }
    }

    /// The same with these bytes of output, made visible.
    pub fn visible(self, output: String) -> Self {
        Self { output, ..self }
    }

    /// The same with output that came before.
    pub fn earlier<'v>(mut self, texts: impl IntoIterator<Item = &'v TextView>) -> Self {
        texts.into_iter().for_each(|text| self.earlier_output.extend([&*text.head, &text.tail]));
        self
    }

    /// The same with a command.
    pub fn about(self, command: Option<&CommandView>) -> Self {
        let Some(command) = command else { return self };
        let status = match command.status {
            CommandStatus::Running => "running",
            CommandStatus::Completed => "completed",
            CommandStatus::Failed => "failed",
            CommandStatus::Terminated => "terminated",
        };
        let (exit_code, error) = (command.exit_code, command.error.clone());
        Self { command_id: Some(command.id.to_string()), status: Some(status), exit_code, error, ..self }
    }

    /// The same with the exit code of the last typed line.
    pub fn line(self, line_exit_code: Option<i32>) -> Self {
        Self { line_exit_code, ..self }
    }

    /// The same with the end of a wait.
    pub fn after(self, ended_by: Option<EndedBy>) -> Self {
        Self { ended_by, ..self }
    }
}

/// The result of a task, the same each time it is asked for: of the session it has the state at the end of the wait.
pub(in crate::mcp) fn of_task(end: &TaskEnd, text: &str, has_screen: bool) -> Value {
    let report = &end.report;
    let status = match report.ended_by {
        EndedBy::Exited => SessionStatus::Terminated,
        _ => SessionStatus::Running,
    };
    let session = SessionView { status, ..report.session.clone() };
    let answer = OutputAnswer::read(&session, text, report.output.to);
    let is_told_before = report.output.head.is_empty() && report.output.tail.is_empty();
    let answer = if has_screen || is_told_before { answer } else { answer.printed(&report.output) };
    value(&answer.about(report.command.as_ref()).after(Some(report.ended_by)))
}

/// The input that was typed, and the reaction to it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct InputAnswer {
    /// True if ptyd typed everything; false if a step of a dialogue did not match.
    success: bool,
    #[serde(flatten)]
    reaction: OutputAnswer,
}

impl InputAnswer {
    /// The answer to an input or a dialogue, with its text.
    pub fn of(report: &Report, text: &str, success: bool) -> Self {
        Self { success, reaction: OutputAnswer::of(report, text) }
    }
}

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionAnswer {
    /// Its id.
    session_id: String,
    /// Its state.
    #[schemars(extend("enum" = ["creating", "running", "terminated"]))]
    status: &'static str,
    /// The shell's name.
    shell: String,
    /// The shell's directory.
    cwd: String,
    /// The session's owner.
    owner: String,
    /// When it was started; RFC 3339.
    created_at: String,
    /// The last input, command or output; RFC 3339.
    last_activity: String,
    /// The size in cells.
    dimensions: Dimensions,
    /// Its name, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The shell's process, while it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// The state of its foreground, while it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("enum" = [
        "idle", "running", "input_wanted", "password_wanted", "fullscreen", "stopped",
    ]))]
    foreground: Option<&'static str>,
    /// The running command.
    #[serde(skip_serializing_if = "Option::is_none")]
    command_id: Option<String>,
    /// The beginning of its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The profile with which it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    /// The shell's exit code, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
}

impl SessionAnswer {
    fn of(view: &SessionView) -> Self {
        Self {
            session_id: view.id.to_string(),
            status: session::status(view.status),
            shell: view.shell.clone(),
            cwd: view.cwd.to_string_lossy().into_owned(),
            owner: view.owner.clone(),
            created_at: session::time(view.created_at),
            last_activity: session::time(view.last_activity),
            dimensions: Dimensions { cols: view.cols, rows: view.rows },
            name: view.name.clone(),
            pid: view.pid,
            foreground: (view.status != SessionStatus::Terminated).then(|| view.foreground.name()),
            command_id: view.current_command.map(|id| id.to_string()),
            command: session::command_text(view),
            profile: view.profile.clone(),
            exit_code: view.exit.as_ref().and_then(|exit| exit.code),
        }
    }
}

/// A session that was started.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StartAnswer {
    #[serde(flatten)]
    session: SessionAnswer,
    /// The addresses of its endpoints, for a client with a token.
    connection: Connection,
    /// The text's line of facts.
    facts: String,
}

impl StartAnswer {
    /// The answer about a session of the server at this address.
    pub fn of(view: &SessionView, base_url: &str, facts: &str) -> Self {
        let (session, connection) = (SessionAnswer::of(view), Connection::of(base_url, view.id.as_str()));
        Self { session, connection, facts: facts.to_owned() }
    }
}

/// Some sessions.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ListAnswer {
    /// The sessions, the oldest first.
    sessions: Vec<SessionAnswer>,
    /// The number of matching sessions in all.
    total: usize,
    /// The number of skipped sessions.
    offset: u32,
}

impl ListAnswer {
    pub fn of(sessions: &[SessionView], total: usize, offset: u32) -> Self {
        Self { sessions: sessions.iter().map(SessionAnswer::of).collect(), total, offset }
    }
}

/// A new size.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ResizeAnswer {
    /// The session.
    session_id: String,
    /// True: the terminal has this size.
    success: bool,
    /// The size in cells.
    dimensions: Dimensions,
}

impl ResizeAnswer {
    pub fn of(view: &SessionView) -> Self {
        let dimensions = Dimensions { cols: view.cols, rows: view.rows };
        Self { session_id: view.id.to_string(), success: true, dimensions }
    }
}

/// The end of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TerminateAnswer {
    /// The session.
    session_id: String,
    /// Its state.
    #[schemars(extend("enum" = ["creating", "running", "terminated"]))]
    status: &'static str,
    /// The number of processes that ptyd ended.
    killed: u64,
    /// The number of processes that ptyd could not end.
    left: u64,
    /// True if the session had already ended.
    was_over: bool,
}

impl TerminateAnswer {
    pub fn of(ended: &TerminatedView) -> Self {
        let TerminatedView { session, killed, left, was_over, .. } = ended;
        let session_id = session.id.to_string();
        Self { session_id, status: "terminated", killed: *killed, left: *left, was_over: *was_over }
    }
}

/// Why a call was not performed.
pub(in crate::mcp) fn error(code: ErrorCode, why: &str) -> Value {
    json!({ "error": why, "error_code": code.as_str() })
}

/// The same answer with this line of facts.
pub(super) fn with_facts(mut answer: Value, facts: &str) -> Value {
    answer["facts"] = facts.into();
    answer
}

/// The JSON of an answer.
pub(super) fn value(answer: &impl Serialize) -> Value {
    serde_json::to_value(answer).expect("invariant: an answer is plain data with names")
}

/// The same schema, with the answers of other sessions.
pub(super) fn with_others(mut schema: JsonObject) -> JsonObject {
    let of_one = schema.get("properties").cloned().unwrap_or_default();
    let items = json!({ "type": "object", "properties": of_one });
    let others =
        json!({ "type": "array", "items": items, "description": "The answers for other_sessions, in the same form." });
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert("others".to_owned(), others);
    }
    schema
}

/// The first of these answers, with the others in it.
pub(super) fn with_other_answers(mut answers: impl Iterator<Item = Value>) -> Option<Value> {
    let mut first = answers.next()?;
    first["others"] = answers.collect();
    Some(first)
}

/// The schema of a tool's answers: the fields of one, or why there is none.
pub(super) fn schema<T: JsonSchema>() -> JsonObject {
    let mut schema = schema::of_answer::<T>();
    let required = schema.remove("required");
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let text = |description| json!({ "type": "string", "description": description });
        let code = text("The error's code, as in REST, such as session_not_found.");
        properties.entry("error").or_insert_with(|| text("Why ptyd did not perform the call."));
        properties.insert("error_code".to_owned(), code);
    }
    schema.insert("if".to_owned(), json!({ "required": ["error_code"] }));
    schema.insert("then".to_owned(), json!({ "required": ["error"] }));
    schema.insert("else".to_owned(), json!({ "required": required }));
    schema
}
