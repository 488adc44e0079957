//! Makes the spec of a new session from its checked request: program, environment, confinement, metadata.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use wire::{Rules, Spec};

use super::effective_profile::EffectiveProfile;
use super::launcher::Launcher;
use super::policy_of_new::unprovable;
use super::variables::{get, set};
use crate::action::{ActionError, ConfinementTier, Create, Limits, Variables};
use crate::host::TAG;
use crate::host::containers::{ContainerSettings, Containers, StartedContainer};
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::sessions::request_fingerprint::asked_for;
use crate::sessions::resource_limits;
use crate::sessions::session_metadata::{
    ConfinementMetadata, CreationMetadata, DefaultMetadata, GivenName, SessionMetadata,
};
use crate::sessions::timeline::micros;
use crate::shell::Shell;

/// A checked request.
pub(super) struct Checked {
    pub(super) owner: String,
    /// Columns and rows.
    pub(super) size: (u16, u16),
    pub(super) cwd: PathBuf,
    pub(super) confinement: Option<Rules>,
    pub(super) policy: Option<String>,
    pub(super) limits: Limits,
    pub(super) effective: EffectiveProfile,
    /// The environment, as far as it does not depend on the shell.
    pub(super) env: Variables,
    pub(super) shell: Shell,
}

/// The spec of a new session, and its metadata, which the spec has as bytes.
pub(super) fn spec(
    launcher: &Launcher,
    id: &SessionId,
    principal: &Principal,
    request: &Create,
    checked: Checked,
    inside: Option<&(ContainerSettings, StartedContainer)>,
) -> Result<(Spec, SessionMetadata), ActionError> {
    let Checked { owner, size: (cols, rows), cwd, mut confinement, policy, limits, effective, mut env, shell } =
        checked;
    let profile = &effective.profile;
    let tier = profile.confinement.as_ref().map(|confinement| confinement.tier);
    let unprovable = policy.as_ref().and_then(|_| unprovable(principal, request, profile, &shell.name, &env));
    for (name, value) in &shell.env {
        set(&mut env, name, value);
    }
    // Hosts that a desktop or systemd starts have no locale, and then no program knows the terminal's characters.
    let is_set = |name: &&[u8]| get(&env, name).is_some_and(|value| !value.is_empty());
    if ![&b"LC_ALL"[..], b"LC_CTYPE", b"LANG"].iter().any(is_set) {
        set(&mut env, b"LANG", b"C.UTF-8");
    }
    set(&mut env, b"TERM", profile.term.as_deref().unwrap_or("xterm-256color").as_bytes());
    set(&mut env, TAG.as_bytes(), id.as_str().as_bytes());
    let folder = launcher.backends.holders.folder(id);
    let secrets = effective.secrets.paths(|name| match inside {
        Some(_) => Containers::secret(name),
        None => folder.secret(name),
    });
    for (name, path) in secrets {
        if !request.env.iter().any(|(asked, _)| asked.as_bytes() == name) {
            set(&mut env, &name, &path);
        }
    }
    if let Some(rules) = &mut confinement {
        let has_secrets = tier != Some(ConfinementTier::Container) && !effective.secrets.files.is_empty();
        rules.readable.extend(has_secrets.then(|| launcher.backends.host.resolved_path(&folder.secrets())));
        let has_scripts = tier != Some(ConfinementTier::Container);
        let scripts = launcher.integration.folder();
        rules.readable.extend(has_scripts.then(|| launcher.backends.host.resolved_path(&scripts)));
    }
    let meta = SessionMetadata {
        // The start gives it.
        name: GivenName::default(),
        owner,
        shell: shell.name,
        login: effective.is_login(request),
        created_us: micros(sys::time::wall()),
        env: request.env.clone(),
        client: request.client.clone(),
        detach: request.detach,
        default: DefaultMetadata { is_default: request.is_default, first_cwd: None },
        key: request.key.clone(),
        creation: CreationMetadata {
            boot_us: sys::time::since_boot_us(),
            asked: request.key.is_some().then(|| asked_for(request)),
            client_name: principal.origin.client_name.as_deref().map(str::to_owned),
        },
        limits,
        named_actions: request.named_actions.clone(),
        profile: effective.name,
        confinement: ConfinementMetadata { tier, container: inside.map(|(settings, _)| settings.clone()) },
        user: effective.user.as_ref().map(|user| user.name.clone()),
        startup: profile.startup.clone(),
        policy,
        unprovable,
        secrets: effective.secrets,
    };
    let umask = effective.profile.umask.or(request.otherwise.umask).unwrap_or(launcher.umask);
    let mut spec = Spec {
        session: id.to_string(),
        program: shell.program.into_os_string().into_vec(),
        argv: shell.argv,
        env: env.into_iter().map(|(n, v)| [&n, b"=".as_slice(), &v].concat()).collect(),
        cwd: cwd.into_os_string().into_vec(),
        umask: umask & 0o777,
        cols,
        rows,
        journal_bytes_max: launcher.journal_bytes_max,
        may_splice: launcher.backends.holders.may_splice(),
        keeps_descendants: request.keeps_descendants,
        meta: meta.encode(),
        open_files: launcher.open_files,
        handover: shell.handover,
        confinement,
        identity: match inside {
            Some((_, inside)) => inside.identity.clone(),
            None => effective.user.map(|user| user.identity()).unwrap_or_default(),
        },
        ..Spec::default()
    };
    resource_limits::plan(&*launcher.backends.host, &mut spec, id, &limits)?;
    Ok((spec, meta))
}
