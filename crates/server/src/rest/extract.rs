//! Extractors for handlers, and the limits of single values; every failure is a [`ProblemResponse`] that names the
//! field.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use api::ErrorCode;
use axum::Json;
use axum::extract::{Extension, FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::HeaderName;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::state::{Rest, unexpected};
use crate::http::problem::ProblemResponse;
use crate::http::request_body::Inbox;
use ptyd_core::action::{self, Action, Budget, Outcome, Pattern, PatternShare, Wait};
use ptyd_core::approval_wait::ApprovalWait;
use ptyd_core::ids::{CommandId, SessionId};
use ptyd_core::limits;
use ptyd_core::principal::Principal;

/// The header that makes a repeated POST idempotent.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Longer keys than any UUID or hash would only fill the sessions' events.
const KEY_CHARS_MAX: usize = 200;
/// The header by which a client of a principal names itself, to have a read cursor of its own.
const CLIENT: HeaderName = HeaderName::from_static("ptyd-client");
/// The longest name of a client; it is stored with each position.
const CLIENT_CHARS_MAX: usize = 64;

/// A JSON body. An absent body is `{}`. The content type is ignored, because every request has shown a token or came
/// over the Unix socket, and a browser's form post could do neither.
#[derive(Debug)]
pub(super) struct Body<T, const BYTES_MAX: usize = { limits::BODY_PLAIN_BYTES_MAX }>(pub(super) T);

/// A body with a command, with input, or with the settings of a new session.
pub(super) type LongBody<T> = Body<T, { limits::BODY_BYTES_MAX }>;

impl<T: DeserializeOwned, S: Send + Sync, const BYTES_MAX: usize> FromRequest<S> for Body<T, BYTES_MAX> {
    type Rejection = ProblemResponse;

    async fn from_request(request: Request, _: &S) -> Result<Self, ProblemResponse> {
        let (mut parts, body) = request.into_parts();
        let inbox = parts.extensions.remove::<Inbox>().unwrap_or_else(Inbox::alone);
        let bytes = inbox.take(body, BYTES_MAX).await?;
        inbox.work(bytes.len(), || parse(&bytes)).await.map(Self)
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ProblemResponse> {
    let text = if bytes.trim_ascii().is_empty() { b"{}" } else { bytes };
    let value = Json::from_bytes(text).map(|Json(value)| value).map_err(|e| match &e {
        axum::extract::rejection::JsonRejection::JsonDataError(data) => at_field(&inner(data)),
        other => ProblemResponse::new(ErrorCode::MalformedBody, format!("the body is not JSON: {}", inner(other))),
    })?;
    // A list of the fields' values without their names would be read, too.
    if text.trim_ascii_start().starts_with(b"[") {
        return Err(ProblemResponse::new(ErrorCode::InvalidField, "the body is a list; it must be an object"));
    }
    Ok(value)
}

/// A query string.
#[derive(Debug)]
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ProblemResponse;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ProblemResponse> {
        Query::try_from_uri(&parts.uri).map(|Query(value)| Self(value)).map_err(|e| at_field(&inner(&e)))
    }
}

/// The cause without the framework's own text around it.
fn inner(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Extracts the field from `<path>: <problem>`, or from the first word in backticks if the path is the body itself (a
/// missing or an unknown field).
fn at_field(text: &str) -> ProblemResponse {
    let is_path = |p: &str| !p.is_empty() && p != "." && !p.contains([' ', '`']);
    if let Some((path, problem)) = text.split_once(": ").filter(|(path, _)| is_path(path)) {
        return ProblemResponse::field(path.trim_end_matches('.'), problem);
    }
    let field = text.split('`').nth(1).map(str::to_owned);
    ProblemResponse { code: ErrorCode::InvalidField, detail: text.to_owned(), field }
}

/// The principal with the wait for a person's decision that its request names.
pub(super) fn awaiting_approval(principal: Principal, seconds: Option<f64>) -> Result<Principal, ProblemResponse> {
    let Some(given) = seconds else { return Ok(principal) };
    let most = limits::APPROVAL_LIFETIME;
    let time = Duration::try_from_secs_f64(given).ok().filter(|time| *time <= most);
    let time = time.ok_or_else(|| {
        ProblemResponse::field("approvalTimeout", format!("must be from 0 to {} seconds", most.as_secs()))
    })?;
    Ok(Principal { approval_wait: Some(ApprovalWait::at_most(time)), ..principal })
}

/// The principal with the wait for the keyboard that its request names.
pub(super) fn awaiting_keyboard(principal: Principal, seconds: Option<f64>) -> Result<Principal, ProblemResponse> {
    let Some(given) = seconds else { return Ok(principal) };
    let most = limits::KEYBOARD_PATIENCE_MAX;
    let time = Duration::try_from_secs_f64(given).ok().filter(|time| *time <= most);
    let keyboard_patience = time.ok_or_else(|| {
        ProblemResponse::field("driverTimeout", format!("must be from 0 to {} seconds", most.as_secs()))
    })?;
    Ok(Principal { keyboard_patience, ..principal })
}

/// The session in the path: its id or its name.
#[derive(Debug)]
pub(super) struct Session(pub(super) SessionId);

impl FromRequestParts<Rest> for Session {
    type Rejection = ProblemResponse;

    async fn from_request_parts(parts: &mut Parts, rest: &Rest) -> Result<Self, ProblemResponse> {
        let text = segment(parts, rest, "session").await;
        if let Ok(id) = SessionId::parse(&text) {
            return Ok(Self(id));
        }
        let Extension(principal) = principal(parts, rest).await?;
        match rest.act(&principal, Action::FindSession(text)).await? {
            Outcome::SessionId(id) => Ok(Self(id)),
            other => Err(unexpected(&other)),
        }
    }
}

async fn principal<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Extension<Principal>, ProblemResponse> {
    let missing = |_| ProblemResponse::new(ErrorCode::Internal, "the request has no principal");
    Extension::from_request_parts(parts, state).await.map_err(missing)
}

/// The name of an action in the path; the session checks it.
#[derive(Debug)]
pub(super) struct ActionName(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for ActionName {
    type Rejection = ProblemResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemResponse> {
        Ok(Self(segment(parts, state, "action").await))
    }
}

/// The command in the path.
#[derive(Debug)]
pub(super) struct Command(pub(super) CommandId);

impl<S: Send + Sync> FromRequestParts<S> for Command {
    type Rejection = ProblemResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemResponse> {
        let text = segment(parts, state, "command").await;
        CommandId::parse(&text).map(Self).ok_or_else(|| {
            let shown: String = text.chars().take(64).collect();
            ProblemResponse::new(ErrorCode::CommandNotFound, format!("no command {shown}; GET …/commands lists them"))
        })
    }
}

async fn segment<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> String {
    let all = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
    // A segment that is not UTF-8 cannot be an id.
    all.ok().and_then(|Path(mut all)| all.remove(name)).unwrap_or_default()
}

/// The `Idempotency-Key`, if there is one.
#[derive(Debug)]
pub(super) struct Key(pub(super) Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for Key {
    type Rejection = ProblemResponse;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ProblemResponse> {
        let Some(value) = parts.headers.get(IDEMPOTENCY_KEY) else { return Ok(Self(None)) };
        let key = value
            .to_str()
            .ok()
            .filter(|k| (1..=KEY_CHARS_MAX).contains(&k.len()) && k.bytes().all(|b| b.is_ascii_graphic()));
        key.map(|k| Self(Some(k.to_owned()))).ok_or_else(|| {
            ProblemResponse::field("Idempotency-Key", format!("must be 1 to {KEY_CHARS_MAX} visible ASCII characters"))
        })
    }
}

/// The caller, with the name that its client gave itself in `Ptyd-Client`. In a batch, the header of the batch counts.
#[derive(Debug)]
pub(super) struct Reader(pub(super) Principal);

impl<S: Send + Sync> FromRequestParts<S> for Reader {
    type Rejection = ProblemResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemResponse> {
        let Extension(principal) = principal(parts, state).await?;
        // An operation of a batch has the delivery of the batch.
        let delivery = principal.delivery.clone().or_else(|| parts.extensions.get().cloned());
        let principal = Principal { delivery, ..principal };
        let mut names = parts.headers.get_all(CLIENT).iter();
        let Some(name) = names.next() else { return Ok(Self(principal)) };
        let name = name.to_str().ok().filter(|name| is_client_name(name));
        match (name, names.next()) {
            (Some(name), None) => Ok(Self(Principal { client: Some(name.to_owned()), ..principal })),
            (None, _) | (Some(_), Some(_)) => Err(ProblemResponse::new(
                ErrorCode::MalformedHead,
                format!(
                    "Ptyd-Client: must be one name of 1 to {CLIENT_CHARS_MAX} letters, digits, dots, dashes and \
                     underscores; without the header, all clients of the principal share one read position"
                ),
            )),
        }
    }
}

fn is_client_name(name: &str) -> bool {
    (1..=CLIENT_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Seconds with fractions, within the longest timeout.
pub(super) fn seconds(field: &'static str, value: Option<f64>, default: Duration) -> Result<Duration, ProblemResponse> {
    let Some(value) = value else { return Ok(default) };
    let most = limits::TIMEOUT_MAX.as_secs_f64();
    if (0.0..=most).contains(&value) {
        Ok(Duration::from_secs_f64(value))
    } else {
        Err(ProblemResponse::field(field, format!("{value} is not between 0 and {most} seconds")))
    }
}

/// Milliseconds, within the longest timeout.
pub(super) fn millis(field: &'static str, value: u64) -> Result<Duration, ProblemResponse> {
    let asked = Duration::from_millis(value);
    let most = limits::TIMEOUT_MAX;
    if asked <= most {
        Ok(asked)
    } else {
        Err(ProblemResponse::field(field, format!("{value} is more than {}", most.as_millis())))
    }
}

/// A number within `least` to `most`.
pub(super) fn count(
    field: &'static str,
    value: Option<u64>,
    default: usize,
    least: usize,
    most: usize,
) -> Result<usize, ProblemResponse> {
    let Some(value) = value else { return Ok(default) };
    let fits = usize::try_from(value).ok().filter(|v| (least..=most).contains(v));
    fits.ok_or_else(|| ProblemResponse::field(field, format!("{value} is not between {least} and {most}")))
}

/// The text budget of an answer, in characters.
pub(super) fn budget(value: Option<u64>) -> Result<Budget, ProblemResponse> {
    count("maxChars", value, limits::BUDGET_CHARS, 0, limits::BUDGET_CHARS_MAX).map(Budget::from)
}

/// A size in cells; `prefix` is its path in the body.
pub(super) fn size(prefix: &str, size: api::Dimensions) -> Result<(u16, u16), ProblemResponse> {
    for (name, value, most) in [("cols", size.cols, limits::COLS_MAX), ("rows", size.rows, limits::ROWS_MAX)] {
        if !(1..=most).contains(&value) {
            return Err(ProblemResponse::field(
                format!("{prefix}{name}"),
                format!("{value} is not between 1 and {most}"),
            ));
        }
    }
    Ok((size.cols, size.rows))
}

/// A regular expression; `^` and `$` match at lines, because output is lines.
pub(super) async fn pattern(
    patterns: &Arc<PatternShare>,
    field: &'static str,
    text: Option<&str>,
) -> Result<Option<Pattern>, ProblemResponse> {
    let Some(text) = text else { return Ok(None) };
    Ok(Some(patterns.compile(field, "", text).await?))
}

/// Adds the conditions that end a wait.
pub(super) async fn until(patterns: &Arc<PatternShare>, wait: Wait, words: &[String]) -> Result<Wait, ProblemResponse> {
    Ok(wait.until(patterns, words).await?)
}

/// A signal by name or number, in this field of a request.
pub(super) fn signal(field: &'static str, text: &str) -> Result<i32, ProblemResponse> {
    signal_number(text).map_err(|why| ProblemResponse::field(field, why))
}

/// A signal by name or number; an error says what is wrong with it.
pub(super) fn signal_number(text: &str) -> Result<i32, String> {
    action::signal_number(text).ok_or_else(|| {
        let shown: String = text.chars().take(32).collect();
        format!("{shown} is not a signal; give a name such as INT, TERM or KILL, or a number from 1 to 64")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T: DeserializeOwned + std::fmt::Debug>(body: &str) -> (ErrorCode, Option<String>) {
        let refusal = parse::<T>(body.as_bytes()).expect_err("not a valid body");
        (refusal.code, refusal.field)
    }

    #[test]
    fn a_body_that_does_not_validate_names_the_field() {
        let invalid = |field: &str| (ErrorCode::InvalidField, Some(field.to_owned()));
        assert_eq!(refused::<api::ExecuteRequest>("{}"), invalid("command"));
        assert_eq!(refused::<api::ExecuteRequest>(r#"{"command":7}"#), invalid("command"));
        assert_eq!(refused::<api::ExecuteRequest>(r#"{"command":"a","wait":1}"#), invalid("wait"));
        assert_eq!(refused::<api::ExecuteRequest>(r#"{"command":"a","timeout":"1"}"#), invalid("timeout"));
        assert_eq!(
            refused::<api::CreateRequest>(r#"{"dimensions":{"cols":70000,"rows":1}}"#),
            invalid("dimensions.cols")
        );
        assert_eq!(refused::<api::CreateRequest>(r#"{"dimensions":{"cols":7}}"#), invalid("dimensions"));
        assert_eq!(refused::<api::CreateRequest>(r#"{"env":{"A":1}}"#), invalid("env.A"));
        assert_eq!(refused::<api::SignalRequest>(r#"{"signal":[]}"#), invalid("signal"));
    }

    #[test]
    // promise: rest-3
    fn a_list_of_values_is_refused_as_a_body() {
        for body in ["[]", " [null, null]", "[\"bash\"]"] {
            assert_eq!(refused::<api::CreateRequest>(body).0, ErrorCode::InvalidField, "{body}");
            assert_eq!(refused::<api::WaitRequest>(body).0, ErrorCode::InvalidField, "{body}");
        }
    }

    #[test]
    fn a_body_that_is_not_json_is_malformed_and_a_missing_one_counts_as_empty() {
        for body in ["{", "{}}", "\u{1}", "{\"name\""] {
            assert_eq!(refused::<api::CreateRequest>(body), (ErrorCode::MalformedBody, None), "{body}");
        }
        assert_eq!(parse::<api::CreateRequest>(b" \n").expect("empty"), api::CreateRequest::default());
    }

    #[test]
    // promise: rest-11
    fn null_for_an_optional_field_is_as_if_it_were_omitted() {
        /// Every optional field of a request, as null, beside those that it needs.
        fn check<T: DeserializeOwned + PartialEq + std::fmt::Debug + schemars::JsonSchema>(needed: &str) {
            let schema = schemars::schema_for!(T).to_value();
            let mut body: serde_json::Map<_, _> = serde_json::from_str(needed).expect("JSON");
            for name in schema["properties"].as_object().expect("fields").keys() {
                body.entry(name).or_insert(serde_json::Value::Null);
            }
            let text = serde_json::to_vec(&body).expect("JSON");
            let (nulls, left_out) = (parse::<T>(&text), parse::<T>(needed.as_bytes()));
            assert_eq!(nulls.map_err(|r| r.detail), left_out.map_err(|r| r.detail), "{}", schema["title"]);
        }
        check::<api::CreateRequest>("{}");
        check::<api::SessionAction>("{}");
        check::<api::Limits>("{}");
        check::<api::TerminateQuery>("{}");
        check::<api::ExecuteRequest>(r#"{"command":"a"}"#);
        check::<api::InputRequest>("{}");
        check::<api::SignalRequest>(r#"{"signal":"INT"}"#);
        check::<api::WaitRequest>("{}");
        check::<api::TicketRequest>("{}");
        check::<api::TokenRequest>(r#"{"name":"a"}"#);
        check::<api::Operation>(r#"{"method":"GET","path":"/"}"#);
    }

    #[test]
    fn a_query_that_does_not_validate_names_the_field() {
        let query = |text: &str| {
            let uri = format!("/x?{text}").parse().expect("a uri");
            let refused = Query::<api::OutputQuery>::try_from_uri(&uri).map_err(|e| at_field(&inner(&e)));
            refused.map(|Query(q)| q).map_err(|r| r.field)
        };
        assert_eq!(query("maxBytes=x"), Err(Some("maxBytes".into())));
        assert_eq!(query("limitt=1"), Err(Some("limitt".into())));
        assert_eq!(query("view=pdf"), Err(Some("view".into())));
        assert_eq!(query("waitMs=5&since=last").map(|q| (q.wait_ms, q.since)), Ok((Some(5), Some("last".into()))));
    }

    #[test]
    // promise: rest-3
    fn every_number_has_a_bound() {
        assert_eq!(seconds("timeout", Some(0.25), Duration::ZERO), Ok(Duration::from_millis(250)));
        for bad in [-0.1, 86_400.5, f64::NAN, f64::INFINITY] {
            assert_eq!(seconds("timeout", Some(bad), Duration::ZERO).map_err(|r| r.field), Err(Some("timeout".into())));
        }
        assert_eq!(
            count("limit", Some(0), 1, 1, 9).map_err(|r| r.detail),
            Err("limit: 0 is not between 1 and 9".into())
        );
        assert_eq!(count("limit", None, 1, 1, 9), Ok(1));
        let refused = size("dimensions.", api::Dimensions { cols: 80, rows: 0 }).map_err(|r| r.detail);
        assert_eq!(refused, Err("dimensions.rows: 0 is not between 1 and 1000".into()));
    }
}
