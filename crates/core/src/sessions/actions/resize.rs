//! Changes the size of a session's terminal.

use crate::action::{ActionError, SessionView};
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::sessions::launch::request::checked_size;
use crate::sessions::services::Services;
use crate::sessions::session::Request;

/// Changes the size, and returns the session afterwards.
pub(in crate::sessions) async fn resize(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
    cols: u16,
    rows: u16,
) -> Result<SessionView, ActionError> {
    let handle = services.sessions.live(principal, session).await?;
    let (cols, rows) = checked_size(Some(cols), Some(rows))?;
    handle.ask(|reply| Request::Resize { cols, rows, reply }).await??;
    services.sessions.live_view(&handle).await
}
