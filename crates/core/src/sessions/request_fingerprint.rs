//! The words by which the server recognises a repeated request.
//!
//! They are the JSON of its caller's fields in a fixed order, so that a later version recognises it by the same words. A
//! new field is omitted while it has its default.

use serde::Serialize;

use crate::action::{Create, Ending, Execute, Input, InputBytes, Limits, NamedAction, TargetShell, Until, Wait};
use crate::confinement_tier::ConfinementTier;

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

/// The wait as the caller requested it. Additions of the server (the quiet time of the `terminal` tool) are omitted,
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
fn created(request: &Create) -> Vec<u8> {
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

pub(super) fn executed(request: &Execute) -> Vec<u8> {
    let (command, inside, budget) =
        (request.command.as_str(), request.shell == TargetShell::Nested, request.budget.chars);
    let limit = request.time_limit.map(|limit| match limit.ending {
        Ending::Interrupt => Limited::Interrupt(limit.after.as_micros()),
        Ending::Kill => Limited::Kill(limit.after.as_micros()),
    });
    json(&Executed { command, inside, wait: waited(request.wait.as_ref()), limit, budget })
}

pub(super) fn typed(request: &Input) -> Vec<u8> {
    let what = match &request.bytes {
        InputBytes::Raw(bytes) => Bytes::Raw(bytes),
        InputBytes::Keys(keys) => Bytes::Keys(keys),
        InputBytes::Paste { text, enters } => Bytes::Paste { text, enters: *enters },
    };
    json(&Typed { what, secret: request.is_secret, wait: waited(request.wait.as_ref()), budget: request.budget.chars })
}

/// A hash that identifies the request, also in a later version. It covers only the caller's own fields: a connection's
/// additions may differ after a restart.
pub(super) fn asked_for(request: &Create) -> u64 {
    fnv(&created(request))
}

/// FNV-1a: a hash for naming, not for security.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::action::{Budget, TimeLimit};
    use crate::ids::SessionId;

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
