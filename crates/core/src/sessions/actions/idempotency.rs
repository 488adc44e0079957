//! Repeated requests: their identity, and their answer if the session has ended since.
//!
//! A request is identified by the JSON of its caller's fields in a fixed order, so that a later version identifies it
//! in the same way. A new field is left out while it has its default.

use serde::Serialize;
use wire::{Key, NO_KEY, is_same_name};

use super::range_text;
use super::report::{CLEARING_UP, plain_report};
use crate::action::{
    ActionError, Budget, CommandStatus, CommandView, Create, EndedBy, Ending, Execute, Input, InputBytes, Limits,
    NamedAction, Report, TargetShell, TextView, Until, Wait,
};
use crate::confinement_tier::ConfinementTier;
use crate::ids::SessionId;
use crate::principal::Principal;
use crate::sessions::ended_session::EndedSession;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::services::Services;

#[derive(Serialize)]
struct Executed<'a> {
    command: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    inside: bool,
    wait: Option<Waited<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Limited>,
    budget: usize,
}

/// A time limit: how the command is ended, and after how many microseconds.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Limited {
    Interrupt(u128),
    Kill(u128),
}

#[derive(Serialize)]
struct Typed<'a> {
    #[serde(flatten)]
    what: Bytes<'a>,
    secret: bool,
    wait: Option<Waited<'a>>,
    budget: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Bytes<'a> {
    Raw(&'a [u8]),
    Keys(&'a [crate::keys::Key]),
    Paste { text: &'a str, enters: bool },
}

/// The wait as the caller requested it. Additions of the server (the quiet time of the `terminal` tool) are left out,
/// because a later server may add others.
#[derive(Serialize)]
struct Waited<'a> {
    pattern: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    until: Vec<String>,
    input: bool,
    timeout_us: u128,
}

#[derive(Serialize)]
struct Created<'a> {
    shell: &'a Option<String>,
    login: bool,
    cwd: Option<&'a [u8]>,
    env: &'a [(String, String)],
    cols: Option<u16>,
    rows: Option<u16>,
    name: &'a Option<String>,
    owner: &'a Option<String>,
    keeps_descendants: bool,
    #[serde(skip_serializing_if = "is_default")]
    limits: Limits,
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    named_actions: &'a std::collections::BTreeMap<String, NamedAction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confinement: Option<ConfinementTier>,
}

fn is_default(limits: &Limits) -> bool {
    *limits == Limits::default()
}

fn waited(wait: Option<&Wait>) -> Option<Waited<'_>> {
    wait.map(|wait| Waited {
        pattern: wait.pattern.as_ref().map(|pattern| pattern.as_str()),
        until: wait.until.iter().map(Until::to_string).collect(),
        input: wait.input_wanted,
        timeout_us: wait.timeout.as_micros(),
    })
}

fn json(words: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(words).expect("invariant: strings, numbers and lists are JSON")
}

/// The caller's own fields of a create request; a connection's additions may differ after a restart.
pub(super) fn created(request: &Create) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let otherwise = &request.otherwise;
    let cwd = request.cwd.as_ref().or(otherwise.cwd.as_ref());
    json(&Created {
        shell: &request.shell,
        login: request.login,
        cwd: cwd.map(|cwd| cwd.as_os_str().as_bytes()),
        env: &request.env,
        cols: request.cols.or(otherwise.cols),
        rows: request.rows.or(otherwise.rows),
        name: &request.name,
        owner: &request.owner,
        keeps_descendants: request.keeps_descendants,
        limits: request.limits,
        named_actions: &request.named_actions,
        profile: &request.profile,
        confinement: request.confinement,
    })
}

fn executed(request: &Execute) -> Vec<u8> {
    let (command, inside, budget) =
        (request.command.as_str(), request.shell == TargetShell::Nested, request.budget.chars);
    let limit = request.time_limit.map(|limit| match limit.ending {
        Ending::Interrupt => Limited::Interrupt(limit.after.as_micros()),
        Ending::Kill => Limited::Kill(limit.after.as_micros()),
    });
    json(&Executed { command, inside, wait: waited(request.wait.as_ref()), limit, budget })
}

fn typed(request: &Input) -> Vec<u8> {
    let what = match &request.bytes {
        InputBytes::Raw(bytes) => Bytes::Raw(bytes),
        InputBytes::Keys(keys) => Bytes::Keys(keys),
        InputBytes::Paste { text, enters } => Bytes::Paste { text, enters: *enters },
    };
    json(&Typed { what, secret: request.is_secret, wait: waited(request.wait.as_ref()), budget: request.budget.chars })
}

/// The caller's key as the holder's fixed-size one. The same key with another body must not count as the same
/// request, so half of it is a hash of the body, too. It is a keyed hash because it goes into the events, and typed
/// input may be a password.
pub(super) fn key_of(services: &Services, key: &str, body: &[u8]) -> Key {
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

/// The result of the same command request in an ended session, which the command itself usually ended.
pub(super) async fn executed_before(
    services: &Services,
    principal: &Principal,
    request: &Execute,
) -> Option<Result<Report, ActionError>> {
    let key = request.key.as_ref().map(|_| key_of_command(services, request))?;
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

/// The result of the same input request in an ended session, which the input itself usually ended.
pub(super) async fn typed_before(
    services: &Services,
    principal: &Principal,
    request: &Input,
) -> Option<Result<Report, ActionError>> {
    let key = request.key.as_ref().map(|_| key_of_input(services, request))?;
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

/// The length of a viewer's input with the same number, in an ended session.
pub(super) async fn visitor_typed_before(
    services: &Services,
    principal: &Principal,
    id: &SessionId,
    key: &Key,
) -> Option<usize> {
    let (_, len) = ended(services, principal, id).await?.timeline.log().typed_with(key)?.ok()?;
    usize::try_from(len).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::action::TimeLimit;

    /// A later server knows a request again by what this one has kept: these words may only grow.
    #[test]
    // promise: once-2
    fn a_request_is_named_in_the_same_words_for_ever() {
        let text = |words: Vec<u8>| String::from_utf8(words).expect("JSON is text");
        let session = SessionId::parse("s0-abcdefghij").expect("an id");
        let wait = Wait {
            pattern: Some(crate::action::pattern::tests::compiled("a|b").expect("a pattern")),
            until: vec![Until::Bell, Until::Listening(Some(80))],
            input_wanted: true,
            listens: false,
            asks_person: false,
            quiet: Some(Duration::from_secs(9)),
            waited: Duration::ZERO,
            task: None,
            timeout: Duration::from_millis(1500),
        };
        let (key, budget) = (None, Budget::from(7));
        let command = "echo \"x\"\n".to_owned();
        let (shell, wait_none) = (TargetShell::Foremost, None);
        let session_too = session.clone();
        let time_limit = None;
        let plain = Execute {
            session: session_too,
            command,
            shell,
            allowed_in: None,
            wait: wait_none,
            time_limit,
            key: key.clone(),
            budget,
        };
        assert_eq!(text(executed(&plain)), r#"{"command":"echo \"x\"\n","wait":null,"budget":7}"#);
        let limit = TimeLimit { after: Duration::from_secs(2), ending: Ending::Kill };
        let limited = Execute { time_limit: Some(limit), ..plain.clone() };
        assert_eq!(
            text(executed(&limited)),
            r#"{"command":"echo \"x\"\n","wait":null,"limit":{"kill":2000000},"budget":7}"#
        );
        let inside = Execute { shell: TargetShell::Nested, wait: Some(wait), ..plain };
        assert_eq!(
            text(executed(&inside)),
            r#"{"command":"echo \"x\"\n","inside":true,"wait":{"pattern":"a|b","until":["bell","listening:80"],"input":true,"timeout_us":1500000},"budget":7}"#
        );
        let bytes = InputBytes::Raw(b"\xff1".to_vec());
        let (is_secret, is_hidden, without_echo) = (true, false, false);
        let raw =
            Input { session, bytes, is_secret, is_hidden, wait: None, key, budget, without_echo, meant_for: None };
        assert_eq!(text(typed(&raw)), r#"{"raw":[255,49],"secret":true,"wait":null,"budget":7}"#);
        let bytes = InputBytes::Paste { text: "p".to_owned(), enters: true };
        let paste = Input { bytes, ..raw };
        assert_eq!(text(typed(&paste)), r#"{"paste":{"text":"p","enters":true},"secret":true,"wait":null,"budget":7}"#);
        let bytes = InputBytes::Keys(crate::keys::parse("C-Up").expect("a key"));
        let keys = Input { bytes, ..paste };
        assert_eq!(
            text(typed(&keys)),
            r#"{"keys":[{"code":{"cursor":65},"ctrl":true,"meta":false,"shift":false}],"secret":true,"wait":null,"budget":7}"#
        );
        let create = Create { shell: Some("bash".to_owned()), cwd: Some("/é".into()), ..Create::default() };
        assert_eq!(
            text(created(&create)),
            r#"{"shell":"bash","login":false,"cwd":[47,195,169],"env":[],"cols":null,"rows":null,"name":null,"owner":null,"keeps_descendants":false}"#
        );
    }
}
