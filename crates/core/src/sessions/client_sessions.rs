//! The sessions of a stdio client that has disconnected.

use std::sync::Arc;

use super::registry::Registry;
use crate::ids::SessionId;
use crate::limits;
use crate::mutex::locked;
use crate::principal::{Principal, Scope};

impl Registry {
    /// Waits until a client's grace period is over; returns its live sessions, each with the principal that owns it.
    ///
    /// A session with an open task is left out, and looked at again later: its person was told that it runs on.
    pub(crate) async fn sessions_of_gone_client(self: &Arc<Self>) -> Vec<(SessionId, Principal)> {
        let client = self.clients.gone().await;
        let owner = |name: &str| Principal::named(name, Scope::Write);
        let own = self.handles().into_iter().filter(|h| h.shared.meta.client.as_ref() == Some(&client));
        let (mut ending, mut is_kept) = (Vec::new(), false);
        for handle in own {
            let id = handle.shared.id.clone();
            Arc::clone(self).wait_on_for_tasks(id.clone()).await;
            if self.tasks.keeps(&id) {
                is_kept = true;
            } else {
                ending.push((id, owner(&handle.shared.meta.owner)));
            }
        }
        if is_kept {
            self.clients.later(&client, limits::TASK_KEEPS_LOOKED_AT);
        } else {
            locked(&self.create_keys.defaults).remove(&client);
        }
        ending
    }
}
