//! `terminate_terminal_session`: ends a session and all of its processes.

use schemars::JsonSchema;
use serde::Deserialize;

use super::arguments::session;
use super::structured::{self, TerminateAnswer};
use super::tool::{Answer, Tool, ToolCall, ToolError, annotations, mismatch, read};
use crate::mcp::{schema, text};
use ptyd_core::action::{Action, Outcome, Terminate, signal_number};

const NAME: &str = "terminate_terminal_session";

const DESCRIPTION: &str = "End a session and every process in it: HUP, TERM, and KILL within 5 s. Its output stays \
readable. To interrupt one command send the key C-c with send_input_to_terminal. \
Example: {\"session_id\": \"s0-…\"}.";

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The session.
    session_id: String,
    /// KILL at once.
    #[serde(default)]
    force: bool,
    /// Instead of HUP, such as SIGTERM.
    #[serde(default)]
    signal: String,
}

/// The table's entry.
pub(super) fn tool() -> Tool {
    Tool {
        name: NAME,
        title: "End a session",
        description: DESCRIPTION,
        annotations: annotations([false, true, true, false]),
        schema: schema::of::<Arguments>(),
        answer: structured::schema::<TerminateAnswer>(),
        in_turn: |_| None,
        call: |call, arguments| Box::pin(run(call, read(NAME, arguments))),
    }
}

async fn run(call: &ToolCall<'_>, arguments: Result<Arguments, ToolError>) -> Result<Answer, ToolError> {
    let arguments = arguments?;
    let signo = match arguments.signal.as_str() {
        "" => None,
        name => Some(signal_number(name).ok_or_else(|| {
            ToolError::Said(format!(
                "signal: no signal {name:?}; valid: SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGKILL, or a number"
            ))
        })?),
    };
    let action = Action::Terminate(Terminate {
        session: session(call, &arguments.session_id).await?,
        force: arguments.force,
        signo,
        grace: None,
        purges: false,
    });
    match call.act(action).await? {
        Outcome::Terminated(ended) => {
            let mut facts = text::Facts::default();
            facts.add(if ended.was_over { "had ended before" } else { "terminated" });
            facts.add(format!("session {}", ended.session.id));
            facts.add(text::counted(ended.killed, "process ended", "processes ended"));
            if ended.left > 0 {
                let left = text::counted(ended.left, "process is left", "processes are left");
                facts.add(format!("{left}; call again with force"));
            }
            Ok(Answer::with_fields(facts.line(), &TerminateAnswer::of(&ended)))
        }
        other => Err(mismatch(other)),
    }
}
