//! Builds the spec of a new session from a request: shell, environment, directory, size; and again for a reset.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use wire::Spec;

use super::confinement::namespaces;
use super::container;
use super::directory::{check_directory, full_directory, set_directory};
use super::launcher::Launcher;
use super::policy_of_new::{self, unprovable};
use super::setting::{self, Setting};
use super::start::NewSession;
use super::variables::{get, set};
use crate::action::{ActionError, Create, Limits, Variables};
use crate::confinement_tier::ConfinementTier;
use crate::host::TAG;
use crate::host::containers::{ContainerSettings, Containers, StartedContainer};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;
use crate::profile::{Confinement, Profile, StartFiles};
use crate::sessions::backends::Backends;
use crate::sessions::request_words::asked_for;
use crate::sessions::resource_limits;
use crate::sessions::session_metadata::{ConfinementMetadata, DefaultMetadata, SessionMetadata};
use crate::sessions::shared::Shared;
use crate::sessions::timeline::micros;
use crate::shell::{ScriptAccess, Shell, Wanted};

/// The error of a confined session whose request names no directory.
const NO_WORKSPACE: &str = "a confined session needs a folder that it may change, and the request names none: name a project's folder \
                            (`cwd`), or start it with a profile that has a `cwd`";

/// Checks a request, starts the container that it needs, and makes the spec of the new session. Waits for the disk. `start_files`:
/// those that its shell reads, if the profile leaves them to the user.
fn prepare(
    launcher: &Launcher,
    id: &SessionId,
    principal: &Principal,
    request: &Create,
    start_files: StartFiles,
) -> Result<NewSession, ActionError> {
    let owner = owner(principal, request)?;
    let name = checked_name(request.name.as_deref())?;
    let mut setting = setting::setting(launcher, principal, request)?;
    if start_files == StartFiles::Clean {
        setting.profile.rc = StartFiles::Clean;
    }
    let (profile, otherwise) = (&setting.profile, &request.otherwise);
    let tier = profile.confinement.as_ref().map(|confinement| confinement.tier);
    if request.keeps_descendants && tier.is_some_and(ConfinementTier::has_namespaces) {
        let problem =
            "a sandbox and a container end with all of their processes; omit `keep`, or use the tier `process`";
        return Err(ActionError::Invalid { field: "onEnd", problem: problem.to_owned() });
    }
    let (cols, rows) = (request.cols.or(profile.cols), request.rows.or(profile.rows));
    let (cols, rows) = checked_size(cols.or(otherwise.cols), rows.or(otherwise.rows))?;
    let mut env = setting.variables(setting.inherited(request), request)?;
    let chosen = directory(&setting, request, &env)?;
    let (is_chosen, cwd) = (chosen.is_some(), chosen.unwrap_or_else(|| default_directory(&launcher.backends, profile)));
    // Before a look at the directory: what is hidden from the session is not told here either.
    let is_bound = principal.profiles().is_some();
    let mut confinement =
        container::rules(launcher, &setting, is_bound, &cwd, get(&env, b"HOME")).map_err(|error| match error {
            ActionError::Invalid { field: "cwd", .. } if !is_chosen => {
                ActionError::Invalid { field: "cwd", problem: NO_WORKSPACE.to_owned() }
            }
            error => error,
        })?;
    let is_the_containers = profile.confinement.as_ref().is_some_and(has_own_directory);
    if !is_the_containers {
        check_directory(&*launcher.backends.host, &cwd)?;
    }
    set_directory(&*launcher.backends.host, &mut env, &cwd);
    let policy = policy_of_new::policy_of_new(&launcher.policies, principal, request, profile)?;
    let limits = resource_limits(launcher, principal, request, profile)?;
    // An engine runs for nothing that is refused anyway.
    let inside = container::start_container(launcher, id, &setting, confinement.as_ref())?;
    if let Some((_, inside)) = &inside {
        // An image has its own PATH and HOME, and no variable of the machine says anything in it.
        env = setting.variables(inside.environment.clone(), request)?;
        set(&mut env, b"PWD", cwd.as_os_str().as_bytes());
        if !inside.files.is_directory(&cwd) {
            let problem = format!("{} is not a directory in the container", cwd.display());
            return Err(ActionError::Invalid { field: "cwd", problem });
        }
    }
    let shell = shell(launcher, &setting, request, inside.as_ref(), &env)?;
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
    let secrets = setting.secrets.paths(|name| match &inside {
        Some(_) => Containers::secret(name),
        None => folder.secret(name),
    });
    for (name, path) in secrets {
        if !request.env.iter().any(|(asked, _)| asked.as_bytes() == name) {
            set(&mut env, &name, &path);
        }
    }
    if let Some(rules) = &mut confinement {
        let has_secrets = tier != Some(ConfinementTier::Container) && !setting.secrets.files.is_empty();
        rules.readable.extend(has_secrets.then(|| launcher.backends.host.resolved_path(&folder.secrets())));
        let has_scripts = tier != Some(ConfinementTier::Container);
        let scripts = launcher.integration.folder();
        rules.readable.extend(has_scripts.then(|| launcher.backends.host.resolved_path(&scripts)));
    }
    let meta = SessionMetadata {
        name,
        owner,
        shell: shell.name,
        login: setting.is_login(request),
        created_us: micros(SystemTime::now()),
        env: request.env.clone(),
        client: request.client.clone(),
        detach: request.detach,
        default: DefaultMetadata { is_default: request.is_default, first_cwd: None },
        key: request.key.clone(),
        asked: request.key.is_some().then(|| asked_for(request)),
        limits,
        named_actions: request.named_actions.clone(),
        profile: setting.name,
        confinement: ConfinementMetadata { tier, container: inside.as_ref().map(|(settings, _)| settings.clone()) },
        user: setting.user.as_ref().map(|user| user.name.clone()),
        startup: setting.profile.startup,
        policy,
        unprovable,
        secrets: setting.secrets,
    };
    let secrets = folder_secrets(&meta);
    let umask = setting.profile.umask.or(request.otherwise.umask).unwrap_or(launcher.umask);
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
        identity: match &inside {
            Some((_, inside)) => inside.identity.clone(),
            None => setting.user.map(|it| [vec![it.uid, it.gid], it.groups].concat()).unwrap_or_default(),
        },
        ..Spec::default()
    };
    resource_limits::plan(&*launcher.backends.host, &mut spec, id, &limits)?;
    Ok(NewSession { spec, secrets, container: inside.map(|(_, inside)| inside.connection) })
}

/// The secrets that are files in the session's folder; those of a container are in the container.
fn folder_secrets(meta: &SessionMetadata) -> Vec<(String, String)> {
    if meta.confinement.container.is_some() { Vec::new() } else { meta.secrets.files.clone() }
}

/// The directory in which the shell is to start, if the request, its profile or its client names one.
fn directory(setting: &Setting, request: &Create, env: &Variables) -> Result<Option<PathBuf>, ActionError> {
    let profile = &setting.profile;
    // Another user may have no access to the client's directory.
    let at_home = setting.user.as_ref().map(|_| PathBuf::from("~"));
    let cwd = request.cwd.as_ref().or(profile.cwd.as_ref()).or(at_home.as_ref());
    full_directory(cwd.or(request.otherwise.cwd.as_ref()), get(env, b"HOME"))
}

fn default_directory(backends: &Backends, profile: &Profile) -> PathBuf {
    match profile.confinement.as_ref().is_some_and(has_own_directory) {
        true => PathBuf::from("/"),
        false => backends.host.default_directory(),
    }
}

fn resource_limits(
    launcher: &Launcher,
    principal: &Principal,
    request: &Create,
    profile: &Profile,
) -> Result<Limits, ActionError> {
    let inactivity = principal.pass.as_ref().map(|_| limits::TOKEN_INACTIVITY);
    let default = launcher.limits.or(Limits { inactivity, ..Limits::default() });
    let asked = request.limits.or(profile.limits.or(default));
    let limits = resource_limits::within(asked, &launcher.limits_max)?;
    // A token that is bound to profiles gets no more by a request than they give.
    if principal.profiles().is_some() {
        resource_limits::within(limits, &profile.limits)?;
    }
    let namespaces = profile.confinement.as_ref().map(|confinement| namespaces(confinement.tier)).unwrap_or_default();
    resource_limits::can_be_kept(&*launcher.backends.host, &limits, namespaces)?;
    Ok(limits)
}

/// The shell of a new session, of the machine or of its container.
fn shell(
    launcher: &Launcher,
    setting: &Setting,
    request: &Create,
    inside: Option<&(ContainerSettings, StartedContainer)>,
    env: &Variables,
) -> Result<Shell, ActionError> {
    let profile = &setting.profile;
    let of_client = request.otherwise.shell.as_deref().filter(|_| inside.is_none());
    let (scripts, in_container) = (launcher.integration.folder(), Containers::scripts());
    let wanted = Wanted {
        shell: request.shell.as_deref().or(profile.shell.as_deref()).or(of_client),
        login: setting.is_login(request),
        path: get(env, b"PATH"),
        own_shell: get(env, b"SHELL"),
        env: get(env, b"ENV"),
        zdotdir: get(env, b"ZDOTDIR"),
        clean: profile.rc == StartFiles::Clean,
        scripts: match profile.confinement.as_ref().map(|confinement| confinement.tier) {
            Some(ConfinementTier::Container) => ScriptAccess::Folder(&in_container),
            Some(_) => ScriptAccess::Folder(&scripts),
            None if setting.user.is_some() => ScriptAccess::Descriptor,
            None => ScriptAccess::Path,
        },
    };
    match inside {
        Some((settings, inside)) => container::shell_inside(launcher, settings, inside, &wanted),
        None => launcher.integration.pick(&*launcher.backends.host, &wanted),
    }
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
    let mut meta =
        SessionMetadata { created_us: micros(SystemTime::now()), key: None, asked: None, ..old.meta.clone() };
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
    Ok(NewSession { spec, secrets: folder_secrets(&meta), container: container.map(|it| it.connection) })
}

pub(in crate::sessions) fn owner(principal: &Principal, request: &Create) -> Result<String, ActionError> {
    match &request.owner {
        Some(owner) if *owner != principal.name && !principal.is_admin() => {
            Err(ActionError::Denied { why: "only an admin starts sessions for others; omit owner".to_owned() })
        }
        Some(owner) => checked_name(Some(owner)).map(|o| o.unwrap_or_else(|| principal.name.clone())),
        None => Ok(principal.name.clone()),
    }
}

/// Whether it is a container that mounts its own folders: only the container knows then whether a directory exists.
fn has_own_directory(confinement: &Confinement) -> bool {
    confinement.tier == ConfinementTier::Container && !confinement.writable.is_empty()
}

/// Returns the function that prepares a new session.
pub(in crate::sessions) fn new(
    id: &SessionId,
    principal: &Principal,
    request: &Create,
    start_files: StartFiles,
) -> impl FnOnce(&Launcher) -> Result<NewSession, ActionError> + Send + use<> {
    let (id, principal, request) = (id.clone(), principal.clone(), request.clone());
    move |launcher| prepare(launcher, &id, &principal, &request, start_files)
}

/// Returns the function that prepares this session once more, in its original directory or in this one.
pub(in crate::sessions) fn again(
    id: &SessionId,
    old: &Arc<Shared>,
    cwd: Option<PathBuf>,
) -> impl FnOnce(&Launcher) -> Result<NewSession, ActionError> + Send + use<> {
    let (id, old) = (id.clone(), Arc::clone(old));
    move |launcher| prepare_again(launcher, &old, &id, cwd.as_deref())
}

/// Checks the size of a terminal.
pub(in crate::sessions) fn checked_size(cols: Option<u16>, rows: Option<u16>) -> Result<(u16, u16), ActionError> {
    let (cols, rows) = (cols.unwrap_or(limits::COLS_DEFAULT), rows.unwrap_or(limits::ROWS_DEFAULT));
    for (field, value, max) in [("cols", cols, limits::COLS_MAX), ("rows", rows, limits::ROWS_MAX)] {
        if !(1..=max).contains(&value) {
            return Err(ActionError::Invalid { field, problem: format!("{value} is not from 1 to {max}") });
        }
    }
    Ok((cols, rows))
}

fn checked_name(name: Option<&str>) -> Result<Option<String>, ActionError> {
    let Some(name) = name.map(str::trim).filter(|n| !n.is_empty()) else { return Ok(None) };
    if name.chars().count() > limits::NAME_CHARS_MAX || name.chars().any(char::is_control) {
        let problem = format!("at most {} characters and no control characters", limits::NAME_CHARS_MAX);
        return Err(ActionError::Invalid { field: "name", problem });
    }
    Ok(Some(name.to_owned()))
}
