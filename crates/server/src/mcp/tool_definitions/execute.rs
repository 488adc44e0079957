//! `execute_in_terminal`: a command in a named session.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{OnTimeout, Seconds, budget, pattern, session, until};
use super::structured::{self, OutputAnswer};
use super::tool::{Answer, Tool, ToolCall, ToolError, annotations, mismatch, read};
use crate::mcp::command_turns::InTurn;
use crate::mcp::{schema, text};
use ptyd_core::action::{Action, Execute, MissedEnd, Outcome, ReadMissed, Report, TargetShell, TerminalCall, Wait};
use ptyd_core::limits::EXECUTE_TIMEOUT;

pub(super) const NAME: &str = "execute_in_terminal";

const DESCRIPTION: &str = "Run a command in a session and wait for its end. For keys and answers \
use send_input_to_terminal. Returns the output, then one line of facts such as [exit 0 · command c7]; a non-zero exit \
 is a result, not an error. If the wait ends first, the line is [still running …]: wait again by get_terminal_output \
 with a timeout. \
Example: {\"session_id\": \"s0-…\", \"command\": \"cargo test\", \"timeout\": 300}.";

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// From start_terminal_session.
    session_id: String,
    /// Several lines are allowed.
    command: String,
    /// Seconds to wait at most, default 30.
    #[serde(default)]
    #[schemars(with = "Seconds")]
    timeout: Option<Seconds>,
    /// Action at the timeout.
    #[serde(default)]
    on_timeout: OnTimeout,
    /// false returns at once.
    #[serde(default = "yes")]
    wait_for_completion: bool,
    /// Return once this regex matches new output.
    #[serde(default)]
    wait_for: String,
    /// Also return on "listening", "listening:5173" (a TCP port of its processes), "file:PATH", "gone:REGEX"
    /// (off the screen), "bell", "quiet:MS", "input".
    #[serde(default)]
    until: Vec<String>,
    /// Run it in the nested shell: ssh, su, docker exec -it.
    #[serde(default)]
    inside: bool,
    /// Characters.
    #[serde(default)]
    #[schemars(with = "u32")]
    max_output: Option<usize>,
    /// A repeated key does not run the command again.
    #[serde(default)]
    idempotency_key: String,
}

fn yes() -> bool {
    true
}

fn in_turn(arguments: &JsonObject) -> Option<InTurn<'_>> {
    let given = |name| arguments.get(name).and_then(Value::as_str);
    let session = given("session_id")?;
    TerminalCall::is_command(given("command")?).then_some(InTurn::Command { session, timeout: EXECUTE_TIMEOUT })
}

/// The table's entry.
pub(super) fn tool() -> Tool {
    Tool {
        name: NAME,
        title: "Run a command in a session",
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
    if !arguments.inside && !TerminalCall::is_command(&arguments.command) && !arguments.command.trim().is_empty() {
        let (key, id) = (&arguments.command, &arguments.session_id);
        let call = format!("send_input_to_terminal {{\"session_id\":\"{id}\",\"keys\":[\"{key}\"]}}");
        return Err(ToolError::Said(format!("not run: {key} is a key; {call} presses it")));
    }
    let pattern = pattern(call, "wait_for", &arguments.wait_for).await?;
    let timeout = arguments.timeout.map(Seconds::duration).transpose()?;
    let waits = arguments.wait_for_completion || pattern.is_some() || !arguments.until.is_empty();
    if let (false, Some(approval)) = (waits, &call.caller.principal.approval_wait) {
        approval.give_up();
    }
    let wait = Wait {
        input_wanted: true,
        listens: !arguments.inside,
        pattern,
        waited: call.waited,
        ..Wait::at_most(timeout.unwrap_or(EXECUTE_TIMEOUT))
    };
    let wait = call.or_as_task(until(call, wait, &arguments.until).await?, timeout);
    let execute = Execute {
        session: session(call, &arguments.session_id).await?,
        command: arguments.command,
        shell: TargetShell::foremost(arguments.inside),
        allowed_in: None,
        wait: waits.then_some(wait),
        time_limit: arguments.on_timeout.time_limit(timeout)?,
        key: Some(arguments.idempotency_key).filter(|k| !k.is_empty()).or_else(|| call.key.clone()),
        budget: budget(arguments.max_output),
    };
    match call.act(Action::execute(execute)).await? {
        Outcome::Report(mut report) => {
            if let Some(task) = Answer::of_task(&report) {
                return Ok(task);
            }
            let missed = missed(call, &report).await?;
            let before = call.note_report(&mut report);
            let mut context = call.context(&report.session, before.as_ref(), None).await;
            context.names_command = true;
            let text = text::execution(&report, &missed, &context);
            Ok(call.answer(text, |text| {
                OutputAnswer::of(&report, text).earlier(missed.iter().filter_map(|missed| missed.unread.as_ref()))
            }))
        }
        other => Err(mismatch(other)),
    }
}

/// The ends of commands that this caller is still to be told, but for the one of this answer.
async fn missed(call: &ToolCall<'_>, report: &Report) -> Result<Vec<MissedEnd>, ToolError> {
    let session = report.session.id.clone();
    // A command that runs on is not noted: readings tell its end.
    let told = report.command.as_ref().map(|command| (session.clone(), command.id, false));
    match call.act(Action::Missed(ReadMissed { session, told, read_to: report.read_before })).await? {
        Outcome::Missed(missed) => Ok(missed),
        other => Err(mismatch(other)),
    }
}
