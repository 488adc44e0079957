//! The session in which a request runs or types something, and the request's idempotency key: found and made once, for the policy and for
//! the action.

use wire::{Key, NO_KEY};

use super::actions::idempotency;
use super::handle::Handle;
use super::services::Services;
use super::session::Typing;
use crate::action::{Action, ActionError};
use crate::principal::Principal;

/// The session and the key of a request that runs or types something.
#[derive(Debug)]
pub(crate) struct Target {
    /// The live session, or the answer to the request.
    pub(super) live: Result<Handle, ActionError>,
    /// The key as the holder has it.
    pub(super) key: Key,
    /// The client that runs or types it.
    pub(super) typing: Typing,
}

impl Target {
    /// Finds the session of this action; none for one that neither runs nor types. A key that has started a session cannot
    /// be used for another request.
    pub(crate) async fn of(
        services: &Services,
        principal: &Principal,
        action: &Action,
    ) -> Result<Option<Self>, ActionError> {
        let (session, name, key) = match action {
            Action::Execute(request) => {
                (&request.session, request.key.as_deref(), idempotency::key_of_command(services, request))
            }
            Action::Input(request) => {
                (&request.session, request.key.as_deref(), idempotency::key_of_input(services, request))
            }
            Action::Type { session, bytes, key } => (session, None, idempotency::key_of(services, key, bytes)),
            _ => return Ok(None),
        };
        let live = services.sessions.live(principal, session).await;
        if live.is_ok() {
            idempotency::not_a_creates(services, principal, name).await?;
        }
        Ok(Some(Self { live, key, typing: Typing::of(principal) }))
    }

    /// The key, unless the request has none.
    pub(super) fn key(&self) -> Option<Key> {
        Some(self.key).filter(|key| *key != NO_KEY)
    }
}
