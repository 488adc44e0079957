//! Prepares a new session: checks the request, starts its container, and has its spec made.

use std::path::PathBuf;

use wire::Rules;

use super::container;
use super::directory::{check_directory, set_directory};
use super::effective_profile::{EffectiveProfile, effective_profile};
use super::launcher::Launcher;
use super::policy_of_new::policy_of_new;
use super::request::{checked_size, limits_of, owner};
use super::spec::{Checked, spec};
use super::start::NewSession;
use super::variables::{get, set};
use super::wanted_shell::shell;
use crate::action::{ActionError, Create, Variables};
use crate::confinement_tier::ConfinementTier;
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::profile::StartFiles;

/// The error of a confined session whose request names no directory.
const NO_WORKSPACE: &str = "a confined session needs a folder that it may change, and the request names none: name a project's folder \
                            (`cwd`), or start it with a profile that has a `cwd`";

/// Returns the function that prepares a new session.
pub(in crate::sessions) fn new_session(
    id: &SessionId,
    principal: &Principal,
    request: &Create,
    start_files: StartFiles,
) -> impl FnOnce(&Launcher) -> Result<NewSession, ActionError> + Send + use<> {
    let (id, principal, request) = (id.clone(), principal.clone(), request.clone());
    move |launcher| prepare(launcher, &id, &principal, &request, start_files)
}

/// Checks the request, starts the container that it needs, and has the spec made. Waits for the disk. `start_files` are the files that
/// the shell reads, if the profile leaves them to the user.
fn prepare(
    launcher: &Launcher,
    id: &SessionId,
    principal: &Principal,
    request: &Create,
    start_files: StartFiles,
) -> Result<NewSession, ActionError> {
    let owner = owner(principal, request)?;
    let mut effective = effective_profile(launcher, principal, request)?;
    if start_files == StartFiles::Clean {
        effective.profile.rc = StartFiles::Clean;
    }
    let (profile, otherwise) = (&effective.profile, &request.otherwise);
    let tier = profile.confinement.as_ref().map(|confinement| confinement.tier);
    if request.keeps_descendants && tier.is_some_and(ConfinementTier::has_namespaces) {
        let problem =
            "a sandbox and a container end with all of their processes; omit `keep`, or use the tier `process`";
        return Err(ActionError::Invalid { field: "onEnd", problem: problem.to_owned() });
    }
    let (cols, rows) = (request.cols.or(profile.cols), request.rows.or(profile.rows));
    let size = checked_size(cols.or(otherwise.cols), rows.or(otherwise.rows))?;
    let mut env = effective.variables(effective.inherited(request), request)?;
    let (cwd, confinement) = place(launcher, &effective, principal, request, &mut env)?;
    let policy = policy_of_new(&launcher.policies, principal, request, profile)?;
    let limits = limits_of(launcher, principal, request, profile)?;
    // An engine runs for nothing that is refused anyway.
    let inside = container::start_container(launcher, id, &effective, confinement.as_ref())?;
    if let Some((_, inside)) = &inside {
        // An image has its own PATH and HOME, and no variable of the machine says anything in it.
        env = effective.variables(inside.environment.clone(), request)?;
        set(&mut env, b"PWD", cwd.as_os_str().as_encoded_bytes());
        if !inside.files.is_directory(&cwd) {
            let problem = format!("{} is not a directory in the container", cwd.display());
            return Err(ActionError::Invalid { field: "cwd", problem });
        }
    }
    let shell = shell(launcher, &effective, request, inside.as_ref(), &env)?;
    let checked = Checked { owner, size, cwd, confinement, policy, limits, effective, env, shell };
    let (spec, meta) = spec(launcher, id, principal, request, checked, inside.as_ref())?;
    let container = inside.map(|(_, inside)| inside.connection);
    Ok(NewSession { spec, meta, container })
}

/// The session's directory and the rules of its confinement; `PWD` names the directory.
fn place(
    launcher: &Launcher,
    effective: &EffectiveProfile,
    principal: &Principal,
    request: &Create,
    env: &mut Variables,
) -> Result<(PathBuf, Option<Rules>), ActionError> {
    let host = &*launcher.backends.host;
    let default = || if effective.has_own_directory() { PathBuf::from("/") } else { host.default_directory() };
    let asked = effective.directory(request, env)?;
    let (is_asked, cwd) = (asked.is_some(), asked.unwrap_or_else(default));
    // Before a look at the directory: what is hidden from the session is not told here either.
    let is_bound = principal.profiles().is_some();
    let confinement =
        container::rules(launcher, effective, is_bound, &cwd, get(env, b"HOME")).map_err(|error| match error {
            ActionError::Invalid { field: "cwd", .. } if !is_asked => {
                ActionError::Invalid { field: "cwd", problem: NO_WORKSPACE.to_owned() }
            }
            error => error,
        })?;
    if !effective.has_own_directory() {
        check_directory(host, effective.user.as_ref(), &cwd)?;
    }
    set_directory(host, env, &cwd);
    Ok((cwd, confinement))
}
