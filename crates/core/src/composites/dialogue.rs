//! A dialogue with a program: wait for a pattern, type, wait for the next pattern.
//!
//! The wait for a step's pattern begins together with the typing before it, so that a quick reply is never missed.

use std::time::{Duration, Instant};

use super::caller::Caller;
use crate::action::{
    Action, ActionError, Dialogue, DialogueView, EndedBy, Input, MaskedText, Outcome, Pattern, Report, Since, View,
    Wait,
};
use crate::ids::SessionId;
use crate::limits::{BUDGET_CHARS, READ_BYTES_MAX};

/// Performs the steps in order; the first one that does not match ends the dialogue.
pub(super) async fn play(caller: Caller<'_>, dialogue: Dialogue) -> Result<DialogueView, ActionError> {
    let Dialogue { session: id, steps, finally, deadline, key, mut meant_for } = dialogue;
    let mut sent = 0;
    let mut from = None;
    let mut last: Option<Report> = None;
    let (mut unmatched, mut is_too_late) = (None, false);
    for (i, step) in steps.iter().enumerate() {
        if let Some(words) = &step.wait_for {
            // A step that typed nothing left its wait to this one.
            let is_awaited = i > 0 && steps[i - 1].bytes.is_some();
            if !is_awaited {
                last = Some(wait_for(caller, &id, words, left(deadline)).await?);
                from = from.or(last.as_ref().map(|r| r.output.from));
            }
            if last.as_ref().is_none_or(|r| r.ended_by != EndedBy::Matched) {
                unmatched = Some(i);
                break;
            }
        }
        if let Some(bytes) = &step.bytes {
            let wait = match steps.get(i + 1) {
                None => Some(Wait { timeout: finally.timeout.min(left(deadline)), ..finally.clone() }),
                Some(next) => next.wait_for.clone().map(|words| words_within(words, left(deadline))),
            };
            let (session, bytes) = (id.clone(), bytes.clone());
            let key = key.as_ref().map(|key| format!("{key}/{i}"));
            let budget = BUDGET_CHARS.into();
            let (is_secret, is_hidden, without_echo) = (false, false, false);
            let input = Input { session, bytes, is_secret, is_hidden, wait, key, budget, without_echo, meant_for };
            let report = match caller.report(Action::Input(input)).await {
                // The answer tells the output of the steps before this one.
                Err(ActionError::InputTooLate { .. }) if last.is_some() => {
                    (unmatched, is_too_late) = (Some(i), true);
                    break;
                }
                report => report?,
            };
            meant_for = meant_for.or(report.command.as_ref().map(|command| command.id));
            sent += report.accepted_bytes.unwrap_or(0);
            from = from.or(Some(report.output.from));
            last = Some(report);
        }
    }
    let nothing =
        || ActionError::Invalid { field: "steps", problem: "each step needs wait_for, input or keys".to_owned() };
    let mut report = last.ok_or_else(nothing)?;
    report.accepted_bytes = Some(sent);
    // All output of the dialogue, once, and not only that of its last step; without a prompt.
    if let Some(from) = from {
        let end = report.command.as_ref().and_then(|c| c.end_offset).unwrap_or(u64::MAX);
        let limit = usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX).min(READ_BYTES_MAX);
        report.output = caller.output(&id, Since::Offset(from), View::Text, limit, true).await?.text;
    }
    Ok(DialogueView { report, unmatched, is_too_late })
}

/// Waits for a pattern; a match in the program's unfinished last line, or in the cursor's row, counts already.
async fn wait_for(
    caller: Caller<'_>,
    id: &SessionId,
    words: &Pattern,
    timeout: Duration,
) -> Result<Report, ActionError> {
    let wait_of = |wait| Action::Wait {
        session: id.clone(),
        wait,
        command: None,
        budget: BUDGET_CHARS.into(),
        moves_cursor: true,
    };
    let mut waiting = std::pin::pin!(caller.report(wait_of(words_within(words.clone(), timeout))));
    let mut looking = std::pin::pin!(async {
        let session = caller.session(Action::Show(id.clone())).await?;
        let from = session.first_offset.max(session.end_offset.saturating_sub(BUDGET_CHARS as u64));
        let view = caller.output(id, Since::Offset(from), View::Text, READ_BYTES_MAX, true).await?;
        let newest = if view.text.omitted.is_some() { &view.text.tail } else { &view.text.head };
        let prompt = newest.part(newest.rfind('\n').map_or(0, |at| at + 1)..);
        let patterns = caller.patterns();
        if let Some(found) = patterns.find(words, &prompt).await {
            return Ok::<_, ActionError>(Some(found));
        }
        // A program that moves the cursor asks in the cursor's row, and a full-screen program anywhere.
        let Outcome::Screen(screen) = caller.act(Action::Screen(id.clone())).await? else { return Ok(None) };
        let rows = match screen.rows.get(usize::from(screen.cursor_row)) {
            Some(row) if !screen.is_alternate => row.clone(),
            _ => MaskedText::joined(&screen.rows),
        };
        Ok(patterns.find(words, &rows).await)
    });
    let early = tokio::select! {
        biased;
        done = &mut waiting => {
            let report = done?;
            if report.ended_by != EndedBy::InputWanted {
                return Ok(report);
            }
            // On a busy machine, what the program asks may be read only after it has stood for long.
            let found = looking.await?;
            let ended_by = if found.is_some() { EndedBy::Matched } else { report.ended_by };
            return Ok(Report { ended_by, matched: found, ..report });
        }
        found = &mut looking => found?,
    };
    let Some(matched) = early else { return waiting.await };
    // A wait of zero length returns the present state.
    let report = caller.report(wait_of(Wait::at_most(Duration::ZERO))).await?;
    Ok(Report { ended_by: EndedBy::Matched, matched: Some(matched), ..report })
}

fn words_within(words: Pattern, timeout: Duration) -> Wait {
    Wait { pattern: Some(words), input_wanted: true, ..Wait::at_most(timeout) }
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}
