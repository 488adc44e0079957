//! A wait before output is read. Existing output counts too, because a line may have come between two requests.

use std::pin::pin;

use super::caller::{Caller, mismatch};
use crate::action::{
    Action, ActionError, AwaitOutput, AwaitedOutput, Budget, CommandStatus, CommandView, EndedBy, MaskedText, Outcome,
    OutputView, Report, Since, View,
};
use crate::ids::{CommandId, SessionId};
use crate::limits::{BUDGET_CHARS, READ_BYTES_MAX};

/// Waits, and finds the command that ended meanwhile.
pub(super) async fn wait(
    caller: Caller<'_>,
    request: AwaitOutput,
    moves_cursor: bool,
) -> Result<AwaitedOutput, ActionError> {
    let (id, is_of_command) = (request.session.clone(), request.command.is_some());
    let ran = caller.session(Action::Show(id.clone())).await?.current_command;
    let mut awaited = wait_once(caller, request, moves_cursor).await?;
    if let Some(command) = ran.filter(|_| !is_of_command) {
        awaited.ended = command_now(caller, &id, command).await?.filter(|c| c.status != CommandStatus::Running);
    }
    Ok(awaited)
}

async fn wait_once(caller: Caller<'_>, request: AwaitOutput, moves_cursor: bool) -> Result<AwaitedOutput, ActionError> {
    let AwaitOutput { session: id, wait, since, command, on_screen } = request;
    let pattern = wait.pattern.clone();
    let mut waiting = pin!(caller.report(Action::Wait {
        session: id.clone(),
        wait,
        command: None,
        budget: Budget::NONE,
        moves_cursor
    }));
    let Some(pattern) = pattern else { return waiting.await.map(of_report) };
    // The wait is requested first: later output is matched by the wait, earlier output by the search.
    let mut looking = pin!(async {
        if on_screen {
            return match caller.act(Action::Screen(id.clone())).await? {
                Outcome::Screen(screen) => Ok((None, vec![MaskedText::joined(&screen.rows)])),
                other => Err(mismatch(&other)),
            };
        }
        let OutputView { from, text, .. } = existing(caller, &id, since, command, moves_cursor).await?;
        Ok((Some(from), vec![text.head, text.tail]))
    });
    let (asked, (from, texts)) = tokio::select! {
        biased;
        done = &mut waiting => {
            let report = done?;
            if report.ended_by != EndedBy::InputWanted {
                return Ok(of_report(report));
            }
            // The question may be what was waited for.
            (Some(report), looking.await?)
        }
        looked = &mut looking => (None, looked?),
    };
    let patterns = caller.patterns();
    for text in &texts {
        let matched = patterns.find(&pattern, text).await;
        if matched.is_some() {
            return Ok(AwaitedOutput { from, matched, ..AwaitedOutput::default() });
        }
    }
    let awaited = match asked {
        Some(report) => of_report(report),
        None => of_report(waiting.await?),
    };
    // Both begin at the read cursor, which the wait moves when it has matched, perhaps before the search has read it.
    let from = from.into_iter().chain(awaited.from).min();
    Ok(AwaitedOutput { from, ..awaited })
}

fn of_report(report: Report) -> AwaitedOutput {
    AwaitedOutput { from: Some(report.output.from), report: Some(Box::new(report)), ..AwaitedOutput::default() }
}

/// The output that counts although it came before the wait.
async fn existing(
    caller: Caller<'_>,
    id: &SessionId,
    since: Option<Since>,
    command: Option<CommandId>,
    moves_cursor: bool,
) -> Result<OutputView, ActionError> {
    let shown = caller.session(Action::Show(id.clone())).await?;
    let since = match (since, command.or(shown.current_command)) {
        (Some(since), _) => since,
        // Output of an earlier command does not count.
        (None, Some(command)) => {
            let newest = shown.first_offset.max(shown.end_offset.saturating_sub(BUDGET_CHARS as u64));
            let known = command_now(caller, id, command).await?;
            let no_command = || ActionError::NoCommand { session: id.clone(), id: command.to_string() };
            Since::Offset(known.ok_or_else(no_command)?.start_offset.max(newest))
        }
        (None, None) => Since::Offset(shown.end_offset),
    };
    caller.output(id, since, View::Text, READ_BYTES_MAX, moves_cursor).await
}

async fn command_now(
    caller: Caller<'_>,
    id: &SessionId,
    command: CommandId,
) -> Result<Option<CommandView>, ActionError> {
    let known = Action::Command { session: id.clone(), command, budget: Budget::NONE };
    caller.report(known).await.map(|report| report.command)
}
