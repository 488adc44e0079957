//! `terminal`: the one-tool shell of terminal-mcp.md.

use schemars::JsonSchema;
use serde::Deserialize;

use super::arguments::{Seconds, pattern, session};
use super::{Answer, Call, Refusal, Tool, annotations, mismatch, read};
use crate::action::{Action, ClientContext, Outcome, TerminalCall};
use crate::limits::BUDGET_CHARS;
use crate::mcp::{schema, text};

pub(super) const NAME: &str = "terminal";

const DESCRIPTION: &str = "Run a bash command in a shell that stays: directory, variables, virtual environments and \
jobs persist between calls. Use it for everything that a shell can do. Answers with the output, then one line of facts \
like [exit 0]. A command that runs on answers [still running …] and is never killed by a timeout: look again with \
command \"\", answer its question with is_input, interrupt with command \"C-c\" (also C-z, C-d). Without timeout it \
answers after a silence (30 s unless set otherwise), 50 s at most. A new command while one runs is refused. Programs that ask are \
seen at once (wants input, wants a password). \
Not for several shells at once: start_terminal_session. \
Example: {\"command\": \"cd /app && npm test\", \"timeout\": 120}; wait for a server: \
{\"command\": \"npm run dev\", \"wait_for\": \"listening on\"}. \
The shell lives until it exits or reset, and 10 minutes after this client has gone; reset gives a fresh one.";

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The bash command; "" looks at what runs; exactly C-c, C-z or C-d is that key for the running program.
    command: String,
    /// command is typed at the running program, with Enter, instead of being run.
    #[serde(default)]
    is_input: bool,
    /// The longest wait in seconds, fractions allowed. It ends the wait, never the program.
    #[serde(default)]
    #[schemars(with = "Seconds")]
    timeout: Option<Seconds>,
    /// Kill the shell and what runs in it, and start a fresh one in the original directory, then run command if any.
    #[serde(default)]
    reset: bool,
    /// Answer as soon as this regular expression matches new output (or the screen of a full-screen program).
    #[serde(default)]
    wait_for: String,
    /// Another session than this client's own; leave it out.
    #[serde(default)]
    session_id: String,
}

/// The table's entry.
pub(super) fn tool() -> Tool {
    Tool {
        name: NAME,
        title: "Terminal",
        description: DESCRIPTION,
        annotations: annotations("Terminal", [false, true, false, true]),
        schema: schema::of::<Arguments>(),
        call: |call, arguments| Box::pin(run(call, read(NAME, arguments))),
    }
}

async fn run(call: &Call<'_>, arguments: Result<Arguments, Refusal>) -> Result<Answer, Refusal> {
    let arguments = arguments?;
    if arguments.reset && arguments.is_input {
        return Err(Refusal::Said(
            "reset and is_input: a fresh shell has no program to type at; give one of them".to_owned(),
        ));
    }
    let session = if arguments.session_id.is_empty() { None } else { Some(session(&arguments.session_id)?) };
    if session.is_none() && call.door.client.client.is_none() {
        return Err(Refusal::Said(
            "session_id: this connection has no shell of its own; start one with start_terminal_session".to_owned(),
        ));
    }
    let action = Action::Terminal(TerminalCall {
        session,
        command: arguments.command,
        is_input: arguments.is_input,
        timeout: arguments.timeout.map(Seconds::duration).transpose()?,
        reset: arguments.reset,
        pattern: pattern("wait_for", &arguments.wait_for)?,
        client: ClientContext::clone(&call.door.client),
        key: call.key.clone(),
        budget: BUDGET_CHARS,
    });
    match call.act(action).await? {
        Outcome::Terminal(view) => {
            let before = call.note(&view.report.session).filter(|_| view.fresh.is_none());
            Ok(text::terminal(&view, &call.telling(before.as_ref(), Some(view.soft_timeout))).into())
        }
        other => Err(mismatch(other)),
    }
}
