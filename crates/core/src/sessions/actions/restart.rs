//! Ends what runs in a session, and starts its shell again.

use std::sync::Arc;

use super::terminate;
use crate::action::{ActionError, Created};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;
use crate::sessions::launch::again::again;
use crate::sessions::launch::created::created;
use crate::sessions::launch::start::{NewOwner, launch};
use crate::sessions::services::Services;

/// Kills what runs in a session, and starts the same shell again.
pub(in crate::sessions) async fn restart(
    services: &Arc<Services>,
    principal: &Principal,
    session: &SessionId,
) -> Result<Created, ActionError> {
    let old = services.sessions.live(principal, session).await?;
    // Before the end: a server that starts no session anew ends none for that.
    let admission = services.drain.admit()?;
    terminate::end(services, &old, sys::signal::KILL, limits::TERMINATE_GRACE).await?;
    let id = SessionId::random(services.settings.node);
    let owner = NewOwner::again(&old.shared.meta);
    let handle = launch(services, &admission, &id, owner, again(&id, &old.shared, None)).await?;
    created(services, principal, &handle).await
}
