//! The sessions of a stdio client that has disconnected.

use std::sync::Arc;

use super::services::Services;
use super::tasks::follow::wait_on_for_tasks;
use crate::ids::SessionId;
use crate::limits;
use crate::principal::{Principal, Scope};

/// Waits until a client's grace period is over; returns its live sessions, each with the principal that owns it.
///
/// It omits a session with an open task and checks it again later, because the client was told that the task continues.
pub(crate) async fn sessions_of_gone_client(services: &Arc<Services>) -> Vec<(SessionId, Principal)> {
    let client = services.clients.gone().await;
    let owner = |name: &str| Principal::named(name, Scope::Write);
    let own = services.sessions.handles().into_iter().filter(|h| h.shared.meta.client.as_ref() == Some(&client));
    let (mut ending, mut is_kept) = (Vec::new(), false);
    for handle in own {
        let id = handle.shared.id.clone();
        wait_on_for_tasks(Arc::clone(services), id.clone()).await;
        if services.tasks.keeps(&id) {
            is_kept = true;
        } else {
            ending.push((id, owner(&handle.shared.meta.owner)));
        }
    }
    if is_kept {
        services.clients.later(&client, limits::TASK_KEEPS_LOOKED_AT);
    } else {
        services.create_keys.forget_client(&client);
    }
    ending
}
