//! `…/execute` and `…/commands`: runs commands and shows them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;

use super::extract::{self, Body, Command, Key, LongBody, Params, Reader, Session};
use super::output::to_since;
use super::sessions;
use super::state::{Rest, unexpected};
use crate::http::convert;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{
    Action, Budget, Ending, Execute, Outcome, PatternShare, ReadOutput, Since, TargetShell, TimeLimit, View, Wait,
};
use ptyd_core::ids::SessionId;
use ptyd_core::limits;
use ptyd_core::principal::Principal;

/// 200 if the command ended within the wait, 202 if it still runs.
pub(super) async fn execute(
    State(rest): State<Rest>,
    Reader(principal): Reader,
    Session(session): Session,
    Key(key): Key,
    Body(body): LongBody<api::ExecuteRequest>,
) -> Result<(StatusCode, Json<api::CommandExecution>), ProblemResponse> {
    if body.approval_timeout.is_some() && body.on_timeout != api::OnTimeout::Continue {
        let problem = "cannot be combined with onTimeout, whose time begins with the request";
        return Err(ProblemResponse::field("approvalTimeout", problem));
    }
    let principal = extract::awaiting_approval(principal, body.approval_timeout)?;
    let principal = extract::awaiting_keyboard(principal, body.driver_timeout)?;
    let execute = to_execute(&rest.patterns(&principal), session, body, key).await?;
    let waits = execute.wait.is_some();
    match rest.act(&principal, Action::execute(execute)).await? {
        Outcome::Report(report) => {
            let mut execution = convert::execution(*report).ok_or_else(without_command)?;
            if !waits {
                // The report has no output, even if the command has ended by now.
                (execution.output, execution.truncated) = (None, execution.output_size > 0);
            }
            let status = match execution.status {
                api::CommandStatus::Running => StatusCode::ACCEPTED,
                api::CommandStatus::Completed | api::CommandStatus::Failed | api::CommandStatus::Terminated => {
                    StatusCode::OK
                }
            };
            Ok((status, Json(execution)))
        }
        other => Err(unexpected(&other)),
    }
}

fn without_command() -> ProblemResponse {
    ProblemResponse::new(api::ErrorCode::Internal, "the answer names no command")
}

async fn to_execute(
    patterns: &Arc<PatternShare>,
    session: SessionId,
    body: api::ExecuteRequest,
    key: Option<String>,
) -> Result<Execute, ProblemResponse> {
    let pattern = extract::pattern(patterns, "waitFor", body.wait_for.as_deref()).await?;
    // A pattern implies a wait, whatever `waitForCompletion` says.
    let has_condition = pattern.is_some() || !body.until.is_empty();
    let waits = body.wait_for_completion.unwrap_or(true) || has_condition;
    let is_asked = body.wait_for_completion == Some(true) || has_condition;
    let longest = if is_asked { limits::EXECUTE_TIMEOUT } else { limits::EXECUTE_UNASKED };
    let timeout = extract::seconds("timeout", body.timeout, longest)?;
    let wait = Wait { pattern, input_wanted: true, ..Wait::at_most(timeout) };
    let wait = waits.then_some(extract::until(patterns, wait, &body.until).await?);
    let (command, shell, budget) = (body.command, TargetShell::of(body.inside), extract::budget(body.max_chars)?);
    let ending = match body.on_timeout {
        api::OnTimeout::Continue => None,
        api::OnTimeout::Interrupt => Some(Ending::Interrupt),
        api::OnTimeout::Kill => Some(Ending::Kill),
    };
    if ending.is_some() && body.timeout.is_none() {
        return Err(ProblemResponse::field("timeout", "is needed with onTimeout: interrupt or kill"));
    }
    let time_limit = ending.map(|ending| TimeLimit { after: timeout, ending });
    Ok(Execute { session, command, shell, allowed_in: None, wait, time_limit, key, budget })
}

pub(super) async fn list(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Session(session): Session,
    Params(query): Params<api::CommandListQuery>,
) -> Result<Json<api::CommandList>, ProblemResponse> {
    let (limit, offset) = sessions::page(query.limit, query.offset)?;
    match rest.act(&principal, Action::Commands { session, limit, offset }).await? {
        Outcome::Commands(views, total) => {
            Ok(Json(api::CommandList { commands: views.into_iter().map(convert::command).collect(), total }))
        }
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn show(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Session(session): Session,
    Command(command): Command,
    Params(query): Params<api::CommandQuery>,
) -> Result<Json<api::CommandExecution>, ProblemResponse> {
    let is_raw = query.view == api::CommandView::Raw;
    for (field, is_misplaced, problem) in [
        ("since", query.since.is_some() && !is_raw, "needs view=raw"),
        ("maxBytes", query.max_bytes.is_some() && !is_raw, "needs view=raw"),
        ("maxChars", query.max_chars.is_some() && is_raw, "cannot be combined with view=raw"),
    ] {
        if is_misplaced {
            return Err(ProblemResponse::field(field, problem));
        }
    }
    let budget = match query.view {
        api::CommandView::Text => extract::budget(query.max_chars)?,
        api::CommandView::Raw => Budget::NONE,
    };
    let max_bytes = extract::count("maxBytes", query.max_bytes, limits::READ_BYTES_MAX, 1, limits::READ_BYTES_MAX)?;
    let report = match rest.act(&principal, Action::Command { session: session.clone(), command, budget }).await? {
        Outcome::Report(report) => report,
        other => return Err(unexpected(&other)),
    };
    let mut execution = convert::execution(*report).ok_or_else(without_command)?;
    // The caller did not wait: this is a look-up.
    (execution.ended_by, execution.waited_ms) = (None, None);
    if is_raw {
        let start = match query.since.as_deref().map(to_since).transpose()? {
            None => execution.start_offset,
            Some(Since::Offset(offset)) => offset,
            Some(_) => return Err(ProblemResponse::field("since", "must be o:<offset> for a command")),
        };
        let end = execution.end_offset.unwrap_or(execution.start_offset + execution.output_size);
        if !(execution.start_offset..=end).contains(&start) {
            let range = format!("{}..{end}", execution.start_offset);
            return Err(ProblemResponse::field("since", format!("{start} is not in this command's output, {range}")));
        }
        let inside = usize::try_from(end - start).unwrap_or(usize::MAX).min(max_bytes);
        add_bytes(&rest, &principal, session, start, inside, &mut execution).await?;
    }
    Ok(Json(execution))
}

/// Replaces the text by every byte of the range.
async fn add_bytes(
    rest: &Rest,
    principal: &Principal,
    session: SessionId,
    start: u64,
    limit: usize,
    execution: &mut api::CommandExecution,
) -> Result<(), ProblemResponse> {
    execution.output = None;
    execution.omitted = None;
    let mut next = start;
    let mut bytes = Vec::new();
    if limit > 0 {
        let read = ReadOutput {
            session,
            since: Since::Offset(start),
            kind: None,
            view: View::Raw,
            limit,
            lines: None,
            wait: std::time::Duration::ZERO,
            budget: Budget::NONE,
            moves_cursor: true,
        };
        match rest.act(principal, Action::Output(read)).await? {
            Outcome::Output(view) => (next, bytes) = (view.next, view.bytes),
            other => return Err(unexpected(&other)),
        }
    }
    execution.truncated = execution.end_offset.is_some_and(|end| next < end) || start > execution.start_offset;
    execution.output_base64 = Some(convert::base64(&bytes));
    execution.next_offset = Some(next);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::test_support::at_once;
    use std::time::Duration;

    fn parse(body: &str) -> Result<Execute, ProblemResponse> {
        let session = SessionId::parse("s0-aaaaaaaaaa").expect("an id");
        at_once(to_execute(&Arc::default(), session, serde_json::from_str(body).expect("a well-formed body"), None))
    }

    /// Timeout, and whether there is a pattern; `None` when nothing is waited for.
    fn waits(body: &str) -> Option<(Duration, bool)> {
        parse(body).expect("accepted").wait.map(|w| (w.timeout, w.pattern.is_some()))
    }

    #[test]
    fn a_command_is_waited_for_shortly_unless_it_is_said_otherwise() {
        assert_eq!(waits(r#"{"command":"a"}"#), Some((Duration::from_secs(1), false)));
        assert_eq!(waits(r#"{"command":"a","waitForCompletion":true}"#), Some((Duration::from_secs(30), false)));
        assert_eq!(waits(r#"{"command":"a","timeout":0.5}"#), Some((Duration::from_millis(500), false)));
        assert_eq!(waits(r#"{"command":"a","waitForCompletion":false}"#), None);
        assert_eq!(
            waits(r#"{"command":"a","waitForCompletion":false,"waitFor":"ready"}"#),
            Some((Duration::from_secs(30), true))
        );
    }

    #[test]
    fn limits_of_a_command_that_cannot_be_are_refused() {
        let field = |body: &str| parse(body).err().and_then(|r| r.field);
        assert_eq!(field(r#"{"command":"a","timeout":1e9}"#), Some("timeout".into()));
        assert_eq!(field(r#"{"command":"a","maxChars":1000001}"#), Some("maxChars".into()));
    }
}
