//! `…/input`, `…/signal` and `…/wait`: types input, sends signals and waits.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::extract::{self, Body, Key, LongBody, Reader, Session};
use super::state::Rest;
use crate::http::problem::ProblemResponse;
use ptyd_core::action::{Action, Input, InputBytes, PatternShare, SignalTarget, Wait};
use ptyd_core::ids::SessionId;
use ptyd_core::principal::Principal;
use ptyd_core::{keys, limits};

/// The byte of the Enter key. Terminals send CR; for programs in canonical mode the kernel makes it a newline (ICRNL),
/// while programs in raw mode know no other Enter (for fzf a LF is "down").
const ENTER: u8 = b'\r';

pub(super) async fn input(
    State(rest): State<Rest>,
    Reader(principal): Reader,
    Session(session): Session,
    Key(key): Key,
    Body(body): LongBody<api::InputRequest>,
) -> Result<Json<api::WaitAnswer>, ProblemResponse> {
    let principal = extract::awaiting_approval(principal, body.approval_timeout)?;
    let principal = extract::awaiting_keyboard(principal, body.driver_timeout)?;
    rest.report(&principal, Action::Input(to_input(&rest.patterns(&principal), session, body, key).await?)).await
}

async fn to_input(
    patterns: &Arc<PatternShare>,
    session: SessionId,
    body: api::InputRequest,
    key: Option<String>,
) -> Result<Input, ProblemResponse> {
    let pattern = extract::pattern(patterns, "waitFor", body.wait_for.as_deref()).await?;
    let waits = pattern.is_some() || body.timeout.is_some() || !body.until.is_empty();
    let timeout = extract::seconds("timeout", body.timeout, limits::EXECUTE_TIMEOUT)?;
    let budget = extract::budget(body.max_chars)?;
    if body.paste && body.input.is_none() {
        return Err(ProblemResponse::field("paste", "works only with input"));
    }
    let bytes = match (body.input, body.input_base64, body.keys) {
        (Some(text), None, None) if body.paste => InputBytes::Paste { text, enters: body.end_with_newline },
        (Some(text), None, None) => raw("input", text.into_bytes(), body.end_with_newline)?,
        (None, Some(encoded), None) => {
            let bytes = STANDARD.decode(encoded).map_err(|e| ProblemResponse::field("inputBase64", e))?;
            raw("inputBase64", bytes, body.end_with_newline)?
        }
        (None, None, Some(names)) => named(&names, body.end_with_newline)?,
        (None, None, None) => {
            return Err(ProblemResponse::field("input", "one of input, inputBase64 and keys is needed"));
        }
        _ => return Err(ProblemResponse::field("input", "only one of input, inputBase64 and keys can be given")),
    };
    let wait = Wait { pattern, input_wanted: true, ..Wait::at_most(timeout) };
    let wait = waits.then_some(extract::until(patterns, wait, &body.until).await?);
    // A REST client is told of an end by what it asks; nothing here remembers what it knows.
    let (is_secret, is_hidden, without_echo, meant_for) = (body.secret, false, false, None);
    Ok(Input { session, bytes, is_secret, is_hidden, wait, key, budget, without_echo, meant_for })
}

fn raw(field: &'static str, mut bytes: Vec<u8>, ends_with_enter: bool) -> Result<InputBytes, ProblemResponse> {
    if ends_with_enter {
        bytes.push(ENTER);
    }
    if bytes.len() > limits::INPUT_BYTES_MAX {
        return Err(ProblemResponse::field(field, format!("has more than {} bytes", limits::INPUT_BYTES_MAX)));
    }
    Ok(InputBytes::Raw(bytes))
}

fn named(names: &[String], ends_with_enter: bool) -> Result<InputBytes, ProblemResponse> {
    if names.len() > limits::INPUT_KEYS_MAX {
        return Err(ProblemResponse::field(
            "keys",
            format!("more than {}; send text as input", limits::INPUT_KEYS_MAX),
        ));
    }
    let enter = ends_with_enter.then_some("Enter");
    let mut all = Vec::new();
    for name in names.iter().map(String::as_str).chain(enter) {
        all.extend(keys::parse(name).map_err(|e| ProblemResponse::field("keys", e))?);
    }
    Ok(InputBytes::Keys(all))
}

pub(super) async fn signal(
    State(rest): State<Rest>,
    Extension(principal): Extension<Principal>,
    Session(session): Session,
    Body(body): Body<api::SignalRequest>,
) -> Result<Json<api::TerminalSession>, ProblemResponse> {
    let (target, signo) = to_signal(body)?;
    rest.session(&principal, Action::Signal { session, target, signo }).await
}

fn to_signal(body: api::SignalRequest) -> Result<(SignalTarget, i32), ProblemResponse> {
    let signo = match body.signal {
        api::NumberOrName::Number(number) => extract::signal("signal", &number.to_string())?,
        api::NumberOrName::Name(name) => extract::signal("signal", &name)?,
    };
    let unknown =
        || ProblemResponse::field("target", "must be foreground, session or the id of a process of the session");
    let target = match body.target {
        None => SignalTarget::Foreground,
        Some(api::NumberOrName::Name(name)) if name == "foreground" => SignalTarget::Foreground,
        Some(api::NumberOrName::Name(name)) if name == "session" => SignalTarget::Session,
        Some(api::NumberOrName::Name(_)) => return Err(unknown()),
        // For kill(2), 0 and numbers beyond pid_t mean groups, never one process.
        Some(api::NumberOrName::Number(pid)) if pid > 0 && i32::try_from(pid).is_ok() => SignalTarget::Process(pid),
        Some(api::NumberOrName::Number(_)) => return Err(unknown()),
    };
    Ok((target, signo))
}

pub(super) async fn wait(
    State(rest): State<Rest>,
    Reader(principal): Reader,
    Session(session): Session,
    Body(body): Body<api::WaitRequest>,
) -> Result<Json<api::WaitAnswer>, ProblemResponse> {
    let patterns = &rest.patterns(&principal);
    let wait = Wait {
        pattern: extract::pattern(patterns, "waitFor", body.wait_for.as_deref()).await?,
        input_wanted: body.input_wanted,
        quiet: body.quiet_ms.map(|ms| extract::millis("quietMs", ms)).transpose()?,
        ..Wait::at_most(extract::seconds("timeout", body.timeout, limits::EXECUTE_TIMEOUT)?)
    };
    let wait = extract::until(patterns, wait, &body.until).await?;
    rest.report(
        &principal,
        Action::Wait { session, wait, command: None, budget: extract::budget(body.max_chars)?, moves_cursor: true },
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::test_support::at_once;

    fn parse(body: &str) -> Result<Input, Option<String>> {
        let session = SessionId::parse("s0-aaaaaaaaaa").expect("an id");
        at_once(to_input(&Arc::default(), session, serde_json::from_str(body).expect("a well-formed body"), None))
            .map_err(|r| r.field)
    }

    fn bytes(body: &str) -> InputBytes {
        parse(body).expect("accepted").bytes
    }

    #[test]
    fn text_bytes_and_keys_are_typed_as_they_are() {
        assert_eq!(bytes(r#"{"input":"John"}"#), InputBytes::Raw(b"John".to_vec()));
        assert_eq!(bytes(r#"{"input":"John","endWithNewline":true}"#), InputBytes::Raw(b"John\r".to_vec()));
        assert_eq!(bytes(r#"{"inputBase64":"/wA="}"#), InputBytes::Raw(vec![0xff, 0]));
        let up = keys::parse("Up").expect("a key");
        let enter = keys::parse("Enter").expect("a key");
        assert_eq!(bytes(r#"{"keys":["Up"],"endWithNewline":true}"#), InputBytes::Keys([up, enter].concat()));
    }

    #[test]
    fn input_that_is_ambiguous_missing_or_wrong_is_refused_by_field() {
        let field = |body: &str| parse(body).err().flatten().expect("refused by field");
        assert_eq!(field("{}"), "input");
        assert_eq!(field(r#"{"input":"a","keys":["Up"]}"#), "input");
        assert_eq!(field(r#"{"inputBase64":"!"}"#), "inputBase64");
        assert_eq!(field(r#"{"keys":["NoSuchKey"]}"#), "keys");
        assert_eq!(field(r#"{"input":"a","waitFor":"("}"#), "waitFor");
    }

    #[test]
    fn input_waits_only_if_the_request_names_a_timeout_or_a_condition() {
        assert!(parse(r#"{"input":"a"}"#).expect("accepted").wait.is_none());
        for body in [r#"{"input":"a","timeout":1}"#, r#"{"input":"a","waitFor":"ok"}"#] {
            assert!(parse(body).expect("accepted").wait.is_some(), "{body}");
        }
    }

    #[test]
    fn a_signal_goes_to_the_foreground_unless_the_request_names_a_target() {
        let parse = |body: &str| {
            to_signal(serde_json::from_str(body).expect("a well-formed body")).map_err(|r| r.field.expect("a field"))
        };
        assert_eq!(parse(r#"{"signal":"SIGINT"}"#), Ok((SignalTarget::Foreground, 2)));
        assert_eq!(parse(r#"{"signal":9,"target":"session"}"#), Ok((SignalTarget::Session, 9)));
        assert_eq!(parse(r#"{"signal":"TERM","target":4711}"#), Ok((SignalTarget::Process(4711), 15)));
        assert_eq!(parse(r#"{"signal":"TERM","target":0}"#), Err("target".into()));
        assert_eq!(parse(r#"{"signal":65}"#), Err("signal".into()));
    }
}
