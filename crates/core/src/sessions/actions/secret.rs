//! Secrets that people type: the request for one, and the secret that answers it.

use std::sync::Arc;

use tokio::time::Instant;

use crate::action::{ActionError, Secret, SecretReader, SecretRefusal, SecretRequest};
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::sessions::backends::Backends;
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::secret_requests::{Asked, Open};
use crate::sessions::services::Services;
use crate::sessions::session::Request;

/// The most characters of a command that a person is shown.
const COMMAND_CHARS_MAX: usize = 200;

/// The request for the secret that the session's program reads now, if it reads one.
pub(in crate::sessions) async fn ask_secret(
    services: &Services,
    principal: &Principal,
    id: &SessionId,
) -> Result<Option<SecretRequest>, ActionError> {
    let found = services.sessions.find(principal, id).await?;
    let SessionRef::Live(handle) = found else { return Ok(None) };
    if !services.settings.secret_page {
        return Ok(None);
    }
    Ok(secret_request(services, &handle, &principal.name).await?.map(|(_, request)| request))
}

/// The request for the secret that the session's program reads now, with the number of the prompt.
pub(super) async fn secret_request(
    services: &Services,
    handle: &Handle,
    principal: &str,
) -> Result<Option<(u64, SecretRequest)>, ActionError> {
    let Some(asked) = asked(&services.backends, handle).await? else { return Ok(None) };
    let number = asked.prompt.number;
    let open = services.secret_requests.open(asked, principal, Instant::now());
    Ok(open.map(|open| (number, shown(open, handle))))
}

/// The request of this name, if its prompt still stands.
pub(in crate::sessions) async fn show_secret_request(
    services: &Services,
    principal: &Principal,
    name: &str,
) -> Result<SecretRequest, ActionError> {
    let handle = session_of_secret(services, principal, name).await?;
    let open = services.secret_requests.find(name, Instant::now()).map_err(ActionError::SecretRefused)?;
    still_asks(&services.backends, &handle, &open).await?;
    Ok(shown(open, &handle))
}

/// Types a secret at the prompt of this request, the first time.
pub(in crate::sessions) async fn type_secret(
    services: &Services,
    principal: &Principal,
    name: &str,
    secret: &Secret,
) -> Result<usize, ActionError> {
    let handle = session_of_secret(services, principal, name).await?;
    let open = services.secret_requests.find(name, Instant::now()).map_err(ActionError::SecretRefused)?;
    still_asks(&services.backends, &handle, &open).await?;
    // Of two at the same time the first one types.
    let open = services.secret_requests.take(name, Instant::now()).map_err(ActionError::SecretRefused)?;
    let (prompt, line) = (open.asked.prompt, secret.line());
    let typed = handle.ask(|typed| Request::Secret { prompt, line, typed }).await??;
    Ok(typed.accepted)
}

/// The session of a request that the caller may use; a foreign one counts as unknown.
async fn session_of_secret(services: &Services, principal: &Principal, name: &str) -> Result<Handle, ActionError> {
    let unknown = ActionError::SecretRefused(SecretRefusal::Unknown);
    let Ok(id) = services.secret_requests.session(name) else { return Err(unknown) };
    match services.sessions.find(principal, &id).await {
        Ok(SessionRef::Live(handle)) => Ok(handle),
        Ok(SessionRef::Unreachable(unreachable)) => Err(unreachable.error()),
        Ok(SessionRef::EndedSession(_)) => Err(ActionError::SecretRefused(SecretRefusal::Over)),
        Err(ActionError::NoSession { .. }) => Err(unknown),
        Err(other) => Err(other),
    }
}

/// Whether the same program still reads at the same prompt.
async fn still_asks(backends: &Arc<Backends>, handle: &Handle, open: &Open) -> Result<(), ActionError> {
    let now = match asked(backends, handle).await {
        Err(ActionError::Ended { .. }) => None,
        now => now?,
    };
    if now.as_ref() == Some(&open.asked) { Ok(()) } else { Err(ActionError::SecretRefused(SecretRefusal::Over)) }
}

/// The prompt at which a program of the session reads a secret now, and the program.
async fn asked(backends: &Arc<Backends>, handle: &Handle) -> Result<Option<Asked>, ActionError> {
    let Some(prompt) = handle.ask(Request::SecretPrompt).await? else { return Ok(None) };
    let (host, pid) = (Arc::clone(&backends.host), prompt.pid);
    let reader = tokio::task::spawn_blocking(move || {
        let (process, users) = (host.process(pid)?, host.users(pid)?);
        Some(SecretReader {
            pid,
            start_ticks: process.identity.1,
            executable: host.executable(pid),
            process_name: process.name,
            uid: users.effective,
            user: host.user_name(users.effective),
            is_set_user_id: users.is_set_user_id || users.real != users.effective,
        })
    });
    // A process that has ended reads no more.
    let Some(reader) = reader.await.ok().flatten() else { return Ok(None) };
    Ok(Some(Asked { session: handle.shared.id.clone(), prompt, reader }))
}

fn shown(open: Open, handle: &Handle) -> SecretRequest {
    let Open { name, asked: Asked { session, prompt, reader }, until, .. } = open;
    let command = prompt.command.map(|text| {
        let mut short: String = text.chars().take(COMMAND_CHARS_MAX).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        short
    });
    SecretRequest {
        name,
        session,
        session_name: handle.shared.meta.name.clone(),
        command,
        reader,
        prompt: prompt.text,
        left: until.saturating_duration_since(Instant::now()),
    }
}
