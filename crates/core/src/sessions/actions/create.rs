//! Builds the spec of a new session from a request: shell, environment, directory, size; and again for a reset.
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;
use wire::Spec;

use super::default_session::DefaultSession;
use super::list::published;
use super::report::fnv;
use super::resize::checked_size;
use crate::action::{ActionError, Create, Created, Foreground, SessionStatus, SessionView, StartupFailure};
use crate::confinement_tier::ConfinementTier;
use crate::host::containers::Containers;
use crate::host::{Host, TAG};
use crate::ids::SessionId;
use crate::limits;
use crate::mutex::locked;
use crate::principal::Principal;
use crate::profile::{Profile, StartFiles};
use crate::sessions::handle::Handle;
use crate::sessions::policy_gate::unprovable;
use crate::sessions::registry::{NODE, Registry, SessionRef};
use crate::sessions::resource_limits;
use crate::sessions::session::Request;
use crate::sessions::session_metadata::{ConfinementMetadata, SessionMetadata};
use crate::sessions::shared::Shared;
use crate::sessions::timeline::micros;
use crate::shell::{ScriptAccess, Wanted};

/// Variables of the server or client that are meaningless or wrong in a new terminal.
const NOT_INHERITED: [&[u8]; 21] = [
    b"TMUX",
    b"TMUX_PANE",
    b"STY",
    b"WINDOW",
    b"COLUMNS",
    b"LINES",
    b"TERMCAP",
    // Variables that systemd sets for a service (systemd.exec(5)): a program that used them would write to the server's
    // journal stream or answer for the server's watchdog.
    b"INVOCATION_ID",
    b"NOTIFY_SOCKET",
    b"LISTEN_FDS",
    b"LISTEN_FDNAMES",
    b"LISTEN_PID",
    b"JOURNAL_STREAM",
    b"SYSTEMD_EXEC_PID",
    b"WATCHDOG_PID",
    b"WATCHDOG_USEC",
    b"MAINPID",
    b"MANAGERPID",
    b"OLDPWD",
    b"SHLVL",
    b"_",
];

impl Registry {
    /// Starts a session and waits for its first prompt, or returns the one that the same request started earlier, which
    /// may have ended since.
    pub(in crate::sessions) async fn create(
        self: &Arc<Self>,
        principal: &Principal,
        request: &Create,
    ) -> Result<Created, ActionError> {
        if let (true, Some(client)) = (request.is_default, &request.client) {
            return self.create_default(principal, request, client).await;
        }
        // Without a key, two requests make two sessions; with one, the second must find the first.
        let mut turn = None;
        if let Some(key) = &request.key {
            turn = Some(self.create_keys.locks.of(format!("key {:?} {key}", self.owner(principal, request)?)).await);
            // The key may belong to a session that is being adopted.
            self.adopted().await;
            let earlier = locked(&self.create_keys.keys).get(&(self.owner(principal, request)?, key.clone())).cloned();
            let found = match &earlier {
                Some(id) => self.find(principal, id).await,
                None => Err(ActionError::NoSession { id: String::new(), live: None }),
            };
            match found {
                Ok(found) => return self.again_for(principal, &found, request).await.map(not_new),
                Err(ActionError::NoSession { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        let id = SessionId::random(NODE);
        let owner = self.owner(principal, request)?;
        let handle = self.launch(&id, owner, spec_of(&id, principal, request, StartFiles::User)).await?;
        drop(turn);
        self.created(principal, &handle).await
    }

    /// Starts a client's default session, again like the one before if there was one, or returns the live one.
    async fn create_default(
        self: &Arc<Self>,
        principal: &Principal,
        request: &Create,
        client: &str,
    ) -> Result<Created, ActionError> {
        let turn = self.default_turn(client).await;
        let (id, owner) = (SessionId::random(NODE), self.owner(principal, request)?);
        let handle = match self.default_of(client).await? {
            DefaultSession::Live(_, snapshot) => return Ok(not_new(snapshot.view)),
            DefaultSession::Ended(old) => {
                let spec = self.again(&old.shared, &id)?;
                self.launch(&id, old.shared.meta.owner.clone(), |_| Ok(spec)).await?
            }
            DefaultSession::Nothing => {
                self.launch(&id, owner.clone(), spec_of(&id, principal, request, StartFiles::User)).await?
            }
        };
        let Some(reason) = self.start_files_problem(principal, &handle, request).await else {
            drop(turn);
            return self.default_created(principal, &handle).await;
        };
        self.end(&handle, sys::signal::HUP, limits::TERMINATE_GRACE).await?;
        let id = SessionId::random(NODE);
        let handle = self.launch(&id, owner, spec_of(&id, principal, request, StartFiles::Clean)).await?;
        let failed = StartupFailure {
            command: "start-up files".to_owned(),
            reason: format!("{reason}; this shell, and those after a reset, run without them"),
        };
        locked(&handle.shared.startup_failed).push(failed);
        drop(turn);
        self.default_created(principal, &handle).await
    }

    async fn default_created(&self, principal: &Principal, handle: &Handle) -> Result<Created, ActionError> {
        let mut created = self.created(principal, handle).await?;
        created.left_behind = self.left_behind(&created.session.owner).await;
        Ok(created)
    }

    /// The live sessions of this owner whose client has disconnected, the one used last first.
    async fn left_behind(&self, owner: &str) -> Vec<SessionView> {
        let live: Vec<Handle> = locked(&self.live).values().cloned().collect();
        let is_left = |handle: &&Handle| {
            let meta = &handle.shared.meta;
            meta.owner == owner && meta.client.as_ref().is_some_and(|client| self.clients.is_gone(client))
        };
        let mut left: Vec<_> = live.iter().filter(is_left).filter_map(|h| Some((h, published(h)?.0))).collect();
        left.retain(|(_, view)| view.status != SessionStatus::Terminated);
        left.sort_by_key(|(_, view)| std::cmp::Reverse(view.last_activity));
        for (handle, view) in left.iter_mut().take(limits::LEFT_BEHIND_NAMED) {
            if let Ok(now) = self.live_view(handle).await {
                *view = now;
            }
        }
        left.into_iter().map(|(_, view)| view).collect()
    }

    /// Waits for the first prompt of a model's default session. The reason if its start-up files prevent it; while they
    /// ask for input there is none, because a call can answer.
    async fn start_files_problem(&self, principal: &Principal, handle: &Handle, request: &Create) -> Option<String> {
        if !request.is_by_model {
            return None;
        }
        let until = Instant::now() + limits::START_FILES_WAIT;
        loop {
            let is_late = tokio::time::timeout_at(until, handle.ask(Request::Prompt)).await.is_err();
            let view = match self.view_of(principal, handle).await {
                Err(ActionError::Ended { reason, .. }) => return Some(format!("they ended it: {reason}")),
                Err(_) => return None,
                Ok(view) => view,
            };
            if let Some(exit) = view.exit {
                return Some(format!("they ended it: {}", exit.reason));
            }
            if view.status != SessionStatus::Creating {
                return None;
            } else if is_late {
                return Some(format!("no prompt came within {} s", limits::START_FILES_WAIT.as_secs()));
            } else if view.foreground != Foreground::Fullscreen {
                // They ask for input, which a call can give.
                return None;
            }
            // It may be gone in a moment.
            tokio::time::sleep_until(Instant::now() + limits::START_SCREEN_STANDS).await;
            let stands =
                |view: SessionView| view.status == SessionStatus::Creating && view.foreground == Foreground::Fullscreen;
            if self.live_view(handle).await.is_ok_and(stands) {
                return Some("a program of theirs has the whole screen".to_owned());
            }
        }
    }

    /// Kills what runs in a session, and starts the same shell again.
    pub(in crate::sessions) async fn restart(
        self: &Arc<Self>,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<Created, ActionError> {
        let old = self.live(principal, session).await?;
        self.end(&old, sys::signal::KILL, limits::TERMINATE_GRACE).await?;
        let id = SessionId::random(NODE);
        let spec = self.again(&old.shared, &id)?;
        let handle = self.launch(&id, old.shared.meta.owner.clone(), |_| Ok(spec)).await?;
        self.created(principal, &handle).await
    }

    async fn created(&self, principal: &Principal, handle: &Handle) -> Result<Created, ActionError> {
        self.first_prompt(handle).await;
        let session = self.view_of(principal, handle).await?;
        Ok(Created { session, startup: handle.shared.meta.startup.clone(), is_new: true, left_behind: Vec::new() })
    }

    /// Records the start-up commands that failed.
    pub(in crate::sessions) async fn startup_done(
        &self,
        principal: &Principal,
        session: &SessionId,
        failed: &[StartupFailure],
    ) -> Result<SessionView, ActionError> {
        if let SessionRef::Live(handle) = self.find(principal, session).await? {
            let masks = handle.shared.folder.masks();
            let masked = |text: &String| masks.map_or_else(|| text.clone(), |masks| masks.masked_text(text.clone()));
            let failed =
                failed.iter().map(|one| StartupFailure { command: masked(&one.command), reason: masked(&one.reason) });
            locked(&handle.shared.startup_failed).extend(failed);
        }
        self.show(principal, session).await
    }

    /// The answer to a request whose key was used before.
    async fn again_for(
        &self,
        principal: &Principal,
        found: &SessionRef,
        request: &Create,
    ) -> Result<SessionView, ActionError> {
        if found.meta().asked.is_some_and(|asked| asked != asked_for(request)) {
            return Err(ActionError::KeyReused { key: request.key.clone().unwrap_or_default() });
        }
        match found {
            SessionRef::Live(handle) => self.view_of(principal, handle).await,
            SessionRef::Unreachable(unreachable) => Ok(unreachable.view()),
            SessionRef::EndedSession(past) => Ok(past.view()),
        }
    }

    /// The present view, even if the session ends at this moment.
    async fn view_of(&self, principal: &Principal, handle: &Handle) -> Result<SessionView, ActionError> {
        match self.live_view(handle).await {
            Err(ActionError::Ended { .. }) => self.show(principal, &handle.shared.id).await,
            view => view,
        }
    }

    /// The spec of a new session. Waits for the disk. `start_files`: those that its shell reads, if the profile leaves them to
    /// the user.
    fn spec(
        &self,
        id: &SessionId,
        principal: &Principal,
        request: &Create,
        start_files: StartFiles,
    ) -> Result<Spec, ActionError> {
        let owner = self.owner(principal, request)?;
        let name = checked_name(request.name.as_deref())?;
        let mut setting = self.setting(principal, request)?;
        if start_files == StartFiles::Clean {
            setting.profile.rc = StartFiles::Clean;
        }
        let (profile, otherwise) = (&setting.profile, &request.otherwise);
        let tier = profile.confinement.as_ref().map(|confinement| confinement.tier);
        if request.keeps_descendants && tier.is_some_and(ConfinementTier::has_namespaces) {
            let problem = "a sandbox and a container end with all of their processes; leave out `keep`, or ask for the tier \
                           `process`";
            return Err(ActionError::Invalid { field: "onEnd", problem: problem.to_owned() });
        }
        let (cols, rows) = (request.cols.or(profile.cols), request.rows.or(profile.rows));
        let (cols, rows) = checked_size(cols.or(otherwise.cols), rows.or(otherwise.rows))?;
        let mut env = setting.variables(base_environment(request), request)?;
        // Another user may have no access to the client's directory.
        let at_home = setting.user.as_ref().map(|_| PathBuf::from("~"));
        let cwd = request.cwd.as_ref().or(profile.cwd.as_ref()).or(at_home.as_ref()).or(otherwise.cwd.as_ref());
        let is_container = tier == Some(ConfinementTier::Container);
        let cwd = match is_container && is_mounted_elsewhere(profile) {
            true => full_directory(cwd, get(&env, b"HOME"))?.unwrap_or_else(|| PathBuf::from("/")),
            false => checked_directory(self.host(), cwd, get(&env, b"HOME"))?,
        };
        set_directory(self.host(), &mut env, &cwd);
        let mut confinement = self.rules(&setting, &cwd, get(&env, b"HOME"))?;
        let policy = self.policy_of_new(principal, request, profile)?;
        let limits = resource_limits::within(
            request.limits.or(profile.limits.or(self.settings.limits)),
            &self.settings.limits_max,
        )?;
        // A token that is bound to profiles gets no more by a request than they give.
        if principal.profiles().is_some() {
            resource_limits::within(limits, &profile.limits)?;
        }
        resource_limits::can_be_kept(self.host(), &limits)?;
        // An engine runs for nothing that is refused anyway.
        let inside = self.start_container(id, &setting, confinement.as_ref())?;
        if let Some((_, inside)) = &inside {
            // An image has its own PATH and HOME, and no variable of the machine says anything in it.
            env = setting.variables(inside.environment.clone(), request)?;
            set(&mut env, b"PWD", cwd.as_os_str().as_bytes());
            if !inside.files.is_directory(&cwd) {
                let problem = format!("{} is no directory in the container", cwd.display());
                return Err(ActionError::Invalid { field: "cwd", problem });
            }
        }
        let login = request.login || profile.login;
        let of_client = otherwise.shell.as_deref().filter(|_| !is_container);
        let shell = request.shell.as_deref().or(profile.shell.as_deref()).or(of_client);
        let (scripts, in_container) = (self.launch_resources.integration.folder(), Containers::scripts());
        let wanted = Wanted {
            shell,
            login,
            path: get(&env, b"PATH"),
            own_shell: get(&env, b"SHELL"),
            env: get(&env, b"ENV"),
            zdotdir: get(&env, b"ZDOTDIR"),
            clean: profile.rc == StartFiles::Clean,
            scripts: match tier {
                Some(ConfinementTier::Container) => ScriptAccess::Folder(&in_container),
                Some(ConfinementTier::Sandbox) => ScriptAccess::Folder(&scripts),
                tier if tier.is_some() || setting.user.is_some() => ScriptAccess::Descriptor,
                _ => ScriptAccess::Path,
            },
        };
        let shell = match &inside {
            Some((settings, inside)) => self.shell_inside(settings, inside, &wanted)?,
            None => self.launch_resources.integration.pick(self.host(), &wanted)?,
        };
        let of_policy = policy.as_ref();
        let unprovable = of_policy.and_then(|_| unprovable(principal, request, profile, &shell.name, &env));
        for (name, value) in &shell.env {
            set(&mut env, name, value);
        }
        set(&mut env, b"TERM", profile.term.as_deref().unwrap_or("xterm-256color").as_bytes());
        set(&mut env, TAG.as_bytes(), id.as_str().as_bytes());
        let folder = self.holders().folder(id);
        let secrets = setting.secrets.paths(|name| match &inside {
            Some(_) => Containers::secret(name),
            None => folder.secret(name),
        });
        for (name, path) in secrets {
            if !request.env.iter().any(|(asked, _)| asked.as_bytes() == name) {
                set(&mut env, &name, &path);
            }
        }
        if let Some(rules) = confinement.as_mut().filter(|_| !is_container && !setting.secrets.files.is_empty()) {
            rules.readable.push(folder.secrets());
        }
        if let Some(rules) = confinement.as_mut().filter(|_| tier == Some(ConfinementTier::Sandbox)) {
            rules.readable.push(scripts);
        }
        let meta = SessionMetadata {
            name,
            owner,
            shell: shell.name,
            login,
            created_us: micros(SystemTime::now()),
            env: request.env.clone(),
            client: request.client.clone(),
            detach: request.detach,
            is_default: request.is_default,
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
        let umask = setting.profile.umask.or(request.otherwise.umask).unwrap_or(self.launch_resources.umask);
        let mut spec = Spec {
            session: id.to_string(),
            program: shell.program.into_os_string().into_vec(),
            argv: shell.argv,
            env: env.into_iter().map(|(n, v)| [&n, b"=".as_slice(), &v].concat()).collect(),
            cwd: cwd.into_os_string().into_vec(),
            umask: umask & 0o777,
            cols,
            rows,
            journal_bytes_max: self.launch_resources.journal_bytes_max,
            may_splice: self.holders().may_splice(),
            keeps_descendants: request.keeps_descendants,
            meta: meta.encode(),
            open_files: self.launch_resources.open_files,
            handover: shell.handover,
            confinement,
            identity: match inside {
                Some((_, inside)) => inside.identity,
                None => setting.user.map(|it| [vec![it.uid, it.gid], it.groups].concat()).unwrap_or_default(),
            },
            ..Spec::default()
        };
        resource_limits::plan(self.host(), &mut spec, id, &limits)?;
        Ok(spec)
    }

    /// The spec of the same session for a reset: the original directory, environment, secrets and size under a new id.
    fn again(&self, old: &Shared, id: &SessionId) -> Result<Spec, ActionError> {
        let tag = format!("{TAG}=");
        let mut spec = old.spec.clone();
        spec.session = id.to_string();
        for entry in &mut spec.env {
            if entry.starts_with(tag.as_bytes()) {
                *entry = format!("{tag}{id}").into_bytes();
            }
        }
        let folder = self.holders().folder(id);
        let entry = |(name, path): (Vec<u8>, Vec<u8>)| [&name, b"=".as_slice(), &path].concat();
        let secrets = &old.meta.secrets;
        let (paths_before, paths_now) =
            (secrets.paths(|it| old.folder.secret(it)), secrets.paths(|it| folder.secret(it)));
        for (before, now) in paths_before.into_iter().zip(paths_now) {
            let (before, now) = (entry(before), entry(now));
            spec.env.iter_mut().filter(|it| **it == before).for_each(|it| it.clone_from(&now));
        }
        for readable in spec.confinement.iter_mut().flat_map(|rules| &mut rules.readable) {
            if *readable == old.folder.secrets() {
                *readable = folder.secrets();
            }
        }
        let meta =
            SessionMetadata { created_us: micros(SystemTime::now()), key: None, asked: None, ..old.meta.clone() };
        spec.meta = meta.encode();
        resource_limits::plan(self.host(), &mut spec, id, &meta.limits)?;
        Ok(spec)
    }

    fn owner(&self, principal: &Principal, request: &Create) -> Result<String, ActionError> {
        match &request.owner {
            Some(owner) if *owner != principal.name && !principal.is_admin() => {
                Err(ActionError::Denied { why: "only an admin starts sessions for others; leave owner out".to_owned() })
            }
            Some(owner) => checked_name(Some(owner)).map(|o| o.unwrap_or_else(|| principal.name.clone())),
            None => Ok(principal.name.clone()),
        }
    }
}

/// Returns the function that makes the spec of a new session.
fn spec_of(
    id: &SessionId,
    principal: &Principal,
    request: &Create,
    start_files: StartFiles,
) -> impl FnOnce(&Registry) -> Result<Spec, ActionError> + Send + use<> {
    let (id, principal, request) = (id.clone(), principal.clone(), request.clone());
    move |registry| registry.spec(&id, &principal, &request, start_files)
}

/// A session that an earlier request started.
fn not_new(session: SessionView) -> Created {
    Created { session, startup: Vec::new(), is_new: false, left_behind: Vec::new() }
}

/// A hash that identifies the request, also in a later version. It covers only the caller's own fields: a connection's
/// additions may differ after a restart.
fn asked_for(request: &Create) -> u64 {
    fnv(&super::idempotency::created(request))
}

/// The prefix of our own variables: the server's settings, and those for our scripts.
pub(super) const RESERVED: &str = "PTYD_";

pub(super) fn base_environment(request: &Create) -> Vec<(Vec<u8>, Vec<u8>)> {
    let base: Vec<(Vec<u8>, Vec<u8>)> = match &request.base_env {
        Some(env) => env.as_ref().clone(),
        None => std::env::vars_os().map(|(n, v)| (n.into_vec(), v.into_vec())).collect(),
    };
    base.into_iter()
        .filter(|(n, v)| {
            let is_clean = !n.is_empty() && !n.contains(&0) && !n.contains(&b'=') && !v.contains(&0);
            // Our own settings are for the server; its token must never reach a shell.
            is_clean && !n.starts_with(RESERVED.as_bytes()) && !NOT_INHERITED.contains(&n.as_slice())
        })
        .collect()
}

pub(super) fn get<'a>(env: &'a [(Vec<u8>, Vec<u8>)], name: &[u8]) -> Option<&'a [u8]> {
    env.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_slice())
}

pub(super) fn set(env: &mut Vec<(Vec<u8>, Vec<u8>)>, name: &[u8], value: &[u8]) {
    match env.iter_mut().find(|(n, _)| n == name) {
        Some((_, old)) => *old = value.to_vec(),
        None => env.push((name.to_vec(), value.to_vec())),
    }
}

/// Sets `PWD` if it names another directory than the session's, for example the client's own.
fn set_directory(host: &dyn Host, env: &mut Vec<(Vec<u8>, Vec<u8>)>, cwd: &Path) {
    let which = |path: &Path| host.file(path).map(|file| file.which);
    let told = get(env, b"PWD").map(|told| which(Path::new(OsStr::from_bytes(told))));
    if told.is_none_or(|told| told != which(cwd)) {
        let physical = host.real_path(cwd).unwrap_or_else(|| cwd.to_owned());
        set(env, b"PWD", physical.as_os_str().as_bytes());
    }
}

pub(super) fn check_variable(name: &str, value: &str) -> Result<(), ActionError> {
    let starts_well = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let is_name = starts_well && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        let problem = format!("{name:?} is not a variable's name (letters, digits, underscores; not a digit first)");
        return Err(ActionError::Invalid { field: "env", problem });
    }
    if name.starts_with(RESERVED) {
        let problem = format!("{name}: names that begin with {RESERVED} are ptyd's own and do not reach sessions");
        return Err(ActionError::Invalid { field: "env", problem });
    }
    if value.contains('\0') {
        return Err(ActionError::Invalid { field: "env", problem: format!("the value of {name} holds a NUL byte") });
    }
    Ok(())
}

fn checked_name(name: Option<&str>) -> Result<Option<String>, ActionError> {
    let Some(name) = name.map(str::trim).filter(|n| !n.is_empty()) else { return Ok(None) };
    if name.chars().count() > limits::NAME_CHARS_MAX || name.chars().any(char::is_control) {
        let problem = format!("at most {} characters and no control characters", limits::NAME_CHARS_MAX);
        return Err(ActionError::Invalid { field: "name", problem });
    }
    Ok(Some(name.to_owned()))
}

/// Expands `~` to the session's home, which may differ from the server's.
pub(super) fn from_home(path: &Path, home: Option<&[u8]>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => Path::new(OsStr::from_bytes(home)).join(rest),
        _ => path.to_owned(),
    }
}

/// Whether the workspace is not mounted in a container, so that its directory is one of the image or of a mount.
fn is_mounted_elsewhere(profile: &Profile) -> bool {
    profile.confinement.as_ref().is_some_and(|confinement| !confinement.writable.is_empty())
}

fn checked_directory(host: &dyn Host, cwd: Option<&PathBuf>, home: Option<&[u8]>) -> Result<PathBuf, ActionError> {
    let Some(cwd) = full_directory(cwd, home)? else {
        return Ok(host.default_directory());
    };
    let problem = match host.file(&cwd) {
        None => format!("{} does not exist", cwd.display()),
        Some(file) if !file.is_directory => format!("{} is not a directory", cwd.display()),
        Some(_) => return Ok(cwd),
    };
    Err(ActionError::Invalid { field: "cwd", problem })
}

/// The directory that is asked for, as a whole path.
fn full_directory(cwd: Option<&PathBuf>, home: Option<&[u8]>) -> Result<Option<PathBuf>, ActionError> {
    let Some(cwd) = cwd else { return Ok(None) };
    if cwd.starts_with("~") && home.is_none() {
        let problem = format!("{}: HOME is not set in this session's environment", cwd.display());
        return Err(ActionError::Invalid { field: "cwd", problem });
    }
    let cwd = from_home(cwd, home);
    if cwd.is_absolute() && !cwd.as_os_str().as_bytes().contains(&0) {
        return Ok(Some(cwd));
    }
    Err(ActionError::Invalid { field: "cwd", problem: format!("{} is not an absolute path", cwd.display()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::LocalHost;

    #[test]
    fn the_variable_for_the_directory_is_the_sessions_and_keeps_the_way_that_led_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let (real, connection) =
            (dir.path().canonicalize().expect("it is there").join("real"), dir.path().join("link"));
        std::fs::create_dir(&real).expect("made");
        std::os::unix::fs::symlink(&real, &connection).expect("made");
        for (told, cwd, expected) in [
            (Some("/"), &connection, &real),
            (None, &real, &real),
            (connection.to_str(), &real, &connection),
            (Some(""), &real, &real),
        ] {
            let mut env: Vec<_> = told.map(|told| (b"PWD".to_vec(), told.as_bytes().to_vec())).into_iter().collect();
            set_directory(&LocalHost::default(), &mut env, cwd);
            assert_eq!(env, [(b"PWD".to_vec(), expected.as_os_str().as_bytes().to_vec())], "{told:?}");
        }
    }

    #[test]
    fn what_was_said_to_the_server_by_its_own_parent_is_not_inherited() {
        let names = [
            "HOME",
            "TMUX",
            "INVOCATION_ID",
            "NOTIFY_SOCKET",
            "LISTEN_FDS",
            "LISTEN_FDNAMES",
            "LISTEN_PID",
            "JOURNAL_STREAM",
            "SYSTEMD_EXEC_PID",
            "WATCHDOG_PID",
            "WATCHDOG_USEC",
            "MAINPID",
            "MANAGERPID",
            "PTYD_TOKEN",
        ];
        let all = names.map(|n| (n.as_bytes().to_vec(), b"x".to_vec())).to_vec();
        let request = Create { base_env: Some(Arc::new(all)), ..Create::default() };
        assert_eq!(base_environment(&request), [(b"HOME".to_vec(), b"x".to_vec())]);
    }
}
