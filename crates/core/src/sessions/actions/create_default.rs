//! Returns a client's live default session, or starts one.

use std::sync::Arc;

use super::carried_on::CarriedOn;
use super::default_session::{self, DefaultSession};
use super::start_default::start_default;
use crate::action::{ActionError, Create, Created, SessionStatus, SessionView};
use crate::limits;
use crate::principal::Principal;
use crate::sessions::handle::Handle;
use crate::sessions::launch::created::created;
use crate::sessions::services::Services;

/// Returns a client's live default session. If there is none, starts one, like the last one if there was one.
pub(super) async fn create_default(
    services: &Arc<Services>,
    principal: &Principal,
    request: &Create,
    client: &str,
) -> Result<Created, ActionError> {
    let turn = default_session::default_turn(services, client).await;
    let earlier = match default_session::default_of(services, principal, client).await? {
        DefaultSession::Live(_, snapshot) => return Ok(Created::earlier(snapshot.view)),
        DefaultSession::Ended(old) => Some(old),
        DefaultSession::Nothing => None,
    };
    let (services, principal, request) = (Arc::clone(services), principal.clone(), request.clone());
    // If the caller goes away meanwhile, the turn still ends only when the session is known.
    CarriedOn::new(async move {
        let handle = start_default(&services, &principal, &request, earlier).await?;
        drop(turn);
        default_created(&services, &principal, &handle).await
    })
    .await
}

async fn default_created(services: &Services, principal: &Principal, handle: &Handle) -> Result<Created, ActionError> {
    let mut created = created(services, principal, handle).await?;
    created.left_behind = left_behind(services, &created.session.owner).await;
    Ok(created)
}

/// The live sessions of this owner whose client has disconnected, the one used last first.
async fn left_behind(services: &Services, owner: &str) -> Vec<SessionView> {
    let live = services.sessions.handles();
    let is_left = |handle: &&Handle| {
        let meta = &handle.shared.meta;
        meta.owner == owner && meta.client.as_ref().is_some_and(|client| services.clients.is_gone(client))
    };
    let mut left: Vec<_> = live.iter().filter(is_left).filter_map(|h| Some((h, h.published()?.0))).collect();
    left.retain(|(_, view)| view.status != SessionStatus::Terminated);
    left.sort_by_key(|(_, view)| std::cmp::Reverse(view.last_activity));
    for (handle, view) in left.iter_mut().take(limits::LEFT_BEHIND_NAMED) {
        if let Ok(now) = services.sessions.live_view(handle).await {
            *view = now;
        }
    }
    left.into_iter().map(|(_, view)| view).collect()
}
