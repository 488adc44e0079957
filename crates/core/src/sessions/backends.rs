//! The machine of the sessions, the backend of their holders, and the history: every session of a server shares them.

use std::sync::Arc;

use super::toolchains::Toolchains;
use crate::credentials::named_secrets::NamedSecrets;
use crate::host::Host;
use crate::host::containers::Containers;
use crate::host::holders::HolderBackend;
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
