//! Starts a session: reserves its place in the quota, makes its control group, starts its holder, and gives it an actor.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use wire::Spec;

use super::claim_name::claim_name;
use super::launcher::Launcher;
use crate::action::{ActionError, ServerEventKind};
use crate::block_in_place::block_in_place;
use crate::host::holders::{self, Dead, StartedHolder, start_error};
use crate::ids::SessionId;
use crate::sessions::adoption::take_on::take_on;
use crate::sessions::concurrency_limits::SessionPlace;
use crate::sessions::drain::Admission;
use crate::sessions::handle::Handle;
use crate::sessions::names::{NameClaim, WantedName};
use crate::sessions::node_directory::NodeDirectory;
use crate::sessions::resource_limits;
use crate::sessions::services::Services;
use crate::sessions::session_metadata::SessionMetadata;

/// A session that is about to start.
#[derive(Debug)]
pub(in crate::sessions) struct NewSession {
    pub(super) spec: Spec,
    /// The metadata, which the spec has as bytes.
    pub(super) meta: SessionMetadata,
    /// The connection of its container, which has started.
    pub(super) container: Option<OwnedFd>,
}

/// The owner of a session that is about to start, and the name that the session is to have.
#[derive(Debug, Clone)]
pub(in crate::sessions) struct NewOwner {
    pub(in crate::sessions) owner: String,
    pub(in crate::sessions) name: WantedName,
}

impl NewOwner {
    /// The same owner and name as those of an earlier session; another one may have the name by now.
    pub(in crate::sessions) fn again(meta: &SessionMetadata) -> Self {
        let name = meta.name.get().map_or(WantedName::Nothing, WantedName::Like);
        Self { owner: meta.owner.clone(), name }
    }
}

/// Starts a session of this owner, which was admitted. If its caller goes away meanwhile, the start is still completed. `prepare` makes the
/// session's spec and starts its container, and may wait for the disk.
pub(in crate::sessions) async fn launch(
    services: &Arc<Services>,
    admission: &Admission,
    id: &SessionId,
    NewOwner { owner, name }: NewOwner,
    prepare: impl FnOnce(&Launcher) -> Result<NewSession, ActionError> + Send + 'static,
) -> Result<Handle, ActionError> {
    if services.directory.as_ref().is_some_and(NodeDirectory::is_taken) {
        let why = "another server serves with this node's number; the operator has to stop one of them".to_owned();
        return Err(ActionError::Start { why });
    }
    let (services, admission, id) = (Arc::clone(services), admission.clone(), id.clone());
    // A task of its own, so that what waits for the disk keeps nothing else of the caller's from going on.
    let launched = tokio::spawn(async move {
        let _admission = admission;
        let is_token = services.tokens.find_by_name(&owner).is_some();
        let count = |owner: &str, starting: &_| services.sessions.count_live(owner, starting);
        let _reservation = services.launcher.quota.reserve(&id, owner.clone(), is_token, count)?;
        let place = services.launcher.places.take()?;
        // Before anything is started for a session whose name is taken.
        let early = match &name {
            WantedName::Exactly(_) => claim_name(&services, (&id, &owner), &name).await?,
            _ => None,
        };
        let launched = match block_in_place(|| prepare(&services.launcher)) {
            Ok(new) => launch_as(&services, &id, &owner, (name, early), new, place).await,
            Err(e) => Err(e),
        };
        if launched.is_err() {
            // It has a container if the failure came after that was started.
            let services = Arc::clone(&services);
            let _ = tokio::task::spawn_blocking(move || services.backends.containers.end(&id)).await;
        }
        launched
    });
    launched.await.unwrap_or_else(|e| Err(ActionError::Internal { why: e.to_string() }))
}

/// Gives the session its name, which is claimed until the session has it.
async fn launch_as(
    services: &Arc<Services>,
    id: &SessionId,
    owner: &str,
    (name, early): (WantedName, Option<NameClaim<'_>>),
    mut new: NewSession,
    place: SessionPlace,
) -> Result<Handle, ActionError> {
    let claim = match early {
        Some(claim) => Some(claim),
        None => {
            let name = name.in_folder(Path::new(OsStr::from_bytes(&new.spec.cwd)));
            claim_name(services, (id, owner), &name).await?
        }
    };
    new.meta.name.set(claim.as_ref().map(|claim| claim.name.clone()));
    new.spec.meta = new.meta.encode();
    launch_now(services, id, new, place).await
}

async fn launch_now(
    services: &Arc<Services>,
    id: &SessionId,
    new: NewSession,
    place: SessionPlace,
) -> Result<Handle, ActionError> {
    let NewSession { spec, meta, container } = new;
    // The secrets of a container are in the container.
    let secrets = if meta.confinement.container.is_some() { Vec::new() } else { meta.secrets.files };
    let folder = services.backends.holders.folder(id);
    let started = block_in_place(|| {
        resource_limits::make_group(&*services.backends.host, &spec, id, &meta.limits)
            .map_err(|e| start_error("its control group", &e))?;
        services.backends.holders.start(&folder, &spec, &secrets, container).map_err(|e| start_error("its holder", &e))
    });
    let result = match started {
        Ok(StartedHolder { connection, process }) => {
            let identity = process.identity();
            let taken = take_on(services, id, folder.clone(), connection, place).await;
            if taken.is_err() {
                // A holder that does not greet may continue to run, with a shell that could never be found again.
                process.kill().await;
                let (services, id) = (Arc::clone(services), id.clone());
                let sweep = move || identity.map(|it| holders::sweep(&*services.backends.host, &id, Dead::known(it)));
                let _ = tokio::task::spawn_blocking(sweep).await;
            } else {
                tokio::spawn(process.reap());
                // The shell starts meanwhile.
                keep_spare_holder(services);
            }
            if let Ok(handle) = &taken {
                services.server_events.notify(&handle.shared, ServerEventKind::Created);
            }
            taken
        }
        Err(e) => Err(e),
    };
    if result.is_err() {
        let (services, folder) = (Arc::clone(services), folder.clone());
        let removed = move || {
            resource_limits::remove_group(&*services.backends.host, &spec);
            let _ = folder.remove();
        };
        let _ = tokio::task::spawn_blocking(removed).await;
    }
    result
}

/// Starts a holder for the next session, in the background.
pub fn keep_spare_holder(services: &Arc<Services>) {
    let services = Arc::clone(services);
    tokio::task::spawn_blocking(move || {
        services.backends.holders.keep_spare(&SessionId::random(services.settings.node))
    });
}
