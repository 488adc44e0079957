//! Starts a session: reserves its place in the quota, makes its control group, starts its holder, and gives it an actor.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use wire::Spec;

use super::actions::container::not_started;
use super::handle::Handle;
use super::registry::{NODE, Registry};
use super::resource_limits;
use super::session::Request;
use super::session_metadata::SessionMetadata;
use crate::action::{ActionError, ServerEventKind};
use crate::block_in_place::block_in_place;
use crate::host::containers::ContainerSettings;
use crate::host::holders::{self, Dead, StartedHolder, start_error};
use crate::ids::SessionId;
use crate::limits;
use crate::mutex::locked;

impl Registry {
    /// Starts a session of this owner. If its caller goes away meanwhile, the start is still completed. `spec` makes the
    /// session's spec, and may wait for the disk.
    pub(super) async fn launch(
        self: &Arc<Self>,
        id: &SessionId,
        owner: String,
        spec: impl FnOnce(&Self) -> Result<Spec, ActionError> + Send + 'static,
    ) -> Result<Handle, ActionError> {
        let (registry, id) = (Arc::clone(self), id.clone());
        // A task of its own, so that what waits for the disk keeps nothing else of the caller's from going on.
        let launched = tokio::spawn(async move {
            let is_token = registry.tokens.find_by_name(&owner).is_some();
            let count = |owner: &str, starting: &_| registry.count_live(owner, starting);
            let _reservation = registry.quota.reserve(&id, owner, is_token, count)?;
            let spec = block_in_place(|| spec(&registry));
            let launched = match spec {
                Ok(spec) => registry.launch_now(&id, &Arc::new(spec)).await,
                Err(e) => Err(e),
            };
            if launched.is_err() {
                // It has a container if the failure came after that was started.
                let registry = Arc::clone(&registry);
                let _ = tokio::task::spawn_blocking(move || registry.backends.containers.end(&id)).await;
            }
            launched
        });
        launched.await.unwrap_or_else(|e| Err(ActionError::Internal { why: e.to_string() }))
    }

    async fn launch_now(self: &Arc<Self>, id: &SessionId, spec: &Arc<Spec>) -> Result<Handle, ActionError> {
        let SessionMetadata { secrets, confinement, .. } = SessionMetadata::decode(&spec.meta);
        let folder = self.holders().folder(id);
        let started = block_in_place(|| {
            resource_limits::make_group(self.host(), spec, id).map_err(|e| start_error("its control group", &e))?;
            let (files, container) = match &confinement.container {
                None => (secrets.files.as_slice(), None),
                Some(settings) => (&[][..], Some(self.container_for(id, spec, settings, &secrets.files)?)),
            };
            self.holders().start(&folder, spec, files, container).map_err(|e| start_error("its holder", &e))
        });
        let result = match started {
            Ok(StartedHolder { connection, process }) => {
                let identity = process.identity();
                let taken = self.take_on(id, folder.clone(), connection).await;
                if taken.is_err() {
                    // A holder that does not greet may continue to run, with a shell that could never be found again.
                    process.kill().await;
                    let (registry, id) = (Arc::clone(self), id.clone());
                    let sweep = move || identity.map(|it| holders::sweep(registry.host(), &id, Dead::known(it)));
                    let _ = tokio::task::spawn_blocking(sweep).await;
                } else {
                    tokio::spawn(process.reap());
                    // The shell starts meanwhile.
                    self.keep_spare_holder();
                }
                if let Ok(handle) = &taken {
                    self.server_events.notify(&handle.shared, ServerEventKind::Created);
                }
                taken
            }
            Err(e) => Err(e),
        };
        if result.is_err() {
            let (registry, spec, folder) = (Arc::clone(self), Arc::clone(spec), folder.clone());
            let removed = move || {
                resource_limits::remove_group(registry.host(), &spec);
                let _ = folder.remove();
            };
            let _ = tokio::task::spawn_blocking(removed).await;
        }
        result
    }

    /// The container that was started for a new session, or a new one for the same session once more.
    fn container_for(
        &self,
        id: &SessionId,
        spec: &Spec,
        settings: &ContainerSettings,
        secrets: &[(String, String)],
    ) -> Result<OwnedFd, ActionError> {
        let containers = &self.backends.containers;
        if let Some(waiting) = containers.take(id) {
            return Ok(waiting);
        }
        let rules = spec.confinement.clone().unwrap_or_default();
        self.run_container(id, settings, &rules, secrets)?;
        containers.take(id).ok_or_else(|| not_started("it is gone".to_owned()))
    }

    /// Starts a holder for the next session, in the background.
    pub fn keep_spare_holder(self: &Arc<Self>) {
        let registry = Arc::clone(self);
        tokio::task::spawn_blocking(move || registry.holders().keep_spare(&SessionId::random(NODE)));
    }

    /// How many sessions live, also those whose holder cannot be reached, and how many of them this owner has; of those
    /// that are being started, the ones that live already are not counted again.
    fn count_live(&self, owner: &str, starting: &HashMap<SessionId, String>) -> (usize, usize) {
        let live = locked(&self.live);
        let unreachable = locked(&self.adoption.unreachable);
        let more = unreachable.values().filter(|u| !live.contains_key(&u.id)).map(|u| u.meta.owner.as_str());
        let is_live = |id: &SessionId| live.contains_key(id) || unreachable.contains_key(id);
        let fresh = starting.iter().filter(|(id, _)| !is_live(id)).map(|(_, owner)| owner.as_str());
        let count = |(all, owned), of: &str| (all + 1, owned + usize::from(of == owner));
        more.chain(fresh).fold((live.len(), live.of_owner(owner)), count)
    }

    /// Waits for the first prompt, or until the session is reported as `creating`.
    pub(super) async fn first_prompt(&self, handle: &Handle) {
        let _ = tokio::time::timeout(limits::CREATE_WAIT, handle.ask(Request::Prompt)).await;
    }
}
