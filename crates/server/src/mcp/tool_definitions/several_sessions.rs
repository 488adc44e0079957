//! One wait in several sessions, and the answers of those where it is over.

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
        let mut seen = std::collections::HashSet::new();
        self.sessions.retain(|id| seen.insert(id.clone()));
        let over = self.wait_until_over(call, &reading).await?;
        let count = over.iter().flatten().count().max(1);
        reading.budget = Budget::folded(BUDGET_CHARS / count);
        let (mut texts, mut lines) = (String::new(), String::new());
        let (mut answers, mut others) = (Vec::new(), Vec::new());
        for (id, over) in self.sessions.iter().zip(over) {
            let Some(awaited) = over else {
                let now = show(call, id).await?;
                let line = session::line(&now, &call.caller.principal.name);
                others.extend(call.answer(line.clone(), |line| OutputAnswer::unread(&now, line)).structured);
                lines.push_str(&line);
                lines.push('\n');
                continue;
            };
            match reading.clone().answer(call, id, awaited).await {
                Ok(answer) => {
                    texts.push_str(&naming(id, answer.text));
                    answers.extend(answer.structured);
                }
                // The output that was read before is told.
                Err(error) if !texts.is_empty() => {
                    texts.push_str(&format!("[session {id} · not read: {}]", error.why()))
                }
                Err(error) => return Err(error),
            }
            texts.push('\n');
        }
        if texts.is_empty() {
            lines.push_str("[none of them is over]");
        }
        let text = (texts + &lines).trim_end().to_owned();
        Ok(Answer { text, structured: structured::with_other_answers(answers.into_iter().chain(others)), task: None })
    }

    /// The results of the wait, each at the place of its session; `None` where it was not over.
    async fn wait_until_over(&self, call: &ToolCall<'_>, reading: &Reading) -> Result<Vec<Option<Awaited>>, ToolError> {
        let (mut over, mut waiting) = (Vec::new(), Vec::new());
        for (at, id) in self.sessions.iter().enumerate() {
            let now = show(call, id).await?;
            let is_over = !self.has_condition && call.caller.memory.is_end_unreported(&now);
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

/// The text with the session in its line of facts.
fn naming(id: &SessionId, text: String) -> String {
    let facts = text.rfind('\n').map_or(0, |last| last + 1);
    match text.strip_suffix(']') {
        Some(rest) if !text[facts..].contains(id.as_str()) => format!("{rest} · session {id}]"),
        _ => text,
    }
}
