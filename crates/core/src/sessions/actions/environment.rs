//! The environment with which the shell of a session was started.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use crate::action::{ActionError, EnvironmentView};
use crate::host::TAG;
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::launch::variables::RESERVED;
use crate::sessions::redaction;
use crate::sessions::services::Services;

/// The environment with which the shell of a session was started.
pub(in crate::sessions) async fn environment(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
) -> Result<EnvironmentView, ActionError> {
    let (shared, view) = match services.sessions.find_to_read(principal, session).await? {
        SessionRef::Live(handle) => (Arc::clone(&handle.shared), services.sessions.live_view(&handle).await),
        SessionRef::Unreachable(unreachable) => return Err(unreachable.error()),
        SessionRef::EndedSession(past) => (Arc::clone(&past.shared), Ok(past.view())),
    };
    let tools = view.map(|view| view.tools).unwrap_or_default();
    let variable = |entry: &Vec<u8>| {
        let at = entry.iter().position(|b| *b == b'=')?;
        let (name, value) = (entry.get(..at)?.to_vec(), entry.get(at + 1..)?);
        let is_given = || shared.meta.secrets.variables.iter().any(|(given, _)| given.as_bytes() == name);
        let value = match is_given() {
            true => redaction::HIDDEN.to_vec(),
            false => redaction::shown_value(&String::from_utf8_lossy(&name), value, shared.folder.masks()),
        };
        // Variables that only our scripts get and remove again.
        let is_own = name.starts_with(RESERVED.as_bytes()) && name != TAG.as_bytes();
        (!is_own).then_some((name, value))
    };
    Ok(EnvironmentView {
        profile: shared.meta.profile.clone(),
        user: shared.meta.user.clone(),
        shell: Path::new(OsStr::from_bytes(&shared.spec.program)).to_owned(),
        is_login: shared.meta.login,
        umask: shared.spec.umask,
        variables: shared.spec.env.iter().filter_map(variable).collect(),
        tools,
    })
}
