//! `list_terminal_sessions`: lists sessions.

use schemars::JsonSchema;
use serde::Deserialize;

use super::session;
use super::structured::{self, ListAnswer};
use super::tool::{Answer, Tool, ToolCall, ToolError, annotations, mismatch, read};
use crate::mcp::schema;
use ptyd_core::action::{Action, List, Outcome, SessionPage, SessionStatus};

const NAME: &str = "list_terminal_sessions";

/// Sessions in one answer at most: as much as a model reads.
const LIMIT_MAX: u32 = 200;

const DESCRIPTION: &str = "List sessions: id, state, running command, directory. Finds a lost id or running programs. \
 Ended sessions need status terminated; their output stays readable. \
Example: {\"filter\": {\"status\": \"running\"}}.";

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Selects sessions.
    #[serde(default)]
    filter: Filter,
    /// At most this many.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = LIMIT_MAX))]
    limit: u32,
    /// Skip this many.
    #[serde(default)]
    offset: u32,
}

fn fifty() -> u32 {
    50
}

/// Selects sessions.
#[derive(Debug, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Filter {
    /// "": all owners that you may see.
    #[serde(default)]
    owner: String,
    /// live: all but terminated.
    #[serde(default)]
    status: Status,
}

/// A state to list.
#[derive(Debug, Clone, Copy, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    #[default]
    Live,
    Creating,
    Running,
    Terminated,
}

/// The table's entry.
pub(super) fn tool() -> Tool {
    Tool {
        name: NAME,
        title: "List sessions",
        description: DESCRIPTION,
        annotations: annotations([true, false, true, false]),
        schema: schema::of::<Arguments>(),
        answer: structured::schema::<ListAnswer>(),
        in_turn: |_| None,
        call: |call, arguments| Box::pin(run(call, read(NAME, arguments))),
    }
}

async fn run(call: &ToolCall<'_>, arguments: Result<Arguments, ToolError>) -> Result<Answer, ToolError> {
    let arguments = arguments?;
    if !(1..=LIMIT_MAX).contains(&arguments.limit) {
        return Err(ToolError::Said(format!("limit: {} is not between 1 and {LIMIT_MAX}", arguments.limit)));
    }
    let action = Action::List(List {
        owner: Some(arguments.filter.owner).filter(|o| !o.is_empty()),
        status: match arguments.filter.status {
            Status::Live => None,
            Status::Creating => Some(SessionStatus::Creating),
            Status::Running => Some(SessionStatus::Running),
            Status::Terminated => Some(SessionStatus::Terminated),
        },
        limit: arguments.limit as usize,
        offset: arguments.offset as usize,
        ..List::default()
    });
    match call.act(action).await? {
        Outcome::Sessions(SessionPage { sessions, total, is_degraded }) => {
            let lines: String = sessions.iter().map(|s| session::line(s, &call.caller.principal.name) + "\n").collect();
            let shown = sessions.len();
            let offset = if arguments.offset == 0 { String::new() } else { format!(" · offset {}", arguments.offset) };
            let degraded =
                if is_degraded { " · those on other nodes are missing: the directory does not answer" } else { "" };
            let text = format!("{lines}[{shown} of {total} sessions{offset}{degraded}]");
            Ok(Answer::with_fields(text, &ListAnswer::of(&sessions, total, arguments.offset)))
        }
        other => Err(mismatch(other)),
    }
}
