//! Lists the processes of a session, and the signals that they were sent.

use super::registry::{Registry, SessionRef};
use super::session::Request;
use crate::action::ProcessView;
use crate::action::{ActionError, SignalView};
use crate::ids::SessionId;
use crate::principal::Principal;

impl Registry {
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
