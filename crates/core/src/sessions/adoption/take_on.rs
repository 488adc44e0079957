//! Takes on the session of a new holder.

use std::sync::Arc;
use std::time::Duration;

use super::adopt;
use super::seat::{SessionFiles, seat};
use crate::action::ActionError;
use crate::host::holders::{HolderConnection, SessionFolder, greeting, start_error};
use crate::ids::SessionId;
use crate::sessions::concurrency_limits::SessionPlace;
use crate::sessions::handle::Handle;
use crate::sessions::services::Services;

/// How long a new holder may take to send its Hello.
const GREETING: Duration = Duration::from_secs(10);

/// Waits for the Hello of a new holder, and starts the session's actor.
pub(in crate::sessions) async fn take_on(
    services: &Arc<Services>,
    id: &SessionId,
    folder: SessionFolder,
    mut connection: HolderConnection,
    place: SessionPlace,
) -> Result<Handle, ActionError> {
    let early = match tokio::time::timeout(GREETING, greeting(&mut connection)).await {
        Ok(Ok(early)) => early,
        Ok(Err(refused)) => return Err(refused.error(&folder)),
        Err(_) => return Err(ActionError::Start { why: "the holder does not answer".to_owned() }),
    };
    let files =
        SessionFiles::open(&services.backends, id, &folder).map_err(|e| start_error("the session's folder", &e))?;
    let (handle, actor) = seat(services, files, connection, early, None);
    adopt::run(services, actor, Some(place));
    Ok(handle)
}
