//! One wait in several sessions, and the answers of those where it is over: their output, then one line of facts for each
//! session, in the order of the request.

use std::collections::HashSet;

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
            return Err(ToolError::Said("command_id: is of one session; leave it or other_sessions out".to_owned()));
        }
        reading.since.get_or_insert(Since::Last);
        let mut seen = HashSet::new();
        self.sessions.retain(|id| seen.insert(id.clone()));
        let over = self.wait_until_over(call, &reading).await?;
        let count = over.iter().flatten().count().max(1);
        reading.budget = Budget::folded(BUDGET_CHARS / count);
        let (mut output, mut facts) = (String::new(), Vec::new());
        let (mut answers, mut others) = (Vec::new(), Vec::new());
        for (id, over) in self.sessions.iter().zip(over) {
            let Some(awaited) = over else {
                let now = show(call, id).await?;
                let line = session::line(&now, &call.caller.principal.name);
                others.extend(call.answer(line.clone(), |line| OutputAnswer::unread(&now, line)).structured);
                facts.push(line);
                continue;
            };
            match reading.clone().answer(call, id, awaited).await {
                Ok(answer) => {
                    let (body, line) = answer.text.split_at(answer.text.rfind('\n').map_or(0, |last| last + 1));
                    let first = output.matches('\n').count() + 1;
                    output.push_str(body);
                    facts.push(of_session(line, id, first, body.matches('\n').count()));
                    answers.extend(answer.structured);
                }
                // The output that was read before is told.
                Err(error) if !output.is_empty() => facts.push(format!("[not read: {} · session {id}]", error.why())),
                Err(error) => return Err(error),
            }
        }
        let text = output + &facts.join("\n");
        Ok(Answer { text, structured: structured::with_other_answers(answers.into_iter().chain(others)), task: None })
    }

    /// The results of the wait, each at the place of its session; `None` where it was not over.
    async fn wait_until_over(&self, call: &ToolCall<'_>, reading: &Reading) -> Result<Vec<Option<Awaited>>, ToolError> {
        let (mut over, mut waiting) = (Vec::new(), Vec::new());
        for (at, id) in self.sessions.iter().enumerate() {
            let now = show(call, id).await?;
            let is_told = self.has_condition || !call.caller.memory.is_end_unreported(&now);
            // A certain part or form of the output is also read where nothing runs.
            let is_over = !is_told || !reading.is_plain() && !self.waits_in(&now);
            if !is_over && self.waits_in(&now) {
                waiting.push((at, reading.after(id.clone(), self.wait.clone())));
            }
            over.push(is_over.then(Awaited::default));
        }
        if waiting.is_empty() || !self.all && over.iter().any(Option::is_some) {
            return Ok(over);
        }
        let (places, waits): (Vec<usize>, Vec<AwaitOutput>) = waiting.into_iter().unzip();
        match call.act(Action::Composite(Composite::AwaitSessions(AwaitSessions { waits, all: self.all }))).await? {
            Outcome::AwaitedSessions(awaited) => {
                for (at, awaited) in places.into_iter().zip(awaited) {
                    over[at] = awaited.map(Awaited::from);
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
