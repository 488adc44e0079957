//! `get_terminal_output`: reads output of one session or several, after a wait.

use schemars::JsonSchema;
use serde::Deserialize;

use super::arguments::{Seconds, pattern, session, until};
use super::reading::{Awaited, Form, Reading, ReadingRequest};
use super::several_sessions::SeveralSessions;
use super::structured::{self, OutputAnswer};
use super::tool::{Answer, Tool, ToolCall, ToolError, annotations, mismatch, read};
use crate::mcp::schema;
use ptyd_core::action::{Action, Composite, Outcome, Wait};
use ptyd_core::limits::EXECUTE_TIMEOUT;

pub(in crate::mcp) const NAME: &str = "get_terminal_output";

const DESCRIPTION: &str = "Read a session's output again or further; a timeout loses nothing. Without since or \
 command_id: the newest output. since \"last\": output since your last read; \"o:1234\": continue after an answer with \
 next o:1234. timeout first waits for the running command's end (or wait_for): do not poll. Ended sessions work too. Example: {\"session_id\": \"s0-…\", \
\"since\": \"last\", \"wait_for\": \"ready in\", \"timeout\": 60}.";

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The session.
    session_id: String,
    /// "last", "o:1234" or an RFC 3339 time.
    #[serde(default)]
    since: String,
    /// At most this many lines or matches: with since the next, else the newest. 0: all lines, or 100 matches.
    #[serde(default)]
    max_lines: u32,
    /// Only the output of this command, such as "c7".
    #[serde(default)]
    command_id: String,
    /// screen: as it is now; raw: every byte, escaped.
    #[serde(default)]
    view: Form,
    /// Only lines that match this regex, with their numbers.
    #[serde(default)]
    search: String,
    /// First wait until this regex matches.
    #[serde(default)]
    wait_for: String,
    /// As in execute_in_terminal.
    #[serde(default)]
    until: Vec<String>,
    /// Seconds to wait at most.
    #[serde(default)]
    #[schemars(with = "Seconds")]
    timeout: Option<Seconds>,
    /// Also wait in these; returns when the first wait ends.
    #[serde(default)]
    other_sessions: Vec<String>,
    /// Wait until all have ended.
    #[serde(default)]
    wait_for_all: bool,
}

/// The table's entry.
pub(super) fn tool() -> Tool {
    Tool {
        name: NAME,
        title: "Read output",
        description: DESCRIPTION,
        annotations: annotations([true, false, true, false]),
        schema: schema::of::<Arguments>(),
        answer: structured::with_others(structured::schema::<OutputAnswer>()),
        in_turn: |_| None,
        call: |call, arguments| Box::pin(run(call, read(NAME, arguments))),
    }
}

async fn run(call: &ToolCall<'_>, arguments: Result<Arguments, ToolError>) -> Result<Answer, ToolError> {
    let arguments = arguments?;
    let id = session(call, &arguments.session_id).await?;
    let ready = pattern(call, "wait_for", &arguments.wait_for).await?;
    let timeout = arguments.timeout.map(Seconds::duration).transpose()?;
    let waits = ready.is_some() || timeout.is_some() || !arguments.until.is_empty();
    let Arguments { since, command_id, search, view, max_lines, .. } = &arguments;
    let (view, max_lines) = (*view, *max_lines);
    let reading = Reading::of(call, ReadingRequest { since, command_id, search, view, max_lines }).await?;
    let request = Wait { input_wanted: true, pattern: ready, ..Wait::at_most(timeout.unwrap_or(EXECUTE_TIMEOUT)) };
    let mut wait = until(call, request, &arguments.until).await?;
    if !arguments.other_sessions.is_empty() {
        let mut sessions = vec![id];
        for other in &arguments.other_sessions {
            sessions.push(session(call, other).await?);
        }
        let has_condition = !arguments.wait_for.is_empty() || !arguments.until.is_empty();
        return SeveralSessions { sessions, wait, has_condition, all: arguments.wait_for_all }
            .read(call, reading)
            .await;
    }
    if !waits {
        return reading.answer(call, &id, Awaited::default()).await;
    }
    // The result of a task is the output since the caller's last read, as text.
    if reading.is_plain() {
        wait = call.or_as_task(wait, timeout);
    }
    match call.act(Action::Composite(Composite::AwaitOutput(Box::new(reading.after(id.clone(), wait))))).await? {
        Outcome::Awaited(awaited) => match awaited.report.as_deref().and_then(Answer::of_task) {
            Some(task) => Ok(task),
            None => reading.answer(call, &id, Awaited::from(*awaited)).await,
        },
        other => Err(mismatch(other)),
    }
}
