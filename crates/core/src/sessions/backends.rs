//! The machine of the sessions, the backend of their holders, and the history: every session of a server shares them.

use std::sync::Arc;

use super::session_metadata::SessionMetadata;
use super::toolchains::Toolchains;
use crate::credentials::named_secrets::NamedSecrets;
use crate::host::Host;
use crate::host::containers::Containers;
use crate::host::holders::{HolderBackend, Liveness};
use crate::ids::SessionId;
use crate::lane::Lanes;
use crate::store::Store;

#[derive(Debug)]
pub(crate) struct Backends {
    pub(crate) store: Arc<Store>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) holders: HolderBackend,
    pub(crate) containers: Containers,
    pub(crate) toolchains: Toolchains,
    pub(crate) secrets: NamedSecrets,
    pub(crate) lanes: Arc<Lanes>,
}

impl Backends {
    /// Removes the container of a session that has ended: its first process has ended with the holder, and its engine may have
    /// removed it.
    pub(super) fn end_container(self: &Arc<Self>, id: &SessionId, meta: &SessionMetadata) {
        if meta.confinement.container.is_some() {
            let (backends, id) = (Arc::clone(self), id.clone());
            tokio::task::spawn_blocking(move || backends.containers.end(&id));
        }
    }

    /// Removes the containers that earlier servers have left, if the holder of their session has ended or never began. A
    /// session that ends in the meantime removes its own.
    pub(super) fn end_earlier_containers(self: &Arc<Self>) {
        let earlier = self.containers.take_earlier();
        if earlier.is_empty() {
            return;
        }
        let backends = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            for id in earlier {
                match backends.holders.liveness(&backends.holders.folder(&id), None) {
                    Liveness::Alive(_) | Liveness::MayLive(_) | Liveness::Copy(_) | Liveness::Unknown(_) => {}
                    Liveness::Dead(_) | Liveness::NeverBegan => {
                        backends.containers.end(&id);
                    }
                }
            }
        });
    }
}
