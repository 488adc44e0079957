//! Sends signals to a session's processes; lists its processes, and the signals that were sent.

use wire::Target;

use super::registry::{Registry, SessionRef};
use super::session::Request;
use crate::action::{ActionError, Outcome, ProcessView, SignalTarget, SignalView};
use crate::ids::SessionId;
use crate::principal::Principal;

impl Registry {
    /// Sends a signal, and answers with the session behind it.
    pub(super) async fn signal(
        &self,
        principal: &Principal,
        session: &SessionId,
        target: SignalTarget,
        signo: i32,
    ) -> Result<Outcome, ActionError> {
        let handle = self.live(principal, session).await?;
        let target = match target {
            SignalTarget::Foreground => Target::Foreground,
            SignalTarget::Session => Target::Session,
            SignalTarget::Process(pid) => Target::Process(pid),
        };
        handle.ask(|reply| Request::Signal { target, signo, reply }).await??;
        let view = match self.live_view(&handle).await {
            Err(ActionError::Ended { .. }) => self.after(principal, &handle).await?.0,
            view => view?,
        };
        Ok(Outcome::Session(Box::new(view)))
    }

    /// An ended session has no processes.
    pub(super) async fn processes(
        &self,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<Vec<ProcessView>, ActionError> {
        match self.find(principal, session).await? {
            SessionRef::Live(handle) => handle.ask(Request::Processes).await,
            SessionRef::Unreachable(unreachable) => Err(unreachable.error()),
            SessionRef::EndedSession(_) => Ok(Vec::new()),
        }
    }

    pub(super) async fn signals(
        &self,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<Vec<SignalView>, ActionError> {
        match self.find(principal, session).await? {
            SessionRef::Live(handle) => handle.ask(Request::Signals).await,
            SessionRef::Unreachable(unreachable) => Err(unreachable.error()),
            SessionRef::EndedSession(past) => Ok(super::views::signal_views(self.host(), &past.timeline)),
        }
    }
}
