//! Prepares a session once more: a reset, or a default session whose shell has ended.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::container;
use super::launcher::Launcher;
use super::start::{NewOwner, NewSession, launch};
use crate::action::ActionError;
use crate::host::TAG;
use crate::ids::SessionId;
use crate::sessions::backends::Backends;
use crate::sessions::drain::Admission;
use crate::sessions::ended::session::EndedSession;
use crate::sessions::handle::Handle;
use crate::sessions::resource_limits;
use crate::sessions::services::Services;
use crate::sessions::session_metadata::{CreationMetadata, SessionMetadata};
use crate::sessions::shared::Shared;
use crate::sessions::timeline::micros;

/// Returns the function that prepares this session once more, in its original directory or in this one.
pub(in crate::sessions) fn again(
    id: &SessionId,
    old: &Arc<Shared>,
    cwd: Option<PathBuf>,
) -> impl FnOnce(&Launcher) -> Result<NewSession, ActionError> + Send + use<> {
    let (id, old) = (id.clone(), Arc::clone(old));
    move |launcher| prepare_again(launcher, &old, &id, cwd.as_deref())
}

/// Prepares the same session for a reset: the original directory or this one, environment, secrets and size under a new id.
fn prepare_again(
    launcher: &Launcher,
    old: &Shared,
    id: &SessionId,
    cwd: Option<&Path>,
) -> Result<NewSession, ActionError> {
    let backends = &launcher.backends;
    let tag = format!("{TAG}=");
    let mut spec = old.spec.clone();
    spec.session = id.to_string();
    for entry in &mut spec.env {
        if entry.starts_with(tag.as_bytes()) {
            *entry = format!("{tag}{id}").into_bytes();
        }
    }
    let folder = backends.holders.folder(id);
    let entry = |(name, path): (Vec<u8>, Vec<u8>)| [&name, b"=".as_slice(), &path].concat();
    let secrets = &old.meta.secrets;
    let (paths_before, paths_now) = (secrets.paths(|it| old.folder.secret(it)), secrets.paths(|it| folder.secret(it)));
    for (before, now) in paths_before.into_iter().zip(paths_now) {
        let (before, now) = (entry(before), entry(now));
        spec.env.iter_mut().filter(|it| **it == before).for_each(|it| it.clone_from(&now));
    }
    let [secrets_before, secrets_now] =
        [old.folder.secrets(), folder.secrets()].map(|path| backends.host.resolved_path(&path));
    for readable in spec.confinement.iter_mut().flat_map(|rules| &mut rules.readable) {
        if *readable == secrets_before {
            readable.clone_from(&secrets_now);
        }
    }
    let mut meta = SessionMetadata {
        created_us: micros(sys::time::wall()),
        key: None,
        creation: CreationMetadata {
            boot_us: sys::time::since_boot_us(),
            asked: None,
            client_name: old.meta.creation.client_name.clone(),
        },
        ..old.meta.clone()
    };
    let first = meta.default.first_cwd.take().unwrap_or_else(|| spec.cwd.clone());
    let cwd = cwd.map_or_else(|| first.clone(), |cwd| cwd.as_os_str().as_bytes().to_vec());
    if cwd != spec.cwd {
        spec.env.retain(|entry| !entry.starts_with(b"PWD="));
        spec.env.push([b"PWD=", cwd.as_slice()].concat());
        spec.cwd = cwd;
    }
    meta.default.first_cwd = Some(first).filter(|first| *first != spec.cwd);
    spec.meta = meta.encode();
    resource_limits::plan(&*backends.host, &mut spec, id, &meta.limits)?;
    let rules = spec.confinement.clone().unwrap_or_default();
    let run = |settings| container::run_container(launcher, id, settings, &rules, &meta.secrets.files);
    let container = meta.confinement.container.as_ref().map(run).transpose()?;
    Ok(NewSession { spec, meta, container: container.map(|it| it.connection) })
}

/// Starts a client's default session again, in the directory where its shell has ended by itself. If it cannot begin there,
/// for example because that directory is gone, it begins in the client's.
pub(in crate::sessions) async fn launch_again(
    services: &Arc<Services>,
    admission: &Admission,
    old: &EndedSession,
    id: &SessionId,
) -> Result<Handle, ActionError> {
    if let Some(cwd) = kept_directory(&services.backends, old) {
        let again = again(id, &old.shared, Some(cwd));
        if let Ok(handle) = launch(services, admission, id, NewOwner::again(&old.shared.meta), again).await {
            return Ok(handle);
        }
    }
    let id = SessionId::random(services.settings.node);
    launch(services, admission, &id, NewOwner::again(&old.shared.meta), again(&id, &old.shared, None)).await
}

/// The directory of a shell that ended by itself. A confined session keeps a directory only if it could change it, because
/// the answer must not show whether a hidden directory exists. In a container, it keeps a directory of its mounts.
fn kept_directory(backends: &Backends, old: &EndedSession) -> Option<PathBuf> {
    let (view, host) = (old.view(), &backends.host);
    let is_known = old.ended_by_itself();
    let is_within = |cwd: &PathBuf| {
        old.shared.spec.confinement.as_ref().is_none_or(|rules| {
            let cwd = host.resolved_path(cwd);
            rules.writable.iter().any(|place| cwd.starts_with(place))
        })
    };
    Some(view.cwd).filter(|cwd| is_known && is_within(cwd) && host.file(cwd).is_some_and(|it| it.is_directory))
}
