//! Sends signals to a session's processes, and lists the signals that were sent.

use wire::Target;

use crate::action::{ActionError, Outcome, SignalTarget, SignalView};
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::sessions::registry::{Registry, SessionRef};
use crate::sessions::session::Request;

impl Registry {
    /// Sends a signal, and answers with the session behind it.
    pub(in crate::sessions) async fn signal(
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
        let ignored_by = handle.ask(|reply| Request::Signal { target, signo, reply }).await??;
        let view = match self.live_view(&handle).await {
            Err(ActionError::Ended { .. }) => self.after(principal, &handle).await?.0,
            view => view?,
        };
        Ok(Outcome::Signalled(Box::new(view), ignored_by))
    }

    pub(in crate::sessions) async fn signals(
        &self,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<Vec<SignalView>, ActionError> {
        match self.find(principal, session).await? {
            SessionRef::Live(handle) => handle.ask(Request::Signals).await,
            SessionRef::Unreachable(unreachable) => Err(unreachable.error()),
            SessionRef::EndedSession(past) => Ok(crate::sessions::views::signal_views(self.host(), &past.timeline)),
        }
    }
}
