//! Blocking disk work of requests.

use crate::action::ActionError;

/// Runs blocking disk work on the blocking pool; it finishes even if the caller is cancelled.
pub(super) async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ActionError> + Send + 'static,
) -> Result<T, ActionError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|e| Err(ActionError::Internal { why: e.to_string() }))
}
