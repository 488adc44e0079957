//! Lists a session's processes.

use crate::action::{ActionError, ProcessView};
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::services::Services;
use crate::sessions::session::Request;

/// An ended session has no processes.
pub(in crate::sessions) async fn processes(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
) -> Result<Vec<ProcessView>, ActionError> {
    match services.sessions.find(principal, session).await? {
        SessionRef::Live(handle) => handle.ask(Request::Processes).await,
        SessionRef::Unreachable(unreachable) => Err(unreachable.error()),
        SessionRef::EndedSession(_) => Ok(Vec::new()),
    }
}
