//! Repeated requests: the key of a request, and its answer if the session has ended since.

use wire::{Key, NO_KEY, is_same_name};

use super::range_text;
use super::report::{CLEARING_UP, plain_report};
use crate::action::{
    Action, ActionError, Budget, CommandStatus, CommandView, EndedBy, Execute, Input, Outcome, Report, TextView,
};
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::sessions::ended::session::EndedSession;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::request_fingerprint::{executed, typed};
use crate::sessions::services::Services;

/// The caller's key as the holder's fixed-size one. The same key with another body must not count as the same
/// request, so half of it is a hash of the body, too. It is a keyed hash because it goes into the events, and typed
/// input may be a password.
pub(in crate::sessions) fn key_of(services: &Services, key: &str, body: &[u8]) -> Key {
    let key = key.as_bytes();
    let mut bytes = NO_KEY;
    bytes[..8].copy_from_slice(&services.secret.name_for(&[key])[..8]);
    bytes[8..].copy_from_slice(&services.secret.name_for(&[key, body])[..8]);
    bytes
}

pub(in crate::sessions) fn key_of_command(services: &Services, request: &Execute) -> Key {
    request.key.as_ref().map_or(NO_KEY, |key| key_of(services, key, &executed(request)))
}

pub(in crate::sessions) fn key_of_input(services: &Services, request: &Input) -> Key {
    request.key.as_ref().map_or(NO_KEY, |key| key_of(services, key, &typed(request)))
}

/// The records of a session that has just ended, once they are complete.
pub(in crate::sessions) async fn ended(
    services: &Services,
    principal: &Principal,
    id: &SessionId,
) -> Option<std::sync::Arc<EndedSession>> {
    if let Ok(SessionRef::Live(handle)) = services.sessions.find(principal, id).await {
        let _ = tokio::time::timeout(CLEARING_UP, handle.gone()).await;
    }
    match services.sessions.find(principal, id).await {
        Ok(SessionRef::EndedSession(past)) => Some(past),
        Ok(SessionRef::Live(_) | SessionRef::Unreachable(_)) | Err(_) => None,
    }
}

/// The result of the same request in an ended session, which the request itself usually ended.
pub(in crate::sessions) async fn performed_before(
    services: &Services,
    principal: &Principal,
    action: &Action,
    key: Key,
) -> Option<Result<Outcome, ActionError>> {
    let report = match action {
        Action::Execute(request) => executed_before(services, principal, request, key).await,
        Action::Input(request) => typed_before(services, principal, request, key).await,
        Action::Type { session, .. } => {
            let (_, length) = ended(services, principal, session).await?.timeline.log().typed_with(&key)?.ok()?;
            return Some(Ok(Outcome::Typed(usize::try_from(length).ok()?)));
        }
        _ => None,
    };
    report.map(|report| Ok(Outcome::Report(Box::new(report?))))
}

/// The result of the same command in an ended session.
pub(super) async fn executed_before(
    services: &Services,
    principal: &Principal,
    request: &Execute,
    key: Key,
) -> Option<Result<Report, ActionError>> {
    let past = ended(services, principal, &request.session).await?;
    let earlier = past.timeline.log().commands.iter().rev().find(|c| is_same_name(&c.key, &key))?;
    if earlier.key != key {
        return Some(Err(ActionError::KeyReused { key: request.key.clone().unwrap_or_default() }));
    }
    let id = earlier.id;
    let command = past.commands().into_iter().find(|c| c.id.0 == id)?;
    let is_cut_short = command.status == CommandStatus::Terminated;
    let ended_by = if is_cut_short { EndedBy::Exited } else { EndedBy::Ended };
    let from = command.start_offset;
    let range = (from, command.end_offset.map_or(from, |end| end.max(from)));
    let waits = request.wait.is_some();
    Some(repeated_answer(&past, Some(command), ended_by, range, (waits, request.budget)).await)
}

/// The result of the same input in an ended session.
pub(super) async fn typed_before(
    services: &Services,
    principal: &Principal,
    request: &Input,
    key: Key,
) -> Option<Result<Report, ActionError>> {
    let past = ended(services, principal, &request.session).await?;
    let (at, len) = match past.timeline.log().typed_with(&key)? {
        Ok(typed) => typed,
        Err(()) => return Some(Err(ActionError::KeyReused { key: request.key.clone().unwrap_or_default() })),
    };
    let end = past.timeline.output().scanner.position();
    let (waits, accepted_bytes) = (request.wait.is_some(), usize::try_from(len).ok());
    let report = repeated_answer(&past, None, EndedBy::Exited, (at.min(end), end), (waits, request.budget)).await;
    Some(report.map(|report| Report { accepted_bytes, ..report }))
}

/// The answer to a request that was performed in an ended session; includes the output if the caller waits.
async fn repeated_answer(
    past: &EndedSession,
    command: Option<CommandView>,
    ended_by: EndedBy,
    (from, to): (u64, u64),
    (waits, budget): (bool, Budget),
) -> Result<Report, ActionError> {
    let view = past.view();
    let (ended_by, output) = match waits {
        true => (
            ended_by,
            range_text::text(&past.shared, past.timeline.log().handovers(from), (from, to), view.cols, budget).await?,
        ),
        false => (EndedBy::Accepted, TextView { from, to: from, ..TextView::default() }),
    };
    Ok(plain_report(view, command, ended_by, output))
}

/// Refuses a key that has started a session: any other request with it is a different one.
pub(in crate::sessions) async fn not_a_creates(
    services: &Services,
    principal: &Principal,
    key: Option<&str>,
) -> Result<(), ActionError> {
    let Some(key) = key else { return Ok(()) };
    let Some(session) = services.create_keys.session(&principal.name, key) else { return Ok(()) };
    match services.sessions.find(principal, &session).await {
        Ok(_) => Err(ActionError::KeyReused { key: key.to_owned() }),
        // Another principal's keys do not concern this caller.
        Err(_) => Ok(()),
    }
}
