//! Claims the name of a session that starts or is renamed. Every way to a name leads through here.

use crate::action::ActionError;
use crate::ids::SessionId;
use crate::sessions::names::{NameClaim, WantedName};
use crate::sessions::services::Services;

/// Claims a name for a session of this owner, until the claim is dropped; none for a session without a name.
pub(in crate::sessions) async fn claim_name<'a>(
    services: &'a Services,
    (id, owner): (&SessionId, &str),
    wanted: &WantedName,
) -> Result<Option<NameClaim<'a>>, ActionError> {
    let sessions = &services.sessions;
    if *wanted != WantedName::Nothing && sessions.adoption.unexamined.has_unknown_names() {
        sessions.adopted().await;
    }
    services.launcher.names.claim(|name| sessions.holder_of_name(owner, name, id), (id, owner), wanted)
}
