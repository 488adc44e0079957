//! The caller of a composite action: its primitives are requested in its name, and their outcomes are of the kinds that they promise.

use std::sync::Arc;
use std::time::Duration;

use super::limited_commands::TimeLimits;
use crate::action::{
    Action, ActionError, Dispatch, Outcome, OutputView, PatternShare, ReadOutput, Report, SessionView, Since, View,
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
    /// The commands whose time limit is being enforced.
    pub time_limits: &'a Arc<TimeLimits>,
}

impl Caller<'_> {
    /// The caller's share for patterns.
    pub(super) fn patterns(&self) -> Arc<PatternShare> {
        self.dispatch.patterns(self.principal)
    }

    pub(super) async fn act(&self, action: Action) -> Result<Outcome, ActionError> {
        self.dispatch.dispatch(self.principal, action).await
    }

    pub(super) async fn report(&self, action: Action) -> Result<Report, ActionError> {
        match self.act(action).await? {
            Outcome::Report(report) => Ok(*report),
            other => Err(mismatch(&other)),
        }
    }

    pub(super) async fn session(&self, action: Action) -> Result<SessionView, ActionError> {
        match self.act(action).await? {
            Outcome::Session(session) | Outcome::Signalled(session, _) => Ok(*session),
            other => Err(mismatch(&other)),
        }
    }

    /// Reads output once.
    pub(super) async fn output(
        &self,
        session: &SessionId,
        since: Since,
        view: View,
        limit: usize,
        moves_cursor: bool,
    ) -> Result<OutputView, ActionError> {
        let (session, lines, wait) = (session.clone(), None, Duration::ZERO);
        let read = ReadOutput {
            session,
            since,
            kind: None,
            view,
            limit,
            lines,
            wait,
            budget: limits::BUDGET_CHARS.into(),
            moves_cursor,
        };
        match self.act(Action::Output(read)).await? {
            Outcome::Output(view) => Ok(view),
            other => Err(mismatch(&other)),
        }
    }
}

/// An outcome of another kind than the action promises.
pub(super) fn mismatch(outcome: &Outcome) -> ActionError {
    ActionError::Internal { why: format!("the action was answered with {}; this is a bug", outcome.kind()) }
}
