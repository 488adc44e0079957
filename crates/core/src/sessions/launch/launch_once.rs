//! Starts a session once on all nodes: claims the key of its create in the directory.

use std::sync::Arc;

use super::launcher::Launcher;
use super::start::{NewOwner, NewSession, launch};
use crate::action::ActionError;
use crate::ids::SessionId;
use crate::sessions::drain::Admission;
use crate::sessions::handle::Handle;
use crate::sessions::services::Services;

/// Starts a session. A directory has its key first, so that no other node starts one with the same key.
pub(in crate::sessions) async fn launch_once(
    services: &Arc<Services>,
    admission: &Admission,
    id: &SessionId,
    owner: NewOwner,
    key: Option<&str>,
    new: impl FnOnce(&Launcher) -> Result<NewSession, ActionError> + Send + 'static,
) -> Result<Handle, ActionError> {
    // A server without its number starts nothing, and its claim would take the key from the other one's session.
    let directory = services.directory.as_ref().filter(|directory| !directory.is_taken());
    let Some((directory, key)) = directory.zip(key) else {
        return launch(services, admission, id, owner, new).await;
    };
    let owner_name = owner.owner.clone();
    let (elsewhere, is_answered) = directory.claim_create(&owner_name, key, id).await;
    services.server_events.metrics.called_directory("create", is_answered);
    if let Some(other) = elsewhere {
        return Err(ActionError::OtherNode { node: other.node(), id: other.to_string() });
    }
    let launched = launch(services, admission, id, owner, new).await;
    if launched.is_err() && services.create_keys.session(&owner_name, key).is_none() {
        directory.release_create(&owner_name, key, id).await;
    }
    launched
}
