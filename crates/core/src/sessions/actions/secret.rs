//! Secrets that people type: the request for one, and the secret that answers it.

use tokio::time::Instant;

use crate::action::{ActionError, Secret, SecretRefusal, SecretRequest};
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::secret_requests::{Asked, Open};
use crate::sessions::services::Services;
use crate::sessions::session::{Request, Typing};

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
    let request = services.secret_requests.of_reader(&handle, &principal.name).await?;
    Ok(request.map(|(_, request)| request))
}

/// The request of this name, if its prompt still stands.
pub(in crate::sessions) async fn show_secret_request(
    services: &Services,
    principal: &Principal,
    name: &str,
) -> Result<SecretRequest, ActionError> {
    let handle = session_of_secret(services, principal, name).await?;
    let open = services.secret_requests.find(name, Instant::now()).map_err(ActionError::SecretRefused)?;
    still_asks(&handle, &open).await?;
    Ok(open.shown(&handle))
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
    still_asks(&handle, &open).await?;
    // Of two at the same time the first one types.
    let open = services.secret_requests.take(name, Instant::now()).map_err(ActionError::SecretRefused)?;
    let (prompt, line, typing) = (open.asked.prompt, secret.line(), Typing::of(principal));
    let typed = handle.ask(|typed| Request::Secret { prompt, line, typing, typed }).await??;
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
async fn still_asks(handle: &Handle, open: &Open) -> Result<(), ActionError> {
    let now = match Asked::of(handle).await {
        Err(ActionError::Ended { .. }) => None,
        now => now?,
    };
    if now.as_ref() == Some(&open.asked) { Ok(()) } else { Err(ActionError::SecretRefused(SecretRefusal::Over)) }
}
