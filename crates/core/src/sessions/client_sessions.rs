//! The sessions of a stdio client that has disconnected.

use super::registry::Registry;
use crate::ids::SessionId;
use crate::mutex::locked;
use crate::principal::{Principal, Scope};

impl Registry {
    /// Waits until a client's grace period is over; returns its live sessions, each with the principal that owns it.
    pub(crate) async fn sessions_of_gone_client(&self) -> Vec<(SessionId, Principal)> {
        let client = self.clients.gone().await;
        locked(&self.create_keys.defaults).remove(&client);
        let live = locked(&self.live);
        let own = live.values().filter(|h| h.shared.meta.client.as_ref() == Some(&client));
        let owner = |name: &str| Principal { name: name.to_owned(), scope: Scope::Write, pass: None, client: None };
        own.map(|h| (h.shared.id.clone(), owner(&h.shared.meta.owner))).collect()
    }
}
