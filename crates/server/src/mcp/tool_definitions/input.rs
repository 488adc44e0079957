//! `send_input_to_terminal`: typing at a running program, once or as a dialogue.

use std::time::{Duration, Instant};

use api::ErrorCode;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{Seconds, budget, pattern, session, typing, until};
use super::structured::{self, InputAnswer};
use super::tool::{Answer, Tool, ToolCall, ToolError, annotations, mismatch, read};
use crate::mcp::command_turns::InTurn;
use crate::mcp::{schema, text};
use ptyd_core::action::{
    Action, Composite, Dialogue, DialogueView, Input, InputBytes, Outcome, Pattern, Report, Step, Wait,
};
use ptyd_core::ids::{CommandId, SessionId};
use ptyd_core::limits::EXECUTE_TIMEOUT;

const NAME: &str = "send_input_to_terminal";

/// The longest wait for a reaction, which is over once the program asks again or ends.
const REACTION_MAX: Duration = Duration::from_secs(5);
/// The most steps of a dialogue.
const STEPS_MAX: usize = 50;

const DESCRIPTION: &str = "Type at the program that runs in a session: text with input (end_with_newline presses \
Enter), or keys by name: C-c, Enter, Escape, Up, Down*3, F1, M-x, \"<Esc>:wq<Enter>\". For prompts, REPLs, passwords \
 and full-screen programs; run commands by execute_in_terminal. Returns the output that follows, as soon as the \
program asks again or ends. steps play a dialogue: each waits for its wait_for, then types. Example: \
{\"session_id\": \"s0-…\", \"steps\": [{\"wait_for\": \"Password:\", \"input\": \"secret\\r\"}, {\"wait_for\": \"ftp> \
\", \"input\": \"ls\\r\"}]}. ptyd never records input at a password prompt.";

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The session.
    session_id: String,
    /// Typed as it is. Give input, keys or steps.
    #[serde(default)]
    input: String,
    /// Names in order.
    #[serde(default)]
    keys: Vec<String>,
    /// As a paste.
    #[serde(default)]
    #[schemars(with = "bool")]
    paste: Option<bool>,
    /// Press Enter after input.
    #[serde(default)]
    end_with_newline: bool,
    /// Return once this regex matches later output.
    #[serde(default)]
    wait_for: String,
    /// As in execute_in_terminal.
    #[serde(default)]
    until: Vec<String>,
    /// Seconds to wait at most: 5, or 30 with wait_for or steps.
    #[serde(default)]
    #[schemars(with = "Seconds")]
    timeout: Option<Seconds>,
    /// Stops at the first that does not match.
    #[serde(default)]
    steps: Vec<StepArguments>,
}

/// One step of a dialogue.
#[derive(Debug, Deserialize, serde::Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepArguments {
    // Waited for first; the tool's description says so.
    #[serde(default)]
    wait_for: String,
    /// \r is Enter.
    #[serde(default)]
    input: String,
    // Instead of text.
    #[serde(default)]
    keys: Vec<String>,
}

fn in_turn(arguments: &JsonObject) -> Option<InTurn<'_>> {
    let session = arguments.get("session_id").and_then(Value::as_str)?;
    Some(InTurn::Input { session })
}

/// The table's entry.
pub(super) fn tool() -> Tool {
    Tool {
        name: NAME,
        title: "Type at a program",
        description: DESCRIPTION,
        annotations: annotations([false, true, false, true]),
        schema: schema::of::<Arguments>(),
        answer: structured::schema::<InputAnswer>(),
        in_turn,
        call: |call, arguments| Box::pin(run(call, read(NAME, arguments))),
    }
}

async fn run(call: &ToolCall<'_>, arguments: Result<Arguments, ToolError>) -> Result<Answer, ToolError> {
    let arguments = arguments?;
    let id = session(call, &arguments.session_id).await?;
    let bytes = match (typing(&arguments.input, &arguments.keys, arguments.end_with_newline)?, arguments.paste) {
        (Some(InputBytes::Keys(_)), Some(true)) => {
            return Err(ToolError::Said("paste: works only with input".to_owned()));
        }
        (Some(InputBytes::Raw(_) | InputBytes::Paste { .. }), Some(true)) => {
            Some(InputBytes::Paste { text: arguments.input.clone(), enters: arguments.end_with_newline })
        }
        (Some(InputBytes::Paste { .. }), Some(false)) => {
            let enter = if arguments.end_with_newline { "\r" } else { "" };
            Some(InputBytes::Raw((arguments.input.clone() + enter).into_bytes()))
        }
        (bytes, _) => bytes,
    };
    let ready = pattern(call, "wait_for", &arguments.wait_for).await?;
    let timeout = arguments.timeout.map(Seconds::duration).transpose()?;
    let begun = Instant::now();
    let is_simple = ready.is_none() && arguments.until.is_empty() && arguments.steps.is_empty();
    let longest = timeout.unwrap_or(if is_simple { REACTION_MAX } else { EXECUTE_TIMEOUT });
    let wait = Wait { pattern: ready, input_wanted: true, ..Wait::at_most(longest) };
    let wait = until(call, wait, &arguments.until).await?;
    let meant_for = call.caller.memory.running(&id);
    match (bytes, arguments.steps.is_empty()) {
        (Some(bytes), true) => {
            // A reaction is waited for shortly, and no task is made of that.
            let waits = timeout.is_some() || wait.pattern.is_some() || !arguments.until.is_empty();
            let wait = if waits { call.or_as_task(wait, timeout) } else { wait };
            let mut report = type_at(call, &id, bytes, wait, meant_for).await?;
            if let Some(task) = Answer::of_task(&report) {
                return Ok(task);
            }
            let before = call.note_report(&mut report);
            let text = text::report(&report, &call.context(&report.session, before.as_ref(), None).await);
            Ok(call.answer(text, |text| InputAnswer::of(&report, text, true)))
        }
        (None, false) => {
            if arguments.steps.len() > STEPS_MAX {
                return Err(ToolError::Said(format!("steps: {} are more than {STEPS_MAX}", arguments.steps.len())));
            }
            let mut steps = Vec::new();
            for arguments in arguments.steps {
                steps.push(step(call, arguments).await?);
            }
            let deadline = begun + timeout.unwrap_or(EXECUTE_TIMEOUT);
            let words = steps.iter().map(|step| step.wait_for.clone()).collect::<Vec<_>>();
            let key = call.key.clone();
            let dialogue = Dialogue { session: id.clone(), steps, finally: wait, deadline, key, meant_for };
            let played = call.act(Action::Composite(Composite::Dialogue(Box::new(dialogue)))).await;
            match played.inspect_err(|why| note_end(call, &id, meant_for, why))? {
                Outcome::Dialogue(mut view) => {
                    let before = call.note_report(&mut view.report);
                    let context = call.context(&view.report.session, before.as_ref(), None).await;
                    let text = text::report(&view.report, &context);
                    let text = with_unmatched_step(text, &view, &words);
                    Ok(call.answer(text, |text| InputAnswer::of(&view.report, text, view.unmatched.is_none())))
                }
                other => Err(mismatch(other)),
            }
        }
        (Some(_), false) => {
            Err(ToolError::Said("input and steps: give one of them; put the input into a step".to_owned()))
        }
        (None, true) => Err(ToolError::Said(
            "input: nothing to type; give input, keys or steps (Enter alone is keys [\"Enter\"])".to_owned(),
        )),
    }
}

async fn step(call: &ToolCall<'_>, step: StepArguments) -> Result<Step, ToolError> {
    let wait_for = pattern(call, "steps.wait_for", &step.wait_for).await?;
    Ok(Step { wait_for, bytes: typing(&step.input, &step.keys, false)? })
}

/// If a step was not typed, the status line begins with it.
fn with_unmatched_step(text: String, view: &DialogueView, steps: &[Option<Pattern>]) -> String {
    let Some(i) = view.unmatched else { return text };
    let (body, facts) = text.rsplit_once('\n').map_or(("", text.as_str()), |(body, facts)| (body, facts));
    let gap = if body.is_empty() { "" } else { "\n" };
    let rest = facts.strip_prefix('[').unwrap_or(facts);
    let why = match &steps[i] {
        Some(words) if !view.is_too_late => {
            format!("did not match {}, nothing of it was typed", text::quoted(words.as_str()))
        }
        Some(_) | None => "was not typed: its program has ended".to_owned(),
    };
    format!("{body}{gap}[step {} of {} {why} · {rest}", i + 1, steps.len())
}

/// Types one input, and reports the reaction.
async fn type_at(
    call: &ToolCall<'_>,
    id: &SessionId,
    bytes: InputBytes,
    wait: Wait,
    meant_for: Option<CommandId>,
) -> Result<Report, ToolError> {
    let (session, budget, wait, key) = (id.clone(), budget(None), Some(wait), call.key.clone());
    let (is_secret, is_hidden, without_echo) = (false, false, true);
    let input = Input { session, bytes, is_secret, is_hidden, wait, key, budget, without_echo, meant_for };
    let typed = call.act(Action::Input(input)).await;
    match typed.inspect_err(|why| note_end(call, id, meant_for, why))? {
        Outcome::Report(report) => Ok(*report),
        other => Err(mismatch(other)),
    }
}

/// A refusal that tells the end of the command for which the input was meant; sent again, it is meant for the shell.
fn note_end(call: &ToolCall<'_>, id: &SessionId, meant_for: Option<CommandId>, why: &ToolError) {
    let is_too_late = matches!(why, ToolError::Refused(ErrorCode::NothingRuns, _));
    meant_for.filter(|_| is_too_late).into_iter().for_each(|ended| call.caller.memory.note_end(id, ended));
}
