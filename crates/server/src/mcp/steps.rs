//! A dialogue with a program in one call: wait for a pattern, type, wait for the next pattern.
//!
//! The wait for a step's pattern begins together with the typing before it, so that a quick reply is never missed.

use std::time::{Duration, Instant};

use super::text;
use super::tools::{Answer, Call, ToolError, input, mismatch, output};
use crate::action::{Action, EndedBy, InputBytes, Outcome, Pattern, Report, Since, View, Wait};
use crate::ids::SessionId;
use crate::limits::{BUDGET_CHARS, READ_BYTES_MAX};

/// One step.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// The pattern to wait for first.
    pub wait_for: Option<Pattern>,
    /// The input to type then.
    pub bytes: Option<InputBytes>,
}

/// The result of the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Done,
    /// This step (from 0) ended without its pattern.
    Unmatched(usize),
}

/// Performs the steps in order; the first one that does not match ends the dialogue, and the answer says which.
pub(super) async fn run(
    call: &Call<'_>,
    id: &SessionId,
    steps: Vec<Step>,
    finally: Wait,
    deadline: Instant,
) -> Result<Answer, ToolError> {
    let mut sent = 0;
    let mut from = None;
    let mut last: Option<Report> = None;
    let mut progress = Progress::Done;
    for (i, step) in steps.iter().enumerate() {
        if let Some(words) = &step.wait_for {
            // A step that typed nothing left its wait to this one.
            let is_awaited = i > 0 && steps[i - 1].bytes.is_some();
            if !is_awaited {
                last = Some(wait_for(call, id, words, left(deadline)).await?);
                from = from.or(last.as_ref().map(|r| r.output.from));
            }
            if last.as_ref().is_none_or(|r| r.ended_by != EndedBy::Matched) {
                progress = Progress::Unmatched(i);
                break;
            }
        }
        if let Some(bytes) = &step.bytes {
            let wait = match steps.get(i + 1) {
                None => Some(Wait { timeout: finally.timeout.min(left(deadline)), ..finally.clone() }),
                Some(next) => next.wait_for.clone().map(|words| words_within(words, left(deadline))),
            };
            let key = call.key.as_ref().map(|key| format!("{key}/{i}"));
            let report = input::type_at(call, id, bytes.clone(), wait, key).await?;
            sent += report.accepted_bytes.unwrap_or(0);
            from = from.or(Some(report.output.from));
            last = Some(report);
        }
    }
    let mut report = last.ok_or_else(|| ToolError::Said("steps: none of them waits or types".to_owned()))?;
    report.accepted_bytes = Some(sent);
    // All output of the dialogue, once, and not only that of its last step; without a prompt.
    if let Some(from) = from {
        let end = report.command.as_ref().and_then(|c| c.end_offset).unwrap_or(u64::MAX);
        let limit = usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX).min(READ_BYTES_MAX);
        report.output = output::output(call, id, Since::Offset(from), View::Text, limit, None).await?.text;
    }
    let before = call.note(&report.session);
    let text = text::report(&report, &call.context(before.as_ref(), None));
    Ok(told(text, progress, &steps).into())
}

/// If a step did not match, the status line begins with it.
fn told(text: String, progress: Progress, steps: &[Step]) -> String {
    let Progress::Unmatched(i) = progress else { return text };
    let words = steps[i].wait_for.as_ref().map_or("", |words| words.as_str());
    let (body, facts) = text.rsplit_once('\n').map_or(("", text.as_str()), |(body, facts)| (body, facts));
    let gap = if body.is_empty() { "" } else { "\n" };
    let rest = facts.strip_prefix('[').unwrap_or(facts);
    format!(
        "{body}{gap}[step {} of {} did not match {}, nothing of it was typed · {rest}",
        i + 1,
        steps.len(),
        text::quoted(words)
    )
}

/// Waits for a pattern; a match in the program's unfinished last line, or in the cursor's row, counts already.
async fn wait_for(call: &Call<'_>, id: &SessionId, words: &Pattern, timeout: Duration) -> Result<Report, ToolError> {
    let wait = words_within(words.clone(), timeout);
    let mut waiting =
        std::pin::pin!(call.act(Action::Wait { session: id.clone(), wait, command: None, budget: BUDGET_CHARS }));
    let looking = async {
        let Outcome::Session(session) = call.act(Action::Show(id.clone())).await? else { return Ok(None) };
        let from = session.first_offset.max(session.end_offset.saturating_sub(BUDGET_CHARS as u64));
        let view = output::output(call, id, Since::Offset(from), View::Text, READ_BYTES_MAX, None).await?;
        let newest = if view.text.omitted.is_some() { &view.text.tail } else { &view.text.head };
        let prompt = newest.rsplit('\n').next().unwrap_or_default();
        let patterns = call.patterns();
        if let Some(found) = patterns.find(words, prompt).await {
            return Ok::<_, ToolError>(Some(found));
        }
        // A program that moves the cursor asks in the cursor's row, and a full-screen program anywhere.
        let Outcome::Screen(screen) = call.act(Action::Screen(id.clone())).await? else { return Ok(None) };
        let rows = match screen.rows.get(usize::from(screen.cursor_row)) {
            Some(row) if !screen.is_alternate => row.clone(),
            _ => screen.rows.join("\n"),
        };
        Ok(patterns.find(words, &rows).await)
    };
    let early = tokio::select! {
        biased;
        done = &mut waiting => return reported(done?),
        found = looking => found?,
    };
    let Some(matched) = early else { return reported(waiting.await?) };
    // A wait of zero length returns the present state.
    let now = Wait::at_most(Duration::ZERO);
    let report = reported(
        call.act(Action::Wait { session: id.clone(), wait: now, command: None, budget: BUDGET_CHARS }).await?,
    )?;
    Ok(Report { ended_by: EndedBy::Matched, matched: Some(matched), ..report })
}

fn words_within(words: Pattern, timeout: Duration) -> Wait {
    Wait { pattern: Some(words), ..Wait::at_most(timeout) }
}

fn reported(outcome: Outcome) -> Result<Report, ToolError> {
    match outcome {
        Outcome::Report(report) => Ok(*report),
        other => Err(mismatch(other)),
    }
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}
