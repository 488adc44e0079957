//! Composite actions: each expands into primitive ones, and every primitive goes through the dispatcher.
//!
//! Nothing in here knows the registry, so whatever a composite does to a session is authorized and recorded in one
//! place, with its session, its text or keys, and its caller.

mod await_output;
pub(crate) mod client_gone;
mod dialogue;
mod named_action;
mod startup;
mod terminal_tool;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::action::{
    Action, ActionError, Composite, Dispatch, Outcome, OutputView, PatternShare, ReadOutput, Report, SessionView,
    Since, View,
};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;

/// The caller of a composite action, and the way by which its primitives are requested.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// Takes the primitives.
    pub dispatch: &'a dyn Dispatch,
    /// The principal in whose name they are requested.
    pub principal: &'a Principal,
    /// The quiet time that ends a wait of the `terminal` tool.
    pub soft_timeout: Duration,
}

/// Performs a composite action.
pub async fn expand(caller: Caller<'_>, action: Composite) -> Result<Outcome, ActionError> {
    match action {
        Composite::Create(request) => {
            let created = startup::start(caller, Action::Start(request)).await?;
            Ok(Outcome::Session(Box::new(created.session)))
        }
        Composite::NamedAction { session, name, key } => named_action::perform(caller, session, name, key).await,
        Composite::Terminal(call) => {
            terminal_tool::call(caller, &call).await.map(|view| Outcome::Terminal(Box::new(view)))
        }
        Composite::Dialogue(dialogue) => {
            dialogue::play(caller, *dialogue).await.map(|view| Outcome::Dialogue(Box::new(view)))
        }
        Composite::AwaitOutput(request) => {
            await_output::wait(caller, *request).await.map(|awaited| Outcome::Awaited(Box::new(awaited)))
        }
    }
}

impl Caller<'_> {
    /// The caller's share for patterns.
    fn patterns(&self) -> Arc<PatternShare> {
        self.dispatch.patterns(self.principal)
    }

    async fn act(&self, action: Action) -> Result<Outcome, ActionError> {
        self.dispatch.dispatch(self.principal, action).await
    }

    async fn report(&self, action: Action) -> Result<Report, ActionError> {
        match self.act(action).await? {
            Outcome::Report(report) => Ok(*report),
            other => Err(mismatch(&other)),
        }
    }

    async fn session(&self, action: Action) -> Result<SessionView, ActionError> {
        match self.act(action).await? {
            Outcome::Session(session) => Ok(*session),
            other => Err(mismatch(&other)),
        }
    }

    /// Reads output once.
    async fn output(
        &self,
        session: &SessionId,
        since: Since,
        view: View,
        limit: usize,
    ) -> Result<OutputView, ActionError> {
        let (session, lines_max, wait) = (session.clone(), None, Duration::ZERO);
        let read =
            ReadOutput { session, since, kind: None, view, limit, lines_max, wait, budget: limits::BUDGET_CHARS };
        match self.act(Action::Output(read)).await? {
            Outcome::Output(view) => Ok(view),
            other => Err(mismatch(&other)),
        }
    }
}

/// An outcome of another kind than the action promises.
fn mismatch(outcome: &Outcome) -> ActionError {
    ActionError::Internal { why: format!("the action was answered with {}; this is a bug", outcome.kind()) }
}
