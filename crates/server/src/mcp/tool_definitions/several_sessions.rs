//! One wait in several sessions, and the answers of those where it is over: their output, then one line of facts for each
//! session, in the order of the request.

use std::collections::HashSet;

use api::ErrorCode;
use serde_json::Value;

use super::reading::{Awaited, Reading, show};
use super::session;
use super::structured::{self, OutputAnswer};
use super::tool::{Answer, ToolCall, ToolError, mismatch};
use ptyd_core::action::{
    Action, AwaitOutput, AwaitSessions, Budget, Composite, Outcome, SessionStatus, SessionView, Since, Wait,
};
use ptyd_core::ids::SessionId;
use ptyd_core::limits::BUDGET_CHARS;

/// The wait.
#[derive(Debug)]
pub(super) struct SeveralSessions {
    pub sessions: Vec<SessionId>,
    pub wait: Wait,
    /// The wait ends by more than the end of a command.
    pub has_condition: bool,
    /// Until it is over in all of them.
    pub all: bool,
}

impl SeveralSessions {
    /// Waits, and reads where the wait is over. The others are listed.
    pub async fn read(mut self, call: &ToolCall<'_>, mut reading: Reading) -> Result<Answer, ToolError> {
        if reading.command.is_some() {
            return Err(ToolError::Said("command_id: belongs to one session; omit it or other_sessions".to_owned()));
        }
        reading.since.get_or_insert(Since::Last);
        let mut seen = HashSet::new();
        self.sessions.retain(|id| seen.insert(id.clone()));
        let over = self.wait_until_over(call, &reading).await?;
        let count = over.iter().flatten().flatten().count().max(1);
        reading.budget = Budget::folded(BUDGET_CHARS / count);
        let (mut output, mut facts) = (String::new(), Vec::new());
        let (mut answers, mut others, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for (id, over) in self.sessions.iter().zip(over) {
            let answered = match over {
                Ok(Some(awaited)) => reading.clone().answer(call, id, awaited).await.map(|answer| (answer, true)),
                Ok(None) => listed(call, id).await.map(|answer| (answer, false)),
                Err(error) => Err(error),
            };
            match answered {
                Ok((answer, is_read)) => {
                    let (body, line) = answer.text.split_at(answer.text.rfind('\n').map_or(0, |last| last + 1));
                    let line = of_session(line, id, output.matches('\n').count() + 1, body.matches('\n').count());
                    output.push_str(body);
                    let answer = answer.structured.map(|answer| structured::with_facts(answer, &line));
                    if is_read {
                        answers.extend(answer)
                    } else {
                        others.extend(answer)
                    }
                    facts.push(line);
                }
                Err(ToolError::Restarting) => return Err(ToolError::Restarting),
                // The other sessions are told.
                Err(error) => {
                    facts.push(format!("[not read: {} · session {id}]", error.why()));
                    errors.push((id, error));
                }
            }
        }
        if errors.len() == self.sessions.len() {
            return Err(errors.swap_remove(0).1);
        }
        if call.caller.structured {
            others.extend(errors.iter().map(|(id, error)| not_read(id, error)));
        }
        let text = output + &facts.join("\n");
        Ok(Answer { text, structured: structured::with_other_answers(answers.into_iter().chain(others)), task: None })
    }

    /// The results of the wait, each at the place of its session; `None` where it was not over.
    async fn wait_until_over(
        &self,
        call: &ToolCall<'_>,
        reading: &Reading,
    ) -> Result<Vec<Result<Option<Awaited>, ToolError>>, ToolError> {
        let (mut over, mut waiting) = (Vec::new(), Vec::new());
        for (at, id) in self.sessions.iter().enumerate() {
            let now = match show(call, id).await {
                Ok(now) => now,
                Err(error) => {
                    over.push(Err(error));
                    continue;
                }
            };
            let is_told = self.has_condition || !call.caller.memory.is_end_unreported(&now);
            // A certain part or form of the output is also read where nothing runs.
            let is_over = !is_told || !reading.is_plain() && !self.waits_in(&now);
            if !is_over && self.waits_in(&now) {
                waiting.push((at, reading.after(id.clone(), self.wait.clone())));
            }
            over.push(Ok(is_over.then(Awaited::default)));
        }
        if waiting.is_empty() || !self.all && over.iter().any(|over| !matches!(over, Ok(None))) {
            return Ok(over);
        }
        let (places, waits): (Vec<usize>, Vec<AwaitOutput>) = waiting.into_iter().unzip();
        match call.act(Action::Composite(Composite::AwaitSessions(AwaitSessions { waits, all: self.all }))).await? {
            Outcome::AwaitedSessions(awaited) => {
                for (at, awaited) in places.into_iter().zip(awaited) {
                    over[at] = awaited.map(|awaited| awaited.map(Awaited::from)).transpose().map_err(ToolError::from);
                }
                Ok(over)
            }
            other => Err(mismatch(other)),
        }
    }

    fn waits_in(&self, now: &SessionView) -> bool {
        now.status != SessionStatus::Terminated && (self.has_condition || now.current_command.is_some())
    }
}

/// The state of a session whose wait is not over.
async fn listed(call: &ToolCall<'_>, id: &SessionId) -> Result<Answer, ToolError> {
    let now = show(call, id).await?;
    let line = session::line(&now, &call.caller.principal.name);
    Ok(call.answer(line, |line| OutputAnswer::unread(&now, line)))
}

/// The answer of a session that was not read.
fn not_read(id: &SessionId, error: &ToolError) -> Value {
    let code = match error {
        ToolError::Refused(code, _) => *code,
        ToolError::Said(_) | ToolError::Restarting => ErrorCode::InvalidField,
    };
    let mut answer = structured::error(code, error.why());
    answer["session_id"] = id.as_str().into();
    answer
}

/// The line of facts of one session's answer, with the session and its lines of the output.
fn of_session(facts: &str, id: &SessionId, first: usize, lines: usize) -> String {
    let mut line = facts.strip_suffix(']').unwrap_or(facts).to_owned();
    if !facts.contains(id.as_str()) {
        line += &format!(" · session {id}");
    }
    match lines {
        0 => {}
        1 => line += &format!(" · its output is line {first}"),
        more => line += &format!(" · its output is lines {first}–{}", first + more - 1),
    }
    line + "]"
}
