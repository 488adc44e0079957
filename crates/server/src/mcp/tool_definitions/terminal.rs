//! `terminal`: the one-tool shell of terminal-mcp.md.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{OnTimeout, Seconds, budget, pattern, session};
use super::coercion::flag;
use super::structured::{self, OutputAnswer};
use super::tool::{Answer, Tool, ToolCall, ToolError, annotations, mismatch, read};
use crate::mcp::command_turns::InTurn;
use crate::mcp::{schema, text};
use ptyd_core::action::{Action, ClientContext, Composite, Outcome, TerminalCall};
use ptyd_core::limits::TOTAL_TIMEOUT;

pub(super) const NAME: &str = "terminal";

const DESCRIPTION: &str = "Run a bash command in a shell that stays: directory, variables, virtual environments and \
jobs persist between calls. Returns the output and a line of facts such as [exit 0]. After a timeout, the line is \
 [still running …]: look again with command \"\", answer a question with is_input, interrupt with command \"C-c\". \
 Without timeout, it returns after a silence (30 s), 50 s at most, and at once when a program wants input or a \
 password. Calls sent together run in turn; start_terminal_session gives more \
shells. Example: {\"command\": \"npm run dev\", \"wait_for\": \"listening on\", \"timeout\": 60}. The shell ends when \
 it exits, at a reset, or 10 minutes after this client disconnects.";

/// The part of the description for clients that have the other tools.
pub(super) const MORE_SHELLS: &str = "; start_terminal_session gives more shells";

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// "" shows the running program; C-c, C-z or C-d alone is a key.
    command: String,
    /// Type command into the running program, then Enter unless a single line ends with a newline; C-x, ^X, Escape are keys.
    #[serde(default)]
    is_input: bool,
    /// Run it in the nested shell: ssh, su, docker exec -it.
    #[serde(default)]
    inside: bool,
    /// Seconds to wait at most.
    #[serde(default)]
    #[schemars(with = "Seconds")]
    timeout: Option<Seconds>,
    /// Action at the timeout.
    #[serde(default)]
    on_timeout: OnTimeout,
    /// First kill the shell and all in it; then start a fresh one.
    #[serde(default)]
    reset: bool,
    /// Return once this regex matches new output or the screen.
    #[serde(default)]
    wait_for: String,
    /// Characters.
    #[serde(default)]
    #[schemars(with = "u32")]
    max_output: Option<usize>,
    /// A session other than your own.
    #[serde(default)]
    session_id: String,
}

fn in_turn(arguments: &JsonObject) -> Option<InTurn<'_>> {
    let given = |name| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let (command, session) = (given("command"), given("session_id"));
    match flag(arguments, "is_input") {
        false if TerminalCall::is_command(command) => Some(InTurn::Command { session, timeout: TOTAL_TIMEOUT }),
        false if command.trim().is_empty() => None,
        _ => Some(InTurn::Input { session }),
    }
}

/// The table's entry.
pub(super) fn tool() -> Tool {
    Tool {
        name: NAME,
        title: "Terminal",
        description: DESCRIPTION,
        annotations: annotations([false, true, false, true]),
        schema: schema::of::<Arguments>(),
        answer: structured::schema::<OutputAnswer>(),
        in_turn,
        call: |call, arguments| Box::pin(run(call, read(NAME, arguments))),
    }
}

async fn run(call: &ToolCall<'_>, arguments: Result<Arguments, ToolError>) -> Result<Answer, ToolError> {
    let arguments = arguments?;
    if arguments.reset && arguments.is_input {
        return Err(ToolError::Said(
            "reset and is_input: a fresh shell has no program to type at; give one of them".to_owned(),
        ));
    }
    if arguments.inside && (arguments.reset || arguments.is_input) {
        let why = "inside: is for a command; omit reset and is_input";
        return Err(ToolError::Said(why.to_owned()));
    }
    let timeout = arguments.timeout.map(Seconds::duration).transpose()?;
    let time_limit = arguments.on_timeout.time_limit(timeout)?;
    if time_limit.is_some() && (arguments.is_input || !TerminalCall::is_command(&arguments.command)) {
        return Err(ToolError::Said("on_timeout: is for a command; omit it for a key and with is_input".to_owned()));
    }
    let session =
        if arguments.session_id.is_empty() { None } else { Some(session(call, &arguments.session_id).await?) };
    if session.is_none() && call.caller.client.client.is_none() {
        return Err(ToolError::Said(
            "session_id: this connection has no shell of its own; start one with start_terminal_session".to_owned(),
        ));
    }
    let action = Action::Composite(Composite::Terminal(Box::new(TerminalCall {
        session,
        command: arguments.command,
        is_input: arguments.is_input,
        is_inside: arguments.inside,
        timeout,
        time_limit,
        waited: call.waited,
        reset: arguments.reset,
        pattern: pattern(call, "wait_for", &arguments.wait_for).await?,
        client: ClientContext::clone(&call.caller.client),
        tasks: call.tasks,
        key: call.key.clone(),
        budget: budget(arguments.max_output),
    })));
    match call.act(action).await? {
        Outcome::Terminal(mut view) => {
            if let Some(task) = Answer::of_task(&view.report) {
                return Ok(task);
            }
            let before = call.note_report(&mut view.report).filter(|_| view.fresh.is_none());
            let context = call.context(&view.report.session, before.as_ref(), Some(view.soft_timeout)).await;
            let text = text::terminal(&view, &context);
            Ok(call.answer(text, |text| {
                OutputAnswer::of(&view.report, text)
                    .earlier(view.missed.iter().filter_map(|missed| missed.unread.as_ref()))
            }))
        }
        other => Err(mismatch(other)),
    }
}
