//! The answer about a session that has just started.

use crate::action::{ActionError, Created};
use crate::limits;
use crate::principal::Principal;
use crate::sessions::handle::Handle;
use crate::sessions::services::Services;
use crate::sessions::session::Request;

/// The session at its first prompt, or as `creating` if that takes long.
pub(in crate::sessions) async fn created(
    services: &Services,
    principal: &Principal,
    handle: &Handle,
) -> Result<Created, ActionError> {
    let _ = tokio::time::timeout(limits::CREATE_WAIT, handle.ask(Request::Prompt)).await;
    let session = services.sessions.view_of(principal, handle).await?;
    Ok(Created { session, startup: handle.shared.meta.startup.clone(), is_new: true, left_behind: Vec::new() })
}
