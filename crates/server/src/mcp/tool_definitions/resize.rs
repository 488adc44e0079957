//! `resize_terminal`: changes a terminal's size.

use schemars::JsonSchema;
use serde::Deserialize;

use super::arguments::session;
use super::structured::{self, ResizeAnswer};
use super::tool::{Answer, Tool, ToolCall, ToolError, annotations, mismatch, read};
use crate::mcp::schema;
use ptyd_core::action::{Action, Outcome};
use ptyd_core::limits::{COLS_MAX, ROWS_MAX};

const NAME: &str = "resize_terminal";

const DESCRIPTION: &str = "Change the size of a session's terminal; the program is notified. Only for full-screen \
 programs and wide tables: the width does not cut plain output. Example: {\"session_id\": \"s0-…\", \
\"cols\": 200, \"rows\": 50}.";

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The session.
    session_id: String,
    /// Columns.
    #[schemars(range(min = 1, max = COLS_MAX))]
    cols: u32,
    /// Rows.
    #[schemars(range(min = 1, max = ROWS_MAX))]
    rows: u32,
}

/// The table's entry.
pub(super) fn tool() -> Tool {
    Tool {
        name: NAME,
        title: "Resize a session",
        description: DESCRIPTION,
        annotations: annotations([false, false, true, false]),
        schema: schema::of::<Arguments>(),
        answer: structured::schema::<ResizeAnswer>(),
        in_turn: |_| None,
        call: |call, arguments| Box::pin(run(call, read(NAME, arguments))),
    }
}

async fn run(call: &ToolCall<'_>, arguments: Result<Arguments, ToolError>) -> Result<Answer, ToolError> {
    let arguments = arguments?;
    let (cols, rows) = (cells("cols", arguments.cols, COLS_MAX)?, cells("rows", arguments.rows, ROWS_MAX)?);
    let action = Action::Resize { session: session(call, &arguments.session_id).await?, cols, rows };
    match call.act(action).await? {
        Outcome::Session(session) => {
            let text = format!("[resized · session {} · {}×{}]", session.id, session.cols, session.rows);
            Ok(Answer::with_fields(text, &ResizeAnswer::of(&session)))
        }
        other => Err(mismatch(other)),
    }
}

/// A number of cells within its limit.
pub(super) fn cells(field: &str, number: u32, max: u16) -> Result<u16, ToolError> {
    u16::try_from(number)
        .ok()
        .filter(|n| (1..=max).contains(n))
        .ok_or_else(|| ToolError::Said(format!("{field}: {number} is not between 1 and {max}")))
}
