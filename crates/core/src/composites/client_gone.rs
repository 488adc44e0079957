//! Ends the sessions of a stdio client that has disconnected, once its grace period is over.

use crate::action::{Action, Dispatch, Terminate};
use crate::ids::SessionId;
use crate::principal::Principal;

/// Ends these sessions one after the other, each for its owner.
pub(crate) async fn end(dispatch: &dyn Dispatch, sessions: Vec<(SessionId, Principal)>) {
    for (session, owner) in sessions {
        tracing::info!(%session, "its client has gone");
        let terminate = Terminate { session, force: false, signo: None, grace: None, purges: false };
        // A session that does not end now was ended before, or its holder keeps it.
        let _ = dispatch.dispatch(&owner, Action::Terminate(terminate)).await;
    }
}
