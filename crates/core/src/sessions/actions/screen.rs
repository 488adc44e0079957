//! The screen of a session.

use crate::action::{ActionError, ScreenView};
use crate::principal::Principal;
use crate::sessions::handle::Handle;
use crate::sessions::read_cursor::ReadCursors;
use crate::sessions::session::Request;

/// The screen, with the rows that are new to this caller.
pub(in crate::sessions) async fn screen(
    cursors: &ReadCursors,
    principal: &Principal,
    handle: &Handle,
) -> Result<ScreenView, ActionError> {
    let mut screen = handle.ask(Request::Picture).await?.screen;
    cursors.shows(principal, &handle.shared.id, &mut screen);
    Ok(screen)
}
