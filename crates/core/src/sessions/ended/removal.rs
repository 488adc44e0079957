//! Removes an ended session: its folder, and what this server knows of it.

use crate::ids::SessionId;
use crate::sessions::services::Services;

/// Removes the folder of an ended session, and forgets the session; returns the number of freed bytes.
pub(in crate::sessions) fn remove(services: &Services, id: &SessionId) -> std::io::Result<u64> {
    let folder = services.backends.holders.folder(id);
    let bytes = folder.occupied();
    // A full disk must not keep what is removed to make room.
    if let Err(e) = services.tasks.is_removed(id, folder.clone()) {
        tracing::warn!(session = %id, error = %e, "its tasks will be unknown");
    }
    sys::fault::stall("removal");
    match folder.remove() {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
        Ok(()) | Err(_) => {}
    }
    services.sessions.forget_past(id);
    services.read_cursors.forget(id);
    services.tasks.forget(id);
    services.create_keys.forget(id);
    services.history.store.forget(id.as_str());
    Ok(bytes)
}
