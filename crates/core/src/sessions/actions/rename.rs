//! Changes the name of a live session.

use std::sync::Arc;

use super::carried_on::CarriedOn;
use crate::action::{ActionError, SessionView};
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::sessions::launch::claim_name::claim_name;
use crate::sessions::names::{WantedName, checked_name};
use crate::sessions::on_disk::on_disk;
use crate::sessions::services::Services;

/// Gives the session this name, and returns the session afterwards.
pub(in crate::sessions) async fn rename(
    services: &Arc<Services>,
    principal: &Principal,
    session: &SessionId,
    name: &str,
) -> Result<SessionView, ActionError> {
    let Some(name) = checked_name(Some(name))? else {
        return Err(ActionError::Invalid { field: "name", problem: "is empty".to_owned() });
    };
    let handle = services.sessions.live(principal, session).await?;
    // A caller that goes away does not free the claim before the session has the name.
    let (its_services, shared) = (Arc::clone(services), Arc::clone(&handle.shared));
    CarriedOn::new(async move {
        let wanted = WantedName::Exactly(name.clone());
        let claim = claim_name(&its_services, (&shared.id, &shared.meta.owner), &wanted).await?;
        let its = Arc::clone(&shared);
        let renamed = on_disk(move || {
            let why = |e| ActionError::Exhausted { why: format!("the session's new name was not written: {e}") };
            its.rename(name).map_err(why)
        })
        .await;
        drop(claim);
        renamed
    })
    .await?;
    services.sessions.view_of(principal, &handle).await
}
