//! Changes the size of a session's terminal, and checks the size of a new one.

use crate::action::{ActionError, SessionView};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;
use crate::sessions::services::Services;
use crate::sessions::session::Request;

/// Changes the size, and answers with the session behind it.
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

pub(super) fn checked_size(cols: Option<u16>, rows: Option<u16>) -> Result<(u16, u16), ActionError> {
    let (cols, rows) = (cols.unwrap_or(limits::COLS_DEFAULT), rows.unwrap_or(limits::ROWS_DEFAULT));
    for (field, value, max) in [("cols", cols, limits::COLS_MAX), ("rows", rows, limits::ROWS_MAX)] {
        if !(1..=max).contains(&value) {
            return Err(ActionError::Invalid { field, problem: format!("{value} is not from 1 to {max}") });
        }
    }
    Ok((cols, rows))
}
